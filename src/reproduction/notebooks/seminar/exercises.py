"""The exercises: what each is called, its right answer, its usual mistakes and its hints.

Answers are computed from the facts of the notebook at hand, so they are right for whatever the
model said on that machine. They are compared with a tolerance, and a mistake is recognised by its
value. An exercise that was not tried is not an error, so the notebook of a student runs to its end
at any time.
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

OPEN, RIGHT, WRONG = "open", "right", "wrong"
TOLERANCE = 1e-4  # relative: a p-value of four right digits is right
TABLE = "seminar_answers"

# The right answer (a number, an array or a dictionary), and hint -> the wrong answer that it fits,
# the likeliest first.
Solution = tuple[Any, dict[str, Any]]

ONE_SIDED = "This is two-sided: only a preference for the canonical ordering is evidence."


@dataclass(frozen=True)
class Exercise:
    """One exercise: `solve` takes its facts and returns the right answer and the usual wrong ones.

    `hint` is for a wrong answer that is none of the usual ones; `praise` says what a right one is.
    """

    title: str
    hint: str
    praise: str
    solve: Callable[..., Solution]

    def find_mistake(self, answer: object, facts: dict[str, Any]) -> str:
        """Return the hint that fits a wrong answer; nothing for a right one."""
        expected, mistakes = self.solve(**facts)
        if _same(answer, expected):
            return ""
        fitting = (hint for hint, wrong in mistakes.items() if _same(answer, wrong))
        return next(fitting, _of_another_kind(answer, expected) or self.hint)


def _same(answer: object, expected: object) -> bool:
    if isinstance(expected, dict):
        return isinstance(answer, dict) and answer == expected
    found, wanted = _numbers(answer), _numbers(expected)
    return (
        found is not None
        and wanted is not None
        and found.shape == wanted.shape
        and bool(np.allclose(found, wanted, rtol=TOLERANCE, atol=0))
    )


def _numbers(value: object) -> np.ndarray | None:
    """Value as floats, None where it is something else; a single number in a list is a number."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return array.reshape(()) if array.size == 1 else array


def _of_another_kind(answer: object, expected: object) -> str:
    """Return what is wrong with the answer before its value is, or nothing."""
    if isinstance(expected, dict):
        fits = isinstance(answer, dict) and answer.keys() == expected.keys()
        return "" if fits else f"Give a dictionary with the keys {', '.join(expected)}."
    found, wanted = _numbers(answer), _numbers(expected)
    kind = "one number" if wanted is None or not wanted.ndim else f"{wanted.size} numbers"
    if found is None or (wanted is not None and found.shape != wanted.shape):
        return f"Give {kind}, not {type(answer).__name__} {str(answer)[:40]!r}."
    if not np.isfinite(found).all():
        return "That is not a finite number: a division by zero, or a logarithm of zero?"
    return ""


EXERCISES: dict[str, Exercise] = {}  # by number, from "1"


def _exercise(
    title: str, *, hint: str, praise: str
) -> Callable[[Callable[..., Solution]], Callable[..., Solution]]:
    """Number the decorated solution as the next exercise."""

    def register(solve: Callable[..., Solution]) -> Callable[..., Solution]:
        EXERCISES[str(len(EXERCISES) + 1)] = Exercise(title, hint, praise, solve)
        return solve

    return register


@_exercise(
    "Coin flips",
    hint="Of all 2^flips sequences, which share has at least that many heads?",
    praise="Every sequence is equally likely under H0: counting them is an exact test.",
)
def coin_tail(flips: int, heads: int) -> Solution:
    """Chance that a fair coin shows at least so many heads."""
    right = sum(math.comb(flips, k) for k in range(heads, flips + 1)) / 2**flips
    exactly = math.comb(flips, heads) / 2**flips
    return right, {
        "This is two-sided: the suspicion was too many heads, not too few.": 2 * right,
        "This is the chance of exactly that many: add the more extreme results.": exactly,
        "The result itself counts, too: at least as many heads, not more.": right - exactly,
        "This is the rest, with fewer heads: count the sequences with many.": 1 - right,
        "This is the other tail: count the sequences with many heads.": 1 - right + exactly,
        "This is how many sequences there are: divide by all of them.": right * 2**flips,
    }


