"""Many p-values, one verdict: Fisher (Oren section 4.3), and rules that survive dependence.

Every function takes p-values, or their decimal logarithms where these lie below the smallest float,
and works in logarithms throughout.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp, xlogy

from contamination.errors import InputError
from contamination.statistics.results import p_from_log10
from contamination.statistics.validation import as_p_values

# p = 1 counts as the largest float below it, so that a silent test is a heavy vote and no veto.
_LARGEST_LOG_P = math.log1p(-(2.0**-53))


@dataclass(frozen=True, eq=False, kw_only=True)
class CombinedResult:
    """One p-value for n of them.

    Attributes
    ----------
    method : str
        Name of the rule.
    guarantee : str
        Under which dependence between the n tests P(p <= alpha) <= alpha holds.
    statistic : float
        The statistic of the rule, as its function defines it.
    p, log10_p : float
        Combined p-value in (0, 1], and its decimal logarithm without a floor.
    log10_p_values : ndarray, shape (n,)
        What was combined.
    """

    method: str
    guarantee: str
    statistic: float
    p: float
    log10_p: float
    log10_p_values: NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class FisherResult(CombinedResult):
    """`fisher`: with the degrees of freedom of its chi-squared law."""

    dof: int


def fisher(p_values: ArrayLike | None = None, *, log10_p: ArrayLike | None = None) -> FisherResult:
    """Combine independent p-values: -2 sum log p_i against chi-squared with 2n degrees of freedom.

    Parameters
    ----------
    p_values : array_like, shape (n,)
        One-sided p-values of n independent tests, each in (0, 1].
    log10_p : array_like, shape (n,)
        Or their decimal logarithms, each finite and at most 0.

    Returns
    -------
    FisherResult
        `log10_p` has no floor.

    Raises
    ------
    InputError
        An entry that is NaN, or not (the logarithm of) a number in (0, 1]; no entry; or neither or
        both of the arguments.

    Notes
    -----
    H0: every one of the n null hypotheses holds. Alternative: at least one fails. Exact if the p_i
    are independent and uniform under H0, conservative if they are stochastically larger. Dependence
    breaks it: positively dependent p-values make it reject too often.

    References
    ----------
    Fisher (1932), Statistical Methods for Research Workers; Oren et al. (2024), section 4.3.
    """
    log10 = as_log10_p(p_values, log10_p)
    half = float(-log10.sum()) * math.log(10)
    # An even number of degrees of freedom gives the survival function in closed form, which SciPy's
    # chi2.logsf lacks below 1e-308: exp(-x/2) sum_{k < n} (x/2)^k / k!.
    k = np.arange(len(log10))
    combined = _log10(float(logsumexp(xlogy(k, half) - gammaln(k + 1))) - half)
    return FisherResult(
        method="fisher",
        guarantee="exact if independent",
        statistic=2 * half,
        p=p_from_log10(combined),
        log10_p=combined,
        log10_p_values=log10,
        dof=2 * len(log10),
    )


def cauchy(
    p_values: ArrayLike | None = None, *, log10_p: ArrayLike | None = None
) -> CombinedResult:
    """Combine p-values of any dependence, nearly: mean_i cot(pi p_i) against the Cauchy law.

    Parameters and errors as in `fisher`. Small p-values decide; for the smallest, p is about
    n / sum_i 1/p_i. The statistic is held at the largest float.

    Notes
    -----
    H0 as in `fisher`. A mean of independent Cauchy variables is a Cauchy variable, so the rule is
    exact if the p_i are independent and uniform under H0. If each pair of the tests has bivariate
    normal statistics, P(p <= alpha) / alpha tends to 1 as alpha falls to 0, whatever their
    correlations (Liu and Xie, theorem 1). At alpha = 0.05 it is not there yet: 50 tests of
    correlation 0.3 reject with probability 0.08, and with 0.013 at alpha = 0.01 (Fisher: 0.27 and
    0.21). Other dependence can do worse: `harmonic_mean` holds under all. p_i = 1 counts as
    1 - 2^-53 and still outvotes all but p-values as extreme: leave out tests that say nothing.

    References
    ----------
    Liu and Xie (2020), "Cauchy combination test", Journal of the American Statistical Association
    115(529).
    """
    log10 = as_log10_p(p_values, log10_p)
    log_p = np.minimum(log10 * math.log(10), _LARGEST_LOG_P)
    # cot(pi p) is 1/(pi p) to the last digit below 1e-8, and beyond it is safe to leave logarithms.
    # Towards p = 1 the distance to 1 is what counts, and exp(log p) has lost it.
    near = np.exp(np.maximum(log_p, math.log(1e-9)))
    upper = -np.expm1(log_p)
    cotangent = np.where(near <= 0.5, 1 / np.tan(np.pi * near), -1 / np.tan(np.pi * upper))
    tiny = log_p < math.log(1e-8)
    with np.errstate(divide="ignore"):  # p = 1/2: a term of 0
        log_size = np.where(tiny, -log_p - math.log(np.pi), np.log(np.abs(cotangent)))
    log_sum, sign = logsumexp(log_size, b=np.sign(cotangent), return_sign=True)
    log_mean = float(log_sum) - math.log(len(log_p))
    if sign > 0 and log_mean > 20:
        log_combined = -log_mean - math.log(math.pi)
    else:
        # Upper tail of the Cauchy law, arccot(T) / pi, without a difference of nearly equal terms.
        log_combined = math.log(math.atan2(1.0, float(sign) * math.exp(log_mean)) / math.pi)
    combined = _log10(log_combined)
    largest = math.log(np.finfo(np.float64).max)
    return CombinedResult(
        method="cauchy",
        guarantee="exact if independent; asymptotic as p -> 0 if pairwise normal",
        statistic=float(sign) * math.exp(min(log_mean, largest)),
        p=p_from_log10(combined),
        log10_p=combined,
        log10_p_values=log10,
    )


def harmonic_mean(
    p_values: ArrayLike | None = None, *, log10_p: ArrayLike | None = None
) -> CombinedResult:
    """Combine p-values of any dependence: their harmonic mean times a constant a_n.

    Parameters and errors as in `fisher`. The statistic is the harmonic mean n / sum_i 1/p_i, held
    at the smallest float.

    Notes
    -----
    H0 as in `fisher`. P(a_n H <= alpha) <= alpha under every dependence, and no smaller factor has
    this property: a_1 = 1, a_2 = 2, and from n = 3 on a_n = (y + n)^2 / ((y + 1) n), where y > 0
    solves y^2 = n ((y + 1) log(y + 1) - y) (Vovk and Wang, proposition 6). a_10 is 4.6 and a_50 is
    6.6; it grows like log n. Wilson's calibration by a Landau law divides p by about that much; it
    is right if the tests are independent and has no bound otherwise, so it is not used here.

    References
    ----------
    Wilson (2019), "The harmonic mean p-value for combining dependent tests", PNAS 116(4). Vovk and
    Wang (2020), "Combining p-values via averaging", Biometrika 107(4).
    """
    log10 = as_log10_p(p_values, log10_p)
    n = len(log10)
    log_mean = math.log(n) - float(logsumexp(-log10 * math.log(10)))
    combined = _log10(log_mean + math.log(_price_of_dependence(n)))
    return CombinedResult(
        method="harmonic_mean",
        guarantee="valid under any dependence",
        statistic=p_from_log10(_log10(log_mean)),
        p=p_from_log10(combined),
        log10_p=combined,
        log10_p_values=log10,
    )


def as_log10_p(p_values: ArrayLike | None, log10_p: ArrayLike | None) -> NDArray[np.float64]:
    """Return the decimal logarithms of p-values given either way, (n,), n >= 1.

    Raises
    ------
    InputError
        As in `fisher`.
    """
    if (p_values is None) == (log10_p is None):
        raise InputError("give either p_values or log10_p")
    if p_values is not None:
        return np.asarray(np.log10(as_p_values(p_values)))
    try:
        array = np.array(log10_p, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("log10_p is not a list of numbers: give one per test") from error
    if array.ndim != 1 or not len(array):
        raise InputError(
            f"log10_p has shape {array.shape}: give a list of one or more logarithms, shape (n,)"
        )
    bad = np.flatnonzero(~(np.isfinite(array) & (array <= 0)))
    if len(bad):
        raise InputError(
            f"log10_p[{bad[0]}] is {array[bad[0]]}: the logarithm of a p-value is finite and at "
            "most 0; correct or drop it"
        )
    return array


def _log10(log_p: float) -> float:
    return min(0.0, log_p / math.log(10))


def _price_of_dependence(n: int) -> float:
    """a_n of `harmonic_mean`."""
    if n <= 2:
        return float(n)
    y = brentq(lambda y: y * y - n * ((y + 1) * math.log1p(y) - y), 1e-3, float(n * n))
    return float((y + n) ** 2 / ((y + 1) * n))
