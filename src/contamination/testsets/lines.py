"""A test set whose examples are the lines of its file: every field, as the file writes it.

So the public script of Oren et al. reads a file, and so their models have read the planted sets:
the words per example in their Table 3 are those of whole lines (235 of MNLI, and 30 of its two
sentences and its label).
"""

import json
from dataclasses import replace
from pathlib import Path

from contamination.errors import InputError
from contamination.files import sha256_of
from contamination.testsets.example_set import ExampleSet, make_test_set
from contamination.testsets.records import Record, read_lines
from contamination.testsets.registry import FIRST, entries
from contamination.testsets.sources import locate_or_fetch, open_test_set, read_verified

TEMPLATE = "line/1"
NO_FIELD = "{{}}"  # a template that fits every record


def open_lines(what: str | Path, *, max_records: int | None = None) -> ExampleSet:
    """Open a test set as the lines of its file, in their order, with the ends of the lines.

    A file of text or of JSON, a line for each record, gives its own lines; where the registry has
    their checksum (`Entry.lines`), it is compared. Any other record is written as JSON. Raises
    InputError as `open_test_set`, and for another checksum.

    Parameters
    ----------
    what, max_records : as in `contamination.testsets.sources.open_test_set`.
    """
    if max_records is not None and max_records < 1:
        raise InputError(f"max_records is {max_records}: give at least 1")
    entry, path = entries().get(str(what)), Path(what)
    if entry is not None:
        path = locate_or_fetch(entry)
        records = read_verified(entry, path)
        lines = _lines(path, records, is_text=Path(entry.mirror).suffix == ".txt")
        if entry.lines not in (None, sha256_of(*lines)):
            raise InputError(
                f"{path}: its lines are not the registered ones of {entry.name}; fetch it again"
            )
        found = make_test_set(entry.name, records, NO_FIELD, str(path))
        max_records = max_records or FIRST
    else:
        found = open_test_set(what, template=NO_FIELD)
        placed = [("", record) for record in found.records]
        lines = _lines(path, placed, is_text=path.suffix == ".txt")
    lines, kept = lines[:max_records], found.records[:max_records]
    revision = sha256_of(TEMPLATE, *lines)
    return replace(found, examples=lines, template=TEMPLATE, revision=revision, records=kept)


def _lines(path: Path, records: list[Record], *, is_text: bool) -> tuple[str, ...]:
    """Lines of a file of these records; the records as JSON where it has no line for each."""
    own = read_lines(path) if path.suffix == ".jsonl" and path.is_file() else []
    if is_text:
        own = [str(record["text"]) for _, record in records]
    if len(own) != len(records):
        own = [json.dumps(record, default=str) for _, record in records]
    return tuple(f"{line}\n" for line in own)
