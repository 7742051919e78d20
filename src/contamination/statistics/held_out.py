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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.special
import scipy.stats
from numpy.typing import ArrayLike, NDArray

from contamination.errors import InputError
from contamination.statistics.inputs import (
    as_array,
    as_booleans,
    as_codes,
    as_count,
    as_floats,
    as_level,
    as_list,
    check_finite,
    check_generator,
    without_scale,
)
from contamination.statistics.results import PValue

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

_GRID = 2.0**24  # steps of a contribution: whole numbers add up without rounding, so ties are ties
_BLOCK = 1 << 22  # drawn labels in memory at a time
_BOUND_SHARES = (0.05, 0.25, 0.5)  # of the held-out records, above which published ones are counted


# --- the draw -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Sides:
    """The records of both sides, and the draw that has divided them.

    Attributes
    ----------
    published
        (n,), True for a published record and False for one that was held out.
    strata
        (n,), whole numbers from 0; labels were drawn within them.
    """

    published: Booleans
    strata: NDArray[np.intp]

    @classmethod
    def of(cls, published: ArrayLike, strata: ArrayLike | None = None) -> "Sides":
        """Check the labels and strata of n records; without strata there is one.

        Raises InputError for other shapes or labels, or where no stratum has both
        sides.
        """
        count = np.size(np.asarray(published))
        labels = as_booleans(published, "published", (count,))
        codes = np.zeros(count, dtype=np.intp)
        if strata is not None:
            codes = as_codes(strata, "strata")
            if len(codes) != count:
                raise InputError(f"strata has {len(codes)} entries: give {count}, one a record")
        sides = cls(labels, codes)
        if not count or not sides.informative.any():
            raise InputError(
                "no stratum has published and held-out records: nothing could trade places"
            )
        return sides

    @property
    def informative(self) -> Booleans:
        """Whether records are in a stratum with both sides, (n,)."""
        sizes = np.bincount(self.strata)
        members = np.bincount(self.strata, weights=self.published)
        return ((members > 0) & (members < sizes))[self.strata]

    @property
    def log_divisions(self) -> float:
        """Return the natural logarithm of the number of divisions that were as likely."""
        sizes = np.bincount(self.strata)
        members = np.bincount(self.strata, weights=self.published)
        ways = scipy.special.gammaln(sizes + 1)
        ways -= scipy.special.gammaln(members + 1) + scipy.special.gammaln(sizes - members + 1)
        return float(ways.sum())

    def draws(self, count: int, *, rng: np.random.Generator) -> Iterator[Booleans]:
        """Yield `count` divisions in blocks, (b, n) each, uniform and independent.

        Strata of one size are drawn together.
        """
        order = np.argsort(self.strata, kind="stable")
        sizes = np.bincount(self.strata)
        starts = np.cumsum(sizes) - sizes
        places = []
        for size in np.unique(sizes[sizes > 0]):
            first = starts[sizes == size]
            places.append(order[first[:, None] + np.arange(size)])  # (strata, size)
        block = max(1, _BLOCK // len(order))
        for start in range(0, count, block):
            rows = min(block, count - start)
            drawn = np.empty((rows, len(order)), dtype=np.bool_)
            for columns in places:
                labels = np.broadcast_to(self.published[columns], (rows, *columns.shape))
                drawn[:, columns] = rng.permuted(labels, axis=-1)
            yield drawn


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
DEFAULT_STATISTIC = "rank"  # chosen on one seed and confirmed on the other: docs/power.md


@dataclass(frozen=True, eq=False, kw_only=True)
class HeldOutResult(PValue):
    """Outcome of `held_out_test`.

    The statistic is the sum of the best score over published records, in standard
    deviations of its law under H0.

    Attributes
    ----------
    test
        Its name in tables.
    names
        Of the q scores.
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
        permits.
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
        Of the scores; "0", "1" and so on if not given.
    statistic
        Of `STATISTICS`: "mean", "rank" or "tail". Choose it before you look.
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
    values = _as_scores(scores)
    labels = _as_names(names, len(values))
    if statistic not in STATISTICS:
        known = ", ".join(STATISTICS)
        raise InputError(f"statistic is {statistic!r:.40}: choose one of {known}")
    sides = Sides.of(published, strata)
    _check_records(values, sides)
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
        As in `held_out_test`.
    similarity
        (n, n), inner products of vectors of the records, such as weights of their
        words. The distance between the mean vectors of the two sides is then one more
        feature.
    resamples, rng
        As in `held_out_test`.

    Returns
    -------
    p_values
        Of each feature, and last that of the distance if there is one.
    p
        Of the smallest of them, by the law of the smallest under the same draws
        (min-p).

    Raises
    ------
    InputError
        As `held_out_test`.

    Notes
    -----
    H0 is that of `held_out_test`, and the p-values are exact in the same way. The
    distance of means is the maximum mean discrepancy (Gretton et al., 2012) with a
    linear kernel.

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
    values = _as_scores(features)
    _check_records(values, sides)
    ranks = _on_grid(_centred(_ranks(_centred(values, sides)), sides))
    kernel = None
    if similarity is not None:
        size = len(sides.published)
        products = as_array(similarity, "similarity", (size, size))
        kernel = _centred(_centred(products, sides).T, sides)
        kernel = _on_grid(kernel.reshape(1, -1)).reshape(size, size)

    def differences(divisions: Booleans) -> Floats:
        labels = divisions.astype(np.float64)
        columns = np.abs(labels @ ranks.T)
        if kernel is None:
            return columns
        distance = np.einsum("bi,bi->b", labels @ kernel, labels)
        return np.column_stack([columns, distance])

    rows = [differences(sides.published[None])]
    rows += [differences(division) for division in sides.draws(count, rng=rng)]
    return _min_p(np.vstack(rows))


# --- single records -------------------------------------------------------------------------------


def conformal_p_values(scores: ArrayLike, published: ArrayLike) -> Floats:
    """Return a p-value for each published record, from the scores of those that were held back.

    p_i = (1 + #{held-out j : s_j >= s_i}) / (h + 1)

    Parameters
    ----------
    scores
        (n,), one membership score of n records; larger is more likely read.
    published
        (n,), True or 1 for a published record; the other h were held back.

    Returns
    -------
    p-values in the order of the published records.

    Raises
    ------
    InputError
        For shapes that do not fit, a score that is not a finite number, or a side
        without records.

    Notes
    -----
    H0 of record i: it was not read, so that its score and those of the held-out records
    are exchangeable. P(p_i <= alpha) <= alpha then holds exactly. The p-values depend
    on each other through the held-out scores, positively (PRDS), so that the procedure
    of Benjamini and Hochberg keeps its false discovery rate: Bates, Candes, Lei, Romano
    and Sesia (2023), "Testing for outliers with conformal p-values", Annals of
    Statistics 51(1), Theorem 2.

    Examples
    --------
    >>> conformal_p_values([5.0, 1.0, 2.0, 3.0, 4.0], [1, 1, 0, 0, 0])
    array([0.25, 1.  ])
    """
    sides = Sides.of(published)
    values = _as_scores(scores)
    _check_records(values, sides)
    members = values[0][sides.published]
    others = np.sort(values[0][~sides.published])
    at_least = len(others) - np.searchsorted(others, members, side="left")
    return np.asarray((1.0 + at_least) / (len(others) + 1))


def read_at_least(scores: ArrayLike, published: ArrayLike, *, level: float) -> int:
    """Return a lower bound, of confidence 1 - level, on how many published records were read.

    Parameters
    ----------
    scores, published
        As in `conformal_p_values`.
    level
        At most with this probability, fewer records were read than the bound says.

    Raises
    ------
    InputError
        As `conformal_p_values`, and for a level that is not between 0 and 1.

    Notes
    -----
    Let K published records have been read. The n - K others and the h held-out ones are
    exchangeable, so that the number of those others above the k-th largest held-out
    score has a negative hypergeometric law. With K read, at least N_k - K of the others
    are above it, where N_k counts all published records that are. K is rejected where
    that is too many; `level` is divided over three choices of k. The bound is the
    smallest K that is not rejected, and it is too large only if the true K is rejected,
    whose chance is at most `level`. Ties count as below.

    Examples
    --------
    >>> scores = np.concatenate([np.full(20, 9.0), np.arange(20) / 20, np.arange(40) / 40])
    >>> read_at_least(scores, np.arange(80) < 40, level=0.05)
    15
    """
    held = as_level(level, "level")
    sides = Sides.of(published)
    values = _as_scores(scores)
    _check_records(values, sides)
    members = values[0][sides.published]
    others = np.sort(values[0][~sides.published])[::-1]
    ranks = sorted({max(1, round(share * len(others))) for share in _BOUND_SHARES})
    read = np.arange(len(members) + 1)
    rejected = np.zeros(len(read), dtype=np.bool_)
    for k in ranks:
        above = np.count_nonzero(members > others[k - 1])
        excess = np.maximum(above - read, 0)
        # So many are above the k-th held-out record if the first excess + k - 1 of all
        # records have at most k - 1 held-out ones.
        records = len(members) - read + len(others)
        p = scipy.stats.hypergeom.cdf(k - 1, records, len(others), excess + k - 1)
        rejected |= (excess > 0) & (p <= held / len(ranks))
    return int(np.argmin(rejected))


# --- checks and sums ------------------------------------------------------------------------------


def _as_scores(scores: ArrayLike) -> Floats:
    """Return finite scores, (q, n), of any scale."""
    values = as_floats(scores, "scores")
    if values.ndim == 1:
        values = values[None]
    if values.ndim != 2 or not values.size:
        raise InputError(f"scores has shape {values.shape}: give (n,) or (q, n)")
    check_finite(values, "scores")
    return without_scale(values, axis=1)[0]


def _check_records(values: Floats, sides: Sides) -> None:
    """Raise InputError unless scores and labels are of as many records."""
    if values.shape[1] != len(sides.published):
        raise InputError(
            f"scores are of {values.shape[1]} records, and published of {len(sides.published)}"
        )


def _as_names(names: Sequence[str] | None, count: int) -> tuple[str, ...]:
    """Return a name for each score."""
    if names is None:
        return tuple(str(number) for number in range(count))
    labels = tuple(str(name) for name in as_list(names, "names"))
    if len(labels) != count:
        raise InputError(f"names has {len(labels)} entries: give {count}, one a score")
    return labels


def _centred(values: Floats, sides: Sides) -> Floats:
    """Subtract from (q, n) values their mean over the stratum."""
    sizes = np.bincount(sides.strata)
    centred = np.empty_like(values)
    for row, numbers in enumerate(values):
        means = np.bincount(sides.strata, weights=numbers) / np.maximum(sizes, 1)
        centred[row] = numbers - means[sides.strata]
    return centred


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
