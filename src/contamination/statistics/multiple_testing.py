"""Many p-values: one verdict for all of them, or one verdict each.

Fisher's method (Oren section 4.3) and rules that survive dependence combine; `adjust`
controls error rates over a whole audit of models and test sets. They take the decimal
logarithms of p-values, since these may lie below the smallest float. Studies of
calibration ask whether p-values under H0 are uniform: `ecdf` and `dkw_band` are their
law and a band around it.
"""

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp, xlogy

from contamination.errors import InputError
from contamination.statistics.inputs import as_count, as_level, as_numbers
from contamination.statistics.results import PValue, p_from_log10

Method = Literal["holm", "benjamini_hochberg"]

# p = 1 counts as the largest float below it, so p = 1 keeps a finite weight.
_LARGEST_LOG_P = math.log1p(-(2.0**-53))
# A smaller log10 p counts as this one, which is conservative: sums of them must stay
# finite.
_SMALLEST_LOG10_P = -1e300


@dataclass(frozen=True, eq=False, kw_only=True)
class AdjustedResult:
    """Outcome of `adjust`: adjusted p-values in the order of the raw ones, (n,) each.

    `log10_p` has no floor.
    """

    p: NDArray[np.float64]
    log10_p: NDArray[np.float64]


def fisher(log10_p: ArrayLike) -> PValue:
    """Combine independent p-values: -2 sum log p_i against chi-squared with 2n degrees of freedom.

    Parameters
    ----------
    log10_p
        (n,), log10 of the one-sided p-values of n tests. Those below -1e300 count as
        -1e300.

    Returns
    -------
    PValue, whose statistic is that of the chi-squared law.

    Raises
    ------
    InputError
        For no entry, or one that is not a finite number or above 0.

    Notes
    -----
    H0: every one of the n null hypotheses holds. Alternative: at least one fails. Exact
    if the p_i are independent and uniform under H0, conservative if they are
    stochastically larger. Dependence breaks it: positively dependent p-values make it
    reject too often.

    Fisher (1932), Statistical Methods for Research Workers; Oren et al. (2024), section
    4.3.

    Examples
    --------
    >>> round(fisher(np.log10([0.04, 0.1, 0.3])).p, 4)
    0.0364
    """
    log10 = _as_log10_p(log10_p)
    half = float(-log10.sum()) * math.log(10)
    # An even number of degrees of freedom gives the survival function in closed form,
    # which SciPy's chi2.logsf lacks below 1e-308: exp(-x/2) sum_{k < n} (x/2)^k / k!.
    k = np.arange(len(log10))
    log_p = float(logsumexp(xlogy(k, half) - gammaln(k + 1))) - half
    return PValue.of(log_p / math.log(10), statistic=2 * half)


