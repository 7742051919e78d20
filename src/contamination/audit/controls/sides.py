"""Do published and held-out records differ in what no model has made?

Das et al. (2024), *Blind Baselines Beat Membership Inference Attacks for Foundation
Models*: where lengths, dates, words or the way of writing tell the sides apart, a
difference of membership scores may show that alone. The sides were then hardly divided
by a random draw, and the test of `statistics.held_out` says nothing. The same draws of
labels test each baseline, in either direction.
"""

import math
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from contamination.audit.controls.diagnosis import tf_idf
from contamination.membership.blind import latest_year
from contamination.randomness import random_stream
from contamination.statistics.held_out import sides_test

FEATURES = ("length", "dates", "compressed length", "words", "one word or sign")
RESAMPLES = 1_999
MOST_RECORDS = 4_000  # of which words are compared two by two; of more, a random part is
LEAST_SHARE = 0.05  # of the records have a mark that is looked at
PIECES = re.compile(r"\w+|\s+|[^\w\s]")


@dataclass(frozen=True)
class SidesControl:
    """The p-values of baselines that never ask a model, by the names in `FEATURES`.

    `p` is the smallest of these p-values, corrected for the choice.
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

    `texts` are those of all records, (n,); `published` and `strata` are what
    `contamination.statistics.held_out.held_out_test` takes; `seed` names the draws.
    Raises InputError for shapes that do not fit, or strata of which none has both
    sides.
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
        marks=mark_table(shown),
        strata=codes[chosen],
        resamples=RESAMPLES,
        rng=rng,
    )
    named = dict(zip(FEATURES, p_values.tolist(), strict=True))
    return SidesControl(p_values=named, p=p)


def mark_table(texts: Sequence[str]) -> np.ndarray:
    """Return which of the texts (column) have which mark (row), as booleans.

    Marks that fewer than `LEAST_SHARE` of the texts have, or all of them, are left out.
    """
    marks = [marks_of(text) for text in texts]
    counts = Counter[str]()
    for of_text in marks:
        counts.update(of_text)
    least = math.ceil(LEAST_SHARE * len(texts))
    rows = []
    for mark, count in counts.items():
        if least <= count < len(texts):
            rows.append([mark in of_text for of_text in marks])
    return np.array(rows, dtype=np.bool_).reshape(len(rows), len(texts))


def marks_of(text: str) -> set[str]:
    """Return what a text has or has not: words, signs and blanks as written, and its ends.

    Examples
    --------
    >>> sorted(marks_of("So it is."))
    [' ', '.', '. at the end', 'So', 'So at the beginning', 'is', 'it']
    """
    pieces = PIECES.findall(text)
    marks = set(pieces)
    if pieces:
        marks.add(f"{pieces[0]} at the beginning")
        marks.add(f"{pieces[-1]} at the end")
    return marks


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
