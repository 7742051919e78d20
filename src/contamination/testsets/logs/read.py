"""Reading a log of whatever format: the file says which one it is."""

import codecs
import json
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from contamination.errors import InputError
from contamination.testsets.logs import helm, inspect_log, lighteval, lm_eval, table
from contamination.testsets.logs.record import Log, read_object
from contamination.testsets.records import FORMATS as TEXTS
from contamination.testsets.records import Record, bounded
from contamination.testsets.unpacked import damage_named

FORMATS = (
    "a log of lm-evaluation-harness (samples_*.jsonl), Inspect (.eval, .json), lighteval "
    "(details_*.parquet) or HELM (scenario_state.json), or a table with `id`, `answer` and `model`"
)
BATCH = 16  # rows of a Parquet file that are read at once


def read_log(path: Path) -> Log:
    """Return the records of a log, in its own order.

    Raises InputError that names file and record for what cannot be read, is of no known
    format, lacks an id or an answer, unpacks to too much, or was never ended.
    """
    if path.is_dir():
        raise InputError(f"{path}: a folder; give the logs in it")
    if path.suffix == ".eval":
        log = inspect_log.read_eval(path)
    elif path.suffix == ".json":
        log = _read_json(path)
    elif path.suffix == ".parquet":
        log = _of_rows(path, _parquet_rows(path))
    else:
        log = _of_rows(path, iter(_records_of(path)))
    if not log.records:
        raise InputError(f"{path}: no model was asked anything here; give another log")
    return log


def _records_of(path: Path) -> list[Record]:
    """Return the rows of a file of text; none is no error here."""
    if path.suffix not in TEXTS:
        raise InputError(f"{path}: of no format that is read; give {FORMATS}")
    if not path.is_file():
        raise InputError(f"{path}: no such file; give a log")
    return TEXTS[path.suffix](path)


def _read_json(path: Path) -> Log:
    """Read one object over many lines, a list of rows, or an object in each line."""
    if not path.is_file():
        raise InputError(f"{path}: no such file; give a log")
    if not _is_one_object(path):
        return _of_rows(path, iter(_records_of(path)))
    value = read_object(path)
    if helm.FIELD in value or path.name == "scenario_state.json":
        return helm.read(path, value)
    if "eval" in value:
        return inspect_log.read_json(path, value)
    raise InputError(f"{path}: of no format that is read; give {FORMATS}")


def _is_one_object(path: Path) -> bool:
    """Whether a file holds one object, which goes on after its first line or ends with it."""
    with path.open("rb") as handle:
        first = next((line for line in handle if line.strip()), b"").strip()
        first = first.removeprefix(codecs.BOM_UTF8)
        rest = next((line for line in handle if line.strip()), b"").strip()
    if not first.startswith(b"{"):
        return False
    if rest.startswith(b"{"):
        return not _is_json(first)
    return True


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _of_rows(path: Path, rows: Iterator[Record]) -> Log:
    """Read rows of the format that the fields of the first one tell."""
    first = next(rows, None)
    if first is None:
        raise InputError(f"{path}: no model was asked anything here; give another log")
    fields: Mapping[str, Any] = first[1]
    every = chain([first], rows)
    if lm_eval.FIELD in fields:
        return lm_eval.read(path, every)
    if lighteval.has(fields):
        return lighteval.read(path, every)
    lighteval.refuse_older(path, fields)
    if not set(fields) >= table.FIELDS:
        raise InputError(f"{path}, {first[0]}: of no format that is read; give {FORMATS}")
    return table.read(path, every)


def _parquet_rows(path: Path) -> Iterator[Record]:
    """Return the rows of a Parquet file, of which a few are in memory at a time.

    Raises InputError where it is damaged, or unpacks to more than a bound.
    """
    import pyarrow.parquet

    if not path.is_file():
        raise InputError(f"{path}: no such file; give a log")
    number = 0
    with (
        damage_named(path, "the Parquet file"),
        path.open("rb") as handle,  # its name may not be UTF-8
        pyarrow.parquet.ParquetFile(handle) as file,
    ):
        for batch in bounded(path, file.iter_batches(BATCH)):
            for row in batch.to_pylist():
                number += 1
                yield f"record {number}", row