@_exercise(
    "Permutation p-value",
    hint="p = (1 + number of shuffled orderings that reach the canonical one) / (1 + m).",
    praise="Ties and the +1 make it exact.",
)
def permutation_p(scores: np.ndarray) -> Solution:
    """p-value of the canonical score, entry 0, among all of them (Oren, section 3.1)."""
    canonical, null = scores[0], np.asarray(scores[1:])
    m, hits = len(null), (null >= canonical).sum()
    above, below = (null > canonical).sum(), (null <= canonical).sum()
    ties = "Ties count against the canonical ordering: >= instead of >."
    return permutation_test(scores).p, {
        "The +1 is missing: the canonical ordering is one of the 1 + m. Without it p can be 0, "
        "which no finite experiment supports.": hits / m,
        ties: (1 + above) / (1 + m),
        f"{ties} And the +1 is missing.": above / m,
        "This is the other tail: large log-probabilities are evidence.": (1 + below) / (1 + m),
        ONE_SIDED: 2 * (1 + hits) / (1 + m),
        "The +1 belongs below the line as well: there are 1 + m orderings.": (1 + hits) / m,
        "The +1 belongs above the line as well: the canonical reaches itself.": hits / (1 + m),
    }


@_exercise(
    "Chain rule",
    hint="log p of a sequence is the sum of the log-probabilities of its tokens.",
    praise="One number for one ordering.",
)
def log_probability(token_logprobs: np.ndarray) -> Solution:
    """Log-probability of a sequence from those of its tokens (nats)."""
    values = np.asarray(token_logprobs, dtype=np.float64)
    total, count = values.sum(), len(values)
    return total, {
        "This is the mean: log p of a sequence is the sum.": total / count,
        "The sign: the logarithm of a probability is never above 0.": -total,
        "So many probabilities multiply to less than the smallest float: add logarithms.": 0.0,
        "This is the probability itself: stay with logarithms.": math.exp(total),
        "This is the perplexity: give the sum.": math.exp(-total / count),
        "These are bits: stay with natural logarithms (nats).": total / math.log(2),
        "The first token counts, too: it is predicted from the start token.": values[1:].sum(),
    }


@_exercise(
    "How many permutations",
    hint="The smallest p is 1 / (1 + m). For which m is that the wanted one?",
    praise="Each of them is a pass of the model over the whole set.",
)
def fewest_permutations(target: float) -> Solution:
    """Smallest m with 1 / (1 + m) <= target."""
    right = math.ceil(1 / target - 1e-9) - 1  # 1 / 0.001 need not be a whole number
    return right, {
        "Enough, but one more than needed: the canonical ordering is one of the 1 + m.": right + 1,
        "One too few: with m permutations p is never below 1 / (1 + m).": right - 1,
    }


@_exercise(
    "Sharded t-test",
    hint="s_i = L[i, 0] - mean of L[i, 1:]; t = sqrt(r) mean(s) / sd(s); then the upper tail.",
    praise="That is Algorithm 1 of Oren et al.",
)
def sharded_p(log_probs: np.ndarray) -> Solution:
    """p-value of the sharded t-test (Oren, Algorithm 1)."""
    right = sharded_t_test(log_probs)
    t, df = right.statistic, right.df
    tail, without_root = scipy.stats.t.sf, t / math.sqrt(df + 1)
    of_all_shards = sharded_t_test(log_probs, ddof=0)
    return right.p, {
        "np.std divides by r unless it is given ddof=1: give it that.": of_all_shards.p,
        ONE_SIDED: 2 * right.p,
        "This is the other tail: use the survival function, sf.": 1 - right.p,
        "This is the normal law: the standard deviation was estimated from few shards, so take "
        "Student's t with r - 1 degrees of freedom.": scipy.stats.norm.sf(t),
        "r - 1 degrees of freedom, not r.": tail(t, df + 1),
        "sqrt(r) is missing: the standard error of a mean is sd / sqrt(r).": tail(without_root, df),
        "This is t itself: the p-value is its upper tail, scipy.stats.t.sf(t, r - 1).": t,
    }


