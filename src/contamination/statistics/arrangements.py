"""Is the order of the options of multiple-choice items exchangeable? Exact tests without a model.

An item has k options. Its arrangements are an integer array (N, k), the published one first: entry
i of a row is the option that stands in place i. A statistic takes something known of each option,
and returns one whole number an arrangement, (N,). Those of n items are summed, (n, N), and compared
with the exact law of the sum if every item draws one of its N arrangements at random, independently
of the others: whole numbers are a lattice of their own, so no p-value is sampled or rounded.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contamination.statistics.exchangeability import OrderResult
from contamination.statistics.results import p_from_log10
from contamination.statistics.sharded_exact import sharded_exact_test

Arrangements = NDArray[np.intp]
Whole = NDArray[np.int64]


def ascents(values: ArrayLike, arrangements: Arrangements) -> Whole:
    """Pairs of options that ascend from an earlier place to a later one, less those that descend.

    Kendall's S of value and place, (N,), for values (k,); equal values count for neither. Kendall
    (1938), "A new measure of rank correlation", Biometrika 30.
    """
    placed = np.asarray(values)[arrangements]
    left, right = np.triu_indices(placed.shape[1], k=1)
    return np.asarray(np.sign(placed[:, right] - placed[:, left]).sum(axis=1), dtype=np.int64)


def neighbours(pairs: ArrayLike, arrangements: Arrangements) -> Whole:
    """Sum of pairs[a, b], whole numbers (k, k), over options a that stand right before b, (N,)."""
    found = np.asarray(pairs)[arrangements[:, :-1], arrangements[:, 1:]]
    return np.asarray(found.sum(axis=1), dtype=np.int64)


def in_turn(pairs: ArrayLike, arrangements: Arrangements) -> Whole:
    """Sum of pairs[a, b], whole numbers (k, k), over options a anywhere before b, (N,)."""
    left, right = np.triu_indices(arrangements.shape[1], k=1)
    found = np.asarray(pairs)[arrangements[:, left], arrangements[:, right]]
    return np.asarray(found.sum(axis=1), dtype=np.int64)


def stands_at(option: int, arrangements: Arrangements, places: int) -> Whole:
    """Whether an option stands at each of so many places, (places, N); an item may have fewer."""
    return np.asarray(
        [(arrangements[:, place : place + 1] == option).any(axis=1) for place in range(places)],
        dtype=np.int64,
    )


def sum_test(values: ArrayLike) -> OrderResult:
    """Exact two-sided test of the sum of whole numbers (n, N) over items, column 0 as published.

    p = min(1, 2 min(P(T >= t), P(T <= t))), T the sum over items of a number drawn from each row,
    and t that of column 0. H0: every row is exchangeable, independently of the others; then
    P(p <= alpha) <= alpha exactly. z is (t - E T) / sd T, 0 if no row varies; never the source of
    p, which has no floor. Errors as `sharded_exact_test`.
    """
    array = np.asarray(values)
    upper, lower = (sharded_exact_test(side, weights="equal") for side in (array, -array))
    log10_p = min(0.0, math.log10(2) + min(upper.log10_p, lower.log10_p))
    return OrderResult(p=p_from_log10(log10_p), log10_p=log10_p, z=upper.z)


@dataclass(frozen=True, kw_only=True)
class LargestResult:
    """`largest_test`: which of the sums stands out most, and p, log10_p and z of all of them."""

    which: int
    result: OrderResult


def largest_test(values: ArrayLike) -> LargestResult:
    """`sum_test` of each of c sums, (c, n, N), and the smallest p times c.

    Bonferroni's correction pays for the choice, however the sums depend on each other, so
    P(p <= alpha) <= alpha.
    """
    results = [sum_test(each) for each in np.asarray(values)]
    which = min(range(len(results)), key=lambda i: results[i].log10_p)
    log10_p = min(0.0, results[which].log10_p + math.log10(len(results)))
    corrected = OrderResult(p=p_from_log10(log10_p), log10_p=log10_p, z=results[which].z)
    return LargestResult(which=which, result=corrected)
