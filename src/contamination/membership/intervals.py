"""Intervals for the AUC and the TPR that cover also where texts are few, or an AUC is near 1.

They do from 10 texts on either side. Percentiles of a bootstrap, and the normal
interval of DeLong, fail there: at an AUC of 0.98 with 20 texts on either side they hold
the truth in 78% of samples instead of 95%, and where all members have the larger scores
they shrink to a point. The percentiles of a TPR at 1% FPR hold the truth in 42% of such
samples.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import brentq
from scipy.special import expit, logit

Floats = NDArray[np.float64]

LEVEL = 0.95
ENDS = ((1 - LEVEL) / 2, 1 - (1 - LEVEL) / 2)  # as quantiles
_NORMAL_QUANTILE = float(stats.norm.isf((1 - LEVEL) / 2))
_ALMOST_ONE = 1 - 1e-9


def auc_interval(members: Floats, non_members: Floats) -> tuple[float, float]:
    """Return a 95% interval for the chance that a member has a larger score than a non-member.

    It is the union of two. One is that of DeLong et al. (1988) on the scale of
    log-odds, with Student's quantile of the smaller side; it follows the sample where
    the sides have unlike laws. The other is the score interval of Newcombe (2006),
    whose variance is that of Hanley and McNeil (1982) at each candidate; it holds where
    all members have the larger scores and a sample has no variance.

    Parameters
    ----------
    members, non_members
        Scores, (n,) each, finite. Fewer than two on a side say nothing: the interval is
        then 0 to 1.

    Returns
    -------
    Lower and upper end.

    Notes
    -----
    The texts of a side are independent draws of one law. Simulated with normal scores
    of equal and of unlike variances, 10 to 200 texts on a side and AUCs from 0.5 to
    0.995, it covers in 95% to 99.7% of samples.

    DeLong, DeLong and Clarke-Pearson (1988), Biometrics 44. Newcombe (2006), Statistics
    in Medicine 25, 559-573, method 5.

    Examples
    --------
    >>> low, high = auc_interval(np.array([3.0, 4.0, 5.0, 6.0]), np.array([0.0, 1.0, 2.0]))
    >>> round(low, 2), high
    (0.54, 1.0)
    """
    smaller = min(len(members), len(non_members))
    if smaller < 2:
        return 0.0, 1.0
    area, variance = _delong(members, non_members)
    low, high = _newcombe(area, len(members), len(non_members))
    if 0 < area < 1 and variance > 0:
        quantile = float(stats.t.isf((1 - LEVEL) / 2, smaller - 1))
        half = quantile * np.sqrt(variance) / (area * (1 - area))
        low = min(low, float(expit(logit(area) - half)))
        high = max(high, float(expit(logit(area) + half)))
    return low, high


def tpr_interval(
    members: Floats, non_members: Floats, *, fpr: float, rng: np.random.Generator, draws: int
) -> tuple[float, float]:
    """Return a 95% interval for the chance that a member reaches the threshold of an FPR.

    The threshold is that which a share `fpr` of the law of non-members reaches. How
    many of the n non-members reach it is binomial, so each draw of that number puts it
    between two of their scores; with none it lies above all, and the chance may be 0.
    The chance itself then has the laws of Clopper and Pearson, from the members that
    exceed the upper and the lower of these scores.

    Parameters
    ----------
    members, non_members
        Scores, (n,) each, finite, at least one of each.
    fpr
        Share of non-members, between 0 and 1.
    rng
        Draws the numbers of non-members and the chances.
    draws
        Number of draws of either.

    Returns
    -------
    Lower and upper end.

    Notes
    -----
    The texts of a side are independent draws of one law, whatever it is. Simulated with
    normal and with heavy-tailed scores (Student's t, 3 degrees of freedom), 10 to 250
    texts on a side, members shifted by 0 to 4 and FPRs of 5%, 1% and 0.1%, it covers in
    96% to 100% of samples, and in 95% to 100% where scores are whole numbers.

    Where scores tie, the threshold lies just above a score that more than `fpr` reach.
    Clopper and Pearson (1934), Biometrika 26.

    Examples
    --------
    >>> low, high = tpr_interval(
    ...     np.arange(20.0) + 20, np.arange(20.0), fpr=0.05, rng=np.random.default_rng(0), draws=999
    ... )
    >>> low, high
    (0.0, 1.0)
    """
    ascending = np.sort(members)
    descending = np.concatenate([[np.inf], np.sort(non_members)[::-1], [-np.inf]])
    reaching = rng.binomial(len(non_members), fpr, size=draws)
    count = len(members)
    fewest = count - np.searchsorted(ascending, descending[reaching], side="right")
    most = count - np.searchsorted(ascending, descending[reaching + 1], side="right")
    # Of a share that nobody or everybody reaches, the end is 0 or 1.
    least = rng.beta(np.maximum(fewest, 1), count - fewest + 1)
    largest = rng.beta(most + 1, np.maximum(count - most, 1))
    low = np.quantile(np.where(fewest > 0, least, 0.0), ENDS[0])
    high = np.quantile(np.where(most < count, largest, 1.0), ENDS[1])
    return float(low), float(high)


def _delong(members: Floats, non_members: Floats) -> tuple[float, float]:
    """Return the AUC and its variance by DeLong et al., from the ranks of the scores."""
    ranks = stats.rankdata(np.concatenate([members, non_members]))
    count = len(members)
    # Of each member, the share of non-members below it; of each non-member, of members
    # above it.
    below = (ranks[:count] - stats.rankdata(members)) / len(non_members)
    above = 1 - (ranks[count:] - stats.rankdata(non_members)) / count
    variance = below.var(ddof=1) / count + above.var(ddof=1) / len(non_members)
    return float(below.mean()), float(variance)


def _newcombe(area: float, members: int, non_members: int) -> tuple[float, float]:
    """Return the AUCs from which the observed one is as far as chance allows."""
    if area < 0.5:
        low, high = _newcombe(1 - area, members, non_members)
        return 1 - high, 1 - low
    sizes = (area, members, non_members)
    low = float(brentq(_excess, 0.0, min(area, _ALMOST_ONE), args=sizes))
    if area >= _ALMOST_ONE or _excess(_ALMOST_ONE, *sizes) <= 0:
        return low, 1.0
    return low, float(brentq(_excess, area, _ALMOST_ONE, args=sizes))


def _excess(candidate: float, area: float, members: int, non_members: int) -> float:
    """Return the squared distance of an AUC from the observed one, less what chance allows."""
    weight = (members + non_members) / 2 - 1
    of_members = weight * (1 - candidate) / (2 - candidate)
    of_non_members = weight * candidate / (1 + candidate)
    spread = 1 + of_members + of_non_members
    variance = candidate * (1 - candidate) * spread / (members * non_members)
    return (area - candidate) ** 2 - _NORMAL_QUANTILE**2 * variance
