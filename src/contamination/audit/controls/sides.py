"""Do published and held-out records differ in what no model has made?

Das et al. (2024), *Blind Baselines Beat Membership Inference Attacks for Foundation
Models*: where lengths, dates or words tell the sides apart, a difference of membership
scores may show that alone. The sides were then hardly divided by a random draw, and the
test of `statistics.held_out` says nothing. The same draws of labels test each baseline,
in either direction.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from contamination.audit.controls.diagnosis import tf_idf
from contamination.membership.blind import latest_year
from contamination.randomness import random_stream
from contamination.statistics.held_out import sides_test

FEATURES = ("length", "dates", "compressed length", "words")
RESAMPLES = 1_999
MOST_RECORDS = 4_000  # of which words are compared two by two; of more, a random part is


@dataclass(frozen=True)
class SidesControl:
    """The p-values of baselines that never ask a model.

    Attributes
    ----------
    p_values
        Of each baseline in `FEATURES`.
    p
        Of the smallest, corrected for the choice.
    """

    p_values: dict[str, float]
    p: float

    @property
    def best(self) -> str:
        """Return the baseline that tells the sides apart best."""
        return min(self.p_values, key=self.p_values.__getitem__)


def compare_sides(
    texts: Sequence[str], published: ArrayLike, strata: ArrayLike, *, seed: int
) -> SidesControl:
    """Return the p-values of baselines on two sides.

    Parameters
    ----------
    texts
        Of all records, (n,).
    published, strata
        As in `contamination.statistics.held_out.held_out_test`.
    seed
        Name of the draws.

    Raises
    ------
    InputError
        As `sides_test`.
    """
    labels = np.asarray(published)
    codes = np.asarray(strata)
    rng = random_stream(seed, "blind baselines")
    chosen = _records_compared(labels, codes, rng=rng)
    shown = [texts[record] for record in chosen.tolist()]
    lengths = [float(len(text)) for text in shown]
    years = [latest_year(text) for text in shown]
    compressed = [float(len(zlib.compress(text.encode()))) for text in shown]
    weights = tf_idf(shown)
    p_values, p = sides_test(
        [lengths, years, compressed],
        labels[chosen],
        similarity=(weights @ weights.T).toarray(),
        strata=codes[chosen],
        resamples=RESAMPLES,
        rng=rng,
    )
    named = dict(zip(FEATURES, p_values.tolist(), strict=True))
    return SidesControl(p_values=named, p=p)


def _records_compared(
    published: np.ndarray, strata: np.ndarray, *, rng: np.random.Generator
) -> np.ndarray:
    """Return at most `MOST_RECORDS` records: whole strata, or as many of either side.

    Which ones are taken does not depend on the draw of the sides but by its numbers, so that the
    labels of those taken stay exchangeable.
    """
    if len(published) <= MOST_RECORDS:
        return np.arange(len(published))
    mixed = rng.permutation(len(published))
    values, codes = np.unique(strata, return_inverse=True)
    if len(values) > 1:
        rank = rng.permutation(len(values))[codes]
        mixed = mixed[np.argsort(rank[mixed], kind="stable")]
        return np.sort(mixed[:MOST_RECORDS])
    a_side = MOST_RECORDS // 2
    members = mixed[published[mixed]][:a_side]
    others = mixed[~published[mixed]][:a_side]
    return np.sort(np.concatenate([members, others]))
