"""The exercises: titles, answers, usual mistakes with hints, and their check.

Right and wrong answers are computed from the facts of the notebook at hand, so they fit
whatever the model said on that machine. An answer is compared with a tolerance, and a
mistake is recognised by its value. An exercise that was not tried is not an error, so
the notebook of a student runs to its end at any time.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.stats

from contamination.errors import InputError
from contamination.statistics import adjust, permutation_test, sharded_t_test
from contamination.tables import write_csv

OPEN = "open"
RIGHT = "right"
WRONG = "wrong"
TOLERANCE = 1e-4  # relative: a p-value of four right digits is right
ONE_SIDED = "This is two-sided: only a preference for the canonical ordering is evidence."

# The right answer (a number, an array or a dictionary), and hint -> the usual mistake
# that it fits, the likeliest first, at last any other: None. Of a dictionary, hint ->
# the key whose value is wrong.
Solution = tuple[Any, dict[str, Any]]


def coin_tail(flips: int, heads: int) -> Solution:
    """Return the probability that a fair coin shows at least this number of heads."""
    right = sum(math.comb(flips, k) for k in range(heads, flips + 1)) / 2**flips
    exactly = math.comb(flips, heads) / 2**flips
    return right, {
        "This is two-sided: the suspicion was too many heads, not too few.": 2 * right,
        "This is the chance of exactly that many: add the more extreme results.": exactly,
        "The result itself counts, too: at least as many heads, not more.": right - exactly,
        "Of all 2^flips sequences, which share has at least that many heads?": None,
    }


def permutation_p(scores: np.ndarray) -> Solution:
    """Return the p-value of the canonical score, entry 0, among all scores (Oren, 3.1)."""
    canonical = scores[0]
    shuffled = scores[1:]
    m = len(shuffled)
    hits = (shuffled >= canonical).sum()
    above = (shuffled > canonical).sum()
    below = (shuffled <= canonical).sum()
    return permutation_test(scores).p, {
        "The +1 is missing: the canonical ordering is one of the 1 + m. Without it p "
        "can be 0, "
        "which no finite experiment supports.": hits / m,
        "Ties count against the canonical ordering: >= instead of >.": (1 + above) / (1 + m),
        "This is the other tail: large log-probabilities are evidence.": (1 + below) / (1 + m),
        ONE_SIDED: 2 * (1 + hits) / (1 + m),
        "p = (1 + number of shuffled orderings that reach the canonical one) / (1 + m).": None,
    }


def log_probability(token_logprobs: np.ndarray) -> Solution:
    """Return the log-probability of a sequence from those of its tokens (nats)."""
    total = np.asarray(token_logprobs, dtype=np.float64).sum()
    return total, {
        "This is the mean: log p of a sequence is the sum.": total / len(token_logprobs),
        "The sign: the logarithm of a probability is never above 0.": -total,
        "This is the probability: take its logarithm, or add the log-probabilities.": np.exp(total),
        "This is a loss in bits: take the sum of the logarithms, in nats.": -total / math.log(2),
        "log p of a sequence is the sum of the log-probabilities of its tokens.": None,
    }


def fewest_permutations(target: float) -> Solution:
    """Return the smallest m with 1 / (1 + m) <= target."""
    right = math.ceil(1 / target - 1e-9) - 1  # 1 / 0.001 need not be a whole number
    return right, {
        "Enough, but one more than needed: the canonical ordering is one of the 1 + m.": right + 1,
        "One too few: with m permutations p is never below 1 / (1 + m).": right - 1,
        "The smallest p is 1 / (1 + m). For which m does this equal the target?": None,
    }


def sharded_p(log_probs: np.ndarray) -> Solution:
    """Return the p-value of the sharded t-test (Oren, Algorithm 1)."""
    right = sharded_t_test(log_probs, ddof=1)
    biased = sharded_t_test(log_probs, ddof=0)
    return right.p, {
        "np.std divides by r; pass ddof=1.": biased.p,
        ONE_SIDED: 2 * right.p,
        "This is the other tail: use the survival function, sf.": 1 - right.p,
        "This is the normal law: the standard deviation was estimated from few shards, "
        "so take "
        "Student's t with r - 1 degrees of freedom.": scipy.stats.norm.sf(
            right.statistic,
        ),
        "s_i = L[i, 0] - mean of L[i, 1:]; t = sqrt(r) mean(s) / sd(s); then the upper tail.": None,
    }


def sharded_exact_p(log_probs: np.ndarray) -> Solution:
    """Return the share of all combinations, one value per shard, that reach the canonical sum."""
    sums = np.array([sum(values) for values in itertools.product(*log_probs)])
    hits = (sums >= sums[0]).sum()
    above = (sums > sums[0]).mean()
    counted_twice = (1 + hits) / (1 + len(sums))
    product = math.prod(permutation_test(row).p for row in log_probs)
    return hits / len(sums), {
        "This is a count: give the share of all combinations.": hits,
        "Ties count, and the canonical combination is one of all: >= instead of >.": above,
        "All combinations are listed, the canonical one among them: no further +1.": counted_twice,
        "A product of p-values is no p-value: count combinations whose sum is large.": product,
        "List all combinations of one column per row: which share has at least the sum "
        "of the "
        "first column?": None,
    }


def successor_score(successors: np.ndarray) -> Solution:
    """Return the score of the canonical ordering: S[0, 1] + S[1, 2] and so on."""
    right = np.diag(successors, k=1).sum()
    before = np.diag(successors, k=-1).sum()
    return right, {
        "S[a, b] is b after a: canonical successors stand above the diagonal, k=1.": before,
        "An ordering is no ring: nothing follows its last example.": right + successors[-1, 0],
        "Add S[0, 1], S[1, 2], S[2, 3] and so on.": None,
    }


def rejection_rate(p_values: np.ndarray, alpha: float) -> Solution:
    """Return the share of p-values that a test at level alpha rejects."""
    return (p_values <= alpha).mean(), {
        "A test at level alpha rejects where p <= alpha. Permutation p-values are "
        "multiples of "
        "1 / (1 + m), and here alpha is one of them.": (p_values < alpha).mean(),
        "This is a count: give the share.": (p_values <= alpha).sum(),
        "The share of p-values that are at most alpha.": None,
    }


def holm(p_values: np.ndarray) -> Solution:
    """Return Holm's adjusted p-values, (n,)."""
    count = len(p_values)
    stepwise = p_values * (count + 1 - scipy.stats.rankdata(p_values, method="ordinal"))
    return adjust(np.log10(p_values), method="holm").p, {
        "Uncorrected: one clean set in twenty falls below 0.05 by chance.": p_values,
        "This is Bonferroni, valid but weaker: Holm multiplies the smallest by n, the "
        "next by "
        "n - 1, and so on.": np.minimum(1, p_values * count),
        "Nearly: a larger p-value never has a smaller correction. Take the running "
        "maximum, "
        "from the smallest p-value on.": np.minimum(1, stepwise),
        "Sort; the smallest times n, the next times n - 1, ...; running maximum; at most 1.": None,
    }


