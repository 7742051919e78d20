import itertools
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from contamination.errors import InputError
from contamination.statistics import sharded_exact_test
from contamination.statistics.successor import (
    centred_successors,
    listed_successor_scores,
    sampled_successor_scores,
    shard_size_for_budget,
    successor_cost,
    successor_moments,
    successor_monte_carlo,
    successor_scores,
    successor_test,
)

SEEDS = st.integers(0, 2**32 - 1)
EFFECTS = pytest.mark.parametrize("effects", ["both", "successor"])


def draw_successors(rng, k, *, df=2.0, shift=0.0, columns=5.0, rows=1.0):
    """Heavy-tailed S with effects of predecessors and successors; true successors gain `shift`."""
    scores = rng.standard_t(df, (k, k)) + columns * rng.normal(size=k)
    scores += rows * rng.normal(size=(k, 1))
    scores[np.arange(k - 1), np.arange(1, k)] += shift
    np.fill_diagonal(scores, np.nan)
    return scores


def walk(scores, order):
    return sum(scores[a, b] for a, b in itertools.pairwise(order))


def walks(scores):
    """Scores of all orderings by the definition, the canonical one first."""
    return np.array([walk(scores, order) for order in itertools.permutations(range(len(scores)))])


def test_scores_follow_the_orderings():
    scores = np.array([[np.nan, 1, 2], [10, np.nan, 20], [100, 200, np.nan]])
    orders = [[0, 1, 2], [2, 1, 0], [1, 0, 2]]
    np.testing.assert_array_equal(successor_scores(scores, orders), [21, 210, 12])
    np.testing.assert_array_equal(listed_successor_scores(scores), [21, 202, 12, 120, 101, 210])


