"""Wrong answers that students give, each with the hint that fits it, the likeliest first."""

import math
from typing import Any

import numpy as np
import scipy.stats

from contamination.experiments.seminar import answers
from contamination.statistics import adjust, sharded_t_test

Mistakes = list[tuple[Any, str]]  # a wrong answer, and its hint

_ONE_SIDED = "This is two-sided: only a preference for the canonical ordering is evidence."


def of_coin_tail(flips: int, heads: int) -> Mistakes:
    """Two-sided, exactly instead of at least, the other tail, a count."""
    right, exactly = answers.coin_tail(flips, heads), math.comb(flips, heads) / 2**flips
    other = "This is the other tail: count the sequences with many heads."
    return [
        (2 * right, "This is two-sided: the suspicion was too many heads, not too few."),
        (exactly, "This is the chance of exactly that many: add the more extreme results."),
        (right - exactly, "The result itself counts, too: at least as many heads, not more."),
        (1 - right, other),
        (1 - right + exactly, other),
        (right * 2**flips, "This is how many sequences there are: divide by all of them."),
    ]


def of_permutation_p(scores: np.ndarray) -> Mistakes:
    """No +1 or half of it, ties that do not count, the other tail, two-sided."""
    values = np.asarray(scores)
    canonical, null = values[0], values[1:]
    m, hits, above = len(null), int((null >= canonical).sum()), int((null > canonical).sum())
    ties = "Ties count against the canonical ordering: >= instead of >."
    return [
        (
            hits / m,
            "The +1 is missing: the canonical ordering is one of the 1 + m. Without it p can be 0, "
            "which no finite experiment supports.",
        ),
        ((1 + above) / (1 + m), ties),
        (above / m, f"{ties} And the +1 is missing."),
        (
            (1 + int((null <= canonical).sum())) / (1 + m),
            "This is the other tail: large log-probabilities are evidence.",
        ),
        (2 * (1 + hits) / (1 + m), _ONE_SIDED),
        ((1 + hits) / m, "The +1 belongs below the line as well: there are 1 + m orderings."),
        (hits / (1 + m), "The +1 belongs above the line as well: the canonical reaches itself."),
    ]


def of_log_probability(token_logprobs: np.ndarray) -> Mistakes:
    """Mean, sign, probabilities instead of logarithms, bits, a token left out."""
    total, count = answers.log_probability(token_logprobs), len(token_logprobs)
    return [
        (total / count, "This is the mean: log p of a sequence is the sum."),
        (-total, "The sign: the logarithm of a probability is never above 0."),
        (0.0, "So many probabilities multiply to less than the smallest float: add logarithms."),
        (math.exp(total), "This is the probability itself: stay with logarithms."),
        (math.exp(-total / count), "This is the perplexity: give the sum."),
        (total / math.log(2), "These are bits: stay with natural logarithms (nats)."),
        (
            answers.log_probability(token_logprobs[1:]),
            "The first token counts, too: it is predicted from the start token.",
        ),
    ]


def of_fewest_permutations(target: float) -> Mistakes:
    """One too many."""
    return [
        (
            answers.fewest_permutations(target) + 1,
            "Enough, but one more than needed: the canonical ordering is one of the 1 + m.",
        ),
        (
            answers.fewest_permutations(target) - 1,
            "One too few: with m permutations p is never below 1 / (1 + m).",
        ),
    ]


def of_sharded_p(log_probs: np.ndarray) -> Mistakes:
    """ddof 0, two-sided, the other tail, the wrong law, no root of r, t instead of p."""
    right = sharded_t_test(log_probs)
    t, df = right.statistic, right.df
    tail = scipy.stats.t.sf
    return [
        (
            sharded_t_test(log_probs, ddof=0).p,
            "np.std divides by r unless told otherwise: give it ddof=1.",
        ),
        (2 * right.p, _ONE_SIDED),
        (1 - right.p, "This is the other tail: use the survival function, sf."),
        (
            float(scipy.stats.norm.sf(t)),
            "This is the normal law: the standard deviation was estimated from few shards, so take "
            "Student's t with r - 1 degrees of freedom.",
        ),
        (float(tail(t, df + 1)), "r - 1 degrees of freedom, not r."),
        (
            float(tail(t / math.sqrt(df + 1), df)),
            "The factor sqrt(r) is missing: the standard error of a mean is sd / sqrt(r).",
        ),
        (t, "This is t itself: the p-value is its upper tail, scipy.stats.t.sf(t, r - 1)."),
    ]


