"""Layouts of records that are known by their fields, and the template of each."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from contamination.errors import InputError
from contamination.testsets.records import ID_FIELDS, Record
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
MOST_SUGGESTED = 6  # fields of a suggested template


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
    suggested = _suggested(record)
    advice = f"; try template={suggested}" if suggested else ""
    names = field_names(record)
    raise InputError(
        f"{where}, {place}: there is no field 'text', and the record has {names}{advice}",
        parameter="template",
    )


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


def _suggested(record: Mapping[str, Any]) -> str | None:
    """Return a template of the texts of a record, else of its numbers, as a shell takes it."""
    texts: list[str] = []
    numbers: list[str] = []
    for name, value in record.items():
        is_usable = name and not {*name} & {*"{}[]"}
        if not is_usable or name.lower() in ID_FIELDS:
            continue
        if isinstance(value, str) and value.strip():
            texts.append(name)
        elif isinstance(value, int | float):
            numbers.append(name)
    chosen = (texts or numbers)[:MOST_SUGGESTED]
    if not chosen:
        return None
    return shlex.quote("".join(f"{{{name}}}\\n" for name in chosen))
