"""A store that was summed: the same numbers, bit by bit, and a refusal of everything else."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contamination.errors import InputError
from contamination.files import write_json
from contamination.scoring.store import SUMS, Store, open_store
from contamination.scoring.store_sums import SummedStore, read_sums, sum_store
from fakes.made_up_store import HEADER, SUCCESSORS, unit, units


@pytest.fixture
def whole(tmp_path: Path) -> Store:
    """Return a store of whole orderings in two parts, with two permutations, scored in bfloat16."""
    store = Store(tmp_path / "whole", HEADER)
    items = units(2)
    store.append(items[:4])
    store.append(items[4:])
    write_json(store.directory / "run-1.json", {"precision": "bfloat16"})
    return store


@pytest.fixture
def pairs(tmp_path: Path) -> Store:
    store = Store(tmp_path / "pairs", SUCCESSORS)
    store.append([unit(index, SUCCESSORS) for index in SUCCESSORS.units(0)])
    return store


def summed(store: Store, permutations: int = 2) -> Store:
    directory = store.directory.with_name("summed")
    sum_store(store, directory, permutations=permutations)
    return open_store(directory)


def test_whole_orderings_have_the_same_sums_and_ties(whole: Store) -> None:
    found = summed(whole)
    assert isinstance(found, SummedStore)
    assert found.header == HEADER
    assert found.resolution(100) == whole.resolution(100) > 0.1
    for permutations in range(3):
        assert (found.log_probs(permutations) == whole.log_probs(permutations)).all()


def test_ties_are_made_when_the_sums_are_read_not_before(tmp_path: Path) -> None:
    """Orderings of a shard that bfloat16 cannot tell apart are ties, and float32 can."""
    store = Store(tmp_path / "whole", HEADER)
    items = units(2)
    nearly = [np.full_like(values, -2 - index[1] / 1000) for index, _, values in items]
    store.append([(*item[:2], values) for item, values in zip(items, nearly, strict=True)])
    record = store.directory / "run-1.json"
    write_json(record, {"precision": "bfloat16"})
    found = summed(store)
    assert (found.log_probs(2) == store.log_probs(2)).all()
    assert np.ptp(found.log_probs(2), axis=1).tolist() == [0, 0]
    write_json(found.directory / record.name, {"precision": "float32"})
    told_apart = open_store(found.directory).log_probs(2)
    assert told_apart.ravel().tolist() == [values.sum(dtype=np.float64) for values in nearly]


def test_whole_examples_have_the_same_sums_however_many_tokens_are_asked_for(
    tmp_path: Path,
) -> None:
    header = replace(SUCCESSORS, tokens_per_example=None)
    store = Store(tmp_path / "all", header)
    store.append([unit(index, header) for index in header.units(0)])
    found = summed(store)
    longest = max(header.example_tokens)
    for asked in (longest, longest + 3):
        np.testing.assert_array_equal(found.successors(0, asked), store.successors(0, asked))
    with pytest.raises(InputError, match="it has sums alone"):
        found.successors(0, longest - 1)


def test_a_prefix_of_the_permutations_can_be_shipped_and_more_is_refused(whole: Store) -> None:
    found = summed(whole, permutations=1)
    assert (found.log_probs(1) == whole.log_probs(1)).all()
    with pytest.raises(InputError, match="it has the sums of 1 permutations, not of 2; ask"):
        found.log_probs(2)


def test_what_needs_tokens_is_refused_in_one_line(whole: Store, pairs: Store) -> None:
    orderings, matrices = summed(whole), pairs.directory.with_name("matrices")
    sum_store(pairs, matrices, permutations=0)
    successors = open_store(matrices)
    for call in (
        lambda: orderings.shard_tokens(0, 2),
        lambda: successors.successor_tokens(0, 2),
        lambda: successors.successors(0, 1),
    ):
        with pytest.raises(InputError, match="it has sums alone, and this takes tokens"):
            call()
    with pytest.raises(InputError, match="holds orderings, not successors"):
        orderings.successors(0, 2)
    with pytest.raises(InputError, match="holds successors, not orderings"):
        successors.log_probs(0)
    with pytest.raises(InputError, match="the store keeps 2 of an example"):
        successors.successors(0, 3)


def test_a_summed_store_that_is_scored_again_reads_its_parts(whole: Store) -> None:
    found = summed(whole)
    again = Store(found.directory, HEADER)
    assert again.done() == set()
    again.append([unit(index, seed=7) for index in HEADER.units(2)])
    read = open_store(found.directory)
    assert type(read) is Store
    assert not np.array_equal(read.log_probs(2), found.log_probs(2))


def test_any_byte_of_the_sums_that_changes_is_found_or_changes_no_number(whole: Store) -> None:
    found = summed(whole)
    path, expected = found.directory / SUMS, found.log_probs(2)
    data = path.read_bytes()
    refused = 0
    for place in range(0, len(data), 7):
        damaged = bytearray(data)
        damaged[place] ^= 0x41
        path.write_bytes(damaged)
        try:
            assert (open_store(found.directory).log_probs(2) == expected).all(), place
        except InputError as error:
            assert "\n" not in str(error)
            refused += 1
    assert refused > len(data) // 7 / 2


@pytest.mark.parametrize("fault", ["row", "order", "value", "length", "column", "not a file"])
def test_sums_that_are_not_those_of_the_units_are_damaged(whole: Store, fault: str) -> None:
    path = summed(whole).directory / SUMS
    table = pq.read_table(path)
    if fault == "row":
        table = table.slice(1)
    elif fault == "order":
        table = table.take([1, 0, *range(2, len(table))])
    elif fault == "column":
        table = table.drop_columns(["ordering"])
    elif fault in ("value", "length"):
        values = table["sums"].to_pylist()
        values[3] = [float("nan")] if fault == "value" else [1.0, 2.0]
        table = table.set_column(2, "sums", pa.array(values, pa.list_(pa.float64())))
    pq.write_table(table, path)
    if fault == "not a file":
        path.write_bytes(b"")
    with pytest.raises(InputError, match=r"sums\.parquet: the sums are damaged; restore them"):
        read_sums(path, HEADER)
