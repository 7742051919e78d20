"""Dated pages from files: what a set like WikiMIA is built from.

Two forms, chosen by what the path is:

- a file of records (.jsonl, .json, .csv, .parquet) with the fields `title`, `text` and `date`;
- a folder of text files with a `pages.csv` that has the columns `file`, `title` and `date`.

`date` is when a page was created, `changed` (optional) when it was changed last: YYYY-MM-DD, with
or without a time after it. `paraphrase` (optional) is another wording of the text.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from contamination.errors import InputError
from contamination.testsets.records import Record, read_records, read_text

INDEX = "pages.csv"


@dataclass(frozen=True)
class Page:
    """A page that was created on a known day.

    Attributes
    ----------
    place : file and line, for messages. changed : day of the last change, if that is known.
    paraphrase : the same in other words, or "".
    """

    place: str
    title: str
    text: str
    created: date
    changed: date | None = None
    paraphrase: str = ""


def read_pages(path: Path | str) -> list[Page]:
    """Read pages in the order of their file or index.

    Raises
    ------
    InputError
        No such file or folder, a folder without an index, a field that is missing, or a date that
        is none; with file and line.
    """
    source = Path(path)
    if not source.is_dir():
        return [_page(record, f"{source}, {place}") for place, record in read_records(source)]
    index = source / INDEX
    if not index.is_file():
        raise InputError(
            f"{source}: no {INDEX}; write one with the columns file, title and date, a line for "
            "each text file"
        )
    return [_page(record, f"{index}, {place}") for place, record in _with_text(source, index)]


def files_of(path: Path | str) -> list[Path]:
    """Return the files that pages were read from, in order: for a checksum of the input."""
    source = Path(path)
    if not source.is_dir():
        return [source]
    index = source / INDEX
    return [index, *(source / str(record["file"]) for _, record in read_records(index))]


def _with_text(folder: Path, index: Path) -> Sequence[Record]:
    """Put the contents of each file that the index names into its record."""
    found = []
    for place, record in read_records(index):
        name = _text(record, "file", f"{index}, {place}")
        if not (folder / name).is_file():
            raise InputError(f"{index}, {place}: {folder} has no file {name!r}; correct the name")
        found.append((place, {**record, "text": read_text(folder / name)}))
    return found


def _page(record: Mapping[str, Any], where: str) -> Page:
    changed = record.get("changed")
    return Page(
        place=where,
        title=_text(record, "title", where),
        text=_text(record, "text", where, empty=True),
        created=_day(record.get("date"), "date", where),
        changed=_day(changed, "changed", where) if changed not in (None, "") else None,
        paraphrase=_text({"paraphrase": "", **record}, "paraphrase", where, empty=True),
    )


def _text(record: Mapping[str, Any], field: str, where: str, *, empty: bool = False) -> str:
    value = record.get(field)
    if value is None and field in record and empty:
        return ""
    if not isinstance(value, str) or not (empty or value.strip()):
        raise InputError(f"{where}: field {field!r} is {str(value)[:40]!r}; write text there")
    return value


def _day(value: Any, field: str, where: str) -> date:
    told = str(value)
    try:
        if not re.match(r"\d{4}-\d\d-\d\d(?:[T ]|$)", told):
            raise ValueError
        return date.fromisoformat(told[:10])
    except ValueError:
        raise InputError(
            f"{where}: field {field!r} is {told[:40]!r}; write a date such as 2023-01-31"
        ) from None