def bonferroni(p_values: np.ndarray) -> Solution:
    """Return one p-value for the smallest of several, under any dependence."""
    smallest = p_values.min()
    count = len(p_values)
    return min(1.0, count * smallest), {
        "This is the best of them, as if it had been the only one.": smallest,
        "This holds for independent tests; these read the same scores. Multiply "
        "instead: "
        "Bonferroni holds under any dependence.": 1 - (1 - smallest) ** count,
        "The smallest of q p-values, times q (Bonferroni), and at most 1.": None,
    }


def verdicts() -> Solution:
    """Return the right call for each of the four audits; a hint is for the audit beside it."""
    right = dict.fromkeys("ABCD", "no evidence")
    right |= {"A": "contaminated", "C": "the order carries information"}
    return right, {
        "Look at A again: p is small, no other set was tested, and nothing objects.": "A",
        "Look at B again: a large p-value proves nothing, neither guilt nor innocence.": "B",
        "Look at C again: what do the diagnostics and the zlib baseline say, which have "
        "read no training data?": "C",
        "Look at D again: how many sets were tested, and is p small after correction for "
        "all of them?": "D",
        'Give each of A, B, C and D one of three calls, in these words: "contaminated" (p '
        "is small after correction for all sets that were tested, and diagnostics and "
        'control are quiet), "the order carries information" (p is small, and they are not '
        'quiet), or "no evidence" (else).': None,
    }


@dataclass(frozen=True)
class Exercise:
    """An exercise: its title, and the function that solves it."""

    title: str
    solve: Callable[..., Solution]


