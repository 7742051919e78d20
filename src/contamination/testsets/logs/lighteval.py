"""`details_*.parquet` of lighteval, from its version 0.11 on.

These have `doc` and `model_response`. Its documentation, and some of its files, call
these `__doc__` and `__model_response__`.

What a model answered is `text`, or else the likeliest of the choices.
`text_post_processed`, the gold and the metrics are not read for it.
"""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import AliasChoices, Field

from contamination.errors import InputError
from contamination.files import writable
from contamination.testsets.harness_items import item
from contamination.testsets.logs.record import (
    Log,
    LogPart,
    LogRecord,
    not_as,
    number_of,
    parsed,
    text_of,
)
from contamination.testsets.records import Record

NAME = "lighteval"
FIELDS = ({"doc", "model_response"}, {"__doc__", "__model_response__"})
OLDER_FIELDS = frozenset({"full_prompt", "predictions", "gold_index"})


class Doc(LogPart):
    """The question. A file has nulls where it pads a list."""

    id: str
    query: str
    choices: list[str | None] | None = None
    gold_index: int | list[int | None] | None = None
    fewshot_samples: list[Any] | None = None


class Response(LogPart):
    """The answer of the model: texts, or the log-probability of each choice."""

    input: Any = None
    text: list[str | None] | str | None = None
    logprobs: list[float | None] | None = None


class Detail(LogPart):
    """A row."""

    doc: Doc = Field(validation_alias=AliasChoices("doc", "__doc__"))
    response: Response = Field(
        validation_alias=AliasChoices("model_response", "__model_response__")
    )


def has(fields: Iterable[str]) -> bool:
    """Whether a row of these fields is one of lighteval."""
    present = set(fields)
    return any(needed <= present for needed in FIELDS)


def refuse_older(path: Path, fields: Iterable[str]) -> None:
    """Raise InputError for the columns that lighteval wrote before it had `__doc__`."""
    if OLDER_FIELDS.issubset(fields):
        raise InputError(
            f"{path}: these columns are those of lighteval before version 0.11, which "
            "wrote no doc and no model_response; evaluate again with a later version"
        )


def read(path: Path, rows: Iterable[Record]) -> Log:
    """Return the records of a log.

    Raises InputError where a row is none of this format.
    """
    named = _model(path)
    model = named or writable(path.stem)
    named_after = {} if named else {model: path.absolute()}
    records = list[LogRecord]()
    for place, row in rows:
        where = f"{path}, {place}"
        detail = parsed(Detail, row, where, NAME)
        doc = detail.doc
        choices = [choice for choice in doc.choices or [] if choice is not None]
        question = item(doc.query, choices, _right(doc, choices, where), " ")
        request = detail.response.input or doc.query
        written = _written(detail.response)
        completions = written or [_likeliest(detail.response, choices)]
        for epoch, completion in enumerate(completions, start=1):
            record = LogRecord(
                place=where,
                model=model,
                id=doc.id,
                number=number_of(doc.id),
                doc=question,
                prompt=text_of([doc.fewshot_samples, request]),
                offered="" if written else "\n".join(choices),
                completion=completion,
                epoch=epoch,
            )
            records.append(record)
    return Log(path, tuple(records), named_after=named_after)


def _model(path: Path) -> str:
    """Return ORG/MODEL of .../details/ORG/MODEL/TIME/FILE, else ""."""
    above = "/".join(path.absolute().parts[:-2])
    _, details, model = above.rpartition("/details/")
    return writable(model) if details else ""


def _right(doc: Doc, choices: list[str], where: str) -> int | str:
    gold = doc.gold_index if isinstance(doc.gold_index, list) else [doc.gold_index]
    numbers = [number for number in gold if number is not None]
    if not numbers or not choices:
        return ""
    if not 0 <= numbers[0] < len(choices):
        raise not_as(where, NAME, f"gold_index {numbers[0]} of {len(choices)} choices")
    return numbers[0]


def _written(response: Response) -> list[str]:
    """Return what the model wrote, once for each sample; nothing where it had to choose."""
    texts = [response.text] if isinstance(response.text, str) else response.text or []
    return [text for text in texts if text is not None]


def _likeliest(response: Response, choices: list[str]) -> str:
    """Return the likeliest choice; "" if no single one is."""
    values = list(response.logprobs or [])
    while values and values[-1] is None:  # padding
        values.pop()
    numbers = [value for value in values if value is not None and not math.isnan(value)]
    if len(choices) < 2 or len(values) != len(choices) or len(numbers) < len(values):
        return ""
    if numbers.count(max(numbers)) > 1:
        return ""
    return choices[numbers.index(max(numbers))]
