import errno
import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contamination.errors import InputError
from contamination.scoring import store_format
from contamination.scoring.store import Store, open_store
from contamination.scoring.store_format import (
    SCHEMA_VERSION,
    count_rows,
    read_units,
    write_part,
)
from fakes.made_up_store import COLUMNS, HEADER, OTHERS, SUCCESSORS, contents, rows, unit, units


@pytest.fixture
def store(tmp_path) -> Store:
    """Return a store with two permutations of both shards, in two parts."""
    store = Store(tmp_path / "store", HEADER)
    items = units(2)
    store.append(items[:4])
    store.append(items[4:])
    return store


def test_an_opened_store_reads_the_same(store):
    before, again = contents(store.directory), open_store(store.directory)
    assert again.header == HEADER
    assert again.done() == store.done() == {(s, i) for s in range(2) for i in range(3)}
    assert (again.log_probs(2) == store.log_probs(2)).all()
    assert contents(store.directory) == before


@pytest.mark.parametrize("change", OTHERS, ids=lambda change: next(iter(change)))
def test_a_store_of_something_else_is_refused_by_name_and_left_alone(store, change):
    (name,) = change
    before = contents(store.directory)
    with pytest.raises(InputError, match=f"another {name.replace('_', ' ')} ") as caught:
        Store(store.directory, replace(HEADER, **change))
    assert "\n" not in str(caught.value)
    assert str(store.directory) in str(caught.value)
    assert contents(store.directory) == before


def test_only_a_store_of_something_else_makes_way_on_request(store):
    assert Store(store.directory, HEADER, replace=True).done() == store.done() != set()
    other = Store(store.directory, replace(HEADER, seed=2), replace=True)
    assert other.parts() == []
    with pytest.raises(InputError, match="another seed"):
        Store(store.directory, HEADER)


def test_a_store_of_another_schema_is_refused(store):
    path = store.directory / "store.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema": 1}))
    with pytest.raises(InputError, match="another schema"):
        Store(store.directory, HEADER)
    with pytest.raises(InputError, match="of schema 1, and this version reads 4"):
        open_store(store.directory)


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
    @pytest.mark.parametrize("how", ["cut off", "empty", "footer", "logprob", "example dictionary"])
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

    def test_what_a_killed_run_left_is_removed_when_it_is_old(self, store):
        names = (f".00000000-1-0000000{i}.partial.parquet" for i in range(2))  # another machine's
        old, new = (store.directory / name for name in names)
        for path in (old, new):
            path.write_bytes(b"half")
        os.utime(old, (0, 0))
        assert len(store.done()) == 6
        assert not old.exists()
        assert new.exists()  # another run may be writing it

    @pytest.mark.parametrize("kind", ["full directory", "loop", "pipe"])
    @pytest.mark.parametrize("name", ["part", "store.json"])
    def test_what_is_no_file_is_set_aside(self, store, kind, name):
        before = contents(store.directory)
        path = store.parts()[0] if name == "part" else store.directory / name
        put(kind, path)
        with pytest.raises(InputError, match=r"damaged; score again|no such store; score it"):
            open_store(store.directory).log_probs(2)
        repair(store.directory)
        aside = path.with_suffix(".damaged")
        assert os.path.lexists(aside)
        aside.rename(store.directory.parent / "aside")
        assert contents(store.directory) == before

    def test_what_cannot_be_set_aside_is_told(self, store, monkeypatch):
        def forbidden(*_) -> None:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

        store.parts()[0].write_bytes(b"half")
        monkeypatch.setattr(Path, "rename", forbidden)
        with pytest.raises(InputError, match=r"part-.*cannot be set aside \(Permission denied\)"):
            store.done()


def put(kind: str, path: Path) -> None:
    """Put something that is no file in the place of a file."""
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind in ("link", "loop"):
        path.symlink_to("nowhere" if kind == "link" else path.name)
    else:
        path.mkdir()
        if kind == "full directory":  # which Arrow would read as one table
            write_part(path, HEADER, units(2)[:4])


