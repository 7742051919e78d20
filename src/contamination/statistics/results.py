"""What every test takes and returns: checked arrays of scores, and frozen records of p-values.

Every p-value comes twice. `log10_p` has no floor. `p` is the same number as a float, held at the
smallest normal float64 (2.2e-308) where the true value is below: rounding up is the safe direction,
and a p-value is never zero.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

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
class PValue:
    """One p-value.

    Attributes
    ----------
    statistic : what p is of, in the units that its function names.
    p, log10_p : p-value in (0, 1], and its decimal logarithm.
    """

    statistic: float
    p: float
    log10_p: float

    @classmethod
    def of(cls, log10_p: float, **others: Any) -> Self:
        """Make a record of the p-value with this decimal logarithm, or of 1 if it is above 0."""
        log10_p = min(0.0, log10_p)
        return cls(p=p_from_log10(log10_p), log10_p=log10_p, **others)


@dataclass(frozen=True, eq=False, kw_only=True)
class TestResult(PValue):
    """Outcome of one test of H0 "every ordering of the examples is equally likely".

    p is one-sided, and a larger statistic is more evidence for the canonical ordering.

    Attributes
    ----------
    test : its name, as in the result tables.
    shards, permutations : r and m, shuffled orderings per shard.
    log10_least : decimal logarithm of the least p of these scores, whichever ordering is canonical;
        None where that is not known.
    """

    __test__: ClassVar[bool] = False  # a record, whatever pytest makes of its name

    test: str
    shards: int
    permutations: int
    log10_least: float | None = None


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


def log10_least(scores: NDArray[np.float64]) -> float:
    """Return log10 of the chance that every shard draws its largest score, of scores (r, m+1).

    No exact p of a sum over shards is below that. It is (m+1)^-r where all orderings of a shard
    differ. Three examples have six orderings alone, so that one in six is the largest.
    """
    largest = scores == scores.max(axis=1, keepdims=True)
    return float(np.log10(largest.mean(axis=1)).sum())


def as_log_probs(log_probs: ArrayLike, *, ndim: int, min_shards: int = 1) -> NDArray[np.float64]:
    """Return `log_probs` as a finite float64 array, shape (m+1,) or (r, m+1), canonical first.

    Raises InputError for another number of dimensions, too few shards, no shuffled ordering, or a
    value that is not finite.
    """
    array = np.asarray(log_probs, dtype=np.float64)
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
    check_finite(array, "log_probs")
    return array


def as_numbers(values: ArrayLike, name: str, least: float, most: float) -> NDArray[np.float64]:
    """Return `values` as a float64 array (n,) of one or more, each finite and in [least, most].

    Raises InputError for another shape, or for the first entry that is not.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not len(array):
        raise InputError(f"{name} has shape {array.shape}: give a list of one or more, shape (n,)")
    if not (valid := np.isfinite(array) & (array >= least) & (array <= most)).all():
        place = int(np.argmin(valid))
        limits = f"give finite numbers from {least:g} to {most:g}"
        raise InputError(f"{name}[{place}] is {array[place]}: {limits}")
    return array


def check_finite(array: NDArray[np.float64], name: str) -> None:
    """Raise InputError if an entry is not finite; it names the first one by its place."""
    if len(bad := np.argwhere(~np.isfinite(array))):
        place = bad[0].tolist()
        raise InputError(f"{name}{place} is {array[tuple(place)]}: measure it again, or omit it")
