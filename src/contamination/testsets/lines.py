"""A test set whose examples are the lines of its JSONL file: every field, as the file writes it.

So the public script of Oren et al. reads a file, and so their models have read the planted sets:
the words per example in their Table 3 are those of whole lines (235 of MNLI, and 30 of its two
sentences and its label).
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from contamination.errors import InputError
from contamination.files import sha256_of
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.registry import entries
from contamination.testsets.sources import open_test_set

TEMPLATE = "line/1"
NO_FIELD = "{{}}"  # a template that fits every record
# Ways to write JSON, one of them for each of the released files; the first is Python's own.
STYLES: tuple[dict[str, Any], ...] = (
    {},
    {"ensure_ascii": False},
    {"ensure_ascii": False, "separators": (",", ":")},
)


def open_lines(what: str | Path, *, max_records: int | None = None) -> ExampleSet:
    """Open a test set as the lines of its file, in their order, with the ends of the lines.

    A record becomes a line again; where the registry knows the file (`Entry.lines`), that is the
    line of the file, proved by its checksum. Any other record is written as Python does. Raises
    InputError as `open_test_set`, and where no way to write the records gives the known checksum.

    Parameters
    ----------
    what, max_records : as in `contamination.testsets.sources.open_test_set`.
    """
    if max_records is not None and max_records < 1:
        raise InputError(f"max_records is {max_records}: give at least 1")
    entry = entries().get(str(what))
    known = entry.lines if entry else None
    # All lines make the checksum, whatever number is wanted. A file of one's own needs no field.
    template, wanted = None if entry else NO_FIELD, None if known else max_records
    found = open_test_set(what, template=template, max_records=wanted)
    for style in STYLES:
        lines = tuple(f"{json.dumps(record, default=str, **style)}\n" for record in found.records)
        if known in (None, sha256_of(*lines)):
            break
    else:
        raise InputError(
            f"{what}: its records do not give the lines that the registry knows; fetch it again, "
            "or use a mirror of the registered version"
        )
    lines, records = lines[:max_records], found.records[:max_records]
    revision = sha256_of(TEMPLATE, *lines)
    return replace(found, examples=lines, template=TEMPLATE, revision=revision, records=records)
