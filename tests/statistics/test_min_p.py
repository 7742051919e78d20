import itertools

import numpy as np
import pytest
import scipy.stats

from contamination.statistics import relabel_canonical, sharded_exact_test
from contamination.statistics.min_p import (
    ladder,
    log_weights,
    mixture_draws,
    westfall_young_test,
)
from fakes.level import check_level


def draw_scores(rng, *, q=2, r=3, m=4, df=2.0, shift=0.0, own=0.7):
    """Heavy-tailed statistics that share part of their noise; the canonical ones gain `shift`."""
    scores = rng.standard_t(df, (1, r, m + 1)) + own * rng.standard_t(df, (q, r, m + 1))
    scores[:, :, 0] += shift
    return scores


def all_sums(shares):
    """Sum of every statistic (q, r, m+1) under all canonical indices, (q, (m+1)^r), J = 0 first."""
    sums = np.zeros((len(shares), 1))
    for shard in range(shares.shape[1]):
        sums = (sums[:, :, None] + shares[:, shard, None, :]).reshape(len(shares), -1)
    return sums


@pytest.mark.parametrize("shift", [0.5, 1, 2, 4])
def test_min_p_against_all_canonical_indices(shift):
    """One statistic with light tails, one with a skewed shard: their z are not to be compared."""
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(2, 4, 7))
    scores[1, 0] = np.exp(2 * scores[1, 0])
    scores[:, :, 0] += shift
    shares = scores - scores.mean(axis=2, keepdims=True)
    sums = all_sums(shares / scores.std(axis=2, keepdims=True))
    ranks = [scipy.stats.rankdata(-np.round(each, 9), "max") / each.size for each in sums]
    p = np.min(ranks, axis=0)
    exact = np.mean(p <= p[0] * (1 + 1e-9))
    result = westfall_young_test(scores, resamples=10_000, rng=rng)
    assert result.p == pytest.approx(exact, rel=0.3)
    assert result.p <= 2 * min(m.p for m in result.marginals) * 1.3


def test_one_statistic_is_the_exact_test_on_shards(law):
    rng = np.random.default_rng(2)
    for _ in range(5):
        scores = law(rng, 4, 9)
        exact = sharded_exact_test(scores)
        result = westfall_young_test([scores], resamples=20_000, rng=rng)
        assert result.p == pytest.approx(exact.p, rel=0.1 + exact.resolution)
        assert result.marginals[0].log10_p == exact.log10_p


@pytest.mark.parametrize("shift", [1.5, 3.0, 6.0])
def test_far_tail_near_the_bonferroni_bound(shift):
    """log10 p from -20 to the end of the scale: between the least marginal p and q times it."""
    rng = np.random.default_rng(3)
    scores = draw_scores(rng, q=3, r=60, m=39, df=20, shift=shift, own=0.5)
    names = ["a", "b", "c"]
    result = westfall_young_test(scores, names=names, resamples=20_000, rng=rng)
    least = min(m.log10_p for m in result.marginals)
    assert result.marginals[names.index(result.best)].log10_p == least
    assert least < {1.5: -15, 3.0: -60, 6.0: -90}[shift]
    assert least - 0.3 <= result.log10_p <= least + np.log10(3) + 0.3
    assert result.p == pytest.approx(10**result.log10_p, rel=1e-9, abs=0)


def test_every_choice_of_canonical_index_gives_a_valid_p():
    """P(p <= alpha) <= alpha over all 4^3 canonical indices under H0, with few draws as well."""
    rng = np.random.default_rng(7)
    scores = draw_scores(rng, m=3)
    p = []
    for index in itertools.product(range(4), repeat=3):
        swapped = scores.copy()
        for shard, j in enumerate(index):
            swapped[:, shard, [0, j]] = swapped[:, shard, [j, 0]]
        p += [westfall_young_test(swapped, resamples=20, rng=rng).p for _ in range(3)]
    check_level(p, 0.02, 0.05, 0.1, 0.3, reached=False)


