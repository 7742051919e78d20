"""Pages with the day on which each was created: records of a file, or a folder of text files."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from contamination.errors import InputError
from contamination.files import is_path
from contamination.testsets.inside import lies_inside
from contamination.testsets.records import read_records, read_text
from contamination.testsets.templates import whole_characters

INDEX = "pages.csv"
DAY = re.compile(r"\d{4}-\d\d-\d\d(?=[T ]|$)")


@dataclass(frozen=True)
class Page:
    """One page.

    Attributes
    ----------
    title
        Title of the page.
    text
        Text of the page, without markup.
    created
        The day on which the page was created.
    paraphrase
        The text in other words; "" if there is none.
    unknown
        Why the day of creation is not known; "" if it is.
    """

    title: str
    text: str
    created: date
    paraphrase: str = ""
    unknown: str = ""


def read_page_records(path: Path) -> list[Page]:
    """Read pages from a .jsonl, .json, .csv or .parquet file, in the order of the file.

    A record has `title`, `text` and `date` (YYYY-MM-DD, a time may follow), and may
    have a `paraphrase`. Raises InputError with file and line for a field that is
    missing or malformed.
    """
    pages = []
    for place, record in read_records(path):
        pages.append(_page(record, record.get("text"), f"{path}, {place}"))
    return pages


def read_page_folder(folder: Path) -> tuple[list[Page], list[Path]]:
    """Read the text files of a folder, in the order of its index; return them and the files.

    The index, `pages.csv`, has the columns `file`, `title` and `date`, and may have
    `paraphrase`. Raises InputError if there is no index, or if a file that it names is
    not in the folder.
    """
    index = folder / INDEX
    if not index.is_file():
        raise InputError(
            f"{folder}: no {INDEX}; write one with the columns file, title and date, a line for "
            "each text file"
        )
    pages = []
    files = [index]
    for place, record in read_records(index):
        where = f"{index}, {place}"
        name = _text_of(record, "file", where)
        file = folder / name
        is_there = is_path(str(file)) and file.is_file()
        if not is_there or not lies_inside(file, folder):
            raise InputError(f"{where}: {folder} has no file {name!r}; correct the name")
        pages.append(_page(record, read_text(file), where))
        files.append(file)
    return pages, files


def parse_day(value: object, where: str) -> date:
    """Return the day that a date starts with; InputError names `where` if it is none."""
    match = DAY.match(str(value))
    try:
        return date.fromisoformat(match[0] if match else "")
    except ValueError:
        shown = repr(str(value)[:40]) if value not in (None, "") else "missing"
        raise InputError(f"{where}: the date is {shown}; write it as 2023-01-31") from None


def _page(record: Mapping[str, Any], text: object, where: str) -> Page:
    """Return the page of a record whose text is `text`."""
    paraphrase = ""
    if record.get("paraphrase") is not None:
        paraphrase = _text_of(record, "paraphrase", where)
    return Page(
        title=_text_of(record, "title", where),
        text=_text_of({"text": text}, "text", where),
        created=parse_day(record.get("date"), where),
        paraphrase=paraphrase,
    )


def _text_of(record: Mapping[str, Any], field: str, where: str) -> str:
    """Return a field that has to be text."""
    value = record.get(field)
    if not isinstance(value, str):
        shown = "missing" if value is None else repr(value)[:40]
        raise InputError(f"{where}: field {field!r} is {shown}; write text there")
    return whole_characters(value, where)
