"""Published records against records that a random draw held back: no order is needed.

New here; the null hypothesis is that of dataset inference (Maini et al., 2024, *LLM
Dataset Inference*), made exact by a permutation test. A membership score says how
likely a model has read a record. If the records of a set were divided at random into a
published and a held-out part, and the model does not depend on that draw, the scores of
both parts are exchangeable: every division of the same records into parts of the same
sizes was as likely. Only reading the published part can raise its scores above those of
the other.

The draw may be one within strata (records of one source, or pairs of a record and its
twin): labels then trade places within a stratum alone. Scores are centred within their
stratum first (aligned, as Hodges and Lehmann, 1962), so that strata of unlike scores
can be added up.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.special
import scipy.stats
from numpy.typing import ArrayLike

from contamination.errors import InputError
from contamination.statistics.inputs import (
    as_array,
    as_booleans,
    as_count,
    as_names,
    check_generator,
)
from contamination.statistics.results import PValue
from contamination.statistics.scale import without_scale
from contamination.statistics.sides import (
    Booleans,
    Floats,
    Sides,
    check_records,
    side_scores,
)

# Steps of a contribution: whole numbers add up without rounding, so that ties are ties.
_GRID = 2.0**24

# --- the statistics -------------------------------------------------------------------------------


def _differences(aligned: Floats) -> Floats:
    """Return the scores themselves: the statistic is a difference of means."""
    return aligned


def _ranks(aligned: Floats) -> Floats:
    """Return ranks: the statistic is Wilcoxon's rank sum, of aligned scores."""
    return np.asarray(scipy.stats.rankdata(aligned, axis=-1))


def _tail(aligned: Floats) -> Floats:
    """Return Savage scores, which count the largest most: the statistic sees a few read records.

    The score of the k-th smallest of n is 1/n + 1/(n-1) + ... + 1/(n-k+1), the mean of
    the k-th smallest of n exponential numbers; ties share their mean.
    """
    count = aligned.shape[-1]
    expected = np.cumsum(1.0 / np.arange(count, 0, -1))
    lowest = scipy.stats.rankdata(aligned, method="min", axis=-1).astype(np.intp)
    highest = scipy.stats.rankdata(aligned, method="max", axis=-1).astype(np.intp)
    total = np.concatenate([[0.0], np.cumsum(expected)])
    return np.asarray((total[highest] - total[lowest - 1]) / (highest - lowest + 1))


# What a score is turned into before it is summed over published records, (q, n) to (q,
# n).
STATISTICS: dict[str, Callable[[Floats], Floats]] = {
    "mean": _differences,
    "rank": _ranks,
    "tail": _tail,
}
DEFAULT_STATISTIC = "rank"  # none was better on two seeds: docs/power.md


@dataclass(frozen=True, eq=False, kw_only=True)
class HeldOutResult(PValue):
    """Outcome of `held_out_test`.

    The statistic is the sum of the best score over published records, in standard
    deviations of its law under H0.

    Attributes
    ----------
    test
        Name of the test in tables.
    names
        Names of the q scores.
    best
        The one with the smallest p-value of its own. The p-value has paid for the
        choice.
    marginal_p
        (q,), each score's own p-value, not corrected for there being q of them.
    published, held_out
        Records in strata that have both sides.
    strata
        Number of those.
    resamples
        Divisions that were drawn.
    log10_least
        Decimal logarithm of the least p that this number of draws and divisions
        permits. As p is sampled, it may be slightly below where there are fewer
        divisions than draws.
    """

    test: str = "held_out"
    names: tuple[str, ...]
    best: str
    marginal_p: tuple[float, ...]
    published: int
    held_out: int
    strata: int
    resamples: int
    log10_least: float


def held_out_test(
    scores: ArrayLike,
    published: ArrayLike,
    *,
    strata: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    statistic: str = DEFAULT_STATISTIC,
    resamples: int,
    rng: np.random.Generator,
) -> HeldOutResult:
    """Test whether published records score higher than records that a draw held back.

    Parameters
    ----------
    scores
        (n,) or (q, n), q membership scores of n records; larger is more likely read.
    published
        (n,), True or 1 for a published record, False or 0 for one that was held out.
    strata
        (n,), numbers or texts: the division was drawn within them. A pair of a record
        and its twin is a stratum of two. By default all records are one stratum.
    names
        Names of the scores; "0", "1" and so on if not given.
    statistic
        Name from `STATISTICS`: "mean", "rank" or "tail". Choose it before you look.
    resamples
        Number of drawn divisions; no p is below 1 / (resamples + 1).
    rng
        Draws the divisions.

    Returns
    -------
    HeldOutResult.

    Raises
    ------
    InputError
        For shapes that do not fit, a score that is not a finite number, strata of which
        none has both sides, or a statistic that does not exist.

    Notes
    -----
    H0: which records were published and which were held back was drawn uniformly within
    strata, and the scores do not depend on the draw. Alternative: published records
    score higher. The observed division and the drawn ones are then exchangeable, so P(p
    <= alpha) <= alpha holds exactly for any scores, any dependence of records and of
    scores, and any number of draws (Phipson and Smyth, 2010). Several scores are
    combined by the smallest of their p-values over the same draws (Westfall and Young,
    1993, min-p), whose law is that of the draws as well.

    Ties count against the observed division.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> published = np.arange(60) < 30
    >>> scores = rng.normal(size=60) + 1.5 * published
    >>> held_out_test(scores, published, resamples=999, rng=rng).p
    0.001
    """
    check_generator(rng)
    count = as_count(resamples, "resamples", 1)
    values = side_scores(scores)
    labels = as_names(names, len(values))
    if statistic not in STATISTICS:
        known = ", ".join(STATISTICS)
        raise InputError(f"statistic is {statistic!r:.40}: choose one of {known}")
    sides = Sides.of(published, strata)
    check_records(values, sides)
    contributions = _on_grid(STATISTICS[statistic](_centred(values, sides)))
    rows = [sides.published[None] @ contributions.T]
    rows += [division @ contributions.T for division in sides.draws(count, rng=rng)]
    sums = np.vstack(rows)
    p_values, p = _min_p(sums)
    best = int(np.argmin(p_values))
    spread = sums[:, best].std()
    deviation = (sums[0, best] - sums[:, best].mean()) / spread if spread else 0.0
    informative = sides.informative
    members = int((informative & sides.published).sum())
    return HeldOutResult(
        statistic=float(deviation),
        p=p,
        log10_p=math.log10(p),
        names=labels,
        best=labels[best],
        marginal_p=tuple(p_values.tolist()),
        published=members,
        held_out=int(informative.sum()) - members,
        strata=len(np.unique(sides.strata[informative])),
        resamples=count,
        log10_least=max(-math.log10(count + 1), -sides.log_divisions / math.log(10)),
    )