def test_differences_that_may_be_rounding_cost_no_level():
    """Every canonical index in turn, of scores of 1e12 that differ by 0.1 to 100.

    With 2000 draws a p-value is off by a tenth.
    """
    rng = np.random.default_rng(23)
    differences = rng.choice([0, 0.1, 0.3, 0.5, 1, 7, 100], size=(2, 3, 3))
    scores = rng.choice([0, 1e12, -1e13], size=(2, 3, 1)) + differences
    p = []
    for index in itertools.product(range(3), repeat=3):
        swapped = np.stack([relabel_canonical(block, index) for block in scores])
        p.append(westfall_young_test(swapped, resamples=2000, rng=rng).p)
    ordered = np.sort(p)
    rejected = np.searchsorted(ordered, ordered, side="right") / len(ordered)
    assert (rejected <= 1.2 * ordered).all()


def test_ties_survive_float_noise():
    """0.1 + 0.2 and 0.3 are one score, in every statistic and after the sum over shards."""
    rng = np.random.default_rng(13)
    noisy = [[[0.3, 0.1 + 0.2, 0.1], [0.1 + 0.2, 0.3, 0.1]]] * 2
    low = -1e4
    high = -1e4 + 1e-3  # the last bit of the score is 1e-9 of its spread
    deep = [[[np.nextafter(high, 0), high, low]] * 2] * 2
    for tied in (noisy, deep):
        result = westfall_young_test(tied, resamples=20_000, rng=rng)
        assert result.p == pytest.approx(4 / 9, rel=0.05)


def test_silent_statistics():
    rng = np.random.default_rng(14)
    silent = np.full((2, 3, 5), -0.1)
    result = westfall_young_test(silent, resamples=100, rng=rng)
    assert result.p == 1.0
    assert result.log10_p == 0.0
    assert result.statistic == 0.0
    scores = draw_scores(rng, q=1, r=6, shift=2)
    mixed = np.concatenate([scores, np.full_like(scores, -0.1)])
    result = westfall_young_test(mixed, resamples=20_000, rng=rng)
    exact = sharded_exact_test(scores[0]).p
    assert result.p == pytest.approx(exact, rel=0.2)


def draw_z(rng, *, q=1, r=4, size=6):
    """Contributions of heavy-tailed shards: centred, and with null variance 1 when summed."""
    z = rng.standard_t(3, (q, r, size))
    z -= z.mean(axis=2, keepdims=True)
    return z / np.sqrt((z**2).mean(axis=2).sum(axis=1))[:, None, None]


def test_weighted_draws_have_the_null_law():
    rng = np.random.default_rng(1)
    z = draw_z(rng, q=2)
    ladders = [ladder(each) for each in z]
    sums = all_sums(z)
    draws = mixture_draws(z, ladders, resamples=200_000, rng=rng)
    weights = np.exp(log_weights(draws, ladders))
    assert weights.max() <= 2 + 1e-9
    assert weights.mean() == pytest.approx(1, abs=0.02)
    for drawn, every in zip(draws, sums, strict=True):
        for level in np.quantile(every, [0.5, 0.9, 0.99, 1 - 1 / every.size]):
            exact = (every >= level - 1e-9).mean()
            found = (weights * (drawn >= level - 1e-9)).mean()
            assert found == pytest.approx(exact, rel=0.1)
    both = ((draws[0] > 1) & (draws[1] > 1)) @ weights / weights.size
    assert both == pytest.approx(((sums[0] > 1) & (sums[1] > 1)).mean(), rel=0.1)


def test_tops_of_two_statistics_with_the_same_chance_are_ties():
    """Their logarithms are sums of the same terms in another order, and differ by the last bit."""
    tied = np.array([[2, 2, 3, 4, 1, 4], [3, 2, 4, 2, 4, 1]])  # tops of each of nine orderings
    scores = np.zeros((2, 6, 9))
    for statistic, shard in np.ndindex(tied.shape):
        first = 4 * statistic  # no ordering is a top of both
        scores[statistic, shard, first : first + tied[statistic, shard]] = 1
    result = westfall_young_test(scores, resamples=4_000, rng=np.random.default_rng(0))
    assert result.p == pytest.approx(2 * np.prod(tied[0] / 9), rel=0.1)


def test_of_one_draw_p_is_the_mean_weight_of_those_that_reach_the_statistic():
    """On average (w(0) + P(T >= T0)) / 2, where the better of two orderings is canonical."""
    z = np.array([[1.0, -1.0]])
    (log_weight,) = log_weights(np.array([[1.0]]), [ladder(z)])
    rng = np.random.default_rng(3)
    p = [westfall_young_test([z], resamples=1, rng=rng).p for _ in range(200)]
    assert np.mean(p) == pytest.approx((np.exp(log_weight) + 0.5) / 2, rel=0.1)
