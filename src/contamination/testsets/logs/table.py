"""A table of answers that anybody can write: `id`, `answer`, perhaps `model`, `epoch`, `prompt`."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import field_validator

from contamination.errors import InputError
from contamination.files import writable
from contamination.testsets.logs.record import (
    Log,
    LogPart,
    LogRecord,
    Name,
    decoded,
    number_of,
    parsed,
    text_of,
)
from contamination.testsets.records import Record

FIELDS = frozenset({"id", "answer"})  # which every row has
SHOWN = ("prompt", "messages")  # what a model was shown, where a row says so
NAME = "a table with `id`, `answer` and, of several, `model`"


class Row(LogPart):
    """One answer; null is none."""

    id: str
    answer: str | None
    model: Name | None = None
    epoch: int | None = None

    @field_validator("answer", "model", "epoch", mode="before")
    @classmethod
    def _no_number_is_null(cls, value: Any) -> Any:
        return None if isinstance(value, float) and math.isnan(value) else value


def read(path: Path, rows: Iterable[Record]) -> Log:
    """Return the records of a table.

    Raises InputError where a row has no id or no answer, and where its messages end with
    what the model wrote.

    An id that is a number counts records from 1. Without `epoch`, answers to one record
    count in the order of the file.
    """
    records = list[LogRecord]()
    epochs = Counter[tuple[str, str]]()
    for place, row in rows:
        where = f"{path}, {place}"
        entry = parsed(Row, row, where, NAME)
        _refuse_reply(row, where)
        model = entry.model or writable(path.stem)
        epochs[model, entry.id] += 1
        counted = number_of(entry.id) if entry.id.isdecimal() else None
        record = LogRecord(
            place=where,
            model=model,
            id=entry.id,
            number=None if counted is None else counted - 1,
            prompt=text_of([row.get(name) for name in SHOWN]),
            completion=entry.answer or "",
            epoch=epochs[model, entry.id] if entry.epoch is None else entry.epoch,
            row=row,
        )
        records.append(record)
    return Log(path, tuple(records))


def _refuse_reply(row: Mapping[str, Any], where: str) -> None:
    """Raise InputError for messages of which the model wrote the last one."""
    messages = decoded(row.get("messages"))
    if not isinstance(messages, list) or not messages:
        return
    last = messages[-1]
    if isinstance(last, Mapping) and last.get("role") == "assistant":
        raise InputError(
            f"{where}: `messages` ends with what the model wrote; give that as `answer`, and in "
            "`messages` what the model was shown"
        )
