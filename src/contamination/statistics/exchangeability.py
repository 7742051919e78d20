"""Is the order of records exchangeable by itself? Tests that need no model.

Every test of contamination on orderings (Oren section 2) assumes that the canonical
order of the examples is one draw among equally likely ones. That can be asked of the
records alone: a statistic of the order, such as the share of neighbours with equal
labels, is compared with its values in random orderings from the same group of
permutations as the sharded test, within contiguous shards. A statistic takes a value or
label for each record, orderings (m+1, n) from `random_orderings` and shards; it returns
a number for each ordering, (m+1,). *Neighbours* stand side by side in one shard.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal, get_args

import numpy as np
import scipy.stats
from numpy.typing import ArrayLike, NDArray

from contamination.errors import InputError
from contamination.statistics.inputs import (
    as_array,
    as_codes,
    as_count,
    as_log_probs,
    check_bounds,
    check_generator,
)
from contamination.statistics.permutation import share_at_least_first
from contamination.statistics.results import PValue
from contamination.statistics.scale import ROUNDING, rounding_of, without_scale

Bounds = Sequence[tuple[int, int]]
Floats = NDArray[np.float64]
Alternative = Literal["greater", "two-sided"]

# Entries of orderings, or of similarities, at once: tens of megabytes at most.
CHUNK = 1 << 20

_MOST_ENTRIES = 1 << 30  # of all orderings together: four gigabytes


def random_orderings(
    bounds: Bounds, permutations: int, *, rng: np.random.Generator
) -> NDArray[np.int32]:
    """Draw orderings of 0..n-1: the canonical one, then independent random ones.

    Parameters
    ----------
    bounds
        Contiguous shards (start, stop) from 0 to n, as
        `contamination.testsets.orderings.shard_bounds` gives them.
    permutations
        m, 0 or more.
    rng
        Draws the random ones, uniformly among those that keep every record in its
        shard.

    Returns
    -------
    int32 (m+1, n).

    Raises
    ------
    InputError
        For shards that are not contiguous, or more orderings than memory should hold.

    Examples
    --------
    >>> random_orderings([(0, 2), (2, 5)], 2, rng=np.random.default_rng(0))
    array([[0, 1, 2, 3, 4],
           [0, 1, 4, 2, 3],
           [0, 1, 4, 3, 2]], dtype=int32)
    """
    check_generator(rng)
    check_bounds(bounds)
    count = as_count(permutations, "permutations", 0)
    canonical = np.arange(bounds[-1][1], dtype=np.int32)
    if (count + 1) * len(canonical) > _MOST_ENTRIES:
        raise InputError(
            f"permutations is {count:,}: with {len(canonical):,} records give at most "
            f"{_MOST_ENTRIES // len(canonical) - 1:,}, which take some gigabytes"
        )
    orderings = np.tile(canonical, (count + 1, 1))
    for start, stop in bounds:
        orderings[1:, start:stop] = rng.permuted(orderings[1:, start:stop], axis=1)
    return orderings


def order_test(values: ArrayLike, *, alternative: Alternative) -> PValue:
    """Rank the canonical ordering among all m+1 by one statistic, `values` (m+1,).

    p = (1 + #{j >= 1 : D[j] >= D[0]}) / (1 + m), with D the statistic itself
    ("greater") or its distance from its mean over all m+1 orderings ("two-sided").

    Parameters
    ----------
    values
        (m+1,), the statistic in each ordering, the canonical one first.
    alternative
        "greater" or "two-sided".

    Returns
    -------
    PValue, whose statistic is z: values[0] less the mean of all m+1, by their sd (0 if
    that is 0).

    Raises
    ------
    InputError
        For no permutation, a value that is not a finite number, or an unknown
        alternative.

    Notes
    -----
    H0: within each shard every order of the records is equally likely, independently of
    the other shards. Then P(p <= alpha) <= alpha exactly, for every n and m and any
    statistic: both distances treat the m+1 orderings alike. Ties count against
    rejection, so a constant statistic has p = 1; the smallest p is 1 / (1 + m). The +1:
    Phipson and Smyth (2010), as in `permutation_test`.

    Examples
    --------
    >>> order_test([0.9, 0.4, 0.5, 0.6], alternative="greater").p
    0.25
    """
    if alternative not in get_args(Alternative):
        shown = f"{alternative!r:.40}"
        raise InputError(f'alternative is {shown}: give "greater" or "two-sided"')
    array = without_scale(as_log_probs(values, ndim=1))[0]
    expected = float(array.mean())
    null_sd = float(array.std())
    rounding = rounding_of(array)
    constant = np.ptp(array) <= rounding
    distance = array if alternative == "greater" else np.abs(array - expected)
    p = share_at_least_first(distance, rounding)
    z = 0.0 if constant else (float(array[0]) - expected) / null_sd
    return PValue(statistic=z, p=p, log10_p=math.log10(p))


def equal_neighbours(
    labels: ArrayLike, orderings: NDArray[np.int32], bounds: Bounds
) -> NDArray[np.float64]:
    """Return the share of neighbours with the same label (a join count) in each ordering, (m+1,).

    Labels (n,) are numbers or texts, and shares in [0, 1]. Raises InputError for
    another number of labels, or orderings that are not those of n records.

    Examples
    --------
    >>> orderings = np.array([[0, 1, 2], [0, 2, 1]])
    >>> equal_neighbours(["a", "a", "b"], orderings, [(0, 3)])
    array([0.5, 0. ])
    """
    codes = as_codes(labels, "labels")
    check_orderings(orderings, bounds, len(codes))
    pairs = _neighbours(codes, orderings, bounds)
    return np.concatenate([np.mean(left == right, axis=1) for left, right in pairs])


def ascending_neighbours(
    values: ArrayLike, orderings: NDArray[np.int32], bounds: Bounds
) -> NDArray[np.float64]:
    """Return the share of neighbours in ascending order in each ordering, (m+1,).

    Values (n,) are finite numbers, and shares in [0, 1]; a tie counts one half. Raises
    InputError for values that are not finite numbers, or orderings that are not those
    of n records.

    Examples
    --------
    >>> ascending_neighbours([1.0, 2.0, 3.0], np.array([[0, 1, 2], [0, 2, 1]]), [(0, 3)])
    array([1. , 0.5])
    """
    numbers = as_array(values, "values", (None,))
    check_orderings(orderings, bounds, len(numbers))
    pairs = _neighbours(scipy.stats.rankdata(numbers, method="dense"), orderings, bounds)
    shares = [0.5 + np.sign(right - left).mean(axis=1) / 2 for left, right in pairs]
    return np.concatenate(shares)


def autocorrelation(
    values: ArrayLike, orderings: NDArray[np.int32], bounds: Bounds
) -> NDArray[np.float64]:
    """Return the rank autocorrelation at lag 1 in each ordering, (m+1,); 0 for constant values.

    Values (n,) are finite numbers, and their ranks are centred within shards. Raises
    InputError for values that are not finite numbers, or orderings that are not those
    of n records.

    Wald and Wolfowitz (1943), "An exact test for randomness in the non-parametric case
    based on serial correlation", Annals of Mathematical Statistics 14(4).

    Examples
    --------
    >>> autocorrelation([1.0, 2.0, 3.0], np.array([[0, 1, 2], [0, 2, 1]]), [(0, 3)])
    array([ 0. , -0.5])
    """
    numbers = as_array(values, "values", (None,))
    check_orderings(orderings, bounds, len(numbers))
    x = _centred_ranks(numbers, bounds)
    scale = float((x**2).sum()) or 1.0
    pairs = _neighbours(x, orderings, bounds)
    return np.concatenate([(left * right).sum(axis=1) / scale for left, right in pairs])


def trend(
    values: ArrayLike,
    orderings: NDArray[np.int32],
    bounds: Bounds,
) -> NDArray[np.float64]:
    """Return the rank correlation of value and position in each ordering, (m+1,).

    Values (n,) are finite numbers; both ranks and positions are centred within shards.
    It is 0 for constant values, and Spearman's coefficient for a single shard. Raises
    InputError for values that are not finite numbers, or orderings that are not those
    of n records.

    Examples
    --------
    >>> trend([1.0, 2.0, 3.0], np.array([[0, 1, 2], [2, 1, 0]]), [(0, 3)])
    array([ 1., -1.])
    """
    numbers = as_array(values, "values", (None,))
    check_orderings(orderings, bounds, len(numbers))
    x = _centred_ranks(numbers, bounds)
    position = np.concatenate([np.arange(b - a) - (b - a - 1) / 2 for a, b in bounds])
    scale = math.sqrt(float((x**2).sum()) * float((position**2).sum())) or 1.0
    return np.concatenate([x[part] @ position / scale for part in _parts(orderings)])


def max_z(values: ArrayLike) -> NDArray[np.float64]:
    """Return the largest of c standardised statistics (c, m+1) as one statistic, (m+1,).

    max_c (values[c, j] - mean_c) / sd_c, moments over all m+1 orderings: it treats them
    alike, so `order_test` of it stays exact and pays for the choice (Westfall and Young
    1993). A constant statistic has z = 0. Raises InputError for a value that is not a
    finite number, no statistic, or no permutation.

    Examples
    --------
    >>> max_z([[1.0, 0.0, 0.0, -1.0], [2.0, 2.0, 2.0, 2.0]]).round(2)
    array([1.41, 0.  , 0.  , 0.  ])
    """
    array = without_scale(as_log_probs(values, ndim=2), axis=1)[0]
    centred = array - array.mean(axis=1, keepdims=True)
    varies = np.ptp(array, axis=1) > ROUNDING * np.abs(array).max(axis=1)
    sd = np.where(varies, array.std(axis=1), np.inf)
    return np.asarray((centred / sd[:, None]).max(axis=0))


def check_orderings(orderings: NDArray[np.int32], bounds: Bounds, count: int) -> None:
    """Raise InputError unless orderings (m+1, n) and shards are those of n = `count` records.

    Nothing is copied.
    """
    if check_bounds(bounds)[-1, 1] != count:
        raise InputError(f"bounds end at {bounds[-1][1]}: there are {count} records")
    whole = isinstance(orderings, np.ndarray) and orderings.dtype.kind in "iu"
    if not whole or orderings.ndim != 2 or orderings.shape[1] != count or not len(orderings):
        raise InputError(f"orderings are no whole numbers of shape (m+1, {count})")
    if orderings.min() < 0 or orderings.max() >= count:
        raise InputError(f"orderings name a record outside 0 to {count - 1}")


def _centred_ranks(values: Floats, bounds: Bounds) -> Floats:
    ranks = scipy.stats.rankdata(values)
    return np.concatenate([ranks[a:b] - ranks[a:b].mean() for a, b in bounds])


def _neighbours(
    values: NDArray[Any], orderings: NDArray[np.int32], bounds: Bounds
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Yield the values of all neighbours, the left and the right ones, some orderings at a time."""
    left = np.concatenate([np.arange(a, max(a, b - 1)) for a, b in bounds])
    for part in _parts(orderings):
        yield values[part[:, left]], values[part[:, left + 1]]


def _parts(orderings: NDArray[np.int32]) -> Iterator[NDArray[np.int32]]:
    rows = max(1, CHUNK // orderings.shape[1])
    for start in range(0, len(orderings), rows):
        yield orderings[start : start + rows]
