"""The right answers, computed from the facts that the notebook gives."""

import itertools
import math

import numpy as np

from contamination.statistics import adjust, permutation_test, sharded_t_test

VERDICTS = {
    "A": "contaminated",
    "B": "no evidence",
    "C": "the order carries information",
    "D": "no evidence",
}


def coin_tail(flips: int, heads: int) -> float:
    """Chance that a fair coin shows at least so many heads."""
    return float(sum(math.comb(flips, k) for k in range(heads, flips + 1)) / 2**flips)


def permutation_p(scores: np.ndarray) -> float:
    """p-value of the canonical score, entry 0, among all of them (Oren, section 3.1)."""
    return permutation_test(scores).p


def log_probability(token_logprobs: np.ndarray) -> float:
    """Log-probability of a sequence from those of its tokens (nats)."""
    return float(np.sum(token_logprobs, dtype=np.float64))


def fewest_permutations(target: float) -> int:
    """Smallest m with 1 / (1 + m) <= target."""
    return math.ceil(1 / target - 1e-9) - 1  # 1 / 0.001 need not be a whole number


def sharded_p(log_probs: np.ndarray) -> float:
    """p-value of the sharded t-test (Oren, Algorithm 1)."""
    return sharded_t_test(log_probs).p


def recombined_sums(log_probs: np.ndarray) -> np.ndarray:
    """Sums over shards of all combinations, the canonical one first."""
    return np.array([sum(each) for each in itertools.product(*np.asarray(log_probs))])


def recombined_p(log_probs: np.ndarray) -> float:
    """Share of all combinations whose sum reaches the canonical one."""
    sums = recombined_sums(log_probs)
    return float((sums >= sums[0]).mean())


def score_along(successors: np.ndarray) -> float:
    """Score of the canonical ordering: S[0, 1] + S[1, 2] and so on."""
    return float(np.diag(successors, k=1).sum())


def rate(p_values: np.ndarray, alpha: float) -> float:
    """Share of p-values that a test at level alpha rejects."""
    return float((np.asarray(p_values) <= alpha).mean())


def holm(p_values: np.ndarray) -> np.ndarray:
    """Holm's adjusted p-values, (n,)."""
    return adjust(p_values, method="holm").p


def bonferroni(p_values: np.ndarray) -> float:
    """One p-value for the smallest of several, under any dependence."""
    return float(min(1.0, len(p_values) * np.min(p_values)))


def verdicts() -> dict[str, str]:
    """What to call each of the four cases."""
    return VERDICTS