EXERCISES = {
    "1": Exercise("Coin flips", coin_tail),
    "2": Exercise("Permutation p-value", permutation_p),
    "3": Exercise("Chain rule", log_probability),
    "4": Exercise("How many permutations", fewest_permutations),
    "5": Exercise("Sharded t-test", sharded_p),
    "6": Exercise("The exact test by hand", sharded_exact_p),
    "7": Exercise("Successor score", successor_score),
    "8": Exercise("False rejections", rejection_rate),
    "9": Exercise("Holm's correction", holm),
    "10": Exercise("Chosen afterwards", bonferroni),
    "11": Exercise("Verdicts", verdicts),
}


def _same(answer: object, expected: Any) -> bool:
    """Return whether an answer is the expected one, up to `TOLERANCE`."""
    if isinstance(expected, dict):
        return isinstance(answer, dict) and _calls(answer) == _calls(expected)
    try:
        numbers = np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError):  # text, say
        return False
    if numbers.shape != np.shape(expected):
        return False
    return bool(np.allclose(numbers, expected, rtol=TOLERANCE, atol=0.0))


def _calls(answer: dict[Any, Any]) -> dict[str, str]:
    """Return the calls of an answer by audit, without regard to case and article."""
    calls = {}
    for audit, call in answer.items():
        words = str(call).strip().casefold()
        calls[str(audit).strip().upper()] = words.removeprefix("the ")
    return calls


def _hint(answer: object, right: Any, mistakes: dict[str, Any]) -> str:
    """Return the hint of the first mistake that a wrong answer fits; the last fits any."""
    if isinstance(right, dict):
        return _hints_by_key(answer, right, mistakes)
    for hint, mistake in mistakes.items():
        if mistake is None or _same(answer, mistake):
            return hint
    raise ValueError("the last hint has to fit any answer")


def _hints_by_key(answer: object, right: dict[str, str], mistakes: dict[str, Any]) -> str:
    """Return the hint of every wrong call, or the last one if an answer has other calls."""
    *hints, general = mistakes
    expected = _calls(right)
    if not isinstance(answer, dict):
        return general
    calls = _calls(answer)
    if calls.keys() != expected.keys() or not set(calls.values()) <= set(expected.values()):
        return general
    wrong = []
    for hint in hints:
        audit = mistakes[hint]
        if calls[audit] != expected[audit]:
            wrong.append(hint)
    return " ".join(wrong)


class Checks:
    """Checks the answers of one notebook: `check("1", answer_1, flips=10, heads=9)`.

    With `strict`, for machines, a wrong answer raises InputError, and so does `finish`
    while an exercise is open. `outcomes` has the outcome of every exercise and the
    answer as text.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self.outcomes = dict.fromkeys(EXERCISES, (OPEN, ""))

    def __call__(self, name: str, answer: object, **facts: Any) -> None:
        """Print whether an answer is right, else a hint; None is no answer yet.

        `facts` are what the answer is computed from, as the exercise names it.
        """
        if answer is None or answer is Ellipsis:
            self.outcomes[name] = (OPEN, "")
            print(f"Exercise {name}: not answered yet.")
            return
        shown = " ".join(str(answer).split())
        right, mistakes = EXERCISES[name].solve(**facts)
        if _same(answer, right):
            self.outcomes[name] = (RIGHT, shown)
            print(f"✓ Exercise {name}: right.")
            return
        self.outcomes[name] = (WRONG, shown)
        message = f"✗ Exercise {name}: not yet. {_hint(answer, right, mistakes)}"
        print(message)
        if self.strict:
            raise InputError(message)

    def finish(self, results: Path | str) -> pd.DataFrame:
        """Write `results/tables/seminar_answers.csv`, print the right ones, return the table.

        Raises InputError if `strict` and an exercise is not right.
        """
        rows = []
        for name, (outcome, answer) in self.outcomes.items():
            rows.append((name, EXERCISES[name].title, outcome, answer))
        table = pd.DataFrame(rows, columns=["exercise", "title", "outcome", "answer"])
        write_csv(table, results, "seminar_answers")
        missing = table.loc[table["outcome"] != RIGHT, "exercise"]
        print(f"{len(table) - len(missing)} of {len(table)} exercises are right.")
        if self.strict and len(missing):
            raise InputError(
                f"exercises {', '.join(missing)} are not right: answer them first",
            )
        return table
