import itertools
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from contamination.statistics import sharded_exact_test
from contamination.statistics.successor import (
    centred_successors,
    generated_successor_test,
    generated_successors,
    sampled_successor_scores,
    successor_scores,
)

SEEDS = st.integers(0, 2**32 - 1)


def draw_successors(rng, k, *, df=2.0, shift=0.0, columns=5.0, rows=1.0):
    """Heavy-tailed S with effects of predecessors and successors; true successors gain `shift`."""
    scores = rng.standard_t(df, (k, k)) + columns * rng.normal(size=k)
    scores += rows * rng.normal(size=(k, 1))
    scores[np.arange(k - 1), np.arange(1, k)] += shift
    np.fill_diagonal(scores, np.nan)
    return scores


def walks(scores):
    """Scores of all orderings by the definition, the canonical one first."""
    totals = []
    for order in itertools.permutations(range(len(scores))):
        totals.append(sum(scores[pair] for pair in itertools.pairwise(order)))
    return np.array(totals)


def listed(scores):
    """The same from `successor_scores`; with these the exact test has no sampling in it."""
    return successor_scores(scores, list(itertools.permutations(range(len(scores)))))


def exact(*shards):
    return sharded_exact_test([listed(shard) for shard in shards], weights="equal")


@pytest.mark.parametrize("k", [3, 4, 7])
def test_centring_is_least_squares_off_the_diagonal(k):
    scores = draw_successors(np.random.default_rng(k), k)
    off = ~np.eye(k, dtype=bool)
    before, after = np.nonzero(off)
    design = [*(after == b for b in range(k)), *(before == a for a in range(k))]
    design = np.array([np.ones(off.sum()), *design], dtype=float).T
    fitted = design @ np.linalg.lstsq(design, scores[off], rcond=None)[0]
    centred = centred_successors(scores)
    np.testing.assert_allclose(centred[off], scores[off] - fitted, atol=1e-10)
    assert np.isnan(np.diag(centred)).all()


@given(SEEDS, st.integers(3, 7))
@settings(max_examples=40)
def test_centring_is_symmetric_and_removes_the_effects(seed, k):
    """Relabelling the examples relabels the residuals: the property that keeps the test exact."""
    rng = np.random.default_rng(seed)
    scores = draw_successors(rng, k)
    order = rng.permutation(k)
    centred = centred_successors(scores)
    relabelled = centred_successors(scores[np.ix_(order, order)])
    np.testing.assert_allclose(relabelled, centred[np.ix_(order, order)], atol=1e-9)
    moved = scores + 100 * rng.normal(size=k) + 100 * rng.normal(size=(k, 1))
    np.testing.assert_allclose(centred_successors(moved), centred, atol=1e-9)


@pytest.mark.parametrize("k", [2, 3, 4, 6])
def test_all_orderings_of_a_shard_give_the_share_of_them(k):
    rng = np.random.default_rng(k)
    for scores in (draw_successors(rng, k), np.round(draw_successors(rng, k, columns=0.5))):
        everything = walks(scores)
        np.testing.assert_allclose(listed(scores), everything)
        share = np.mean(everything >= everything[0] - 1e-9)
        assert share * (1 - 1e-9) <= exact(scores).p <= share * 1.02 + 1e-9


def test_every_relabelling_in_turn_is_canonical():
    """P(p <= a) = a at a = 1/24, 2/24 ... without ties, with and without centring."""
    scores = draw_successors(np.random.default_rng(1), 4)
    for prepare in (lambda s: s, centred_successors):
        p = [
            exact(prepare(scores[np.ix_(order, order)])).p
            for order in itertools.permutations(range(4))
        ]
        np.testing.assert_allclose(np.sort(p), np.arange(1, 25) / 24, rtol=0.01)


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


def test_what_the_engine_cannot_tell_apart_is_zero():
    """All residuals or none: an example that differs keeps the shard as it is."""
    rng = np.random.default_rng(0)
    additive = rng.normal(-30, 5, (6, 1)) + rng.normal(-30, 5, 6)
    rounded = additive + rng.normal(0, 1e-5, (6, 6))
    off = ~np.eye(6, dtype=bool)
    assert (centred_successors(rounded, resolution=1e-3)[off] == 0).all()
    assert exact(centred_successors(additive)).p == 1.0  # silent to the last bit
    largest = np.abs(centred_successors(rounded)[off]).max()
    assert (centred_successors(rounded, resolution=largest)[off] == 0).all()
    rounded[2, 4] += 1
    kept = centred_successors(rounded, resolution=1e-3)
    np.testing.assert_array_equal(kept, centred_successors(rounded))


def test_generated_successors_by_hand():
    """Three records of the words 1 to 4; after the first, the second was written twice."""
    records = [[1, 2], [1, 3], [1, 4]]
    written = [[[1, 3], [3, 9]], [[], [4]], []]
    found = generated_successors(records, written, longest=2)
    idf = math.log(3)  # of 2, 3, 4 and of the three pairs; that of 1 is log(3 / 3) = 0
    norm = math.sqrt(2 * idf**2)
    np.testing.assert_allclose(found[0, 1], (idf * math.log(3) + idf * math.log(2)) / norm)
    np.testing.assert_allclose(found[1, 2], idf * math.log(2) / norm)
    assert np.count_nonzero(found) == 2
    alike = generated_successors([[5], [5], [6]], [[[5, 6]]] * 3, longest=1)
    np.testing.assert_allclose(alike[0], [math.log(2)] * 3)
    assert not generated_successors([[5], [5]], [[[5]], [[5]]]).any()  # nothing tells them apart


def test_relabelled_records_relabel_the_matrix():
    """Its level follows: nothing in S knows the order."""
    rng = np.random.default_rng(1)
    records = [rng.integers(6, size=rng.integers(1, 7)) for _ in range(7)]
    written = [list(rng.integers(7, size=(3, 4))) for _ in records]
    order = rng.permutation(7)
    moved = generated_successors([records[i] for i in order], [written[i] for i in order])
    np.testing.assert_allclose(moved, generated_successors(records, written)[np.ix_(order, order)])


def test_the_p_value_is_that_of_all_orderings(monkeypatch):
    """Enumerated; and blocks of orderings draw what one block draws."""
    rng = np.random.default_rng(2)
    scores = rng.gamma(1.0, size=(6, 6)) + 2 * np.eye(6, k=1)
    orders = list(itertools.permutations(range(6)))
    walks = successor_scores(centred_successors(scores), orders)
    true = np.mean(walks >= walks[0] - 1e-9)
    found = generated_successor_test(scores, resamples=20_000, rng=np.random.default_rng(0))
    assert found.p == pytest.approx(true, abs=4 * math.sqrt(true / 20_000) + 1e-4)
    assert found.shards == 1
    assert found.permutations == 20_000
    monkeypatch.setattr("contamination.statistics.successor._BLOCK", 6 * 3_000)
    blocks = generated_successor_test(scores, resamples=20_000, rng=np.random.default_rng(0))
    assert blocks.p == found.p
    assert blocks.permutations == 20_000