def repair(directory: Path) -> np.ndarray:
    """Score again, as `contamination.scoring.score` does, and read the log-probabilities."""
    store = Store(directory, HEADER)
    done = store.done()
    for half in (units(2)[:4], units(2)[4:]):
        if missing := [item for item in half if item[0] not in done]:
            store.append(missing)
    return store.log_probs(2)


class TestHeader:
    """What a power cut, or another program, leaves of `store.json`."""

    @pytest.mark.parametrize(
        "data",
        [
            b"\xff\xfe\x00",
            b'{"schema": %d}' % SCHEMA_VERSION,
            b"[" * 100_000,
            json.dumps(HEADER.as_json() | {"another": 1}).encode(),
            *(
                json.dumps(HEADER.as_json() | change).encode()
                for change in (
                    {"seed": True},
                    {"shards": 3},
                    {"example_tokens": [3, 1, 2, 4, 2.0]},
                    {"tokens_per_example": 0},
                )
            ),
        ],
        ids=lambda data: repr(data)[-40:],
    )
    def test_a_damaged_one_is_set_aside_and_written_again(self, store, data):
        before, path = contents(store.directory), store.directory / "store.json"
        for again in range(2):  # also where the directory belongs to one run
            path.write_bytes(data)
            with pytest.raises(InputError, match=r"store.json: the header is damaged") as caught:
                open_store(store.directory)
            assert "\n" not in str(caught.value)
            assert len(Store(store.directory, HEADER, replace=bool(again)).done()) == 6
        aside = {f"store{n}.damaged": data for n in ("", ".2")}
        assert contents(store.directory) == before | aside


def flips(path: Path) -> Iterator[int]:
    """Change every byte of a file, one at a time, and yield where."""
    data, rng = path.read_bytes(), np.random.default_rng(0)
    for where in range(len(data)):
        other = bytes([data[where] ^ rng.integers(1, 256)])
        path.write_bytes(data[:where] + other + data[where + 1 :])
        yield where


def test_any_byte_of_a_part_that_changes_is_found_and_no_number_changes(store):
    first, expected, told = store.parts()[0], store.log_probs(2), 0
    for where in flips(first):
        try:
            found = list(read_units(first, HEADER))
        except InputError as error:
            assert str(first) in str(error)
            assert "\n" not in str(error)
            told += 1
        else:  # a byte that means nothing, such as the name of the program that wrote it
            for rows, (index, _, values) in zip(found, units(2)[:4], strict=True):
                assert rows.unit == index
                np.testing.assert_array_equal(rows.logprob, values)
        count_rows(first)  # which plans ask, and which tells nothing
        if where % 50 == 0:
            np.testing.assert_array_equal(repair(store.directory), expected)
    assert told > 0.5 * where


def test_any_byte_of_a_header_that_changes_is_repaired_or_told(store):
    """Repaired where it is no header any more; refused where it is that of something else."""
    path, expected, seen = store.directory / "store.json", store.log_probs(2), Counter()
    for where in flips(path):
        with pytest.raises(InputError, match=r"damaged|another store|of schema") as caught:
            open_store(store.directory).log_probs(2)
        assert "\n" not in str(caught.value)
        try:
            Store(store.directory, HEADER)
            seen["repaired"] += 1
            if where % 10 == 0:
                np.testing.assert_array_equal(repair(store.directory), expected)
        except InputError as error:
            assert "this store was scored with another" in str(error)
            seen["refused"] += 1
    assert seen["repaired"] > 200
    assert seen["refused"] > 5


@pytest.mark.parametrize("where", ["/dev/null", "file/store", "x" * 300])
def test_a_place_where_no_store_can_be_is_told_in_one_line(tmp_path, where):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be written") as caught:
        Store(tmp_path / where, HEADER)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="no directory"):
        open_store(tmp_path / where)


@pytest.fixture
def successors(tmp_path) -> Store:
    store = Store(tmp_path / "successors", SUCCESSORS)
    store.append(units(0, SUCCESSORS))
    return store


