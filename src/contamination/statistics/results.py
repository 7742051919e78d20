"""Frozen records of p-values, which every test returns, and ties within a resolution.

Every p-value comes twice. `log10_p` has no floor. `p` is the same number as a float,
held at the smallest normal float64 (2.2e-308) where the true value is below: rounding
up is the safe direction, and a p-value is never zero.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contamination.statistics.inputs import as_scalar


# Arrays have no single truth value, so records compare by identity (`eq=False`).
@dataclass(frozen=True, eq=False, kw_only=True)
class PValue:
    """One p-value.

    Attributes
    ----------
    statistic
        Statistic to which p belongs, in the units that its function names.
    p, log10_p
        p-value in (0, 1], and its decimal logarithm.

    Examples
    --------
    >>> PValue.of(-400.0, statistic=43.0).p
    2.2250738585072014e-308
    """

    statistic: float
    p: float
    log10_p: float

    @classmethod
    def of(cls, log10_p: float, **others: Any) -> Self:
        """Make a record of the p-value with this decimal logarithm, or of 1 if it is above 0.

        Raises InputError for NaN, and for anything but one number.
        """
        held = min(0.0, as_scalar(log10_p, "log10_p"))
        return cls(p=p_from_log10(held), log10_p=held, **others)


@dataclass(frozen=True, eq=False, kw_only=True)
class TestResult(PValue):
    """Outcome of one test of H0 "every ordering of the examples is equally likely".

    With several shards: within each shard, independently of the others. p is one-sided,
    and a larger statistic is more evidence for the canonical ordering.

    Attributes
    ----------
    test
        Name of the test, as in the result tables.
    shards, permutations
        r and m, shuffled orderings per shard. In a quiz, the number of questions and
        K - 1, the other choices of a question.
    log10_least
        Decimal logarithm of the least p that the exact law of these scores allows,
        whichever ordering is canonical; None where that is not known. A p that is
        sampled, as that of `westfall_young_test`, may be slightly below it.
    """

    __test__: ClassVar[bool] = False  # a record, whatever pytest makes of its name

    test: str
    shards: int
    permutations: int
    log10_least: float | None = None


def p_from_log10(log10_p: float) -> float:
    """Return 10**log10_p, held at the smallest normal float64 so that it is never zero, and at 1.

    Examples
    --------
    >>> p_from_log10(-3.0)
    0.001
    """
    smallest = float(np.finfo(np.float64).tiny)
    return max(float(10.0 ** min(log10_p, 0.0)), smallest)


def log10_least(scores: NDArray[np.float64]) -> float:
    """Return log10 of the chance that every shard draws its largest score, of scores (r, m+1).

    No exact p of a sum over shards is below that. It is (m+1)^-r where all orderings of
    a shard differ. Three examples have six orderings alone, so that one in six is the
    largest.

    Examples
    --------
    >>> round(10 ** log10_least(np.array([[3.0, 1.0, 2.0], [1.0, 1.0, 0.0]])), 4)  # 1/3 times 2/3
    0.2222
    """
    largest = scores == scores.max(axis=1, keepdims=True)
    return float(np.log10(largest.mean(axis=1)).sum())


def with_ties(scores: NDArray[np.float64], resolution: ArrayLike) -> NDArray[np.float64]:
    """Return scores (..., n), equal in each row that lies within its `resolution` (nats).

    What the engine cannot tell apart is no evidence, and a weight of 1 / sd would give
    it a full vote. A row is judged as a whole, so exchangeable scores stay
    exchangeable.

    Examples
    --------
    >>> with_ties(np.array([[1.0, 1.5], [1.0, 3.0]]), 0.5)
    array([[1.25, 1.25],
           [1.  , 3.  ]])
    """
    tied = np.ptp(scores, axis=-1) <= resolution
    return np.where(tied[..., None], scores.mean(axis=-1, keepdims=True), scores)


def outcome_row(result: TestResult) -> dict[str, Any]:
    """Return the fields of every test result, as a row of a table."""
    fields = ("test", "shards", "permutations", "statistic", "p", "log10_p")
    return {field: getattr(result, field) for field in fields}
