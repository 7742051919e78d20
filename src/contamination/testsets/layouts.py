"""Layouts of records that are known by their fields, and the template of each."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from contamination.errors import InputError
from contamination.testsets.records import Record, are_mappings
from contamination.testsets.templates import Template, field_names, look_up, parse

# Templates of the layouts that are known by their fields; the first that fits a record
# is taken.
LAYOUTS = (
    "text/1",
    "messages/1",
    "choices/1",
    "choices/2",
    "question/1",
    "truthfulqa/1",
)

LONGEST_NAME = 60  # characters of a column with words for a name
MOST_SUGGESTED = 6  # fields of a suggested template
# Last words of the names of fields that say something about a record, not what it says.
METADATA = frozenset(
    {"id", "ids", "idx", "index", "uuid", "guid"}
    | {"hash", "md5", "sha", "sha1", "sha256", "checksum", "digest"}
    | {"url", "urls", "uri", "href", "link", "path", "file", "filename"}
    | {"method", "status", "state", "filter", "split", "version", "revision", "model"}
    | {"source", "license", "language", "lang"}
    | {"date", "time", "timestamp", "created", "updated"}
)
_WORD = re.compile(r"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*|\d+")
# An address, or a hash or a UUID in hexadecimal digits.
_NO_TEXT = re.compile(r"\w+://\S+|[0-9a-f]{16,}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.I)
TURNS = ("content", "value", "text")  # where a turn of a conversation has its text


def template_for(records: Sequence[Record], where: str) -> str:
    """Return the template of the layout of records, by the fields of the first one.

    Raises InputError if no layout is known, with a template made of the fields that
    there are.
    """
    if not records:
        return LAYOUTS[0]
    place, record = records[0]
    fitting = next((name for name in LAYOUTS if _fits(record, parse(name))), None)
    if fitting is not None:
        return fitting
    problem = (
        f"{where}, {place}: there is no field 'text', and the record has {field_names(record)}"
    )
    lists = [name for name, value in record.items() if _holds_records(value)]
    if len(records) == 1 and lists:
        raise InputError(f"{problem}; if the records are in {lists[0]!r}, save that list alone")
    if where.endswith(".csv") and any(_is_sentence(name) for name in record):
        raise InputError(
            f"{where}: line 1 seems to be a record and no header; put a line with the names of "
            "the columns before it, such as question,answer"
        )
    suggested = _suggested(record)
    advice = f"try template={suggested}"
    if suggested is None:
        advice = "none of them looks like a text: write a template of those that are"
    raise InputError(f"{problem}; {advice}", parameter="template")


def _fits(record: Mapping[str, Any], template: Template) -> bool:
    """Return whether a record has the fields of a template; lists where it joins them."""
    for field in template.listed:
        try:
            value = look_up(record, field.name)
        except LookupError:
            return False
        if field.specification and not isinstance(value, list):
            return False
        shown = value if field.specification else [value]
        if any(isinstance(inner, list | Mapping) for inner in shown):
            return False
    return True


def _is_sentence(name: str) -> bool:
    """Return whether the name of a column is a text, as where a file has no header."""
    words = name.split()
    return len(words) > 2 and (len(name) > LONGEST_NAME or name.rstrip()[-1] in ".?!:")


def _holds_records(value: Any) -> bool:
    """Return whether a value may be a list of records."""
    return isinstance(value, list) and len(value) > 1 and are_mappings(value)


def _suggested(record: Mapping[str, Any]) -> str | None:
    """Return a template of the texts of a record, else of its numbers, as a shell takes it.

    Texts within a mapping or a conversation count where the record has no other.
    """
    texts: list[str] = []
    numbers: list[str] = []
    for name, value in record.items():
        if not _can_be_named(name) or _is_metadata(name, value):
            continue
        if isinstance(value, str) and value.strip():
            texts.append(f"{{{name}}}")
        elif isinstance(value, int | float):
            numbers.append(f"{{{name}}}")
    chosen = texts or [*_texts_within(record)] or numbers
    if not chosen:
        return None
    return shlex.quote("".join(f"{field}\\n" for field in chosen[:MOST_SUGGESTED]))


def _texts_within(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the fields of texts that lie within fields of a record."""
    for name, value in record.items():
        if not _can_be_named(name):
            continue
        key = _key_of_turns(value)
        if key is not None:
            yield f"{{{name}[{key}]:\\n}}"
        if not isinstance(value, Mapping):
            continue
        for inner_name, inner in value.items():
            if not _can_be_named(inner_name) or _is_metadata(inner_name, inner):
                continue
            key = _key_of_turns(inner)
            if key is not None:
                yield f"{{{name}.{inner_name}[{key}]:\\n}}"
            elif isinstance(inner, str) and inner.strip():
                yield f"{{{name}.{inner_name}}}"


def _key_of_turns(value: Any) -> str | None:
    """Return where each turn of a conversation has its text; None of another value."""
    if not isinstance(value, list) or not value:
        return None
    for key in TURNS:
        if are_mappings(value, key) and all(isinstance(turn[key], str) for turn in value):
            return key
    return None


def _can_be_named(name: str) -> bool:
    """Return whether a template can name a field."""
    return bool(name) and not {*name} & {*"{}[]"}


def _is_metadata(name: str, value: Any) -> bool:
    """Return whether a field is an id, a hash, an address, a status or the like."""
    words = _WORD.findall(name)
    if words and words[-1].lower() in METADATA:
        return True
    return isinstance(value, str) and _NO_TEXT.fullmatch(value.strip()) is not None
