import itertools
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from contamination.statistics.anytime import AnytimeResult, anytime_test
from fakes.level import check_every_level

INTEGERS = arrays(
    np.float64,
    array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=6),
    elements=st.integers(-4, 4),
)
NONE = AnytimeResult(alpha=0.05)


def relabelled(shard):
    """The shard with each of its orderings in the place of the canonical one."""
    return [np.concatenate([shard[j:], shard[:j]]) for j in range(len(shard))]


def e_by_definition(log_probs):
    """E after the last shard, from the formulas of the docstring, for scores without ties."""
    lambdas = [1 / 8, 1 / 4, 1 / 2, 1, 2, 4]
    bets = list(itertools.product((0, 1), lambdas, (1, 1 / 2)))
    total = 0.0
    for view, lam, stake in bets:
        product = 1.0
        for shard in log_probs:
            ranks = scipy.stats.rankdata(shard)
            z = [shard, scipy.stats.norm.ppf((ranks - 1 / 2) / len(shard))][view]
            z = scipy.stats.zscore(z)
            product *= 1 - stake + stake * math.exp(lam * z[0]) / np.mean(np.exp(lam * z))
        total += product / len(bets)
    return total


def test_every_bet_is_fair(law):
    """Over the m+1 choices of the canonical ordering, each e-value has mean 1: ties, tails, all."""
    rng = np.random.default_rng(0)
    for m in (1, 2, 7, 40):
        for shard in law(rng, 3, m) * 1e6:
            e = [np.exp(NONE.update(scores).log_wealth) for scores in relabelled(shard)]
            np.testing.assert_allclose(np.mean(e, axis=0), 1, rtol=1e-11)


@pytest.mark.parametrize("name", ["normal", "cauchy", "ties"])
def test_ville_by_full_enumeration(laws, name):
    """P(p_t <= alpha for some t) <= alpha at every alpha, over all 4^4 canonical indices."""
    scores = laws[name](np.random.default_rng(2), 4, 3)
    paths = [
        anytime_test([relabelled(row)[j] for row, j in zip(scores, index, strict=True)], alpha=0.5)
        for index in itertools.product(range(4), repeat=4)
    ]
    p = [path.p for path in paths]
    check_every_level(p)
    assert min(p) < 0.2


def test_against_the_definition():
    rng = np.random.default_rng(5)
    ragged = [rng.normal(size=m + 1) for m in (1, 2, 5, 30)]
    for scores in (ragged, rng.standard_t(3, size=(6, 11)) - 500):
        result = anytime_test(scores, alpha=0.05)
        assert result.statistic == pytest.approx(math.log10(e_by_definition(scores)), abs=1e-9)


def test_no_floor():
    strongest = np.zeros((300, 251))
    strongest[:, 0] = 1.0
    result = anytime_test(strongest, alpha=0.05)
    assert -300 * np.log10(251) <= result.log10_p < -700
    assert 0 < result.p < 1e-300
    weakest = anytime_test(-strongest, alpha=0.05)
    assert weakest.p == 1.0
    assert weakest.log10_p == 0.0
    assert np.isfinite(weakest.statistic)


def test_ties_survive_float_noise():
    clean = anytime_test([[3.0, 3.0, 1.0], [1.0, 3.0, 3.0]], alpha=0.05)
    noisy = anytime_test([[0.3, 0.1 + 0.2, 0.1], [0.1, 0.1 + 0.2, 0.3]], alpha=0.05)
    assert noisy.statistic == pytest.approx(clean.statistic, abs=1e-9)
    assert anytime_test([[0.3, 0.1 + 0.2], [-1e3, -1e3 + 1e-11]], alpha=0.05).statistic == 0


@given(INTEGERS)
@settings(max_examples=60)
def test_it_stops_at_the_first_shard_whose_evidence_reaches_the_level(scores):
    shards = [row[: 2 + number % 5] for number, row in enumerate(scores)]
    e = [anytime_test(shards[: number + 1], alpha=0.2).statistic for number in range(len(shards))]
    result = anytime_test(iter(shards), alpha=0.2)
    reached = [number for number, each in enumerate(e, start=1) if each >= -np.log10(0.2)]
    assert result.stopped_at == min(reached, default=None)
    assert result.log10_p == min(0.0, -max(e))
    assert result.permutations == min(len(shard) for shard in shards) - 1
