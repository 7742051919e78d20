"""What a test returns: frozen records of the statistic, its p-value and what they came from.

Every p-value comes twice. `log10_p` has no floor. `p` is the same number as a float, held at the
smallest normal float64 (2.2e-308) where the true value is below: rounding up is the safe direction,
and a p-value is never zero.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray


# Arrays have no single truth value, so records compare by identity (`eq=False`).
@dataclass(frozen=True, eq=False, kw_only=True)
class TestResult:
    """Outcome of one test of H0 "every ordering of the examples is equally likely".

    Attributes
    ----------
    test : str
        Name of the test, as in the result tables.
    statistic : float
        Larger is more evidence for the canonical ordering.
    p, log10_p : float
        One-sided p-value in (0, 1], and its decimal logarithm.
    shards, permutations : int
        r and m: shards, and shuffled orderings per shard.
    """

    __test__: ClassVar[bool] = False  # a record, whatever pytest makes of its name

    test: str
    statistic: float
    p: float
    log10_p: float
    shards: int
    permutations: int


@dataclass(frozen=True, eq=False, kw_only=True)
class ShardedTResult(TestResult):
    """`sharded_t_test`: with the `differences` (r,) in nats, and the degrees of freedom."""

    differences: NDArray[np.float64]
    df: int


@dataclass(frozen=True, eq=False, kw_only=True)
class ShardedExactResult(TestResult):
    """`sharded_exact_test`.

    Attributes
    ----------
    null_sd : float
        Exact standard deviation of the statistic under H0 given the scores; by centring its mean
        is 0.
    z : float
        statistic / null_sd: a description of the effect, never the source of p (0 if null_sd is 0).
    resolution : float
        Width of the conservative rounding, in units of the statistic:
        P(T >= t) <= p <= P(T >= t - resolution), the upper end up to the bound on float error
        that p includes: about 1e-7 of p for 50 shards, 1e-6 for some hundred.
    """

    null_sd: float
    z: float
    resolution: float


@dataclass(frozen=True, eq=False, kw_only=True)
class MonteCarloResult(TestResult):
    """`sharded_exact_monte_carlo`: as `ShardedExactResult`, by sampling.

    `p_low` and `p_high` are the 95% Clopper-Pearson limits of P(T >= t), which `p` estimates.
    """

    null_sd: float
    z: float
    p_low: float
    p_high: float


def p_from_log10(log10_p: float) -> float:
    """10**log10_p, held at the smallest normal float64 so that it is never zero."""
    return max(float(10.0**log10_p), float(np.finfo(np.float64).tiny))
