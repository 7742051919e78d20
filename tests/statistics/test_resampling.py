"""Another ordering called canonical, and fewer permutations: scores traded or left out."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from contamination.errors import InputError
from contamination.statistics import called_canonical, fewer_permutations


def drawn(permutations: int, replicates: int, seed: int = 0) -> list[np.ndarray]:
    log_probs = np.arange(3)[:, None] * 100.0 + np.arange(5)
    rng = np.random.default_rng(seed)
    return list(fewer_permutations(log_probs, permutations, replicates=replicates, rng=rng))


def test_every_subset_is_drawn_equally_often() -> None:
    found = Counter(tuple(sorted(subset[0, 1:])) for subset in drawn(2, 6000))
    assert set(found) == set(combinations(range(1, 5), 2))
    assert max(found.values()) - min(found.values()) < 250  # sd of a count: 29


def test_all_shards_keep_the_same_columns_and_the_canonical_one() -> None:
    for subset in drawn(3, 20):
        assert subset.shape == (3, 4)
        assert subset[:, 0].tolist() == [0, 100, 200]
        assert (subset - subset[0] == np.arange(3)[:, None] * 100).all()


def test_all_permutations_have_one_subset() -> None:
    (subset,) = drawn(4, 50)
    assert sorted(subset[0]) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("wrong", [0, 5])
def test_as_many_as_there_are(wrong: int) -> None:
    with pytest.raises(InputError, match=f"permutations {wrong}: 4 are scored; ask for 1 to 4"):
        drawn(wrong, 1)


def test_the_chosen_column_of_each_shard_trades_places_with_the_first():
    scores = np.arange(24.0).reshape(2, 3, 4)  # two statistics of three shards
    kept = scores.copy()
    swapped = called_canonical(scores, [2, 0, 3])
    np.testing.assert_array_equal(swapped[0], [[2, 1, 0, 3], [4, 5, 6, 7], [11, 9, 10, 8]])
    np.testing.assert_array_equal(swapped[1], swapped[0] + 12)
    np.testing.assert_array_equal(scores, kept)
    np.testing.assert_array_equal(called_canonical(swapped, [2, 0, 3]), scores)