def cauchy(log10_p: ArrayLike) -> PValue:
    """Combine p-values of any dependence, nearly: mean_i cot(pi p_i) against the Cauchy law.

    Small p-values decide; for the smallest, p is about n / sum_i 1/p_i.

    Parameters
    ----------
    log10_p
        (n,), log10 of the one-sided p-values of n tests. Those below -1e300 count as
        -1e300.

    Returns
    -------
    PValue, whose statistic is the mean of the cotangents, held at the largest float.

    Raises
    ------
    InputError
        For no entry, or one that is not a finite number or above 0.

    Notes
    -----
    H0: every one of the n null hypotheses holds. Alternative: at least one fails.

    A mean of independent Cauchy variables is a Cauchy variable, so the rule is exact if
    the p_i are independent and uniform under H0. If each pair of the tests has
    bivariate normal statistics, P(p <= alpha) / alpha tends to 1 as alpha falls to 0,
    whatever their correlations (Liu and Xie, theorem 1); at alpha = 0.05 it is not
    there yet, and other dependence can do worse: `harmonic_mean` holds under all. p_i =
    1 counts as 1 - 2^-53 and still outvotes all but p-values as extreme: leave out
    tests that say nothing.

    Liu and Xie (2020), "Cauchy combination test", Journal of the American Statistical
    Association 115(529).

    Examples
    --------
    >>> round(cauchy(np.log10([0.001, 0.4, 0.5])).p, 4)
    0.003
    """
    log_p = np.minimum(_as_log10_p(log10_p) * math.log(10), _LARGEST_LOG_P)
    # cot(pi p) is 1/(pi p) to the last digit below 1e-8, and beyond it is safe to leave
    # logarithms. Towards p = 1 the distance to 1 is what counts, and exp(log p) has
    # lost it.
    near = np.exp(np.maximum(log_p, math.log(1e-9)))
    upper = -np.expm1(log_p)
    below_half = 1 / np.tan(np.pi * near)
    above_half = -1 / np.tan(np.pi * upper)
    cotangent = np.where(near <= 0.5, below_half, above_half)
    tiny = log_p < math.log(1e-8)
    with np.errstate(divide="ignore"):  # p = 1/2: a term of 0
        log_size = np.where(tiny, -log_p - math.log(np.pi), np.log(np.abs(cotangent)))
    log_sum, sign = logsumexp(log_size, b=np.sign(cotangent), return_sign=True)
    log_mean = float(log_sum) - math.log(len(log_p))
    if sign > 0 and log_mean > 20:
        log_combined = -log_mean - math.log(math.pi)
    else:
        # Upper tail of the Cauchy law, arccot(T) / pi, without a difference of nearly
        # equal terms.
        mean = float(sign) * math.exp(log_mean)
        log_combined = math.log(math.atan2(1.0, mean) / math.pi)
    largest = math.log(np.finfo(np.float64).max)
    statistic = float(sign) * math.exp(min(log_mean, largest))
    return PValue.of(log_combined / math.log(10), statistic=statistic)


def harmonic_mean(log10_p: ArrayLike) -> PValue:
    """Combine p-values of any dependence: their harmonic mean times a constant a_n.

    Parameters
    ----------
    log10_p
        (n,), log10 of the one-sided p-values of n tests. Those below -1e300 count as
        -1e300.

    Returns
    -------
    PValue, whose statistic is the harmonic mean n / sum_i 1/p_i, held at the smallest
    float.

    Raises
    ------
    InputError
        For no entry, or one that is not a finite number or above 0.

    Notes
    -----
    H0: every one of the n null hypotheses holds. Alternative: at least one fails.

    P(a_n H <= alpha) <= alpha under every dependence, and no smaller factor has this
    property: a_1 = 1, a_2 = 2, and from n = 3 on a_n = (y + n)^2 / ((y + 1) n), where y
    > 0 solves y^2 = n ((y + 1) log(y + 1) - y) (Vovk and Wang, proposition 6); it grows
    like log n. Wilson's calibration by a Landau law, smaller by about that, has no
    bound under dependence.

    Wilson (2019), "The harmonic mean p-value for combining dependent tests", PNAS
    116(4). Vovk and Wang (2020), "Combining p-values via averaging", Biometrika 107(4).

    Examples
    --------
    >>> round(harmonic_mean(np.log10([0.001, 0.4, 0.5])).p, 4)
    0.0082
    """
    log10 = _as_log10_p(log10_p)
    n = len(log10)
    log_mean = math.log(n) - float(logsumexp(-log10 * math.log(10)))
    statistic = p_from_log10(min(0.0, log_mean / math.log(10)))
    price = float(n)  # a_n
    if n > 2:
        y = brentq(_vovk_wang, 1e-3, float(n * n), args=(n,))
        price = (y + n) ** 2 / ((y + 1) * n)
    return PValue.of((log_mean + math.log(price)) / math.log(10), statistic=statistic)


def _vovk_wang(y: float, n: int) -> float:
    """Return what is 0 at the y of proposition 6."""
    return y * y - n * ((y + 1) * math.log1p(y) - y)


