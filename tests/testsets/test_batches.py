"""A table of a few bytes may hold more rows or bytes than any memory: it is refused before."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from datasets import Dataset

from contamination.testsets import records
from contamination.testsets.logs.read import read_log
from contamination.testsets.records import read_records
from contamination.testsets.sources import open_test_set
from fakes.made_up_registry import refusal

ROWS = 3000
LOG = {"id": "a", "answer": "b", "model": "m"}


def as_parquet(folder: Path) -> Path:
    path = folder / "set.parquet"
    pa.parquet.write_table(pa.table({"text": ["a" * 100] * ROWS}), path)
    return path


def as_saved(folder: Path) -> Path:
    Dataset.from_dict({"text": ["a" * 100] * ROWS}).save_to_disk(folder / "saved")
    return folder / "saved"


def as_log(folder: Path) -> Path:
    path = folder / "answers.parquet"
    pa.parquet.write_table(pa.Table.from_pylist([LOG] * ROWS), path)
    return path


@pytest.mark.parametrize(("bound", "at"), [("MOST_ROWS", ROWS - 1), ("MOST_BYTES", 10_000)])
@pytest.mark.parametrize(
    ("write", "read"),
    [(as_parquet, read_records), (as_saved, open_test_set), (as_log, read_log)],
)
def test_a_table_is_read_up_to_a_bound(tmp_path, monkeypatch, write, read, bound, at) -> None:
    path = write(tmp_path)
    monkeypatch.setattr(records, bound, at)
    assert str(path) in refusal(read, path)


def test_rows_without_values_count(tmp_path, monkeypatch) -> None:
    """They take no bytes in the file, and an object each in memory."""
    path = tmp_path / "set.parquet"
    pa.parquet.write_table(pa.table({"text": pa.nulls(ROWS)}), path)
    monkeypatch.setattr(records, "MOST_ROWS", ROWS - 1)
    assert str(path) in refusal(read_records, path)


def test_a_column_that_stands_twice_is_not_taken_from_one_of_them(tmp_path) -> None:
    path = tmp_path / "set.parquet"
    columns = [["a"] * 2, ["b"] * 2]
    pa.parquet.write_table(pa.table(columns, names=["text", "text"]), path)
    for read in (read_records, read_log):
        assert f"{path}: column 'text' stands twice" in refusal(read, path)


def test_a_value_that_python_has_not_is_no_damage(tmp_path) -> None:
    path = tmp_path / "set.parquet"
    late = pa.array([2**60], pa.timestamp("us"))  # after the year 9999
    not_text = pa.array([b"caf\xe9"]).view(pa.string())
    for values in (late, not_text):
        pa.parquet.write_table(pa.table({"text": values}), path)
        assert f"{path}: a value cannot be read (" in refusal(read_records, path)


@pytest.mark.parametrize("group", [7, ROWS])
def test_rows_are_numbered_over_all_groups(tmp_path, group: int) -> None:
    path = tmp_path / "set.parquet"
    count = 2 * 1024 + 3
    table = pa.table({"text": [str(number) for number in range(count)]})
    pa.parquet.write_table(table, path, row_group_size=group)
    expected = [(f"record {number + 1}", {"text": str(number)}) for number in range(count)]
    assert read_records(path) == expected


def test_files_of_one_folder_have_the_same_columns(tmp_path) -> None:
    folder = tmp_path / "saved"
    Dataset.from_dict({"text": ["a"] * 4}).save_to_disk(folder, num_shards=2)
    other = pa.table({"answer": ["a"] * 2})
    path = folder / "data-00001-of-00002.arrow"
    with path.open("wb") as file, pa.ipc.new_stream(file, other.schema) as stream:
        stream.write_table(other)
    assert str(folder) in refusal(open_test_set, folder)
