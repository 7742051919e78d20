"""Many p-values, one verdict each: error rates over a whole audit of models and test sets."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contamination.errors import InputError
from contamination.statistics.combination import as_log10_p

Method = Literal["holm", "benjamini_hochberg", "benjamini_yekutieli"]

GUARANTEES: dict[Method, str] = {
    "holm": "family-wise error rate, any dependence",
    "benjamini_hochberg": "false discovery rate, independent or positively dependent (PRDS)",
    "benjamini_yekutieli": "false discovery rate, any dependence",
}


@dataclass(frozen=True, eq=False, kw_only=True)
class AdjustedResult:
    """`adjust`: a small table, one row per test in the order given.

    Attributes
    ----------
    method, guarantee : str
        The procedure, and the error rate that it controls under which dependence.
    raw_log10_p : ndarray, shape (n,)
        log10 of the p-values before adjustment.
    p, log10_p : ndarray, shape (n,)
        Adjusted p-values, held at the smallest normal float64, and their decimal logarithms without
        a floor.
    """

    method: Method
    guarantee: str
    raw_log10_p: NDArray[np.float64]
    p: NDArray[np.float64]
    log10_p: NDArray[np.float64]

    def rejected(self, alpha: float) -> NDArray[np.bool_]:
        """Which null hypotheses fall when the error rate is held at `alpha`, (n,).

        Raises
        ------
        InputError
            An alpha outside (0, 1).
        """
        if not 0 < alpha < 1:
            raise InputError(f"alpha is {alpha}: give an error rate between 0 and 1, such as 0.05")
        return self.log10_p <= math.log10(alpha)


def adjust(
    p_values: ArrayLike | None = None, *, log10_p: ArrayLike | None = None, method: Method
) -> AdjustedResult:
    """Adjust p-values for their number, so that each may be compared with alpha.

    With p_(1) <= ... <= p_(n) and the adjusted values capped at 1:

        holm:                 max_{j <= k} (n - j + 1) p_(j)
        benjamini_hochberg:   min_{j >= k} n p_(j) / j
        benjamini_yekutieli:  min_{j >= k} n p_(j) / j * sum_{i <= n} 1/i

    Parameters
    ----------
    p_values : array_like, shape (n,)
        p-values of n tests, each in (0, 1].
    log10_p : array_like, shape (n,)
        Or their decimal logarithms, each finite and at most 0.
    method : {"holm", "benjamini_hochberg", "benjamini_yekutieli"}
        The procedure.

    Returns
    -------
    AdjustedResult
        The values of statsmodels' `multipletests` wherever a float can hold them.

    Raises
    ------
    InputError
        An entry that is NaN, or not (the logarithm of) a number in (0, 1]; no entry; neither or
        both of the two kinds of p-values; or an unknown method.

    Notes
    -----
    H0 of each test: its own. Rejecting where the adjusted p is at most alpha keeps

    - "holm": the probability of even one false rejection (family-wise error rate) at or below
      alpha, under any dependence. For an audit in which every accusation must stand.
    - "benjamini_hochberg": the expected share of false ones among the rejections (false discovery
      rate) at or below alpha, if the tests are independent or positively regression dependent on
      the true null hypotheses. For a screen whose hits are looked at again.
    - "benjamini_yekutieli": the same under any dependence, at the price of a factor of about log n.

    All are exact in finite samples if the p-values are valid.

    References
    ----------
    Holm (1979), "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
    Statistics 6(2). Benjamini and Hochberg (1995), "Controlling the false discovery rate", Journal
    of the Royal Statistical Society B 57(1). Benjamini and Yekutieli (2001), "The control of the
    false discovery rate in multiple testing under dependency", Annals of Statistics 29(4).
    """
    if method not in get_args(Method):
        raise InputError(f"method is {method!r}: give one of {', '.join(get_args(Method))}")
    raw = as_log10_p(p_values, log10_p)
    order = np.argsort(raw)
    rank = np.arange(1, len(raw) + 1)
    # statsmodels has these procedures for p itself, which ends at 1e-308; log10 p does not.
    if method == "holm":
        stepped = np.maximum.accumulate(raw[order] + np.log10(rank[::-1]))
    else:
        price = (1 / rank).sum() if method == "benjamini_yekutieli" else 1.0
        scaled = raw[order] + np.log10(price * len(raw) / rank)
        stepped = np.minimum.accumulate(scaled[::-1])[::-1]
    adjusted = np.empty_like(raw)
    adjusted[order] = np.minimum(stepped, 0)
    return AdjustedResult(
        method=method,
        guarantee=GUARANTEES[method],
        raw_log10_p=raw,
        p=np.maximum(10.0**adjusted, np.finfo(np.float64).tiny),
        log10_p=adjusted,
    )
