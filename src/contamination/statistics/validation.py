"""What every test asks of its input before any mathematics starts."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contamination.errors import InputError

ROUNDING = 1e-12
"""Differences below this share of the largest |log-probability| are float64 rounding, not evidence.

A log-probability is a float64 sum of some thousand token terms, so two orderings that score the
same in exact arithmetic may differ by about 1e-14 of their size.
"""


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


def as_p_values(p_values: ArrayLike) -> NDArray[np.float64]:
    """Return `p_values` as a float64 array of shape (n,), n >= 1, every entry in (0, 1].

    Raises InputError otherwise.
    """
    array = as_floats(p_values, "p_values")
    if array.ndim != 1 or not len(array):
        raise InputError(
            f"p_values has shape {array.shape}: give a list of one or more p-values, shape (n,)"
        )
    bad = np.flatnonzero(~((array > 0) & (array <= 1)))
    if len(bad):
        raise InputError(
            f"p_values[{bad[0]}] is {array[bad[0]]}: a p-value lies in (0, 1] and is never zero; "
            "correct or drop it"
        )
    return array
