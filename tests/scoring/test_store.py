"""A store gives back what was put in, or says in one line that it cannot."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contamination.errors import InputError
from contamination.files import write_json
from contamination.scoring.store import Store, create_store, open_store, store_of, sum_store
from contamination.scoring.store_checks import check_same
from contamination.scoring.store_format import (
    Header,
    ScoredSequence,
    count_values,
    part_schema,
    read_part,
    write_part,
)
from contamination.scoring.stores import base
from fakes.made_up_registry import refusal
from fakes.made_up_store import HEADER, OTHERS, SUCCESSORS, contents, unit, units

ALL_PAIRS = replace(SUCCESSORS, tokens_per_example=None)


def test_a_number_that_is_not_finite_is_refused_before_anything_is_written(tmp_path):
    items = units(1)
    items[2][2][1] = -np.inf
    told = refusal(store_of(tmp_path, HEADER).append, items)
    assert told.startswith("m: ") and "ordering 0 of shard 1 of d is not finite" in told
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def store(tmp_path) -> Store:
    """Return a store with two permutations of both shards, in two parts."""
    store = create_store(tmp_path / "store", HEADER)
    items = units(2)
    store.append(items[:4])
    store.append(items[4:])
    return store


@pytest.fixture
def parts_read(monkeypatch) -> list[str]:
    """Return a list that fills with the names of the parts that are read."""
    read, names = base.read_part, []

    def recorded(path, header):
        names.append(path.name)
        return read(path, header)

    monkeypatch.setattr(base, "read_part", recorded)
    return names


def test_a_part_is_read_only_when_its_sequences_are_wanted(store, parts_read):
    sequences = store.sequences(permutations=2)
    read = []
    for _ in sequences:
        read.append(len(parts_read))
    assert read == [1, 1, 1, 1, 2, 2]


def test_of_one_shard_only_the_parts_that_hold_it_are_read(store, parts_read):
    store.shard_tokens(0, 2)
    assert parts_read == [store.parts()[0].name]


@pytest.mark.parametrize("change", OTHERS, ids=lambda change: next(iter(change)))
def test_a_store_of_something_else_is_refused_by_name_and_left_alone(store, change):
    (name,) = change
    before = contents(store.directory)
    told = refusal(create_store, store.directory, replace(HEADER, **change))
    assert f"another {name.replace('_', ' ')} " in told and str(store.directory) in told
    assert contents(store.directory) == before


def test_an_opened_store_reads_the_same_and_one_of_another_schema_is_refused(store):
    assert open_store(store.directory).header == HEADER
    assert (open_store(store.directory).log_probs(2) == store.log_probs(2)).all()
    path = store.directory / "store.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema": 1}))
    for opened in (open_store, lambda directory: create_store(directory, HEADER)):
        assert "of schema 1, and this version reads" in refusal(opened, store.directory)


# --- damage: told, set aside, and scored again to the same bytes ----------------------------------


def directory(path: Path) -> None:
    path.unlink()
    path.mkdir()
    store_of(path, HEADER).append(units(2)[:4])  # Arrow would read all of it as one table


def foreign(path: Path) -> None:
    store_of(path.parent, replace(HEADER, seed=2)).append(units(2)[:4])


def retyped(path: Path) -> None:
    """Write the same numbers in double precision, under the same key."""
    table = pq.read_table(path)
    doubles = part_schema(replace(HEADER, summed=True)).with_metadata(table.schema.metadata)
    pq.write_table(table.cast(doubles), path)


@pytest.mark.parametrize(
    "fault",
    [
        lambda path: path.write_bytes(path.read_bytes()[:100]),
        directory,
        foreign,
        retyped,
        # Readers go by the name.
        lambda path: path.rename(path.with_name("part-00000.00009-00000.00009.parquet")),
    ],
)
def test_a_part_that_is_damaged_or_foreign_is_told_set_aside_and_scored_again(store, fault):
    before = contents(store.directory)
    first, second = store.parts()
    fault(first)
    for _ in range(2):
        told = refusal(store.log_probs, 2)
        assert re.search("damaged|another store|not scored yet", told)
        assert store.done() == {(1, 1), (1, 2)}
        assert store.parts() == [second]
    repair(store.directory)
    assert contents(store.directory) == before
    first.write_bytes(b"once more")
    store.done()
    assert len(list(store.directory.glob("*.damaged"))) == 2  # nothing that was set aside is lost


def repair(directory: Path) -> np.ndarray:
    """Score again, as `contamination.scoring.score` does, and read the log-probabilities."""
    store = create_store(directory, HEADER)
    done = store.done()
    for half in (units(2)[:4], units(2)[4:]):
        if missing := [item for item in half if item[0] not in done]:
            store.append(missing)
    return store.log_probs(2)


@pytest.mark.parametrize(
    "text",
    [
        b"\xff\xfe\x00",
        b"[" * 100_000,
        *(
            json.dumps(HEADER.as_json() | change).encode()
            for change in ({"another": 1}, {"seed": True}, {"shards": 3}, {"example_tokens": [2.0]})
        ),
    ],
)
def test_a_damaged_header_is_told_and_no_part_is_lost_without_it(store, text):
    before = contents(store.directory)
    path = store.directory / "store.json"
    path.write_bytes(text)
    for opened in (open_store, lambda directory: create_store(directory, HEADER, replace=True)):
        assert "store.json: the header is damaged; remove it" in refusal(opened, store.directory)
    path.unlink()
    assert len(create_store(store.directory, HEADER).done()) == 6
    assert contents(store.directory) == before


def flips(path: Path, step: int = 1) -> Iterator[int]:
    """Change every byte of a file, or every so many-th, one at a time, and yield where."""
    data = path.read_bytes()
    rng = np.random.default_rng(0)
    for where in range(0, len(data), step):
        other = bytes([data[where] ^ rng.integers(1, 256)])
        path.write_bytes(data[:where] + other + data[where + 1 :])
        yield where


@pytest.mark.parametrize(("kind", "step"), [("tokens", 3), ("sums", 7)])
def test_any_byte_of_a_part_that_changes_is_found_and_no_number_changes(store, kind, step):
    expected = store.log_probs(2)
    told = 0
    read = store if kind == "tokens" else summed(store)
    for where in flips(read.parts()[0], step):
        try:  # a byte that means nothing, such as the name of the program that wrote it
            np.testing.assert_array_equal(read.log_probs(2), expected)
        except InputError as error:
            assert str(read.directory) in str(error)
            assert "\n" not in str(error)
            told += 1
        count_values(read.parts()[0])  # which plans ask, and which tells nothing
        if kind == "tokens" and where % 50 == 0:
            np.testing.assert_array_equal(repair(store.directory), expected)
    assert told > 0.5 * where / step


def test_any_byte_of_a_header_that_changes_is_told(store):
    path = store.directory / "store.json"
    for _ in flips(path):
        with suppress(InputError):  # where a blank becomes another one
            if open_store(store.directory).header == HEADER:
                continue
        told = refusal(lambda: open_store(store.directory).log_probs(2))
        assert re.search("damaged|another store|of schema", told)
        told = refusal(create_store, store.directory, HEADER)
        assert re.search("damaged|this store is of another", told)


SUMS = replace(HEADER, summed=True)
SUMMED_PAIRS = replace(SUCCESSORS, summed=True)


def sums_of(header: Header) -> list[ScoredSequence]:
    store = store_of(Path(), header)
    none = np.empty(0, dtype=np.int32)
    places = store.places(permutations=1)
    return [ScoredSequence(place, none, np.zeros(store.sums_of(place))) for place in places]


def is_same(row: ScoredSequence, other: ScoredSequence) -> bool:
    if row.place != other.place or not np.array_equal(row.examples, other.examples):
        return False
    return np.array_equal(row.nats, other.nats)


@pytest.mark.parametrize(
    ("header", "change"),
    [
        (HEADER, lambda row: row._replace(nats=row.nats[:-1])),
        (HEADER, lambda row: row._replace(place=(0, 0))),  # the same unit more than once
        (HEADER, lambda row: row._replace(nats=row.nats * np.float32("nan"))),
        (HEADER, lambda row: row._replace(examples=row.examples + 9)),
        (HEADER, lambda row: row._replace(place=(row.place[0] + 1, row.place[1]))),
        (HEADER, lambda row: row._replace(place=(row.place[0], row.place[1] - 1))),
        (HEADER, lambda row: row._replace(place=(row.place[0], 1 - row.place[1]))),  # canonical?
        # One example twice, and its length is that of the missing one.
        (
            replace(HEADER, example_tokens=(2,) * 5),
            lambda row: row._replace(examples=row.examples[[0, *range(len(row.examples) - 1)]]),
        ),
        (SUCCESSORS, lambda row: row._replace(examples=row.examples[::-1])),
        (SUCCESSORS, lambda row: row._replace(place=(row.place[0], row.place[1] + 1))),
        (SUMS, lambda row: row._replace(nats=row.nats[[0, 0]])),
        (SUMS, lambda row: row._replace(nats=row.nats * np.nan)),
        (SUMS, lambda row: row._replace(examples=np.array([0], dtype=np.int32))),
        (SUMMED_PAIRS, lambda row: row._replace(nats=row.nats[:0])),
    ],
)
def test_rows_that_are_not_whole_units_are_damage(tmp_path, header, change):
    rows = (
        sums_of(header) if header.summed else [ScoredSequence(*item) for item in units(1, header)]
    )
    store = store_of(tmp_path, header)
    part = store.append(rows)
    assert len(store.read_part(part)) == len(rows)  # or the refusal would prove nothing
    for number, row in enumerate(rows):  # one at a time: no other row gives it away
        changed = [*rows[:number], change(row), *rows[number + 1 :]]
        if is_same(changed[number], row):
            continue
        write_part(tmp_path, header, changed).replace(part)
        assert "the part is damaged" in refusal(store.read_part, part), row.place


# --- what tests read ------------------------------------------------------------------------------


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
    store = create_store(directory, header)
    for start, stop in pairwise([0, *cuts, len(items)]):
        store.append(items[start:stop])
    return store, permutations, items


many_stores = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])


def test_of_two_copies_the_first_by_name_counts(store):
    """Two runs at once can score the same ordering into parts of different names."""
    before = store.log_probs(2)
    later = [unit((0, 2), seed=1), unit((1, 0), seed=1)]
    assert store.append(later).name > store.parts()[0].name
    np.testing.assert_array_equal(store.log_probs(2), before)
    earlier = [unit((0, 0), seed=1), unit((0, 1), seed=1)]
    assert store.append(earlier).name < "part-00000.00000-00001.00000.parquet"
    after = store.log_probs(2)
    assert after[0, :2] == pytest.approx([values.sum() for _, _, values in earlier])
    np.testing.assert_array_equal(after[0, 2], before[0, 2])
    np.testing.assert_array_equal(after[1], before[1])
    tokens = store.shard_tokens(0, 2)
    np.testing.assert_allclose(tokens.logprobs.sum(axis=1), after[0], rtol=1e-5)


@many_stores
@given(data=st.data())
def test_sums_and_tokens_are_those_of_every_ordering_however_units_are_cut_into_parts(
    tmp_path_factory, data
):
    drawn = data.draw(filled("orderings", tmp_path_factory.mktemp("store")))
    store, permutations, items = drawn
    expected: dict = {}  # (shard, ordering) -> (example, position) -> log-prob
    for index, examples, values in items:
        places = []
        for example in examples.tolist():
            places += [(example, position) for position in range(store.header.stored[example])]
        expected[index] = dict(zip(places, values.tolist(), strict=True))
    first = {index: examples[0] for index, examples, _ in items}
    sums = [values.astype(np.float64).sum() for _, _, values in items]
    assert sum(map(count_values, store.parts())) == sum(len(values) for _, _, values in items)
    found = store.log_probs(permutations)
    np.testing.assert_allclose(found.ravel(), sums, rtol=1e-14)
    assert (store.log_probs(0) == found[:, :1]).all()
    for shard in range(store.header.shards):
        found = store.shard_tokens(shard, permutations)
        places = sorted(expected[shard, 0])
        np.testing.assert_allclose(found.sums(), store.log_probs(permutations)[shard], rtol=1e-14)
        assert found.position.tolist() == [position for _, position in places]
        assert [a.dtype for a in found[:3]] == [np.float32, bool, np.int32]
        for index in range(permutations + 1):
            values = [expected[shard, index][place] for place in places]
            np.testing.assert_array_equal(found.logprobs[index], values)
            leading = [example == first[shard, index] for example, _ in places]
            np.testing.assert_array_equal(found.leading[index], leading)


@many_stores
@given(data=st.data())
def test_successors_are_sums_over_the_first_tokens(tmp_path_factory, data):
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
        tokens = store.successor_tokens(shard, first)
        np.testing.assert_allclose(found, expected[..., 1], rtol=1e-14)
        assert tokens.shape == (*found.shape, first)
        np.testing.assert_allclose(tokens[..., 0], expected[..., 0])


def test_shards_in_turn_open_each_part_once_and_read_the_same(tmp_path, monkeypatch):
    store = create_store(tmp_path / "store", SUCCESSORS)
    items = units(0, SUCCESSORS)
    store.append(items[:4])  # of both shards
    store.append(items[4:])
    apart = [store.successors(shard, 2) for shard in range(2)]
    opened = []

    def read(path, header):
        opened.append(path.name)
        return read_part(path, header)

    monkeypatch.setattr(base, "read_part", read)
    with store.shards_in_turn():
        in_turn = [store.successors(shard, 2) for shard in range(2)]
    assert opened == [path.name for path in store.parts()]
    for one, other in zip(in_turn, apart, strict=True):
        np.testing.assert_array_equal(one, other)
    store.successors(1, 2)
    assert len(opened) == 4  # the part that was kept is not kept any longer


def test_what_a_store_has_not_is_named(store, tmp_path):
    other = create_store(tmp_path / "successors", SUCCESSORS)
    other.append(units(0, SUCCESSORS)[:4])
    assert "predecessor 1 of shard 1 is not scored yet" in refusal(other.successors, 1, 1)
    other.append(units(0, SUCCESSORS)[4:])
    sums = summed(store)
    pairs = summed(other, 0, "pairs")
    for named, read, *arguments in (
        ("ordering 3 of shard 0", store.log_probs, 3),
        *(("holds orderings, not successors", each.successors, 0, 1) for each in (store, sums)),
        *(("holds successors, not orderings", each.log_probs, 0) for each in (other, pairs)),
        *(("the store keeps 2", each.successors, 0, 3) for each in (other, pairs)),
        ("tokens_per_example is 0", other.successors, 0, 0),
        ("it has sums alone, and this takes tokens", sums.shard_tokens, 0, 2),
        ("it has sums alone, and this takes tokens", pairs.successor_tokens, 0, 2),
        ("it has sums alone, and this takes tokens", pairs.successors, 0, 1),
    ):
        assert named in refusal(read, *arguments)


@pytest.mark.parametrize(
    ("precisions", "nats"),
    [
        ((), 0.03),  # no record says that they are finer
        (("float32",), 1e-4),
        (("float32", "bfloat16"), 0.03),
        (("unknown",), 0.03),  # a server's
    ],
)
def test_the_resolution_is_that_of_the_coarsest_run(store, precisions, nats) -> None:
    """The difference that an engine cannot resolve, by the precision that its runs report."""
    for number, precision in enumerate(precisions):
        (store.directory / f"run-{number}.json").write_text(json.dumps({"precision": precision}))
    assert store.resolution(1) == nats
    assert store.resolution(9) == pytest.approx(3 * nats)


def test_without_a_damaged_record_numbers_do_not_count_as_finer(store) -> None:
    write_json(store.directory / "run-1.json", {"precision": "float32"})
    damaged = store.directory / "run-2.json"
    for text in ("", "[]", "{"):
        damaged.write_text(text)
        assert "run-2.json: the record of a run cannot be read" in refusal(store.resolution, 1)
    for record in store.records():
        record.unlink()
    assert store.resolution(1) == 0.03


# --- a store that was summed: the same numbers, bit by bit, and a refusal of everything else ------


def summed(store: Store, permutations: int = 2, name: str = "summed") -> Store:
    directory = store.directory.with_name(name)
    sum_store(store, directory, permutations=permutations)
    return open_store(directory)


def test_ties_are_made_when_the_sums_are_read_not_before(tmp_path: Path) -> None:
    """Orderings of a shard that bfloat16 cannot tell apart are ties, and float32 can."""
    store = create_store(tmp_path / "whole", HEADER)
    items = units(2)
    nearly = [np.full_like(values, -2 - index[1] / 1000) for index, _, values in items]
    store.append([(*item[:2], values) for item, values in zip(items, nearly, strict=True)])
    record = store.directory / "run-1.json"
    write_json(record, {"precision": "bfloat16"})
    found = summed(store)
    assert found.header == replace(HEADER, summed=True)
    assert found.resolution(100) == store.resolution(100) > 0.1
    for permutations in range(3):
        assert (found.log_probs(permutations) == store.log_probs(permutations)).all()
    assert np.ptp(found.log_probs(2), axis=1).tolist() == [0, 0]
    write_json(found.directory / record.name, {"precision": "float32"})
    told_apart = open_store(found.directory).log_probs(2)
    assert told_apart.ravel().tolist() == [values.sum(dtype=np.float64) for values in nearly]


def test_variants_that_the_precision_cannot_tell_apart_are_ties(tmp_path: Path) -> None:
    """Each record as a whole: one of its variants that differs keeps all."""
    header = replace(HEADER, kind="alternatives", example_tokens=(99, 98, 97, 2, 1, 3))
    store = create_store(tmp_path, header)
    items = units(0, header)
    alike = np.concatenate([np.full(n, -2.1 / n, dtype=np.float32) for n in (99, 98, 97)])
    store.append([(*items[0][:2], alike), items[1]])
    sums = []
    for (_, examples, _), values in zip(items, (alike, items[1][2]), strict=True):
        ends = np.cumsum(header.stored[examples])[:-1]
        sums.append([part.sum(dtype=np.float64) for part in np.split(values, ends)])
    write_json(store.directory / "run-1.json", {"precision": "float32"})
    tied, apart = open_store(tmp_path).variants()
    assert tied.tolist() == [np.mean(sums[0])] * 3
    np.testing.assert_allclose(apart, sums[1], rtol=1e-14)


def test_whole_examples_have_the_same_sums_however_many_tokens_are_asked_for(
    tmp_path: Path,
) -> None:
    store = create_store(tmp_path / "all", ALL_PAIRS)
    store.append(units(0, ALL_PAIRS))
    found = summed(store)
    longest = max(ALL_PAIRS.example_tokens)
    for asked in (longest, longest + 3):
        np.testing.assert_array_equal(found.successors(0, asked), store.successors(0, asked))
    assert "it has sums alone" in refusal(found.successors, 0, longest - 1)


BEFORE = {
    "model_revision": "weights-1",
    "dataset_revision": "records-1",
    "template": "text/1",
    "seed": 0,
    "example_tokens": [3, 5, 4],
}


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"seed": 1}, "seed"),
        ({"dataset_revision": "records-2", "template": "{a}"}, "template"),
        (
            {"dataset_revision": "records-2", "example_tokens": [3, 5]},
            "number of records (3, now 2",
        ),
        (
            {"dataset_revision": "records-2", "example_tokens": [3, 5, 4, 6]},
            "number of records (3, now 4",
        ),
    ],
)
def test_another_choice_of_whoever_tests_is_one_more_test(changed, named):
    with pytest.raises(InputError) as caught:
        check_same(Path("store.json"), BEFORE, BEFORE | changed)
    assert f"of another {named}" in str(caught.value)
    assert "one more test" in str(caught.value)


@pytest.mark.parametrize(
    "changed",
    [
        {"model_revision": "weights-2"},
        {"model_revision": "weights-2", "example_tokens": [3, 5]},
        {"dataset_revision": "records-2"},
        {"dataset_revision": "records-2", "example_tokens": [9, 5]},
    ],
)
def test_another_model_or_set_needs_a_directory_of_its_own(changed):
    with pytest.raises(InputError, match="name another directory"):
        check_same(Path("store.json"), BEFORE, BEFORE | changed)
