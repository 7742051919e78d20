"""The two tests of Oren et al. (section 3), and other experiments made of the same scores.

Under H0 any ordering of a shard may have been the canonical one. Calling one so that is drawn at
random, independently over shards, is an exact draw from the null given the scores, and costs no
scoring. How often a test rejects then is its level on these scores, whatever made them. Raised by
an effect it is a draw from the alternative, and how often that is found is the power.
"""

import math

import numpy as np
import scipy.special
import scipy.stats
from numpy.typing import ArrayLike, NDArray

from contamination.errors import InputError
from contamination.statistics.results import ROUNDING, TestResult, as_log_probs, log10_least


def permutation_test(log_probs: ArrayLike) -> TestResult:
    """Rank the canonical ordering among m shuffled ones.

    p = (1 + #{j >= 1 : L[j] >= L[0]}) / (1 + m)

    L, (m+1,), is the log-probability (nats) of the whole set in each ordering: entry 0 is
    canonical, the others are independent uniform permutations; larger is more evidence. The
    statistic is L[0]. Raises InputError for a wrong number of dimensions, no permutation, or a
    value that is not finite.

    H0: the orderings are exchangeable given the model, which has never seen the set in its order;
    so the rank of L[0] is uniform. Alternative: the canonical ordering is more likely.
    P(p <= alpha) <= alpha holds exactly for every m and every distribution; ties count against the
    canonical ordering. The smallest p is 1 / (1 + m).

    Oren et al. (2024), section 3.1. Phipson and Smyth (2010), "Permutation p-values should never be
    zero", Statistical Applications in Genetics and Molecular Biology 9(1), article 39.
    """
    values = as_log_probs(log_probs, ndim=1)
    m = len(values) - 1
    p = (1 + int(np.count_nonzero(values[1:] >= values[0]))) / (1 + m)
    return TestResult(
        p=p,
        log10_p=float(np.log10(p)),
        statistic=float(values[0]),
        test="permutation",
        shards=1,
        permutations=m,
        log10_least=log10_least(values[None]),
    )


def sharded_t_test(log_probs: ArrayLike, *, ddof: int = 1) -> TestResult:
    """One-sided one-sample t-test on the per-shard differences.

    s_i = L[i, 0] - mean_{j >= 1} L[i, j];  t = sqrt(r) mean(s) / sd(s);  p = P(t_{r-1} >= t)

    L, (r, m+1), is the log-probability (nats) of each shard in each ordering, column 0 canonical;
    larger is more evidence. The statistic is t. Raises InputError for a wrong number of dimensions,
    fewer than 2 shards or 1 permutation, a value that is not finite, or differences that are all
    equal and not 0 (t is then undefined).

    `ddof` of 1 is Student's t. 0 is what the public script of the paper computes (`numpy.std`): its
    statistic is sqrt(r / (r-1)) too large for the t law with r - 1 degrees of freedom, so it
    rejects too often; use it only to compare with that script.

    H0: the orderings of each shard are exchangeable. Alternative: canonical orderings are more
    likely. p is asymptotic in r (Theorem 2: i.i.d. examples, finite second moments). It is exact
    only if the s_i are i.i.d. normal with mean 0, and nothing bounds its error for few shards of
    skewed or unequal scores (`sharded_exact_test` needs neither assumption). Where every s_i is 0,
    nothing speaks for the canonical ordering: t = 0, p = 1.

    Oren et al. (2024), section 3.2 and Algorithm 1.
    """
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
    of = {"test": "sharded_t", "shards": shards, "permutations": values.shape[1] - 1}
    return TestResult.of(log10_p, statistic=statistic, **of)


def _log_t_survival(t: float, df: int) -> float:
    """log P(t_df >= t), also where the probability itself is below the smallest float64.

    P = I_x(a, 1/2) / 2 with a = df/2, x = df / (df + t^2), and
    I_x(a, 1/2) = x^a / (a B(a, 1/2)) 2F1(a, 1/2; a + 1; x).
    """
    # SciPy is right to the last digits until it underflows near 1e-308, and then says -inf.
    direct = float(scipy.stats.t.logsf(t, df))
    if direct > -650:
        return direct
    a, log_x = df / 2, -math.log1p(t * t / df)
    log_front = a * log_x - math.log(a) - float(scipy.special.betaln(a, 0.5))
    return log_front + math.log(scipy.special.hyp2f1(a, 0.5, a + 1, math.exp(log_x)) / 2)


def called_canonical(scores: NDArray[np.float64], canonical: ArrayLike) -> NDArray[np.float64]:
    """Scores (..., r, m+1) in which column `canonical[i]` of shard i trades places with column 0.

    `canonical` holds r whole numbers, 0 to m.
    """
    swapped, chosen = scores.copy(), np.asarray(canonical)
    shards = np.arange(len(chosen))
    swapped[..., shards, 0] = scores[..., shards, chosen]
    swapped[..., shards, chosen] = scores[..., shards, 0]
    return swapped


def planted_p_values(
    log_probs: ArrayLike, effects: ArrayLike, *, rng: np.random.Generator
) -> NDArray[np.float64]:
    """p-values of `sharded_exact_test` on redrawn canonical orders with planted effects, (b,).

    The share of them that is at most alpha is the power at alpha. Raises InputError for scores of
    another shape, or a value that is not finite.

    Parameters
    ----------
    log_probs : (r, m+1), as in `sharded_exact_test`, with m of 5 or more: fewer leave the spread of
        a shard unknown. Column 0 is the published order, and takes no part: what it shows cannot
        move the power.
    effects : (b, r), by how many standard deviations of the shuffled scores of a shard the
        canonical one is raised, in each draw. 0 is H0.

    Notes
    -----
    With weights "inverse_sd" the statistic is a sum of r standardised scores z_i, of which every
    one has variance 1 under H0 by construction, or is 0 where all orderings score the same. Raising
    one of n scores by d changes their mean by d / n and their sd, which is in closed form here. The
    sum is then compared with a normal law of the same variance, to the order of a central limit
    theorem in r. One ordering fewer than the test has makes the power a little too small.
    """
    values = as_log_probs(log_probs, ndim=2)
    shuffled, raised = values[:, 1:], np.asarray(effects, dtype=np.float64)
    n = shuffled.shape[1]
    varies = np.ptp(shuffled, axis=1) > ROUNDING * np.abs(shuffled).max(axis=1)
    if not varies.any():
        return np.ones(len(raised))
    shuffled, raised = shuffled[varies], raised[:, varies]
    centred = shuffled - shuffled.mean(axis=1, keepdims=True)
    raised = raised * centred.std(axis=1, ddof=1)
    drawn = rng.integers(n, size=raised.shape)
    chosen = centred[np.arange(len(centred)), drawn]
    before = centred.var(axis=1)
    variance = before + 2 * raised * chosen / n + raised**2 * (n - 1) / n**2
    # An effect that makes all scores equal leaves a z of 0, not 0 / 0.
    z = (chosen + raised * (n - 1) / n) / np.sqrt(np.maximum(variance, ROUNDING * before))
    return np.asarray(scipy.special.ndtr(-z.sum(axis=1) / np.sqrt(len(centred))))