def sides_test(
    features: ArrayLike,
    published: ArrayLike,
    *,
    similarity: ArrayLike | None = None,
    marks: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    resamples: int,
    rng: np.random.Generator,
) -> tuple[Floats, float]:
    """Test whether two sides differ in what no model has made, in either direction.

    Parameters
    ----------
    features
        (q, n), numbers of records, such as their lengths.
    published, strata
        Same as in `held_out_test`.
    similarity
        (n, n), inner products of vectors of the records, such as weights of their
        words. The distance between the mean vectors of the two sides is then one more
        feature.
    marks
        (m, n), True or 1 for a record that has the mark, such as a word. The mark that
        one side has most often, compared with the other, is then one more feature.
    resamples, rng
        Same as in `held_out_test`.

    Returns
    -------
    p_values
        p-value of each feature, then that of the distance, and last that of the marks,
        if there are any.
    p
        p-value of the smallest of them, by the law of the smallest under the same draws
        (min-p).

    Raises
    ------
    InputError
        For shapes that do not fit, a number that is not finite, or strata of which none
        has both sides.

    Notes
    -----
    H0 is that of `held_out_test`, and the p-values are exact in the same way. The
    distance of means is the maximum mean discrepancy (Gretton et al., 2012) with a
    linear kernel. It adds up many small differences, and hardly sees one mark that all
    records of a side have. Each mark counts in its own standard deviations, and the
    largest decides (max-T, Westfall and Young, 1993).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> published = np.arange(40) < 20
    >>> lengths = np.where(published, 30.0, 40.0) + rng.normal(size=40)
    >>> p_values, p = sides_test([lengths], published, resamples=999, rng=rng)
    >>> p
    0.001
    """
    check_generator(rng)
    count = as_count(resamples, "resamples", 1)
    sides = Sides.of(published, strata)
    values = side_scores(features)
    check_records(values, sides)
    ranks = _on_grid(_centred(_ranks(_centred(values, sides)), sides))
    kernel = None
    if similarity is not None:
        size = len(sides.published)
        products = as_array(similarity, "similarity", (size, size))
        kernel = _centred(_centred(products, sides).T, sides)
        kernel = _on_grid(kernel.reshape(1, -1)).reshape(size, size)
    deviations = None
    if marks is not None:
        held = as_booleans(marks, "marks", (None, len(sides.published)))
        deviations = _in_deviations(held.astype(np.float64), sides)

    def differences(divisions: Booleans) -> Floats:
        labels = divisions.astype(np.float64)
        columns = [np.abs(labels @ ranks.T)]
        if kernel is not None:
            columns.append(np.einsum("bi,bi->b", labels @ kernel, labels))
        if deviations is not None:
            columns.append(np.abs(labels @ deviations.T).max(axis=1, initial=0.0))
        return np.column_stack(columns)

    rows = [differences(sides.published[None])]
    rows += [differences(division) for division in sides.draws(count, rng=rng)]
    return _min_p(np.vstack(rows))


# --- checks and sums ------------------------------------------------------------------------------


def _centred(values: Floats, sides: Sides) -> Floats:
    """Subtract from (q, n) values their mean over the stratum."""
    sizes = np.bincount(sides.strata)
    centred = np.empty_like(values)
    for row, numbers in enumerate(values):
        means = np.bincount(sides.strata, weights=numbers) / np.maximum(sizes, 1)
        centred[row] = numbers - means[sides.strata]
    return centred


def _in_deviations(marks: Floats, sides: Sides) -> Floats:
    """Centre (m, n) marks within strata, and return each in units of its own spread.

    Strata with one side count for nothing, and so does a mark that all records of a
    stratum have.
    """
    centred = _centred(marks, sides) * sides.informative
    spread = np.sqrt(np.square(centred).sum(axis=1, keepdims=True))
    units = np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 0)
    return np.asarray(np.rint(_GRID * units))


def _on_grid(values: Floats) -> Floats:
    """Return each row of (q, n) in whole steps of a power of two: sums are exact, and ties equal.

    Ranks, and halves of them, stay what they are but for that power.
    """
    return np.rint(_GRID * without_scale(values, axis=-1)[0])


def _min_p(sums: Floats) -> tuple[Floats, float]:
    """Return the p-value of each column in row 0, and that of the smallest of them.

    Rows (b + 1, q) are exchangeable under H0, and row 0 was observed; larger is more
    evidence.
    """
    ranks = scipy.stats.rankdata(-sums, method="max", axis=0)
    smallest = ranks.min(axis=1)
    p = np.count_nonzero(smallest <= smallest[0]) / len(sums)
    return ranks[0] / len(sums), float(p)
