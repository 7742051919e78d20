"""Many p-values at once: one verdict (Fisher; Oren section 4.3) or many (Holm)."""

import math
from dataclasses import dataclass

import numpy as np
import scipy.stats
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, logsumexp, xlogy
from statsmodels.stats.multitest import multipletests

from contamination.statistics.results import p_from_log10
from contamination.statistics.validation import as_p_values


@dataclass(frozen=True, eq=False, kw_only=True)
class FisherResult:
    """`fisher`: the statistic, its degrees of freedom, the combined p, and the p-values used."""

    statistic: float
    dof: int
    p: float
    log10_p: float
    p_values: NDArray[np.float64]


def fisher(p_values: ArrayLike) -> FisherResult:
    """Combine independent p-values: -2 sum log p_i against chi-squared with 2n degrees of freedom.

    Parameters
    ----------
    p_values : array_like, shape (n,)
        One-sided p-values of n independent tests, each in (0, 1].

    Returns
    -------
    FisherResult
        `log10_p` has no floor.

    Raises
    ------
    InputError
        An entry that is NaN, zero or outside (0, 1], or no entry.

    Notes
    -----
    H0: every one of the n null hypotheses holds. Alternative: at least one fails. Exact if the p_i
    are independent and uniform under H0, conservative if they are stochastically larger. Dependence
    breaks it: positively dependent p-values make it reject too often.

    References
    ----------
    Fisher (1932), Statistical Methods for Research Workers; Oren et al. (2024), section 4.3.
    """
    values = as_p_values(p_values)
    statistic = float(scipy.stats.combine_pvalues(values, method="fisher").statistic)
    # An even number of degrees of freedom gives the survival function in closed form, which SciPy's
    # chi2.logsf lacks below 1e-308: exp(-x/2) sum_{k < n} (x/2)^k / k!.
    k = np.arange(len(values))
    log_p = float(logsumexp(xlogy(k, statistic / 2) - gammaln(k + 1))) - statistic / 2
    log10_p = min(0.0, log_p / math.log(10))
    return FisherResult(
        statistic=statistic,
        dof=2 * len(values),
        p=p_from_log10(log10_p),
        log10_p=log10_p,
        p_values=values.copy(),
    )


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Holm's adjusted p-values, in the order given, shape (n,).

    Raises
    ------
    InputError
        An entry that is NaN, zero or outside (0, 1], or no entry.

    Notes
    -----
    Rejecting where the adjusted p is at most alpha keeps the probability of even one false
    rejection (family-wise error rate) at or below alpha, under any dependence between the tests.

    References
    ----------
    Holm (1979), "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
    Statistics 6(2).
    """
    adjusted: NDArray[np.float64] = multipletests(as_p_values(p_values), method="holm")[1]
    return adjusted