@pytest.mark.parametrize("k", [2, 3, 4, 5, 6, 7])
def test_moments_are_those_of_all_orderings(k):
    scores = draw_successors(np.random.default_rng(k), k) - 100
    mean, variance = successor_moments(scores)
    everything = walks(scores)
    assert mean == pytest.approx(everything.mean())
    assert mean == pytest.approx(np.nansum(scores) / k)
    assert variance == pytest.approx(everything.var(), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_a_constant_has_no_variance_and_no_evidence(k):
    scores = np.full((k, k), -0.1)
    result = successor_test(scores)
    assert (result.p, result.log10_p, result.z, result.null_sd) == (1.0, 0.0, 0.0, 0.0)


@EFFECTS
@pytest.mark.parametrize("k", [3, 4, 7])
def test_centring_is_least_squares_off_the_diagonal(k, effects):
    scores = draw_successors(np.random.default_rng(k), k)
    off = ~np.eye(k, dtype=bool)
    before, after = np.nonzero(off)
    design = [np.ones(off.sum()), *(after == b for b in range(k))]
    if effects == "both":
        design += [before == a for a in range(k)]
    design = np.array(design, dtype=float).T
    fitted = design @ np.linalg.lstsq(design, scores[off], rcond=None)[0]
    centred = centred_successors(scores, effects=effects)
    np.testing.assert_allclose(centred[off], scores[off] - fitted, atol=1e-10)
    assert np.isnan(np.diag(centred)).all()


@given(SEEDS, st.integers(3, 7))
@settings(max_examples=40, deadline=None)
def test_centring_is_symmetric_and_removes_the_effects(seed, k):
    """Relabelling the examples relabels the residuals: the property that keeps the test exact."""
    rng = np.random.default_rng(seed)
    scores, order = draw_successors(rng, k), rng.permutation(k)
    for effects in ("both", "successor"):
        centred = centred_successors(scores, effects=effects)
        relabelled = centred_successors(scores[np.ix_(order, order)], effects=effects)
        np.testing.assert_allclose(relabelled, centred[np.ix_(order, order)], atol=1e-9)
        moved = scores + 100 * rng.normal(size=k)
        if effects == "both":
            moved += 100 * rng.normal(size=(k, 1))
        np.testing.assert_allclose(centred_successors(moved, effects=effects), centred, atol=1e-9)


def test_an_additive_matrix_is_silent_to_the_last_bit():
    rng = np.random.default_rng(0)
    additive = rng.normal(size=5) - 100 * rng.random((5, 1))
    assert successor_test(centred_successors(additive)).p == 1.0
    assert np.nanmax(np.abs(centred_successors(additive))) == 0


@pytest.mark.parametrize("k", [2, 3, 4, 6])
def test_p_is_the_share_of_all_orderings(k):
    rng = np.random.default_rng(k)
    for scores in (draw_successors(rng, k), np.round(draw_successors(rng, k, columns=0.5))):
        result = successor_test(scores)
        everything = walks(scores)
        assert result.p == pytest.approx(np.mean(everything >= everything[0] - 1e-9))
        assert result.log10_p == pytest.approx(math.log10(result.p))
        assert result.statistic == pytest.approx(everything[0])
        assert result.z * everything.std() == pytest.approx(everything[0] - everything.mean())
        assert (result.shards, result.permutations) == (1, math.factorial(k) - 1)


def test_every_relabelling_in_turn_is_canonical():
    """P(p <= a) = a at a = 1/24, 2/24 ... without ties, with and without centring."""
    scores = draw_successors(np.random.default_rng(1), 4)
    for prepare in (lambda s: s, centred_successors):
        p = [
            successor_test(prepare(scores[np.ix_(order, order)])).p
            for order in itertools.permutations(range(4))
        ]
        np.testing.assert_allclose(np.sort(p), np.arange(1, 25) / 24)


def test_ties_survive_float_noise():
    """0.1 + 0.2 and 0.3 + 0 are one score, although their sums differ in the last bit."""
    scores = np.array([[0, 0.1, 0.3], [0.3, 0, 0.2], [0.1, 0, 0]])
    exact = walks(np.round(10 * scores))
    assert exact[0] == 3
    assert successor_test(scores).p == pytest.approx(np.mean(exact >= 3))
    assert successor_test(scores).p > np.mean(walks(scores) >= scores[0, 1] + scores[1, 2])


def test_a_set_of_any_size_by_sampling():
    rng = np.random.default_rng(2)
    scores = draw_successors(rng, 5)
    exact = successor_test(scores)
    sampled = successor_monte_carlo(scores, resamples=20_000, rng=rng)
    assert sampled.p == pytest.approx(exact.p, abs=4 * math.sqrt(exact.p * (1 - exact.p) / 2e4))
    assert (sampled.null_mean, sampled.null_sd, sampled.z) == (
        *(exact.null_mean, exact.null_sd, exact.z),
    )
    planted = centred_successors(draw_successors(rng, 30, shift=3.0))
    strongest = successor_monte_carlo(planted, resamples=999, rng=rng)
    assert (strongest.p, strongest.permutations) == (0.001, 999)
    assert strongest.log10_p == pytest.approx(-3)


def test_sampled_orderings_are_uniform_and_the_canonical_one_comes_first():
    rng = np.random.default_rng(3)
    scores = draw_successors(rng, 3)
    everything = walks(scores)
    drawn = sampled_successor_scores(scores, resamples=6000, rng=rng)
    assert drawn.shape == (6001,)
    assert drawn[0] == pytest.approx(everything[0])
    counts = [np.isclose(drawn[1:], value).sum() for value in everything]
    assert sum(counts) == 6000
    assert scipy.stats.chisquare(counts).pvalue > 1e-4


def test_listed_orderings_recombine_without_sampling():
    rng = np.random.default_rng(4)
    shards = [centred_successors(draw_successors(rng, 4, shift=2.0)) for _ in range(3)]
    scores = np.array([listed_successor_scores(shard) for shard in shards])
    sums = np.add.outer(np.add.outer(scores[0], scores[1]), scores[2])
    exact = np.mean(sums >= scores[:, 0].sum() - 1e-9)
    result = sharded_exact_test(scores, weights="equal")
    assert exact <= result.p * (1 + 1e-9)
    assert result.p == pytest.approx(exact, rel=0.02)


def test_calibrated_on_heavy_tails():
    rng = np.random.default_rng(5)
    trials, p = 2000, {"listed": [], "sampled": []}
    for _ in range(trials):
        shards = [centred_successors(draw_successors(rng, 4)) for _ in range(2)]
        p["listed"].append(sharded_exact_test([listed_successor_scores(s) for s in shards]).p)
        p["sampled"].append(successor_monte_carlo(shards[0], resamples=199, rng=rng).p)
    for values in p.values():
        for alpha in (0.05, 0.2):
            low, high = scipy.stats.binom.ppf([1e-4, 1 - 1e-4], trials, alpha)
            rejections = (np.array(values) <= alpha).sum()
            assert rejections <= high
            if values is p["listed"]:  # a sample of 24 orderings is full of ties with the canonical
                assert rejections >= low


def test_centring_finds_what_edges_hide():
    rng = np.random.default_rng(6)
    shards = [draw_successors(rng, 8, df=5, shift=1.0, columns=10, rows=5) for _ in range(10)]
    p = {}
    for name, prepare in {
        "as scored": lambda s: s,
        "successor": lambda s: centred_successors(s, effects="successor"),
        "both": centred_successors,
    }.items():
        scores = [sampled_successor_scores(prepare(s), resamples=2000, rng=rng) for s in shards]
        p[name] = sharded_exact_test(scores).p
    assert p["both"] < 1e-6 < p["as scored"]
    assert p["both"] < p["successor"] < p["as scored"]


@given(SEEDS, st.integers(2, 5), st.floats(0.1, 50))
@settings(max_examples=40, deadline=None)
def test_as_scored_p_falls_with_a_true_successor(seed, k, rise):
    rng = np.random.default_rng(seed)
    scores = draw_successors(rng, k)
    raised = scores.copy()
    i = rng.integers(k - 1)
    raised[i, i + 1] += rise
    assert 1 / math.factorial(k) * (1 - 1e-12) <= successor_test(raised).p
    assert successor_test(raised).p <= successor_test(scores).p <= 1
    assert successor_test(scores - 7).p == successor_test(scores).p


def test_cost_counts_prefixes_and_continuations():
    """12 examples of 50 tokens in 3 shards of 4, 10 tokens of each after each other."""
    cost = sum(4 * 50 + 4 * 3 * 10 for _ in range(3))
    assert successor_cost(4, examples=12, mean_length=50, tokens_per_example=10) == cost


@given(st.integers(2, 300), st.floats(1, 500), st.integers(1, 64), st.floats(0, 60))
@settings(deadline=None)
def test_the_largest_shard_that_the_budget_allows(examples, mean_length, first, extra):
    setting = {"examples": examples, "mean_length": mean_length, "first": first}
    budget = successor_cost(2, **setting) * (1 + 1e-9) + examples * first * extra
    k = shard_size_for_budget(budget, **setting)
    assert 2 <= k <= examples
    assert successor_cost(k, **setting) <= budget
    assert k == examples or successor_cost(k + 1, **setting) > budget


def test_bad_input():
    rng = np.random.default_rng(0)
    for wrong in (np.zeros((2, 3)), np.zeros(4), np.zeros((1, 1))):
        with pytest.raises(InputError, match="k >= 2"):
            successor_test(wrong)
    with pytest.raises(InputError, match=r"successors\[1, 0\] is nan: score example 0 after"):
        successor_moments([[0.0, 1.0], [np.nan, 0.0]])
    for orders in ([[0, 1, 1]], [[0, 1]], [0, 1, 2]):
        with pytest.raises(InputError, match=r"permutations of 0 to 2"):
            successor_scores(np.zeros((3, 3)), orders)
    with pytest.raises(InputError, match="at least 3"):
        centred_successors(np.zeros((2, 2)))
    with pytest.raises(InputError, match="effects is 'rows'"):
        centred_successors(np.zeros((3, 3)), effects="rows")
    with pytest.raises(InputError, match="too many to list 9! orderings"):
        successor_test(np.zeros((9, 9)))
    with pytest.raises(InputError, match="resamples is 0"):
        successor_monte_carlo(np.zeros((3, 3)), resamples=0, rng=rng)
    with pytest.raises(InputError, match="give at least 1200"):
        shard_size_for_budget(1199, examples=20, mean_length=50, tokens_per_example=10)
    for setting in ((1, 50, 10), (20, 0, 10), (20, 50, 0)):
        names = dict(zip(("examples", "mean_length", "first"), setting, strict=True))
        with pytest.raises(InputError, match="lengths above 0"):
            shard_size_for_budget(1e6, **names)