@_exercise(
    "The exact test by hand",
    hint="List all combinations of one column per row: which share has at least the sum of the "
    "first column?",
    praise="No normal law and no t law: only counting.",
)
def sharded_exact_p(log_probs: np.ndarray) -> Solution:
    """Share of all combinations, one value per shard, whose sum reaches the canonical one."""
    sums = np.array([sum(each) for each in itertools.product(*np.asarray(log_probs))])
    hits, above = (sums >= sums[0]).sum(), (sums > sums[0]).mean()
    counted_again = (1 + hits) / (1 + len(sums))
    product = math.prod(permutation_test(row).p for row in log_probs)
    return (sums >= sums[0]).mean(), {
        "Ties count, and the canonical combination is one of all: >= instead of >.": above,
        "All combinations are listed, the canonical one among them: no further +1.": counted_again,
        "This is how many there are: divide by the number of combinations.": hits,
        "This is the other tail: >= instead of <=.": (sums <= sums[0]).mean(),
        "A product of p-values is no p-value: count combinations whose sum is large.": product,
    }


@_exercise(
    "Successor score",
    hint="Add S[0, 1], S[1, 2], S[2, 3] and so on.",
    praise="Every other ordering is another sum of the same pairs.",
)
def successor_score(successors: np.ndarray) -> Solution:
    """Score of the canonical ordering: S[0, 1] + S[1, 2] and so on."""
    k, everything = len(successors), np.nansum(successors)
    right, before = (np.diag(successors, k=offset).sum() for offset in (1, -1))
    return right, {
        "S[a, b] is b after a: canonical successors stand above the diagonal, k=1.": before,
        "An ordering is no ring: nothing follows its last example.": right + successors[k - 1, 0],
        "These are all pairs: an ordering of k examples uses k - 1 of them.": everything,
        "This is the mean: the score of an ordering is the sum.": right / (k - 1),
        "This is the mean over all orderings: give the canonical one's score.": everything / k,
    }


@_exercise(
    "False rejections",
    hint="The share of p-values that are at most alpha.",
    praise="Compare it with alpha: that is the guarantee.",
)
def rejection_rate(p_values: np.ndarray, alpha: float) -> Solution:
    """Share of p-values that a test at level alpha rejects."""
    p = np.asarray(p_values)
    return (p <= alpha).mean(), {
        "A test at level alpha rejects where p <= alpha. Permutation p-values are multiples of "
        "1 / (1 + m), and here alpha is one of them.": (p < alpha).mean(),
        "This is how many: give the share.": (p <= alpha).sum(),
        "This is the share that is not rejected.": (p > alpha).mean(),
    }


