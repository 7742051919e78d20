"""Is the order of options exchangeable by itself? Tests that need no model.

An item has k options. Its arrangements are an integer array (N, k), the published one
first: entry i of a row is the option that stands in place i. A statistic takes
something known of each option, and returns one whole number an arrangement, (N,). Those
of n items are summed, (n, N), and compared with the exact law of the sum if every item
draws one of its N arrangements at random, independently of the others: whole numbers
are a lattice of their own, so no p-value is sampled or rounded.
"""

import math
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contamination.errors import InputError
from contamination.statistics.inputs import as_codes, as_whole_numbers
from contamination.statistics.results import PValue
from contamination.statistics.sharded_exact import sharded_exact_test

Arrangements = NDArray[np.intp]
Whole = NDArray[np.int64]


def ascents(values: ArrayLike, arrangements: Arrangements) -> Whole:
    """Count pairs of options that ascend with their places, less those that descend, (N,).

    Kendall's S of value and place. Values (k,) are numbers or texts, one for each
    option; equal ones count for neither. Raises InputError for arrangements (N, k) that
    are not those of k options.

    Kendall (1938), "A new measure of rank correlation", Biometrika 30.

    Examples
    --------
    >>> ascents(["a", "b", "c"], np.array([[0, 1, 2], [2, 1, 0]]))
    array([ 3, -3])
    """
    codes = as_codes(values, "values")
    return in_turn(np.sign(codes - codes[:, None]), arrangements)


def in_turn(pairs: ArrayLike, arrangements: Arrangements) -> Whole:
    """Sum pairs[a, b] over options a anywhere before b, in each arrangement, (N,).

    Raises InputError for pairs (k, k) that are not whole numbers, or arrangements (N,
    k) that are not those of k options.

    Examples
    --------
    >>> in_turn([[0, 5], [1, 0]], np.array([[0, 1], [1, 0]]))
    array([5, 1])
    """
    table = as_whole_numbers(pairs, "pairs", (None, None))
    options = len(table)
    if table.shape[1] != options:
        raise InputError(f"pairs has shape {table.shape}: give (k, k)")
    orders = as_whole_numbers(
        arrangements, "arrangements", (None, options), least=0, most=options - 1
    )
    left, right = _pairs_of_places(options)
    return np.asarray(table[orders[:, left], orders[:, right]].sum(axis=1))


@cache
def _pairs_of_places(options: int) -> tuple[Arrangements, Arrangements]:
    """Return the first and the second place of each pair; most items have as many options."""
    return np.triu_indices(options, k=1)


def sum_test(values: ArrayLike) -> PValue:
    """Test the sum of whole numbers over items, column 0 as published: exact, two-sided.

    p = min(1, 2 min(P(T >= t), P(T <= t))), T the sum over items of a number drawn from
    each row, and t that of column 0.

    Parameters
    ----------
    values
        (n, N), whole numbers.

    Returns
    -------
    PValue, whose statistic is z = (t - E T) / sd T, 0 if no row varies; p does not come
    from it, and has no floor.

    Raises
    ------
    InputError
        For values that are not whole numbers, or fewer than 1 item or 2 arrangements.

    Notes
    -----
    H0: every row is exchangeable, independently of the others; then P(p <= alpha) <=
    alpha exactly.

    Examples
    --------
    >>> round(sum_test([[3, 1, 2]] * 4).p, 6)  # 2 / 3^4
    0.024691
    """
    array = as_whole_numbers(values, "values", (None, None))
    upper = sharded_exact_test(array, weights="equal")
    lower = sharded_exact_test(-array, weights="equal")
    log10_p = math.log10(2) + min(upper.log10_p, lower.log10_p)
    return PValue.of(log10_p, statistic=upper.z)


def largest_test(values: ArrayLike) -> tuple[int, PValue]:
    """Return which of c sums (c, n, N) stands out most, and its `sum_test` with p times c.

    Bonferroni's correction pays for the choice, however the sums depend on each other,
    so P(p <= alpha) <= alpha. Raises InputError for no sum, or values that `sum_test`
    refuses.

    Examples
    --------
    >>> which, result = largest_test([[[1, 1, 1]] * 4, [[3, 1, 2]] * 4])
    >>> which, round(result.p, 6)
    (1, 0.049383)
    """
    sums = as_whole_numbers(values, "values", (None, None, None))
    if not len(sums):
        raise InputError("values has no sum: give one or more")
    results = [sum_test(items) for items in sums]
    log10_p = [result.log10_p for result in results]
    which = int(np.argmin(log10_p))
    corrected = log10_p[which] + math.log10(len(results))
    return which, PValue.of(corrected, statistic=results[which].statistic)
