"""Another ordering called canonical: the same scores, one trade in each shard."""

import numpy as np

from contamination.statistics import called_canonical


def test_the_chosen_column_of_each_shard_trades_places_with_the_first():
    scores = np.arange(24.0).reshape(2, 3, 4)  # two statistics of three shards
    kept = scores.copy()
    swapped = called_canonical(scores, [2, 0, 3])
    np.testing.assert_array_equal(swapped[0], [[2, 1, 0, 3], [4, 5, 6, 7], [11, 9, 10, 8]])
    np.testing.assert_array_equal(swapped[1], swapped[0] + 12)
    np.testing.assert_array_equal(scores, kept)
    np.testing.assert_array_equal(called_canonical(swapped, [2, 0, 3]), scores)