@st.composite
def filled(draw, kind: str, directory):
    """Return (store, permutations, its units), cut anywhere into parts with groups of any size."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=2, max_size=9))
    header = replace(
        HEADER,
        kind=kind,
        shards=draw(st.integers(1, len(sizes) // 2)),
        example_tokens=tuple(sizes),
        tokens_per_example=draw(st.none() | st.integers(1, 6)),
    )
    permutations = draw(st.integers(0, 4))
    items = units(permutations, header)
    cuts = sorted(draw(st.sets(st.integers(1, len(items) - 1)))) if len(items) > 1 else []
    store = Store(directory, header)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_format, "ROW_GROUP", draw(st.sampled_from([1, 7, 1 << 16])))
        for start, stop in pairwise([0, *cuts, len(items)]):
            store.append(items[start:stop])
    return store, permutations, items


many_stores = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])


class TestLogProbs:
    @many_stores
    @given(data=st.data())
    def test_they_are_the_sums_however_units_are_cut_into_parts(self, tmp_path_factory, data):
        drawn = data.draw(filled("orderings", tmp_path_factory.mktemp("store")))
        store, permutations, items = drawn
        expected = np.zeros((store.header.shards, permutations + 1))
        for index, _, values in items:
            expected[index] = values.astype(np.float64).sum()
        for m in range(permutations + 1):
            found = store.log_probs(m)
            assert found.dtype == np.float64
            np.testing.assert_allclose(found, expected[:, : m + 1], rtol=1e-14)

    def test_a_sum_keeps_what_float32_would_lose(self, tmp_path):
        """16,777,217 = 2^24 + 1 is the first whole number that float32 does not have."""
        header = replace(HEADER, shards=1, example_tokens=(2, 1))
        store = Store(tmp_path, header)
        values = np.array([-(2.0**24), -0.5, -0.5], dtype=np.float32)
        store.append([((0, i), np.array([0, 1], dtype=np.int32), values) for i in range(2)])
        assert store.log_probs(1).tolist() == [[-(2.0**24) - 1] * 2]

    def test_of_two_copies_the_first_by_name_counts(self, store):
        """Two runs at once can score the same ordering into parts of different names."""
        before = store.log_probs(2)
        later = [unit((0, 2), seed=1), unit((1, 0), seed=1)]
        assert store.append(later).name > store.parts()[0].name
        np.testing.assert_array_equal(store.log_probs(2), before)
        earlier = [unit((0, 0), seed=1), unit((0, 1), seed=1)]
        assert store.append(earlier).name < "part-00000.00000-00001.00000.parquet"
        after = store.log_probs(2)
        assert after[0, 0] == pytest.approx(earlier[0][2].sum())
        assert after[0, 1] == pytest.approx(earlier[1][2].sum())
        np.testing.assert_array_equal(after[0, 2], before[0, 2])
        np.testing.assert_array_equal(after[1], before[1])
        tokens = store.shard_tokens(0, 2)
        np.testing.assert_allclose(tokens.logprobs.sum(axis=1), after[0], rtol=1e-5)


class TestShardTokens:
    @many_stores
    @given(data=st.data())
    def test_a_column_is_the_same_token_in_every_ordering(self, tmp_path_factory, data):
        drawn = data.draw(filled("orderings", tmp_path_factory.mktemp("store")))
        store, permutations, items = drawn
        expected = defaultdict(dict)  # (shard, ordering) -> (example, position) -> log-prob
        for row in rows(items, store.header):
            shard, index, example, position, value = row.values()
            expected[shard, index][example, position] = value
        first = {index: examples[0] for index, examples, _ in items}
        for shard in range(store.header.shards):
            found = store.shard_tokens(shard, permutations)
            places = list(zip(found.example.tolist(), found.position.tolist(), strict=True))
            assert places == sorted(expected[shard, 0])
            assert [a.dtype for a in found[:4]] == [np.float32, bool, np.int32, np.int32]
            for index in range(permutations + 1):
                values = [expected[shard, index][place] for place in places]
                np.testing.assert_array_equal(found.logprobs[index], values)
                leading = [example == first[shard, index] for example, _ in places]
                np.testing.assert_array_equal(found.leading[index], leading)


class TestSuccessors:
    @many_stores
    @given(data=st.data())
    def test_they_are_sums_over_the_first_tokens(self, tmp_path_factory, data):
        drawn = data.draw(filled("successors", tmp_path_factory.mktemp("store")))
        store, most, items = drawn
        header = store.header
        first = min(1 + most, header.tokens_per_example or 6)  # any number from 1 to 5
        for shard, (start, stop) in enumerate(header.bounds):
            expected = np.full((stop - start, stop - start, 2), np.nan)  # of the first, of all
            for (of, a), examples, values in items:
                ends = np.cumsum(header.stored[examples])
                if of == shard:
                    for b, tokens in zip(examples, np.split(values, ends[:-1]), strict=True):
                        exact = tokens.astype(np.float64)
                        expected[a, b - start] = exact[0], exact[:first].sum()
            found = store.successors(shard, first)
            assert found.dtype == np.float64
            np.testing.assert_allclose(found, expected[..., 1], rtol=1e-14)
            tokens = store.successor_tokens(shard, first)
            assert tokens.shape == (*found.shape, first)
            np.testing.assert_allclose(tokens[..., 0], expected[..., 0])


# What is allocated, not what the process keeps: how long freed blocks stay is up to the allocator.
PEAK = """
import sys, tracemalloc
import pyarrow
from contamination.scoring.store import open_store
tracemalloc.start()
open_store(sys.argv[1]).log_probs(int(sys.argv[2]))
print(tracemalloc.get_traced_memory()[1] + pyarrow.default_memory_pool().max_memory())
"""


def test_memory_does_not_grow_with_the_permutations(tmp_path):
    """Four parts of a million tokens each, of which a process reads two or all: 20 MB apiece."""
    header = replace(HEADER, shards=1, example_tokens=(125,) * 40)
    store = Store(tmp_path, header)
    for start in range(0, 800, 200):
        store.append(
            ((0, i), header.examples((0, i)), np.full(5000, -1, dtype=np.float32))
            for i in range(start, start + 200)
        )

    def peak(permutations: int) -> int:
        command = [sys.executable, "-c", PEAK, str(tmp_path), str(permutations)]
        return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    assert 20e6 < peak(799) < peak(399) + 5e6


@pytest.mark.parametrize(
    ("read", "named"),
    [
        (lambda one, _: one.log_probs(3), "ordering 3 of shard 0"),
        (lambda one, _: one.successors(0, 1), "holds orderings, not successors"),
        (lambda _, other: other.log_probs(0), "holds successors, not orderings"),
        (lambda _, other: other.successors(0, 0), "tokens_per_example is 0"),
        (lambda _, other: other.successors(0, 3), "the store keeps 2"),
        (lambda _, other: other.successors(1, 1), "predecessor 1 of shard 1 is not scored yet"),
    ],
)
def test_what_a_store_has_not_is_named(store, tmp_path, read, named):
    other = Store(tmp_path / "successors", SUCCESSORS)
    other.append(units(0, SUCCESSORS)[:4])
    with pytest.raises(InputError, match=named):
        read(store, other)


class TestResolution:
    """What the engine cannot tell apart, by the precision that its runs report."""

    @pytest.mark.parametrize(
        ("precisions", "nats"),
        [
            ((), 1e-4),
            (("float32", "bfloat16"), 0.03),
            (("unknown",), 0.03),  # a server's
        ],
    )
    def test_it_is_that_of_the_coarsest_run(self, store, precisions, nats) -> None:
        for number, precision in enumerate(precisions):
            record = json.dumps({"precision": precision})
            (store.directory / f"run-{number}.json").write_text(record)
        assert store.resolution(1) == nats
        assert store.resolution(9) == pytest.approx(3 * nats)


@pytest.mark.parametrize("taken", ["directory", "link"])
def test_nothing_that_was_set_aside_is_lost(store, taken):
    first = store.parts()[0]
    put(taken, first.with_suffix(".damaged"))
    first.write_bytes(b"two")
    store.done()
    assert first.with_suffix(".2.damaged").read_bytes() == b"two"
