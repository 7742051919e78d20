"""Checks that the p-values of null experiments, many or all possible ones, keep their levels."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import scipy.stats

from contamination.audit.registry import TESTS
from contamination.scoring.contract import Scorer
from contamination.scoring.plan import StorePlan
from contamination.scoring.score import score
from contamination.testsets.example_set import ExampleSet

WORDS = np.array(["apple", "river", "stone", "cloud", "lamp", "green", "tower", "quiet"])


def null_set(count: int, number: int) -> ExampleSet:
    """Return a set whose order means nothing, another one for each number.

    No two examples begin alike, so that a cache knows what it has seen and nothing else.
    """
    rng = np.random.default_rng(number)
    examples = tuple(f"{rng.integers(10**6):06d} {rng.choice(WORDS)}\n" for _ in range(count))
    return ExampleSet("words", examples, "text/1", f"data-{number}")


def p_value(
    test: str, scorer: Scorer, test_set: ExampleSet, store: Path, shards: int = 1, m: int = 3
) -> float:
    """Score a set for a test, and test it."""
    plan = StorePlan(TESTS[test].kind, shards, TESTS[test].tokens_per_example)
    filled = score(test_set, scorer, store, plan, model="m", permutations=m, seed=0)
    return TESTS[test].result(filled, m).p


def check_level(p: Sequence[float], *alphas: float, reached: bool = True) -> None:
    """Rejections at each level lie between the binomial law's quantiles of 1e-4 and 1 - 1e-4.

    With `reached=False` there may be fewer, as where p-values are discrete.
    """
    for alpha in alphas:
        low, high = scipy.stats.binom.ppf([1e-4, 1 - 1e-4], len(p), alpha)
        rejected = np.sum(np.asarray(p) <= alpha)
        assert low * reached <= rejected <= high, alpha


def check_every_level(p: Sequence[float]) -> None:
    """P(p <= alpha) <= alpha at every alpha: `p` are those of outcomes that are alike under H0."""
    ordered = np.sort(p)
    rejected = np.searchsorted(ordered, ordered, side="right") / len(ordered)
    assert (rejected <= ordered * (1 + 1e-9)).all()
