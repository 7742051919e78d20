"""The record that every reader of logs returns, and the checks of parts of a log."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from contamination.errors import InputError
from contamination.files import writable
from contamination.testsets.records import read_text

MOST_SHOWN = 100  # characters of another program's message
_P = TypeVar("_P", bound="LogPart")


class LogPart(BaseModel):
    """A part of a log: the fields that are read, with their types.

    Others are left alone.
    """

    model_config = ConfigDict(extra="ignore", frozen=True, coerce_numbers_to_str=True)


@dataclass(frozen=True)
class LogRecord:
    """One question to a model, and what it wrote.

    Attributes
    ----------
    place
        File and place in it, for messages.
    model
        Name of the model, from the log or the files next to it, else from the name of
        the file.
    id, number
        Id of the record in the log, and its place in the published order, from 0; ""
        and None if the log does not say.
    doc
        The record: as published in logs of lm-evaluation-harness, an `item` in those of
        Inspect and lighteval, id and question in others.
    prompt
        The whole prompt, decoded, with the turns that the model did not write itself.
    offered
        The texts among which the model had to choose, as far as the prompt need not show
        them: continuations, choices, and what the settings of the request allow. A line
        each; "" if the log names none.
    completion
        The whole text that the model wrote. If the model chose one of several
        continuations by their likelihood: the likeliest; "" if there is none, or no
        single one. No reader takes it from targets, scores or filtered answers.
    epoch
        Counts answers to one record from 1.
    labels
        Label -> text of the option, as this prompt labelled the options; empty if the
        log does not say.
    row
        The row of a table as it stands; empty in other logs.
    """

    place: str
    model: str
    id: str
    number: int | None
    doc: Mapping[str, Any] = field(default_factory=dict, repr=False)
    prompt: str = field(default="", repr=False)
    offered: str = field(default="", repr=False)
    completion: str = field(default="", repr=False)
    epoch: int = 1
    labels: Mapping[str, str] = field(default_factory=dict, repr=False)
    row: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Log:
    """The records of a file in its own order.

    `claimed` is how many it says it has. `named_after` has the file or folder of each model
    whose name was taken from there, since the log does not say it.
    """

    path: Path
    records: tuple[LogRecord, ...] = field(repr=False)
    claimed: int | None = None
    named_after: Mapping[str, Path] = field(default_factory=dict)


def parsed(kind: type[_P], value: Any, where: str, of: str) -> _P:
    """Return a part of a log, from JSON as bytes or from what it holds.

    `of` names the format. Raises InputError, with the first field that is wrong, if
    something else stands there.
    """
    try:
        # Not by pydantic's own reader of JSON, which refuses half an emoji.
        fields = json.loads(value) if isinstance(value, bytes) else value
        return kind.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = ".".join(map(str, first["loc"]))
        problem = f"{name}: {first['msg']}" if name else first["msg"]
        raise not_as(where, of, problem) from error
    except RecursionError as error:
        raise not_as(where, of, "nested too deeply") from error
    except ValueError as error:
        raise not_as(where, of, error) from error


Name = Annotated[str, AfterValidator(writable)]


def not_as(where: str, of: str, problem: object) -> InputError:
    """Return the error for a part of a log that is not what its format has there.

    `of` names the format, and the problem says what is wrong in a few words.
    """
    shown = " ".join(str(problem).split())[:MOST_SHOWN]
    return InputError(f"{where}: not as {of} writes it ({shown}); give the log itself")


def read_object(path: Path) -> Any:
    """Return what a .json file holds. Raises InputError where it is no JSON."""
    try:
        return json.loads(read_text(path))
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror}); give a log",
        ) from error
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):  # not UTF-8
            raise
        problem = getattr(error, "msg", "") or "nested too deeply"
        line = getattr(error, "lineno", 1)
        raise InputError(
            f"{path}, line {line}: not JSON ({problem}); give the log itself"
        ) from error


def text_of(value: Any) -> str:
    """Return all text in a prompt, in messages or in their JSON, a line each."""
    texts = [leaf for leaf in leaves(value) if isinstance(leaf, str) and leaf]
    return "\n".join(texts)


def leaves(value: Any) -> Iterator[Any]:
    """Yield what is in lists and mappings, however deep, in order.

    Texts of JSON are decoded.
    """
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        inner = decoded(inner)
        if isinstance(inner, Mapping):
            inner = list(inner.values())
        if isinstance(inner, list | tuple):
            waiting.extend(reversed(inner))
        else:
            yield inner


def decoded(text: Any) -> Any:
    """Return the list or the object whose JSON a text is, else the value as it is."""
    if not isinstance(text, str) or not text.lstrip().startswith(("[{", '["', '{"')):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def number_of(name: str) -> int | None:
    """Return a number that counts records from 0, as "7", or "id7" of HELM."""
    digits = name.removeprefix("id")
    return int(digits) if digits.isdecimal() and len(digits) < 19 else None