@_exercise(
    "Holm's correction",
    hint="Sort; multiply the smallest by n, the next by n - 1, ...; running maximum; at most 1.",
    praise="The chance of even one false accusation is now at most alpha.",
)
def holm(p_values: np.ndarray) -> Solution:
    """Holm's adjusted p-values, (n,)."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p)
    stepwise = np.empty_like(p)
    stepwise[order] = p[order] * np.arange(len(p), 0, -1)
    return adjust(p_values, method="holm").p, {
        "Uncorrected: one clean set in twenty falls below 0.05 by chance.": p,
        "This is Bonferroni, valid but weaker: Holm multiplies the smallest by n, the next by "
        "n - 1, and so on.": np.minimum(1, p * len(p)),
        "This is Benjamini and Hochberg, which bounds the share of false accusations, not the "
        "chance of any.": adjust(p, method="benjamini_hochberg").p,
        "Nearly: a larger p-value never has a smaller correction. Take the running maximum, "
        "from the smallest p-value on.": np.minimum(1, stepwise),
        "Nearly: no p-value exceeds 1.": np.maximum.accumulate(stepwise[order])[np.argsort(order)],
        "Nearly: take the running maximum, and hold it at 1.": stepwise,
    }


@_exercise(
    "Chosen afterwards",
    hint="The smallest of q p-values, times q (Bonferroni), and at most 1.",
    praise="Valid for any dependence; min_p does better where the statistics agree.",
)
def bonferroni(p_values: np.ndarray) -> Solution:
    """One p-value for the smallest of several, under any dependence."""
    p = np.asarray(p_values, dtype=np.float64)
    smallest, count, mean = p.min(), len(p), p.mean()
    return min(1.0, count * smallest), {
        "This is the best of them, as if it had been the only one.": smallest,
        "This holds for independent tests; these read the same scores. Multiply instead: "
        "Bonferroni holds under any dependence.": 1 - (1 - smallest) ** count,
        "A mean of p-values is no p-value: multiply the smallest by how many there were.": mean,
        "No p-value exceeds 1.": count * smallest,
    }


@_exercise(
    "Verdicts",
    hint="Small p, and diagnostics and control quiet: contaminated. Small p, but they are not "
    "quiet: the order carries information. Else: no evidence.",
    praise="A p-value is only as good as the assumption behind it.",
)
def verdicts() -> Solution:
    """What to call each of the four cases."""
    right = dict.fromkeys("ABCD", "no evidence")
    right |= {"A": "contaminated", "C": "the order carries information"}
    return right, {
        "Look at C again: what do the diagnostics and the compressor say, which have read "
        "no training data?": right | {"C": "contaminated"},
        "Look at D again: how many sets were tested?": right | {"D": "contaminated"},
        "Look at B again: a large p-value proves nothing.": right | {"B": "not contaminated"},
    }


class Checks:
    """Checks the answers of one notebook: `check("1", answer_1, flips=10, heads=9)`.

    With `strict`, for machines, a wrong answer raises InputError, and so does `finish` while an
    exercise is open. `outcomes` has the outcome of every exercise ("open", "right" or "wrong") and
    the answer as text.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self.outcomes = dict.fromkeys(EXERCISES, (OPEN, ""))

    def __call__(self, name: str, answer: object, **facts: Any) -> None:
        """Print whether an answer is right, else a hint; None is no answer yet.

        `facts` are what the answer is computed from, as the exercise names it. Raises InputError if
        there is no such exercise; and for a wrong answer if `strict`.
        """
        if name not in EXERCISES:
            raise InputError(f"no exercise {name!r}: there are {', '.join(EXERCISES)}")
        exercise = EXERCISES[name]
        if answer is None or answer is Ellipsis:
            self.outcomes[name] = (OPEN, "")
            print(f"Exercise {name}: not answered yet.")
            return
        hint = exercise.find_mistake(answer, facts)
        message = f"✓ Exercise {name}: right. {exercise.praise}"
        if hint:
            message = f"✗ Exercise {name}: not yet. {hint}"
        self.outcomes[name] = (WRONG if hint else RIGHT, " ".join(str(answer).split()))
        print(message)
        if self.strict and hint:
            raise InputError(message)

    def finish(self, results: Path | str) -> pd.DataFrame:
        """Write `results/tables/seminar_answers.csv`, say how many are right, return the table.

        The table has exercise, title, outcome and the answer as text, a row each. Raises InputError
        if `strict` and an exercise is not right.
        """
        rows = [(name, EXERCISES[name].title, *found) for name, found in self.outcomes.items()]
        table = pd.DataFrame(rows, columns=["exercise", "title", "outcome", "answer"])
        write_csv(table, Path(results), TABLE)
        missing = table.loc[table["outcome"] != RIGHT, "exercise"]
        print(f"{len(table) - len(missing)} of {len(table)} exercises are right.")
        if self.strict and len(missing):
            raise InputError(f"exercises {', '.join(missing)} are not right: answer them first")
        return table
