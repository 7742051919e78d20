"""Every p-value keeps its level on heavy-tailed noise, and is small where something is planted."""

from collections.abc import Callable

import numpy as np
import pytest
import scipy.stats

from contamination.statistics import (
    anytime_test,
    boundary_scores,
    centred_successors,
    fisher,
    generated_successor_test,
    permutation_test,
    pooled_exact_test,
    sampled_successor_scores,
    sharded_exact_test,
    sharded_t_test,
    token_standardised_scores,
    westfall_young_test,
)
from fakes.level import check_level

Draw = Callable[[np.random.Generator, float], float]  # a p-value, of scores with such an effect


def heavy(rng, shape, effect=0.0, df=2):
    """Noise of every size; the canonical orderings, first on the last axis, gain the effect."""
    scores = rng.standard_t(df, shape)
    scores[..., 0] += effect
    return scores


def tokens(rng, effect, m=7):
    """Tokens of three examples in a shard: (m + 1, 12), which lead their ordering, and places."""
    orders = np.array([rng.permutation(3) for _ in range(m + 1)])
    orders[0] = range(3)
    leading = np.repeat(np.arange(3), 4) == orders[:, :1]
    logprobs = rng.standard_t(2, leading.shape) * np.exp(rng.normal(size=12)) - 3 * leading
    logprobs[0] += effect * ~leading[0]
    return logprobs, leading, np.tile(np.arange(4), 3)


def successors(rng, effect):
    matrix = rng.standard_t(5, (6, 6)) + 9 * rng.normal(size=6) + 9 * rng.normal(size=(6, 1))
    return matrix + effect * np.eye(6, k=1)


def of_successors(rng, effect):
    shards = [centred_successors(successors(rng, effect)) for _ in range(3)]
    return sharded_exact_test(
        [sampled_successor_scores(each, resamples=199, rng=rng) for each in shards]
    ).p


EXACT: dict[str, Draw] = {
    "permutation": lambda rng, e: permutation_test(heavy(rng, 100, 40 * e)).p,
    "sharded exact": lambda rng, e: sharded_exact_test(heavy(rng, (4, 10), e)).p,
    "equal weights": lambda rng, e: sharded_exact_test(heavy(rng, (4, 10), e), weights="equal").p,
    "pooled": lambda rng, e: pooled_exact_test([heavy(rng, (2, m), e) for m in (6, 20)]).p,
    "standardised tokens": lambda rng, e: (
        sharded_exact_test([token_standardised_scores(*tokens(rng, e)[:2]) for _ in range(4)]).p
    ),
    "boundary": lambda rng, e: (
        sharded_exact_test(
            [boundary_scores(*tokens(rng, e), tokens_per_example=2) for _ in range(4)]
        ).p
    ),
    "successor": of_successors,
    "generated successor": lambda rng, e: (
        generated_successor_test(successors(rng, 2 * e), resamples=199, rng=rng).p
    ),
    "Fisher": lambda rng, e: fisher(np.log10(rng.random(9) ** (1 + e))).p,
}


@pytest.mark.parametrize("name", EXACT)
def test_exact_p_values_have_their_level_and_find_what_is_planted(name):
    rng = np.random.default_rng(7)
    check_level([EXACT[name](rng, 0.0) for _ in range(250)], 0.05, 0.2)
    assert np.median([EXACT[name](rng, 3.0) for _ in range(21)]) < 0.02


def test_the_t_test_needs_one_degree_less():
    rng = np.random.default_rng(8)
    null = rng.normal(size=(4_000, 3, 6))
    check_level([sharded_t_test(scores).p for scores in null], 0.05, 0.2)
    wrong = np.mean([sharded_t_test(scores, ddof=0).p <= 0.05 for scores in null])
    assert wrong > scipy.stats.binom.ppf(1 - 1e-4, 4_000, 0.05) / 4_000


def test_several_statistics_and_peeking_cost_no_level():
    rng = np.random.default_rng(9)
    joint = [
        westfall_young_test(heavy(rng, (3, 4, 8)), resamples=99, rng=rng).p for _ in range(150)
    ]
    check_level(joint, 0.05, 0.2, reached=False)
    runs = heavy(rng, (500, 8, 8))
    stopped = [anytime_test(run, alpha=0.05).stopped_at is not None for run in runs]
    assert 0 < sum(stopped) <= scipy.stats.binom.ppf(1 - 1e-4, 500, 0.05)
