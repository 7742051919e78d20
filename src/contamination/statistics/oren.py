"""The two tests of Oren et al. (section 3), and other experiments made of the same scores.

Under H0 any ordering of a shard may have been the canonical one. Calling one so that is drawn at
random, independently over shards, is an exact draw from the null given the scores, and costs no
scoring. How often a test rejects then is its level on these scores, whatever made them.
"""

import math
from collections.abc import Iterator

import numpy as np
import scipy.special
import scipy.stats
from numpy.typing import ArrayLike, NDArray

from contamination.errors import InputError
from contamination.statistics.results import ROUNDING, TestResult, as_log_probs, p_from_log10


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
    outcome = {"p": p, "log10_p": float(np.log10(p)), "statistic": float(values[0])}
    return TestResult(test="permutation", shards=1, permutations=m, **outcome)


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
    outcome = {"statistic": statistic, "p": p_from_log10(log10_p), "log10_p": log10_p}
    return TestResult(test="sharded_t", shards=shards, permutations=values.shape[1] - 1, **outcome)


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


def called_canonical(scores: NDArray[np.float64], canonical: ArrayLike) -> NDArray[np.float64]:
    """Scores (..., r, m+1) in which column `canonical[i]` of shard i trades places with column 0.

    `canonical` holds r whole numbers, 0 to m.
    """
    swapped, chosen = scores.copy(), np.asarray(canonical)
    shards = np.arange(len(chosen))
    swapped[..., shards, 0] = scores[..., shards, chosen]
    swapped[..., shards, chosen] = scores[..., shards, 0]
    return swapped


def null_scores(
    pool: NDArray[np.float64], shards: int, *, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Scores of `shards` random shards of the pool, a random ordering of each called canonical."""
    rows = pool[rng.choice(len(pool), size=shards, replace=False)]
    return called_canonical(rows, rng.integers(pool.shape[1], size=shards))


def fewer_permutations(
    log_probs: ArrayLike, permutations: int, *, replicates: int, rng: np.random.Generator
) -> Iterator[NDArray[np.float64]]:
    """Yield the canonical ordering with random subsets of so many of the shuffled ones, (r, m'+1).

    Oren, Figure 3b. Orderings 1..m of a shard are independent, so any subset of them drawn without
    looking at their scores is as good as having scored no others. `log_probs` (r, m+1) are as in
    `sharded_t_test`, and all shards keep the same columns. `replicates` subsets are drawn, with
    replacement; of all m there is only one. Raises InputError unless 1 <= `permutations` <= m.
    """
    values = as_log_probs(log_probs, ndim=2)
    most = values.shape[1] - 1
    if not 1 <= permutations <= most:
        raise InputError(f"permutations {permutations}: {most} are scored; ask for 1 to {most}")
    for _ in range(1 if permutations == most else replicates):
        yield values[:, [0, *(1 + rng.permutation(most)[:permutations])]]
