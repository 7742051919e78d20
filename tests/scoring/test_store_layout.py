from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contamination.errors import InputError
from contamination.scoring.store_layout import Header, positions
from contamination.testsets.orderings import ordering
from fakes.made_up_store import HEADER

SUCCESSORS = replace(HEADER, kind="successors", tokens_per_example=2)


def test_units_of_orderings_are_shard_by_shard_canonical_first():
    assert HEADER.units(2) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]


def test_units_of_successors_are_the_examples_of_each_shard():
    assert SUCCESSORS.units(99) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]


def test_an_ordering_is_the_one_that_the_header_names():
    for shard, bounds in enumerate([(0, 3), (3, 5)]):
        for index in range(4):
            expected = ordering(bounds, index, seed=1, dataset="data-1", shard=shard)
            np.testing.assert_array_equal(HEADER.examples((shard, index)), expected)
            assert HEADER.examples((shard, index)).dtype == np.int32


def test_successors_are_the_other_examples_of_the_shard():
    assert [SUCCESSORS.examples(u).tolist() for u in SUCCESSORS.units(0)] == [
        [1, 2],
        [0, 2],
        [0, 1],
        [4],
        [3],
    ]


def test_only_the_first_tokens_are_stored():
    assert HEADER.stored.tolist() == [3, 1, 2, 4, 2]
    assert SUCCESSORS.stored.tolist() == [2, 1, 2, 2, 2]


def test_tokens_that_are_not_stored_are_read_all_the_same():
    assert [replace(HEADER, tokens_per_example=1).tokens_read((s, 0)) for s in (0, 1)] == [6, 6]
    # Each predecessor whole, and the first two tokens of the others.
    assert [SUCCESSORS.tokens_read(u) for u in SUCCESSORS.units(0)] == [
        3 + 1 + 2,
        1 + 2 + 2,
        2 + 2 + 1,
        4 + 2,
        2 + 2,
    ]


def test_a_header_survives_its_json():
    for header in (HEADER, SUCCESSORS):
        again = Header.from_json(header.as_json())
        assert again == header
        assert again.key == header.key


def test_headers_that_differ_in_anything_have_different_keys():
    changes = [{"seed": 2}, {"kind": "successors"}, {"first": 4}, {"first": 5}, {"shards": 1}]
    keys = {HEADER.key, *(replace(HEADER, **change).key for change in changes)}
    assert len(keys) == 6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "pairs"}, "kind is 'pairs'.*successors"),
        ({"first": 0}, "tokens_per_example is 0.*at least 1"),
    ],
)
def test_what_no_store_can_hold_is_refused(change, message):
    with pytest.raises(InputError, match=message):
        replace(HEADER, **change)


@given(st.lists(st.integers(0, 5)))
def test_positions_count_from_zero_in_each_length(lengths):
    expected = [p for length in lengths for p in range(length)]
    found = positions(np.array(lengths, dtype=np.int64))
    assert found.tolist() == expected
    assert found.dtype == np.int32
