"""The sharded t-test of Oren et al. (2024), section 3.2 and Algorithm 1."""

import math

import numpy as np
import scipy.special
import scipy.stats
from numpy.typing import ArrayLike, NDArray

from contamination.errors import InputError
from contamination.statistics.inputs import as_log_probs, as_whole_numbers
from contamination.statistics.results import TestResult
from contamination.statistics.scale import ROUNDING, with_scale, without_scale

_DDOFS = (0, 1)
# SciPy is right to the last digits above it; near 1e-308 it says -inf
_LOGSF_HOLDS = -650.0


def sharded_t_test(log_probs: ArrayLike, *, ddof: int = 1) -> TestResult:
    """Test the differences of the shards against 0: a one-sided one-sample t-test.

    s_i = L[i, 0] - mean_{j >= 1} L[i, j];  t = sqrt(r) mean(s) / sd(s);  p = P(t_{r-1} >= t)

    Parameters
    ----------
    log_probs
        (r, m+1), log-probability L (nats) of each shard in each ordering, column 0
        canonical; larger is more evidence.
    ddof
        1 is Student's t. 0 is what the public script of the paper computes
        (`numpy.std`): its statistic is sqrt(r / (r-1)) too large for the t law with r -
        1 degrees of freedom, so it rejects too often; use it only to compare with that
        script.

    Returns
    -------
    TestResult, whose statistic is t.

    Raises
    ------
    InputError
        For a wrong number of dimensions, fewer than 2 shards or 1 permutation, a value
        that is not a finite number, another `ddof`, or differences that are all equal
        and not 0: t is then undefined.

    Notes
    -----
    H0: the orderings of each shard are exchangeable, independently over shards.
    Alternative: canonical orderings are more likely. p is asymptotic in r (Theorem 2:
    i.i.d. examples, finite second moments). It is exact only if the s_i are i.i.d.
    normal with mean 0, and nothing bounds its error for few shards of skewed or unequal
    scores (`sharded_exact_test` needs neither assumption). Where every s_i is 0,
    nothing speaks for the canonical ordering: t = 0, p = 1.

    Examples
    --------
    >>> result = sharded_t_test([[-9.0, -10.0], [-7.5, -9.5], [-8.0, -9.0]])
    >>> round(result.statistic, 3), round(result.p, 4)
    (4.0, 0.0286)
    """
    values = as_log_probs(log_probs, ndim=2, min_shards=2)
    _check_ddof(ddof)
    values, exponent = without_scale(values)
    shards = len(values)
    differences = values[:, 0] - values[:, 1:].mean(axis=1)
    rounding = ROUNDING * np.abs(values).max()
    if np.abs(differences).max() <= rounding:
        statistic = 0.0
        log10_p = 0.0
    elif np.ptp(differences) <= rounding:
        raise _undefined(with_scale(float(differences[0]), int(exponent.item())), shards)
    else:
        error = differences.std(ddof=ddof) / math.sqrt(shards)
        statistic = float(differences.mean() / error)
        log10_p = _log_t_survival(statistic, shards - 1) / math.log(10)
    return TestResult.of(
        log10_p,
        test="sharded_t",
        statistic=statistic,
        shards=shards,
        permutations=values.shape[1] - 1,
    )


def sharded_t_p_values(
    log_probs: ArrayLike, canonical: ArrayLike, *, ddof: int = 1
) -> NDArray[np.float64]:
    """Compute p of `sharded_t_test` for each of b choices of the canonical orderings, (b,).

    Parameters
    ----------
    log_probs
        (r, m+1) as in `sharded_t_test`, except that no column is special.
    canonical
        (b, r), the column of each shard that is called canonical, 0 to m.
    ddof
        As in `sharded_t_test`.

    Raises
    ------
    InputError
        For what `sharded_t_test` refuses, and for choices of another shape or of
        columns that do not exist.

    Examples
    --------
    >>> scores = [[-9.0, -10.0], [-7.5, -9.5], [-8.0, -9.0]]
    >>> sharded_t_p_values(scores, [[0, 0, 0], [1, 1, 1]]).round(4)
    array([0.0286, 0.9714])
    """
    values = as_log_probs(log_probs, ndim=2, min_shards=2)
    _check_ddof(ddof)
    values, exponent = without_scale(values)
    shards, orderings = values.shape
    chosen = as_whole_numbers(
        canonical,
        "canonical",
        (None, shards),
        least=0,
        most=orderings - 1,
    )
    # A value minus the mean of the others, by the mean of all: m s = (m + 1) (L - mean).
    centred = values - values.mean(axis=1, keepdims=True)
    differences = centred[np.arange(shards), chosen] * orderings / (orderings - 1)
    rounding = ROUNDING * np.abs(values).max()
    is_null = np.abs(differences).max(axis=1) <= rounding
    is_undefined = (np.ptp(differences, axis=1) <= rounding) & ~is_null
    if is_undefined.any():
        difference = float(differences[is_undefined][0, 0])
        raise _undefined(with_scale(difference, int(exponent.item())), shards)
    error = differences.std(axis=1, ddof=ddof) / math.sqrt(shards)
    error[is_null] = 1.0
    t = differences.mean(axis=1) / error
    p_values = scipy.special.stdtr(shards - 1, -t)  # the law of t is symmetric
    p_values[is_null] = 1.0
    return np.asarray(p_values)


def _check_ddof(ddof: int) -> None:
    """Raise InputError unless `ddof` is one of the two that exist."""
    if ddof not in _DDOFS:
        raise InputError(
            f"ddof is {ddof!r:.40}: give 1, or 0 to compare with the public script",
        )


def _undefined(difference: float, shards: int) -> InputError:
    """Return the error for shards that all have the same difference (nats), not 0."""
    return InputError(
        f"all {shards} shards have the same difference of {difference:.6g} nats, "
        "which leaves t undefined: check for repeated shards, or use "
        "sharded_exact_test"
    )


def _log_t_survival(t: float, df: int) -> float:
    """Return log P(t_df >= t), also where the probability is below the smallest float64.

    P = I_x(a, 1/2) / 2 with a = df/2, x = df / (df + t^2), and
    I_x(a, 1/2) = x^a / (a B(a, 1/2)) 2F1(a, 1/2; a + 1; x). SciPy has no value of 2F1
    for some df above 300,000; the normal deviate of Wallace (1959), Annals of
    Mathematical Statistics 30, is right there to 1e-9 of log P.
    """
    direct = float(scipy.stats.t.logsf(t, df))
    if direct > _LOGSF_HOLDS:
        return direct
    a = df / 2
    log_x = -math.log1p(t * t / df)
    series = float(scipy.special.hyp2f1(a, 0.5, a + 1, math.exp(log_x)))
    if math.isnan(series):
        deviate = math.sqrt(-df * log_x) * (8 * df + 1) / (8 * df + 3)
        return float(scipy.special.log_ndtr(-deviate))
    log_front = a * log_x - math.log(a) - float(scipy.special.betaln(a, 0.5))
    return log_front + math.log(series / 2)
