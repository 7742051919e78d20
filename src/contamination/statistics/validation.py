"""What every test asks of its input before any mathematics starts."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contamination.errors import InputError

ROUNDING = 1e-12
"""Differences below this share of the largest |log-probability| are float64 rounding, not evidence.

A log-probability is a float64 sum of some thousand token terms, so two orderings that score the
same in exact arithmetic may differ by about 1e-14 of their size.
"""


def with_ties(scores: NDArray[np.float64], resolution: ArrayLike) -> NDArray[np.float64]:
    """Rows of scores (..., n) that all lie within `resolution` (nats, one a row), made equal.

    What the engine cannot tell apart is no evidence, and a weight of 1 / sd would give it a full
    vote. A row is judged as a whole, so exchangeable scores stay exchangeable.
    """
    tied = np.ptp(scores, axis=-1) <= resolution
    return np.where(tied[..., None], scores.mean(axis=-1, keepdims=True), scores)


def as_floats(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return `values` as a float64 array. `name` is what the InputError calls them."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{name} is not a rectangular array of numbers: give every row the same length"
        ) from error


def as_log_probs(log_probs: ArrayLike, *, ndim: int, min_shards: int = 1) -> NDArray[np.float64]:
    """Return `log_probs` as a finite float64 array, shape (m+1,) or (r, m+1), canonical first.

    Raises InputError for no rectangular array of numbers, another number of dimensions, too few
    shards, no shuffled ordering, or a value that is not finite.
    """
    array = as_floats(log_probs, "log_probs")
    wanted = "(m+1,)" if ndim == 1 else "(r, m+1)"
    if array.ndim != ndim:
        raise InputError(
            f"log_probs has shape {array.shape}: this test takes {wanted}, canonical ordering first"
        )
    if ndim == 2 and len(array) < min_shards:
        raise InputError(
            f"log_probs has {len(array)} shard(s): this test needs at least {min_shards}; "
            "split the set into more shards"
        )
    if array.shape[-1] < 2:
        raise InputError(
            "log_probs has no shuffled ordering: score at least 1 permutation "
            "besides the canonical ordering"
        )
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        where = tuple(int(index) for index in bad[0])
        shard = f"shard {where[0]}, " if ndim == 2 else ""
        raise InputError(
            f"log_probs of {shard}ordering {where[-1]} is {array[where]}: "
            "score it again, or leave its shard out"
        )
    return array


def as_p_values(p_values: ArrayLike, *, log10: bool = False) -> NDArray[np.float64]:
    """Return `p_values` as a float64 array of shape (n,), n >= 1, every entry in (0, 1].

    With `log10` they are decimal logarithms, finite and at most 0. Raises InputError otherwise.
    """
    name, what = ("log10_p", "logarithms") if log10 else ("p_values", "p-values")
    array = as_floats(p_values, name)
    if array.ndim != 1 or not len(array):
        raise InputError(
            f"{name} has shape {array.shape}: give a list of one or more {what}, shape (n,)"
        )
    valid = np.isfinite(array) & (array <= 0) if log10 else (array > 0) & (array <= 1)
    if not valid.all():
        rule = "a p-value lies in (0, 1] and is never zero"
        if log10:
            rule = "the logarithm of a p-value is finite and at most 0"
        bad = int(np.argmin(valid))
        raise InputError(f"{name}[{bad}] is {array[bad]}: {rule}; correct or drop it")
    return array
