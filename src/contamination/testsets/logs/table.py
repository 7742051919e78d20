"""A table of answers that anybody can write: `id`, `answer`, perhaps `model`, `epoch`, `prompt`."""

import math
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
SPEAKER = ("role", "from", "type")  # fields of a message that say who wrote it
REPLIES = frozenset({"assistant", "model", "ai", "gpt", "bot"})  # what they say of a model
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

    Raises InputError where a row has no id or no answer, and where its prompt or messages
    end with what the model wrote.

    An id that is a number counts records from 1. Without `epoch`, all answers are of the
    first: the order of a file is nobody's statement.
    """
    records = list[LogRecord]()
    file_name = writable(path.stem)
    named_after = dict[str, Path]()
    for place, row in rows:
        where = f"{path}, {place}"
        entry = parsed(Row, row, where, NAME)
        _refuse_reply(row, where)
        if not entry.model:
            named_after[file_name] = path.absolute()
        counted = number_of(entry.id) if entry.id.isdecimal() else None
        record = LogRecord(
            place=where,
            model=entry.model or file_name,
            id=entry.id,
            number=None if counted is None else counted - 1,
            prompt=text_of([row.get(name) for name in SHOWN]),
            completion=entry.answer or "",
            epoch=1 if entry.epoch is None else entry.epoch,
            row=row,
        )
        records.append(record)
    return Log(path, tuple(records), named_after=named_after)


def _refuse_reply(row: Mapping[str, Any], where: str) -> None:
    """Raise InputError for messages of which the model wrote the last one."""
    for name in SHOWN:
        messages = decoded(row.get(name))
        if not isinstance(messages, list) or not messages or not isinstance(messages[-1], Mapping):
            continue
        speakers = {str(messages[-1].get(field)).casefold() for field in SPEAKER}
        if speakers & REPLIES:
            raise InputError(
                f"{where}: `{name}` ends with what the model wrote; give that as `answer`, and in "
                f"`{name}` what the model was shown"
            )
