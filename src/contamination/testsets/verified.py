"""Checks that a set of the registry arrived whole: number and checksum of its records."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from contamination.errors import InputError
from contamination.files import (
    read_json,
    sha256_of,
)
from contamination.testsets.records import (
    Record,
    check_ids,
    normalise,
    read_records,
    read_text,
)
from contamination.testsets.registry import (
    Entry,
)
from contamination.testsets.templates import render

ORIGIN = ".source.json"  # suffix of the note on a file that was fetched


def read_verified(entry: Entry, path: Path) -> list[Record]:
    """Read a set from a file; compare the number and the checksum of its records.

    Raises InputError if records are missing, too many or changed, if a record comes
    twice with its id, or if the file is malformed.
    """
    if entry.normalise == "wikitext" and path.suffix == ".txt":
        # As records of a .txt file they would have lost the blank lines.
        records = [("", {"text": read_text(path)})]
    else:
        records = read_records(path)
    records = normalise(records, entry.normalise, str(path))
    require_same(entry, records, path, str(path))
    return records


def require_same(entry: Entry, records: Sequence[Record], path: Path, where: str) -> None:
    """Refuse records other than the registered ones, or those fetched to `path`.

    `path` is the file of the mirror or the cache; messages call the source `where`.
    Raises InputError if records are missing, too many or changed.
    """
    check_ids(records, where)
    actual = checksum(entry, records, where)
    expected = expected_checksum(entry, path)
    wrong = None
    if entry.records not in (None, len(records)):
        wrong = f"{len(records):,} records, {entry.name} has {entry.records:,}"
    elif expected not in (None, actual):
        wrong = f"checksum {actual[:16]}..., {entry.name} has {expected[:16]}..."
    if wrong is not None:
        accept = ""
        if not entry.checksum:
            accept = f", or accept it: remove {path.with_suffix(ORIGIN)}"
        raise InputError(
            f"{where}: {wrong}; damaged or another version: fetch it again{accept}",
            parameter="again",
        )


def checksum(entry: Entry, records: Sequence[Record], where: str) -> str:
    """Return the SHA-256 over the examples of a set; without a template, over its records."""
    if entry.template is None:
        return sha256_of(*(json.dumps(record, sort_keys=True) for _, record in records))
    return sha256_of(*render(records, entry.template, where))


def expected_checksum(entry: Entry, path: Path) -> str | None:
    """Return the SHA-256 of the registry, else that of when `path` was fetched."""
    return entry.checksum or read_origin(path).get("checksum")


def read_origin(path: Path) -> dict[str, Any]:
    """Read what was recorded when a file was fetched (see `fetch`).

    The note is empty if it was not.
    """
    note = path.with_suffix(ORIGIN)
    if not note.is_file():
        return {}
    return read_json(note)
