import json
import os
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from contamination import files
from contamination.errors import InputError
from contamination.scoring.store import Store, open_store
from fakes.made_up_store import COLUMNS, HEADER, contents, unit, units


@pytest.fixture
def store(tmp_path) -> Store:
    """Return a store with two permutations of both shards, in two parts."""
    store = Store(tmp_path / "store", HEADER)
    items = units(2)
    store.append(items[:4])
    store.append(items[4:])
    return store


def test_an_opened_store_reads_the_same(store):
    again = open_store(store.directory)
    assert again.header == HEADER
    assert again.done() == store.done() == {(s, i) for s in range(2) for i in range(3)}
    assert (again.log_probs(2) == store.log_probs(2)).all()


def test_an_empty_store_holds_nothing(tmp_path):
    store = Store(tmp_path, HEADER)
    assert store.done() == set()
    assert list(store.tokens()) == []
    with pytest.raises(InputError, match="ordering 0 of shard 0"):
        store.log_probs(1)


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
        ({"kind": "successors"}, "kind"),
        ({"first": 7}, "first"),
    ],
)
def test_a_store_of_something_else_is_refused_by_name_and_left_alone(store, change, name):
    before = contents(store.directory)
    with pytest.raises(InputError, match=f"another {name} ") as caught:
        Store(store.directory, replace(HEADER, **change))
    assert "\n" not in str(caught.value)
    assert str(store.directory) in str(caught.value)
    assert contents(store.directory) == before


def test_a_store_of_something_else_makes_way_on_request(store):
    other = Store(store.directory, replace(HEADER, seed=2), replace=True)
    assert other.parts() == []
    with pytest.raises(InputError, match="another seed"):
        Store(store.directory, HEADER)


def test_a_store_of_the_same_thing_stays_on_that_request(store):
    assert Store(store.directory, HEADER, replace=True).done() == store.done()


def test_a_store_of_another_schema_is_refused(store):
    path = store.directory / "store.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema": 1}))
    with pytest.raises(InputError, match="another schema"):
        Store(store.directory, HEADER)
    with pytest.raises(InputError, match="of schema 1, and this version reads 2"):
        open_store(store.directory)


def test_no_store_cannot_be_opened(tmp_path):
    with pytest.raises(InputError, match=r"store.json: no such store; score it first"):
        open_store(tmp_path)
    assert list(tmp_path.iterdir()) == []


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


class TestSettingAside:
    @pytest.mark.parametrize(
        "how", ["cut off", "empty", "footer", *COLUMNS, "example dictionary", "position dictionary"]
    )
    def test_a_damaged_part_is_set_aside_and_its_units_are_missing(self, store, how):
        first, second = store.parts()
        before = first.read_bytes()
        damage(first, how)
        damaged = first.read_bytes()
        assert store.done() == {(1, 1), (1, 2)}
        assert store.parts() == [second]
        assert first.with_suffix(".damaged").read_bytes() == damaged
        store.append(units(2)[:4])
        assert first.read_bytes() == before
        assert store.done() == {(s, i) for s in range(2) for i in range(3)}

    def test_what_was_set_aside_before_stays(self, store):
        first = store.parts()[0]
        for content in (b"one", b"two", b"three"):
            first.write_bytes(content)
            store.done()
        names = [first.with_suffix(s) for s in (".damaged", ".2.damaged", ".3.damaged")]
        assert [path.read_bytes() for path in names] == [b"one", b"two", b"three"]

    def test_a_part_of_another_store_is_set_aside(self, store, tmp_path):
        part = Store(tmp_path / "other", replace(HEADER, seed=2)).append([unit((0, 3))])
        foreign = store.directory / part.name
        foreign.write_bytes(part.read_bytes())
        assert len(store.done()) == 6
        assert foreign not in store.parts()
        assert foreign.with_suffix(".damaged").exists()

    @pytest.mark.parametrize("name", ["part-00001.00001-00001.00003.parquet", "part-x.parquet"])
    def test_a_part_whose_name_does_not_tell_what_it_holds_is_set_aside(self, store, name):
        store.parts()[1].rename(store.directory / name)
        assert store.done() == {(0, 0), (0, 1), (0, 2), (1, 0)}
        assert len(store.parts()) == 1

    def test_an_undamaged_store_is_left_alone(self, store):
        before = contents(store.directory)
        store.done()
        assert contents(store.directory) == before

    def test_what_a_killed_run_left_is_removed_when_it_is_old(self, store):
        old, new = (store.directory / f".part-{name}.parquet" for name in ("old", "new"))
        for path in (old, new):
            path.write_bytes(b"half")
        os.utime(old, (0, 0))
        assert len(store.done()) == 6
        assert not old.exists()
        assert new.exists()  # another run may be writing it


def test_a_full_disk_leaves_the_store_as_it_was(store, monkeypatch):
    before = contents(store.directory)

    def full(descriptor: int) -> None:
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "fsync", full)
        with pytest.raises(InputError, match="no space left"):
            store.append([unit((0, 3)), unit((1, 3))])
    assert contents(store.directory) == before
    store.append([unit((0, 3))])
    store.append([unit((1, 3))])
    assert store.log_probs(3).shape == (2, 4)
