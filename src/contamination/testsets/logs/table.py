"""A table of answers that anybody can write: `id`, `answer`, perhaps `model`, `epoch`."""

import math
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import field_validator

from contamination.files import writable
from contamination.testsets.logs.record import (
    Log,
    LogPart,
    LogRecord,
    Name,
    number_of,
    parsed,
)
from contamination.testsets.records import Record

FIELDS = frozenset({"id", "answer"})  # which every row has
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

    Raises InputError where a row has no id or no answer.

    An id that is a number counts records from 1. Without `epoch`, answers to one record
    count in the order of the file.
    """
    records = list[LogRecord]()
    epochs = Counter[tuple[str, str]]()
    for place, row in rows:
        where = f"{path}, {place}"
        entry = parsed(Row, row, where, NAME)
        model = entry.model or writable(path.stem)
        epochs[model, entry.id] += 1
        counted = number_of(entry.id) if entry.id.isdecimal() else None
        record = LogRecord(
            place=where,
            model=model,
            id=entry.id,
            number=None if counted is None else counted - 1,
            completion=entry.answer or "",
            epoch=epochs[model, entry.id] if entry.epoch is None else entry.epoch,
        )
        records.append(record)
    return Log(path, tuple(records))