def adjust(log10_p: ArrayLike, *, method: Method) -> AdjustedResult:
    """Adjust p-values for their number, so that each may be compared with alpha.

    With p_(1) <= ... <= p_(n) and the adjusted values capped at 1:

        holm:                 max_{j <= k} (n - j + 1) p_(j)
        benjamini_hochberg:   min_{j >= k} n p_(j) / j

    The values are those of statsmodels' `multipletests` wherever a float can hold them.

    Parameters
    ----------
    log10_p
        (n,), log10 of the p-values of n tests, which may depend on each other. Those
        below -1e300 count as -1e300.
    method
        "holm" or "benjamini_hochberg".

    Returns
    -------
    AdjustedResult. Its p is held at the smallest normal float64.

    Raises
    ------
    InputError
        For no entry, one that is not a finite number or above 0, or an unknown method.

    Notes
    -----
    H0 of each test: its own. Rejecting where the adjusted p is at most alpha keeps at
    or below alpha, exactly in finite samples if the p-values are valid,

    - "holm": the probability of even one false rejection, under any dependence. For an
      audit in which every accusation must stand.
    - "benjamini_hochberg": the expected share of false ones among the rejections, if
      the tests are independent or positively regression dependent on the true null
      hypotheses (PRDS). For a screen whose hits are looked at again.

    Holm (1979), "A simple sequentially rejective multiple test procedure", Scandinavian
    Journal of Statistics 6(2). Benjamini and Hochberg (1995), "Controlling the false
    discovery rate", Journal of the Royal Statistical Society B 57(1).

    Examples
    --------
    >>> adjust(np.log10([0.01, 0.5, 0.02]), method="holm").p.round(3)
    array([0.03, 0.5 , 0.04])
    """
    if method not in get_args(Method):
        raise InputError(
            f"method is {method!r:.40}: give one of {', '.join(get_args(Method))}",
        )
    raw = _as_log10_p(log10_p)
    order = np.argsort(raw)
    rank = np.arange(1, len(raw) + 1)
    # statsmodels has these procedures for p itself, which ends at 1e-308; log10 p does
    # not.
    if method == "holm":
        stepped = np.maximum.accumulate(raw[order] + np.log10(rank[::-1]))
    else:
        raised = raw[order] + np.log10(len(raw) / rank)
        stepped = np.minimum.accumulate(raised[::-1])[::-1]
    adjusted = np.empty_like(raw)
    adjusted[order] = np.minimum(stepped, 0)
    p_values = np.maximum(10.0**adjusted, np.finfo(np.float64).tiny)
    return AdjustedResult(p=p_values, log10_p=adjusted)


def ecdf(p_values: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the sorted p-values and the heights i/n of their distribution function, both (n,).

    Raises InputError for another shape, no entry, or one that is not in [0, 1].

    Examples
    --------
    >>> ecdf([0.5, 0.1])
    (array([0.1, 0.5]), array([0.5, 1. ]))
    """
    x = np.sort(as_numbers(p_values, "p_values", 0, 1))
    heights = np.arange(1, len(x) + 1) / len(x)
    return x, heights


def dkw_band(n: int, level: float) -> float:
    """Return the half-width of a band that holds the whole true law.

    It does with probability `level` or more, for n >= 1 independent p-values and every
    law: sqrt(log(2 / alpha) / (2 n)) with alpha = 1 - level (Dvoretzky, Kiefer and
    Wolfowitz 1956, with the constant of Massart 1990). Raises InputError for another n,
    or a level outside (0, 1).

    Examples
    --------
    >>> round(dkw_band(57, 0.95), 3)
    0.18
    """
    count = as_count(n, "n", 1)
    alpha = 1 - as_level(level, "level")
    return math.sqrt(math.log(2 / alpha) / (2 * count))


def _as_log10_p(log10_p: ArrayLike) -> NDArray[np.float64]:
    values = as_numbers(log10_p, "log10_p", -math.inf, 0)
    return np.maximum(values, _SMALLEST_LOG10_P)
