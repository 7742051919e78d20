"""A table of answers that anybody can write: `id`, `answer` and, of several, `model`, `epoch`."""

import math
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import field_validator

from contamination.files import writable
from contamination.testsets.logs.record import (
    Log,
    LogRecord,
    Name,
    Part,
    number_of,
    parsed,
)
from contamination.testsets.records import Record

NAME = "a table with `id`, `answer` and, of several, `model`"


class Row(Part):
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
    found = list[LogRecord]()
    epochs = Counter[tuple[str, str]]()
    for place, row in rows:
        where = f"{path}, {place}"
        one = parsed(Row, row, where, NAME)
        model = one.model or writable(path.stem)
        epochs[model, one.id] += 1
        counted = number_of(one.id) if one.id.isdecimal() else None
        record = LogRecord(
            place=where,
            model=model,
            id=one.id,
            number=None if counted is None else counted - 1,
            completion=one.answer or "",
            epoch=epochs[model, one.id] if one.epoch is None else one.epoch,
        )
        found.append(record)
    return Log(path, tuple(found))
