"""What every test takes and returns: checked arrays of scores, and frozen records of p-values.

Every p-value comes twice. `log10_p` has no floor. `p` is the same number as a float, held at the
smallest normal float64 (2.2e-308) where the true value is below: rounding up is the safe direction,
and a p-value is never zero.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contamination.errors import InputError

ROUNDING = 1e-12
"""Differences below this share of the largest |log-probability| are float64 rounding, not evidence.

A log-probability is a float64 sum of some thousand token terms, so two orderings that score the
same in exact arithmetic may differ by about 1e-14 of their size.
"""


# Arrays have no single truth value, so records compare by identity (`eq=False`).
@dataclass(frozen=True, eq=False, kw_only=True)
class TestResult:
    """Outcome of one test of H0 "every ordering of the examples is equally likely".

    Attributes
    ----------
    test : its name, as in the result tables.
    statistic : larger is more evidence for the canonical ordering.
    p, log10_p : one-sided p-value in (0, 1], and its decimal logarithm.
    shards, permutations : r and m, shuffled orderings per shard.
    """

    __test__: ClassVar[bool] = False  # a record, whatever pytest makes of its name

    test: str
    statistic: float
    p: float
    log10_p: float
    shards: int
    permutations: int


@dataclass(frozen=True, eq=False, kw_only=True)
class KnownResult(TestResult):
    """A test of what was drawn for each record, and a lower bound on the records that were known.

    `known_at_least` is that of `contamination.statistics.known`; it counts hits, not `statistic`.
    """

    known_at_least: int


def p_from_log10(log10_p: float) -> float:
    """10**log10_p, held at the smallest normal float64 so that it is never zero."""
    return max(float(10.0**log10_p), float(np.finfo(np.float64).tiny))


def with_ties(scores: NDArray[np.float64], resolution: ArrayLike) -> NDArray[np.float64]:
    """Rows of scores (..., n) that all lie within `resolution` (nats, one a row), made equal.

    What the engine cannot tell apart is no evidence, and a weight of 1 / sd would give it a full
    vote. A row is judged as a whole, so exchangeable scores stay exchangeable.
    """
    tied = np.ptp(scores, axis=-1) <= resolution
    return np.where(tied[..., None], scores.mean(axis=-1, keepdims=True), scores)


def as_log_probs(log_probs: ArrayLike, *, ndim: int, min_shards: int = 1) -> NDArray[np.float64]:
    """Return `log_probs` as a finite float64 array, shape (m+1,) or (r, m+1), canonical first.

    Raises InputError for no rectangular array of numbers, another number of dimensions, too few
    shards, no shuffled ordering, or a value that is not finite.
    """
    array = _as_floats(log_probs, "log_probs")
    if array.ndim != ndim or array.shape[-1] < 2:
        wanted = "(m+1,)" if ndim == 1 else "(r, m+1)"
        raise InputError(
            f"log_probs has shape {array.shape}: this test takes {wanted}, the canonical ordering "
            "first, then at least 1 permutation"
        )
    if ndim == 2 and len(array) < min_shards:
        raise InputError(
            f"log_probs has {len(array)} shard(s): this test needs at least {min_shards}; "
            "split the set into more shards"
        )
    if len(bad := np.argwhere(~np.isfinite(array))):
        shard = f"shard {bad[0, 0]}, " if ndim == 2 else ""
        raise InputError(
            f"log_probs of {shard}ordering {bad[0, -1]} is {array[tuple(bad[0])]}: "
            "score it again, or leave its shard out"
        )
    return array


def as_p_values(p_values: ArrayLike, *, log10: bool = False) -> NDArray[np.float64]:
    """Return `p_values` as a float64 array of shape (n,), n >= 1, every entry in (0, 1].

    With `log10` they are decimal logarithms, finite and at most 0. Raises InputError otherwise.
    """
    name, rule = "p_values", "a p-value lies in (0, 1] and is never zero"
    if log10:
        name, rule = "log10_p", "the logarithm of a p-value is finite and at most 0"
    array = _as_floats(p_values, name)
    if array.ndim != 1 or not len(array):
        raise InputError(f"{name} has shape {array.shape}: give a list of one or more, shape (n,)")
    valid = np.isfinite(array) & (array <= 0) if log10 else (array > 0) & (array <= 1)
    if not valid.all():
        bad = int(np.argmin(valid))
        raise InputError(f"{name}[{bad}] is {array[bad]}: {rule}; correct or drop it")
    return array


def _as_floats(values: ArrayLike, name: str) -> NDArray[np.float64]:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{name} is not a rectangular array of numbers: give every row the same length"
        ) from error
