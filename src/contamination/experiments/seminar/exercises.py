"""The exercises: what each is called, its right answer, its usual mistakes and its hints.

Answers are computed from the facts of the notebook at hand, so they are right for whatever the
model said on that machine. A mistake is recognised by its value.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from contamination.experiments.seminar import answers, mistakes
from contamination.experiments.seminar.mistakes import Mistakes


@dataclass(frozen=True)
class Exercise:
    """One exercise.

    Attributes
    ----------
    title : what tables call it.
    facts : names of the arguments of `expected` and `mistakes`.
    expected : the right answer: a number, an array or a dictionary.
    mistakes : wrong answers with their hints, the likeliest first.
    hint : for a wrong answer that is none of these.
    praise : what a right answer means.
    """

    title: str
    facts: tuple[str, ...]
    expected: Callable[..., Any]
    mistakes: Callable[..., Mistakes]
    hint: str
    praise: str


_ALL = (
    Exercise(
        "Coin flips",
        ("flips", "heads"),
        answers.coin_tail,
        mistakes.of_coin_tail,
        "Of all 2^flips sequences, which share has at least that many heads?",
        "Every sequence is equally likely under H0: counting them is an exact test.",
    ),
    Exercise(
        "Permutation p-value",
        ("scores",),
        answers.permutation_p,
        mistakes.of_permutation_p,
        "p = (1 + number of shuffled orderings that reach the canonical one) / (1 + m).",
        "Ties and the +1 are what makes it exact.",
    ),
    Exercise(
        "Chain rule",
        ("token_logprobs",),
        answers.log_probability,
        mistakes.of_log_probability,
        "log p of a sequence is the sum of the log-probabilities of its tokens.",
        "One number for one ordering.",
    ),
    Exercise(
        "How many permutations",
        ("target",),
        answers.fewest_permutations,
        mistakes.of_fewest_permutations,
        "The smallest p is 1 / (1 + m). For which m is that the wanted one?",
        "Each of them is a pass of the model over the whole set.",
    ),
    Exercise(
        "Sharded t-test",
        ("log_probs",),
        answers.sharded_p,
        mistakes.of_sharded_p,
        "s_i = L[i, 0] - mean of L[i, 1:]; t = sqrt(r) mean(s) / sd(s); then the upper tail.",
        "That is Algorithm 1 of Oren et al.",
    ),
    Exercise(
        "Recombination by hand",
        ("log_probs",),
        answers.recombined_p,
        mistakes.of_recombined_p,
        "List all combinations of one column per row: which share has at least the sum of the "
        "first column?",
        "No normal law and no t law: only counting.",
    ),
    Exercise(
        "Successor score",
        ("successors",),
        answers.score_along,
        mistakes.of_score_along,
        "Add S[0, 1], S[1, 2], S[2, 3] and so on.",
        "Every other ordering is another sum of the same pairs.",
    ),
    Exercise(
        "False rejections",
        ("p_values", "alpha"),
        answers.rate,
        mistakes.of_rate,
        "The share of p-values that are at most alpha.",
        "Compare it with alpha: that is the guarantee.",
    ),
    Exercise(
        "Holm's correction",
        ("p_values",),
        answers.holm,
        mistakes.of_holm,
        "Sort; multiply the smallest by n, the next by n - 1, ...; running maximum; at most 1.",
        "The chance of even one false accusation is now at most alpha.",
    ),
    Exercise(
        "Chosen afterwards",
        ("p_values",),
        answers.bonferroni,
        mistakes.of_bonferroni,
        "The smallest of q p-values, times q (Bonferroni), and at most 1.",
        "Valid for any dependence; min_p does better where the statistics agree.",
    ),
    Exercise(
        "Verdicts",
        (),
        answers.verdicts,
        mistakes.of_verdicts,
        "Small p, and diagnostics and control quiet: contaminated. Small p, but they are not "
        "quiet: the order carries information. Else: no evidence.",
        "A p-value is only as good as the assumption behind it.",
    ),
)
EXERCISES = {str(number): exercise for number, exercise in enumerate(_ALL, start=1)}
