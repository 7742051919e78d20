"""Whether the p-values of many null experiments keep to a level, and reach it."""

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
