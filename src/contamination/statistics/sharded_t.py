"""The sharded likelihood comparison test (Oren section 3.2, Algorithm 1)."""

import math

import numpy as np
import scipy.special
import scipy.stats
from numpy.typing import ArrayLike

from contamination.errors import InputError
from contamination.statistics.results import ShardedTResult, p_from_log10
from contamination.statistics.validation import ROUNDING, as_log_probs


def sharded_t_test(log_probs: ArrayLike, *, ddof: int = 1) -> ShardedTResult:
    """One-sided one-sample t-test on the per-shard differences.

    s_i = L[i, 0] - mean_{j >= 1} L[i, j];  t = sqrt(r) mean(s) / sd(s);  p = P(t_{r-1} >= t)

    Parameters
    ----------
    log_probs : array_like, shape (r, m+1)
        Log-probability (nats) of each shard in each ordering; column 0 is canonical. Larger is more
        evidence.
    ddof : {1, 0}
        Divisor r - ddof in the variance. 1 is Student's t. 0 is what the public script of the paper
        computes (`numpy.std`): its statistic is sqrt(r / (r-1)) too large for the t law with r - 1
        degrees of freedom, so it rejects too often; use it only to compare with that script.

    Returns
    -------
    ShardedTResult
        The statistic is t.

    Raises
    ------
    InputError
        Wrong number of dimensions, fewer than 2 shards or 1 permutation, a value that is not
        finite, another ddof, or differences that are all equal and not 0 (t is then undefined).

    Notes
    -----
    H0: the orderings of each shard are exchangeable. Alternative: canonical orderings are more
    likely. p is asymptotic in r (Theorem 2: i.i.d. examples, finite second moments). It is exact
    only if the s_i are i.i.d. normal with mean 0, and nothing
    bounds its error for few shards of skewed or unequal scores (`sharded_exact_test` needs neither
    assumption). Where every s_i is 0, nothing speaks for the canonical ordering: t = 0, p = 1.

    References
    ----------
    Oren et al. (2024), section 3.2 and Algorithm 1.
    """
    if ddof not in (0, 1):
        raise InputError(f"ddof is {ddof}: give 1, or 0 to repeat the public script of the paper")
    values = as_log_probs(log_probs, ndim=2, min_shards=2)
    shards = len(values)
    differences = values[:, 0] - values[:, 1:].mean(axis=1)
    rounding = ROUNDING * np.abs(values).max()
    if np.abs(differences).max() <= rounding:
        statistic, log10_p = 0.0, 0.0
    elif np.ptp(differences) <= rounding:
        raise InputError(
            f"all {shards} shards have the same difference of {differences[0]:.6g} nats, which "
            "leaves t undefined: check for repeated shards, or use sharded_exact_test"
        )
    else:
        error = differences.std(ddof=ddof) / math.sqrt(shards)
        statistic = float(differences.mean() / error)
        log10_p = _log_t_survival(statistic, shards - 1) / math.log(10)
    return ShardedTResult(
        test="sharded_t",
        statistic=statistic,
        p=p_from_log10(log10_p),
        log10_p=log10_p,
        shards=shards,
        permutations=values.shape[1] - 1,
        differences=differences,
        df=shards - 1,
    )


def _log_t_survival(t: float, df: int) -> float:
    """log P(t_df >= t), also where the probability itself is below the smallest float64.

    P = I_x(a, 1/2) / 2 with a = df/2, x = df / (df + t^2), and
    I_x(a, 1/2) = x^a / (a B(a, 1/2)) sum_n (1/2)_n / n! a / (a+n) x^n.
    """
    # SciPy is right to the last digits until it underflows near 1e-308, and then says -inf.
    direct = float(scipy.stats.t.logsf(t, df))
    if direct > -650:
        return direct
    # So deep in the tail x is well below 1: every term is positive and they fall geometrically.
    a, log_x = df / 2, -math.log1p(t * t / df)
    x, total, term, n = math.exp(log_x), 1.0, 1.0, 0
    while term > 1e-17 * total:
        term *= (n + 0.5) / (n + 1) * x
        n += 1
        total += term * a / (a + n)
    log_front = a * log_x - math.log(a) - float(scipy.special.betaln(a, 0.5))
    return log_front + math.log(total / 2)
