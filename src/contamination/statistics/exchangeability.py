"""Is the order of records, or of options, exchangeable by itself? Tests that need no model.

Every test of contamination on orderings (Oren section 2) assumes that the canonical order of the
examples is one draw among equally likely ones. That can be asked of the records alone: a statistic
of the order, such as the share of neighbours with equal labels, is compared with its values in
random orderings from the same group of permutations as the sharded test, within contiguous shards.
A statistic takes one value (or label) a record, orderings (m+1, n) from `random_orderings` and the
bounds of the shards; it returns one number an ordering, (m+1,), the canonical one first.
*Neighbours* stand next to each other in one shard, since the sharded test moves none out of it.

An item has k options. Its arrangements are an integer array (N, k), the published one first: entry
i of a row is the option that stands in place i. A statistic takes something known of each option,
and returns one whole number an arrangement, (N,). Those of n items are summed, (n, N), and compared
with the exact law of the sum if every item draws one of its N arrangements at random, independently
of the others: whole numbers are a lattice of their own, so no p-value is sampled or rounded.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
import scipy.stats
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix

from contamination.statistics.results import ROUNDING, PValue, as_log_probs
from contamination.statistics.sharded_exact import sharded_exact_test

Bounds = Sequence[tuple[int, int]]
Arrangements = NDArray[np.intp]
Whole = NDArray[np.int64]

_CHUNK = 1 << 20  # entries of orderings, or of similarities, at once: tens of megabytes at most


def random_orderings(
    bounds: Bounds, permutations: int, *, rng: np.random.Generator
) -> NDArray[np.int32]:
    """Orderings of 0..n-1, int32 (m+1, n): the canonical one, then m = `permutations` random ones.

    The random ones are independent and uniform among those that keep every record in its shard.
    `bounds` are contiguous shards from 0 to n, as `contamination.testsets.orderings.shard_bounds`
    gives them.
    """
    orderings = np.tile(np.arange(bounds[-1][1], dtype=np.int32), (permutations + 1, 1))
    for start, stop in bounds:
        orderings[1:, start:stop] = rng.permuted(orderings[1:, start:stop], axis=1)
    return orderings


def order_test(values: ArrayLike, *, alternative: Literal["greater", "two-sided"]) -> PValue:
    """Rank the canonical ordering among all m+1 by one statistic, `values` (m+1,).

    p = (1 + #{j >= 1 : D[j] >= D[0]}) / (1 + m), with D the statistic itself ("greater") or its
    distance from its mean over all m+1 orderings ("two-sided").

    H0: the order of the records within each shard is exchangeable. Then P(p <= alpha) <= alpha
    exactly, for every n and m and any statistic: both distances treat the m+1 orderings alike. Ties
    count against rejection, so a constant statistic has p = 1; the smallest p is 1 / (1 + m). The
    +1: Phipson and Smyth (2010), as in `permutation_test`. The `statistic` returned is z: values[0]
    less the mean of all m+1, by their sd (0 if that is 0). Raises InputError unless `values` is
    finite with m >= 1.
    """
    array = as_log_probs(values, ndim=1)
    expected, null_sd = float(array.mean()), float(array.std())
    rounding = ROUNDING * float(np.abs(array).max())
    constant = np.ptp(array) <= rounding
    distance = array if alternative == "greater" else np.abs(array - expected)
    hits = int(np.count_nonzero(distance[1:] >= distance[0] - rounding))
    p = (1 + hits) / len(array)
    z = 0.0 if constant else (float(array[0]) - expected) / null_sd
    return PValue(statistic=z, p=p, log10_p=math.log10(p))


def equal_neighbours(
    labels: ArrayLike, orderings: NDArray[np.int32], bounds: Bounds
) -> NDArray[np.float64]:
    """Share of neighbours with the same label (a join count)."""
    pairs = _neighbours(np.asarray(labels), orderings, bounds)
    return np.concatenate([np.mean(left == right, axis=1) for left, right in pairs])


def ascending_neighbours(
    values: ArrayLike, orderings: NDArray[np.int32], bounds: Bounds
) -> NDArray[np.float64]:
    """Share of neighbours in ascending order; a tie counts one half."""
    pairs = _neighbours(scipy.stats.rankdata(values, method="dense"), orderings, bounds)
    return np.concatenate([0.5 + np.sign(right - left).mean(axis=1) / 2 for left, right in pairs])


def autocorrelation(
    values: ArrayLike, orderings: NDArray[np.int32], bounds: Bounds
) -> NDArray[np.float64]:
    """Rank autocorrelation at lag 1, ranks centred within shards; 0 for constant values.

    Wald and Wolfowitz (1943), "An exact test for randomness in the non-parametric case based on
    serial correlation", Annals of Mathematical Statistics 14(4).
    """
    x = _centred_ranks(values, bounds)
    scale = float((x**2).sum()) or 1.0
    pairs = _neighbours(x, orderings, bounds)
    return np.concatenate([(left * right).sum(axis=1) / scale for left, right in pairs])


def trend(values: ArrayLike, orderings: NDArray[np.int32], bounds: Bounds) -> NDArray[np.float64]:
    """Rank correlation of value and position, both centred within shards; 0 if constant.

    With a single shard this is Spearman's coefficient.
    """
    x = _centred_ranks(values, bounds)
    position = np.concatenate([np.arange(b - a) - (b - a - 1) / 2 for a, b in bounds])
    scale = math.sqrt(float((x**2).sum()) * float((position**2).sum())) or 1.0
    return np.concatenate([x[part] @ position / scale for part in _parts(orderings)])


def max_z(values: ArrayLike) -> NDArray[np.float64]:
    """Largest of c standardised statistics (c, m+1) as one statistic, (m+1,).

    max_c (values[c, j] - mean_c) / sd_c, moments over all m+1 orderings: it treats them alike, so
    `order_test` of it stays exact and pays for the choice (Westfall and Young 1993). A constant
    statistic has z = 0.
    """
    array = np.asarray(values, dtype=np.float64)
    centred = array - array.mean(axis=1, keepdims=True)
    varies = np.ptp(array, axis=1) > ROUNDING * np.abs(array).max(axis=1)
    sd = np.where(varies, array.std(axis=1), np.inf)
    return np.asarray((centred / sd[:, None]).max(axis=0))


def neighbour_similarity(
    features: Any,
    orderings: NDArray[np.int32],
    bounds: Bounds,
    *,
    lags: Sequence[int],
    threshold: float,
    copies: ArrayLike,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Similarity of records that stand `lags` places apart, the first of them 1.

    The n x n matrix of cosines is computed a block of rows at a time, so memory grows as n * m.

    Parameters
    ----------
    features : (n, v), sparse or not: rows of Euclidean length 1 (or 0, similar to nothing).
    threshold : records are near-duplicates where their cosine is above it and they are not copies.
    copies : (n,), equal for records that are exact copies of each other.

    Returns
    -------
    means : (c, m+1), mean cosine of records `lags[c]` places apart in one shard; 0 where no shard
        is long enough.
    close : (m+1,), share of neighbours that are near-duplicates.
    has_twin : (n,), whether the record has a near-duplicate anywhere in the set.
    """
    m1, n = orderings.shape
    codes, vectors = np.asarray(copies), csr_matrix(features)
    transposed = vectors.T.tocsr()
    place = np.empty_like(orderings)
    np.put_along_axis(place, orderings, np.arange(n, dtype=np.int32)[None, :], axis=1)
    stop = np.concatenate([np.full(b - a, b) for a, b in bounds])
    sums, close, has_twin = np.zeros((len(lags), m1)), np.zeros(m1), np.zeros(n, dtype=bool)
    for rows in np.array_split(np.arange(n), 1 + n * max(n, m1) // _CHUNK):
        cosine = (vectors[rows] @ transposed).toarray()
        near = (cosine > threshold) & (codes[rows][:, None] != codes)
        has_twin[rows] = near.any(axis=1)
        for index, lag in enumerate(lags):
            target = place[:, rows] + lag
            inside = target < stop[place[:, rows]]
            partner = np.take_along_axis(orderings, np.minimum(target, n - 1), axis=1)
            pick = (np.arange(len(rows)), partner)
            sums[index] += (cosine[pick] * inside).sum(axis=1)
            if index == 0:
                close += (near[pick] & inside).sum(axis=1)
    pairs = [sum(max(0, b - a - lag) for a, b in bounds) for lag in lags]
    return sums / np.maximum(pairs, 1)[:, None], close / pairs[0], has_twin


def _centred_ranks(values: ArrayLike, bounds: Bounds) -> NDArray[np.float64]:
    ranks = scipy.stats.rankdata(values)
    return np.concatenate([ranks[a:b] - ranks[a:b].mean() for a, b in bounds])


def _neighbours(
    values: NDArray[Any], orderings: NDArray[np.int32], bounds: Bounds
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Values of all neighbours, the left and the right ones, some orderings at a time."""
    left = np.concatenate([np.arange(a, max(a, b - 1)) for a, b in bounds])
    return ((values[part[:, left]], values[part[:, left + 1]]) for part in _parts(orderings))


def _parts(orderings: NDArray[np.int32]) -> Iterator[NDArray[np.int32]]:
    rows = max(1, _CHUNK // orderings.shape[1])
    return (orderings[i : i + rows] for i in range(0, len(orderings), rows))


# --- the order of options -------------------------------------------------------------------------


def ascents(values: ArrayLike, arrangements: Arrangements) -> Whole:
    """Pairs of options that ascend from an earlier place to a later one, less those that descend.

    Kendall's S of value and place, (N,), for values (k,), numbers or texts; equal ones count for
    neither. Kendall (1938), "A new measure of rank correlation", Biometrika 30.
    """
    each = np.unique(values, return_inverse=True)[1]
    return in_turn(np.sign(each - each[:, None]), arrangements)


def in_turn(pairs: ArrayLike, arrangements: Arrangements) -> Whole:
    """Sum of pairs[a, b], whole numbers (k, k), over options a anywhere before b, (N,)."""
    left, right = np.triu_indices(arrangements.shape[1], k=1)
    found = np.asarray(pairs)[arrangements[:, left], arrangements[:, right]]
    return np.asarray(found.sum(axis=1), dtype=np.int64)


def sum_test(values: ArrayLike) -> PValue:
    """Exact two-sided test of the sum of whole numbers (n, N) over items, column 0 as published.

    p = min(1, 2 min(P(T >= t), P(T <= t))), T the sum over items of a number drawn from each row,
    and t that of column 0. H0: every row is exchangeable, independently of the others; then
    P(p <= alpha) <= alpha exactly. The `statistic` is z = (t - E T) / sd T, 0 if no row varies; p
    does not come from it, and has no floor. Errors as `sharded_exact_test`.
    """
    array = np.asarray(values)
    upper, lower = (sharded_exact_test(side, weights="equal") for side in (array, -array))
    log10_p = math.log10(2) + min(upper.log10_p, lower.log10_p)
    return PValue.of(log10_p, statistic=upper.z)


def largest_test(values: ArrayLike) -> tuple[int, PValue]:
    """Which of c sums (c, n, N) stands out most, and its `sum_test` with p times c.

    Bonferroni's correction pays for the choice, however the sums depend on each other, so
    P(p <= alpha) <= alpha.
    """
    results = [sum_test(each) for each in np.asarray(values)]
    which = min(range(len(results)), key=lambda i: results[i].log10_p)
    log10_p = results[which].log10_p + math.log10(len(results))
    return which, PValue.of(log10_p, statistic=results[which].statistic)
