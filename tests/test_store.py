import json
import os
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contamination import files
from contamination.errors import InputError
from contamination.store import Header, Store

HEADER = Header(
    model="m",
    model_revision="weights-1",
    dataset="d",
    dataset_revision="data-1",
    template="text/1",
    seed=1,
    shards=2,
    example_tokens=(3, 1, 2, 4, 2),  # shards [0, 3) and [3, 5)
)
SHARD_EXAMPLES = ([0, 1, 2], [3, 4])
COLUMNS = ["shard", "ordering", "example", "position", "logprob"]


def unit(shard: int, index: int, seed: int = 0):
    """Return what `append` takes: some order of the shard's examples, and random log-probs."""
    rng = np.random.default_rng([seed, shard, index])
    order = np.array(SHARD_EXAMPLES[shard], dtype=np.int32)
    if index:
        order = rng.permutation(order)
    tokens = sum(HEADER.example_tokens[e] for e in order)
    return (shard, index), order, rng.normal(-3, 2, tokens).astype(np.float32)


def units(permutations: int):
    return [unit(shard, index) for shard in range(2) for index in range(permutations + 1)]


@pytest.fixture
def store(tmp_path) -> Store:
    """Return a store with two permutations of both shards, in two parts."""
    store = Store(tmp_path / "store", HEADER)
    items = units(2)
    store.append(items[:4])
    store.append(items[4:])
    return store


def damage(path, how: str) -> None:
    data = bytearray(path.read_bytes())
    if how == "cut off":
        data = data[: len(data) // 2]
    elif how == "empty":
        data = bytearray()
    elif how == "footer":
        data[-20] ^= 0xFF
    else:  # one bit at the end of the data page, or of the dictionary page before it
        name, _, page = how.partition(" ")
        column = pq.ParquetFile(path).metadata.row_group(0).column(COLUMNS.index(name))
        start = column.dictionary_page_offset or column.data_page_offset
        stop = column.data_page_offset if page else start + column.total_compressed_size
        data[stop - 1] ^= 0x10
    path.write_bytes(data)


DAMAGE = ["cut off", "empty", "footer", *COLUMNS, "example dictionary"]


def test_every_token_comes_back_with_its_example_and_position(store):
    rows = pa.concat_tables(store.tokens()).to_pylist()
    expected = []
    for (shard, index), order, values in units(2):
        places = [(e, p) for e in order for p in range(HEADER.example_tokens[e])]
        for (example, position), value in zip(places, values, strict=True):
            row = (shard, index, example, position, float(value))
            expected.append(dict(zip(COLUMNS, row, strict=True)))
    assert rows == expected


def test_columns_have_the_promised_types(store):
    table = next(store.tokens())
    assert table.column_names == COLUMNS
    assert [str(t) for t in table.schema.types] == ["int32"] * 4 + ["float"]


def test_an_opened_store_reads_the_same(store):
    again = Store(store.directory, HEADER)
    assert again.done() == store.done() == {(s, i) for s in range(2) for i in range(3)}
    np.testing.assert_array_equal(again.log_probs(2), store.log_probs(2))


def test_sums_are_taken_in_float64_canonical_first(store):
    sums = store.log_probs(2)
    assert sums.dtype == np.float64
    expected = [sum(map(float, values)) for _, _, values in units(2)]
    np.testing.assert_allclose(sums.ravel(), expected, rtol=1e-15)


def test_a_sum_keeps_what_float32_would_lose(tmp_path):
    """16,777,217 = 2^24 + 1 is the first whole number that float32 does not have."""
    header = replace(HEADER, shards=1, example_tokens=(2, 1))
    store = Store(tmp_path, header)
    values = np.array([-(2.0**24), -0.5, -0.5], dtype=np.float32)
    store.append([((0, i), np.array([0, 1], dtype=np.int32), values) for i in range(2)])
    assert store.log_probs(1).tolist() == [[-(2.0**24) - 1] * 2]


@settings(deadline=None, max_examples=20)
@given(data=st.data())
def test_the_sums_do_not_depend_on_how_units_are_cut_into_parts(tmp_path_factory, data):
    items = units(3)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(items) - 1))))
    store = Store(tmp_path_factory.mktemp("store"), HEADER)
    for start, stop in zip([0, *cuts], [*cuts, len(items)], strict=True):
        store.append(items[start:stop])
    expected = np.array([values.astype(np.float64).sum() for _, _, values in items])
    np.testing.assert_allclose(store.log_probs(3).ravel(), expected, rtol=1e-12)


def test_fewer_permutations_than_stored_are_the_first_ones(store):
    np.testing.assert_array_equal(store.log_probs(1), store.log_probs(2)[:, :2])


