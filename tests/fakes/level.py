"""Whether the p-values of null experiments, many or all that there are, keep to their levels."""

from collections.abc import Sequence

import numpy as np
import scipy.stats


def check_level(p: Sequence[float], *alphas: float, reached: bool = True) -> None:
    """Rejections at each level lie between the binomial law's quantiles of 1e-4 and 1 - 1e-4.

    With `reached=False` there may be fewer, as where p-values are discrete.
    """
    for alpha in alphas:
        low, high = scipy.stats.binom.ppf([1e-4, 1 - 1e-4], len(p), alpha)
        rejected = np.sum(np.asarray(p) <= alpha)
        assert low * reached <= rejected <= high, alpha


def check_every_level(p: Sequence[float]) -> None:
    """P(p <= alpha) <= alpha at every alpha: `p` are those of outcomes that are alike under H0."""
    ordered = np.sort(p)
    rejected = np.searchsorted(ordered, ordered, side="right") / len(ordered)
    assert (rejected <= ordered * (1 + 1e-9)).all()
