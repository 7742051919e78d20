"""What the tests of several statistics return (see `joint`)."""

from dataclasses import dataclass

from contamination.statistics.results import ShardedExactResult, TestResult


@dataclass(frozen=True, eq=False, kw_only=True)
class WestfallYoungResult(TestResult):
    """`westfall_young_test`.

    Attributes
    ----------
    weights, scale : str
        The weighting scheme within each statistic, and the scale on which they are compared.
    names : tuple of str, length q
        What the statistics are called.
    best : str
        The one that gave T. For information: which one it would be was not known beforehand, and
        the p-value has paid for the choice.
    marginals : tuple of ShardedExactResult, length q
        Each statistic's own exact test, *not* corrected for there being q of them.
    resamples : int
        Number of importance draws.
    relative_error : float
        Estimated standard error of p from sampling, as a share of p.
    """

    weights: str
    scale: str
    names: tuple[str, ...]
    best: str
    marginals: tuple[ShardedExactResult, ...]
    resamples: int
    relative_error: float


@dataclass(frozen=True, eq=False, kw_only=True)
class SumZResult(ShardedExactResult):
    """`sum_z_test`: the `sharded_exact_test` of the sum.

    `marginals` holds each statistic's own exact test, *not* corrected for there being q of them.
    """

    marginals: tuple[ShardedExactResult, ...]
