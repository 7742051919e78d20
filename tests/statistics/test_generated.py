import itertools
import math

import numpy as np
import pytest
import scipy.stats

from contamination.errors import InputError
from contamination.statistics.generated import (
    generated_successor_test,
    generated_successors,
    quiz_test,
)
from contamination.statistics.successor import centred_successors, successor_scores


def test_successors_by_hand():
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
    for same in ([[5], [5]], [[], []]):  # nothing tells them apart
        assert not generated_successors(same, [[[5]], [[5]]]).any()


def test_relabelled_records_relabel_the_matrix():
    """Its level follows: nothing in S knows the order."""
    rng = np.random.default_rng(1)
    records = [rng.integers(6, size=rng.integers(1, 7)) for _ in range(7)]
    written = [[rng.integers(7, size=4) for _ in range(3)] for _ in records]
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
    assert (found.shards, found.permutations) == (1, 20_000)
    monkeypatch.setattr("contamination.statistics.generated._BLOCK", 6 * 3_000)
    blocks = generated_successor_test(scores, resamples=20_000, rng=np.random.default_rng(0))
    assert (blocks.p, blocks.permutations) == (found.p, 20_000)


def test_redrawn_orders_are_rejected_as_often_as_the_level_says():
    """1,000 orders on fixed texts, which have read a record's neighbours of another order."""
    rng = np.random.default_rng(3)
    records = [rng.integers(40, size=8) for _ in range(12)]
    written = [[np.r_[records[i - 1][:5], rng.integers(40, size=4)]] for i in range(12)]
    scores = generated_successors(records, written)
    p = []
    for _ in range(1_000):
        order = rng.permutation(12)
        p.append(generated_successor_test(scores[np.ix_(order, order)], resamples=199, rng=rng).p)
    rejected = np.sum(np.array(p) <= 0.05)
    low, high = scipy.stats.binom.ppf([5e-4, 1 - 5e-4], 1_000, 0.05)
    assert low <= rejected <= high


@pytest.mark.parametrize(("items", "choices"), [(1, 2), (7, 4), (12, 3)])
def test_the_quiz_has_the_law_of_all_draws(items, choices):
    """A habit of place, whatever it is, against every draw of the places."""
    habit = np.arange(items) ** 2 % choices
    law = np.zeros(items + 1)
    for hits in itertools.product([0, 1], repeat=items):
        law[sum(hits)] += np.prod([1 / choices if h else 1 - 1 / choices for h in hits])
    for count in range(items + 1):
        place = np.where(np.arange(items) < count, habit, habit + 1)
        found = quiz_test(place == habit, choices=choices, test="t", alpha=0.05)
        assert found.p == pytest.approx(law[count:].sum())
        assert found.log10_p == pytest.approx(math.log10(law[count:].sum()), abs=1e-12)
    far = quiz_test(np.ones(2_000, dtype=bool), choices=4, test="t", alpha=0.05)
    assert far.log10_p == pytest.approx(-2_000 * math.log10(4))


def test_the_bound_covers_simulated_quizzes():
    """Some known items are answered wrongly, some answers are no letter."""
    rng = np.random.default_rng(5)
    known, items, above = 15, 60, 0
    for _ in range(2_000):
        hits = np.r_[rng.random(known) < 0.9, rng.random(items - known) < 0.25]
        above += quiz_test(hits, choices=4, test="t", alpha=0.1).known_at_least > known
    assert 0 < above <= scipy.stats.binom.ppf(0.9999, 2_000, 0.1)


@pytest.mark.parametrize(
    ("work", "named"),
    [
        (lambda: generated_successors([[1]], []), "0 records were continued"),
        (lambda: quiz_test([], choices=4, test="t", alpha=0.05), "hits"),
        (lambda: quiz_test([True], choices=1, test="t", alpha=0.05), "1 choices"),
        (lambda: quiz_test([True], choices=2, test="t", alpha=0.0), "level is 0"),
    ],
)
def test_bad_input(work, named):
    with pytest.raises(InputError, match=named):
        work()