def of_recombined_p(log_probs: np.ndarray) -> Mistakes:
    """Ties, a needless +1, a count, the other tail, a product of p-values."""
    sums = answers.recombined_sums(log_probs)
    hits = int((sums >= sums[0]).sum())
    by_shard = [answers.permutation_p(np.asarray(row)) for row in log_probs]
    return [
        (
            float((sums > sums[0]).mean()),
            "Ties count, and the canonical combination is one of all: >= instead of >.",
        ),
        (
            (1 + hits) / (1 + len(sums)),
            "All combinations are listed, the canonical one among them: no further +1.",
        ),
        (hits, "This is how many there are: divide by the number of combinations."),
        (float((sums <= sums[0]).mean()), "This is the other tail: >= instead of <=."),
        (
            math.prod(by_shard),
            "A product of p-values is no p-value: count combinations whose sum is large.",
        ),
    ]


def of_score_along(successors: np.ndarray) -> Mistakes:
    """The transpose, a ring, all pairs, means."""
    right, k = answers.score_along(successors), len(successors)
    everything = float(np.nansum(successors))
    return [
        (
            float(np.diag(successors, k=-1).sum()),
            "S[a, b] is b after a: canonical successors stand above the diagonal, k=1.",
        ),
        (
            right + float(successors[k - 1, 0]),
            "An ordering is no ring: nothing follows its last example.",
        ),
        (everything, "These are all pairs: an ordering of k examples uses k - 1 of them."),
        (right / (k - 1), "This is the mean: the score of an ordering is the sum."),
        (everything / k, "This is the mean over all orderings: give the canonical one's score."),
    ]


def of_rate(p_values: np.ndarray, alpha: float) -> Mistakes:
    """< instead of <=, a count, the complement."""
    p = np.asarray(p_values)
    return [
        (
            float((p < alpha).mean()),
            "A test at level alpha rejects where p <= alpha. Permutation p-values are multiples of "
            "1 / (1 + m), and here alpha is one of them.",
        ),
        (int((p <= alpha).sum()), "This is how many: give the share."),
        (float((p > alpha).mean()), "This is the share that is not rejected."),
    ]


def of_holm(p_values: np.ndarray) -> Mistakes:
    """Nothing corrected, other corrections, no running maximum, no bound at 1."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p)
    stepwise = np.empty_like(p)
    stepwise[order] = p[order] * np.arange(len(p), 0, -1)
    return [
        (p, "Uncorrected: one clean set in twenty falls below 0.05 by chance."),
        (
            np.minimum(1, p * len(p)),
            "This is Bonferroni, valid but weaker: Holm multiplies the smallest by n, the next by "
            "n - 1, and so on.",
        ),
        (
            adjust(p, method="benjamini_hochberg").p,
            "This is Benjamini and Hochberg, which bounds the share of false accusations, not the "
            "chance of any.",
        ),
        (
            np.minimum(1, stepwise),
            "Nearly: a larger p-value never has a smaller correction. Take the running maximum, "
            "from the smallest p-value on.",
        ),
        (
            np.maximum.accumulate(stepwise[order])[np.argsort(order)],
            "Nearly: no p-value exceeds 1.",
        ),
        (stepwise, "Nearly: take the running maximum, and hold it at 1."),
    ]


def of_bonferroni(p_values: np.ndarray) -> Mistakes:
    """The choice not paid for, independence taken for granted, a mean, no bound at 1."""
    p = np.asarray(p_values, dtype=np.float64)
    return [
        (float(p.min()), "This is the best of them, as if it had been the only one."),
        (
            float(1 - (1 - p.min()) ** len(p)),
            "This holds for independent tests; these read the same scores. Multiply instead: "
            "Bonferroni holds under any dependence.",
        ),
        (
            float(p.mean()),
            "A mean of p-values is no p-value: multiply the smallest by how many there were.",
        ),
        (float(len(p) * p.min()), "No p-value exceeds 1."),
    ]


def of_verdicts() -> Mistakes:
    """One case misread."""
    right = answers.VERDICTS
    return [
        (
            right | {"C": "contaminated"},
            "Look at C again: what do the diagnostics and the compressor say, which have read "
            "no training data?",
        ),
        (right | {"D": "contaminated"}, "Look at D again: how many sets were tested?"),
        (right | {"B": "not contaminated"}, "Look at B again: a large p-value proves nothing."),
    ]
