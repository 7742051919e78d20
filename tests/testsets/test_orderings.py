import itertools
from collections import Counter

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from contamination.errors import InputError
from contamination.testsets.orderings import ordering, shard_bounds

GOLDEN = {1: [11, 13, 10, 12, 14, 15], 2: [13, 14, 10, 11, 12, 15]}


def draw(bounds, index, *, seed=1, dataset="d", shard=0):
    return ordering(bounds, index, seed=seed, dataset=dataset, shard=shard)


@given(shards=st.integers(1, 60), extra=st.integers(0, 300))
def test_shards_are_contiguous_and_the_first_ones_take_the_extra_examples(shards, extra):
    examples = 2 * shards + extra
    bounds = shard_bounds(examples, shards)
    assert len(bounds) == shards
    assert bounds[0][0] == 0
    assert bounds[-1][1] == examples
    assert all(left[1] == right[0] for left, right in itertools.pairwise(bounds))
    sizes = [stop - start for start, stop in bounds]
    small, large = divmod(examples, shards)
    assert sizes == [small + 1] * large + [small] * (shards - large)


def test_no_shard_and_fewer_than_two_examples_for_one_are_refused():
    for examples, shards, named in (
        (1, 1, "at least 2"),
        (9, 5, "at most 4"),
        (10, 0, "at least 1"),
    ):
        with pytest.raises(InputError, match=named):
            shard_bounds(examples, shards)


def test_ordering_0_is_canonical_and_the_others_permute_the_examples_of_the_shard():
    np.testing.assert_array_equal(draw((7, 12), 0), [7, 8, 9, 10, 11])
    for index in range(1, 50):
        order = draw((7, 12), index)
        assert order.dtype == np.int32
        assert sorted(order.tolist()) == [7, 8, 9, 10, 11]


def test_orderings_are_the_ones_that_existing_stores_hold():
    """A change of these numbers makes every store on disk wrong: raise SCHEMA_VERSION with it."""
    for index, expected in GOLDEN.items():
        found = ordering((10, 16), index, seed=20240507, dataset="a-revision", shard=3)
        assert found.tolist() == expected


def test_an_ordering_depends_on_all_of_its_key_and_on_nothing_else():
    before = draw((0, 30), 5)
    for other in range(9, 0, -1):  # other orderings drawn first, and the global generator moved
        draw((0, 30), other)
    np.random.seed(3)  # noqa: NPY002 - the legacy global state is what must not matter
    np.testing.assert_array_equal(draw((0, 30), 5), before)
    changed = [
        draw((0, 30), 5, **change) for change in ({"seed": 2}, {"dataset": "e"}, {"shard": 1})
    ]
    # (shard 1, ordering 23) and (shard 12, ordering 3) have the same digits.
    changed += [draw((0, 30), 6), draw((0, 30), 23, shard=1), draw((0, 30), 3, shard=12)]
    changed += [draw((0, 30), 1, seed=12), draw((0, 30), 1, seed=1, dataset="2d")]
    assert len({tuple(order) for order in (before, *changed)}) == 9


def test_all_orders_are_equally_likely_over_orderings_shards_and_seeds():
    draws = {
        "orderings": [draw((0, 4), i) for i in range(1, 961)],
        "shards": [draw((0, 4), 1, shard=i) for i in range(960)],
        "seeds": [draw((0, 4), 1, seed=i) for i in range(960)],
    }
    for over, orders in draws.items():
        counts = Counter(tuple(o.tolist()) for o in orders)
        assert len(counts) == 24, over
        assert scipy.stats.chisquare(list(counts.values())).pvalue > 1e-4, over
