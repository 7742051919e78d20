import itertools
import math

import numpy as np
import pytest
import scipy.stats

from contamination.errors import InputError
from contamination.statistics import known_at_least
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


def test_the_quiz_counts_hits_of_one_chance_in_so_many():
    """The law and the bound themselves: `test_known`."""
    for hits in range(8):
        found = quiz_test(np.arange(7) < hits, choices=4, test="t", alpha=0.05)
        assert found.p == pytest.approx(scipy.stats.binom.sf(hits - 1, 7, 1 / 4))
        assert found.known_at_least == known_at_least(hits, [1 / 4] * 7, level=0.05)


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
