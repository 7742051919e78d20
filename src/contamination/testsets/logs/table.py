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
    number_of,
    parsed,
    text_of,
)
from contamination.testsets.records import Record

FIELDS = frozenset({"id", "answer"})  # which every row has
# Other names of what a model wrote. Beside one of them `answer` may be the right answer.
WRITTEN = frozenset(
    {
        "completion",
        "generated",
        "generated_answer",
        "generated_text",
        "generation",
        "model_answer",
        "model_output",
        "model_response",
        "output",
        "pred",
        "predicted",
        "predicted_answer",
        "prediction",
        "reply",
        "response",
    }
)
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

    Raises InputError where a row has no id or no answer, and where another column may be
    what the model wrote.

    An id that is a number counts records from 1. Without `epoch`, answers to one record
    count in the order of the file.
    """
    records = list[LogRecord]()
    epochs = Counter[tuple[str, str]]()
    for place, row in rows:
        where = f"{path}, {place}"
        _refuse_two_answers(row, where)
        entry = parsed(Row, row, where, NAME)
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


def _refuse_two_answers(row: Mapping[str, Any], where: str) -> None:
    """Raise InputError for a row of which nobody knows what the model wrote."""
    for name in row:
        usual = str(name).strip().casefold().replace(" ", "_").replace("-", "_").rstrip("s")
        if usual in WRITTEN:
            raise InputError(
                f"{where}: either of `answer` and `{name}` may be what the model wrote; call that "
                "column `answer`, and take the other out"
            )