def test_an_ordering_that_is_not_stored_is_named(store):
    with pytest.raises(InputError, match=r"ordering 3 of shard 0.*score 3 permutations first"):
        store.log_probs(3)
    store.append([unit(0, 3)])
    with pytest.raises(InputError, match="ordering 3 of shard 1"):
        store.log_probs(3)


def test_an_empty_store_holds_nothing(tmp_path):
    store = Store(tmp_path, HEADER)
    assert store.done() == set()
    assert list(store.tokens()) == []
    with pytest.raises(InputError, match="ordering 0 of shard 0"):
        store.log_probs(1)


def test_a_unit_that_two_parts_hold_is_not_counted_twice(store):
    """Two runs at once can score the same ordering into parts of different names."""
    store.append([unit(0, 2), unit(1, 0)])
    with pytest.raises(InputError, match="ordering 2 of shard 0 is stored twice"):
        store.log_probs(2)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"model": "n"}, "model"),
        ({"model_revision": "weights-2"}, "model revision"),
        ({"dataset": "e"}, "dataset"),
        ({"dataset_revision": "data-2"}, "dataset revision"),
        ({"template": "text/2"}, "template"),
        ({"seed": 2}, "seed"),
        ({"shards": 1}, "shards"),
        ({"example_tokens": (3, 1, 2, 4, 3)}, "example tokens"),
    ],
)
def test_a_store_of_something_else_is_refused_by_name_and_left_alone(store, change, name):
    before = {p.name: p.read_bytes() for p in store.directory.iterdir()}
    with pytest.raises(InputError, match=f"another {name} ") as caught:
        Store(store.directory, replace(HEADER, **change))
    assert "\n" not in str(caught.value)
    assert str(store.directory) in str(caught.value)
    assert {p.name: p.read_bytes() for p in store.directory.iterdir()} == before


def test_a_store_of_something_else_makes_way_on_request(store):
    other = Store(store.directory, replace(HEADER, seed=2), replace=True)
    assert other.parts() == []
    with pytest.raises(InputError, match="another seed"):
        Store(store.directory, HEADER)


def test_a_store_of_the_same_thing_stays_on_that_request(store):
    assert Store(store.directory, HEADER, replace=True).done() == store.done()


def test_a_store_of_another_schema_is_refused(store):
    path = store.directory / "store.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema": 0}))
    with pytest.raises(InputError, match="another schema"):
        Store(store.directory, HEADER)


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_part_is_set_aside_and_its_units_are_missing(store, how):
    first, second = store.parts()
    damage(first, how)
    assert store.done() == {(1, 1), (1, 2)}
    assert store.parts() == [second]
    assert first.with_suffix(".damaged").exists()
    expected = Store(store.directory, HEADER)
    expected.append(units(2)[:4])
    assert expected.parts() == [first, second]


@pytest.mark.parametrize("how", DAMAGE)
def test_damaged_numbers_are_never_returned(store, how):
    damage(store.parts()[0], how)
    with pytest.raises(InputError, match=r"part-.*damaged.*score again"):
        list(store.tokens())
    if how not in ("example", "position", "example dictionary"):  # which sums do not read
        with pytest.raises(InputError, match=r"part-.*damaged"):
            store.log_probs(2)


def test_a_part_of_another_store_is_refused(store, tmp_path):
    other = Store(tmp_path / "other", replace(HEADER, seed=2))
    part = other.append(units(2))
    (store.directory / "part-00000.00003-00001.00003.parquet").write_bytes(part.read_bytes())
    with pytest.raises(InputError, match="belongs to another store"):
        store.log_probs(2)
    with pytest.raises(InputError, match="belongs to another store"):
        list(store.tokens())
    assert len(store.done()) == 6  # set aside: what it holds does not count as scored


def test_the_same_units_are_the_same_bytes(tmp_path):
    parts = [Store(tmp_path / name, HEADER).append(units(2)) for name in ("a", "b")]
    assert parts[0].name == parts[1].name
    assert parts[0].read_bytes() == parts[1].read_bytes()


def test_a_full_disk_leaves_the_store_as_it_was(store, monkeypatch):
    before = {p.name: p.read_bytes() for p in store.directory.iterdir()}

    def full(descriptor: int) -> None:
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "fsync", full)
        with pytest.raises(InputError, match="no space left"):
            store.append([unit(0, 3), unit(1, 3)])
    assert {p.name: p.read_bytes() for p in store.directory.iterdir()} == before
    store.append([unit(0, 3), unit(1, 3)])
    assert store.log_probs(3).shape == (2, 4)
