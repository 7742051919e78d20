"""`samples_*.jsonl` of lm-evaluation-harness, which it writes if asked to log samples.

What a model answered is taken from `resps`, all that it wrote. `filtered_resps`, which
some filters choose by the target, `target` and the metrics are not read.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import Field

from contamination.files import writable
from contamination.testsets.logs.record import (
    Log,
    LogPart,
    LogRecord,
    Name,
    leaves,
    not_as,
    parsed,
    text_of,
)
from contamination.testsets.records import Record

NAME = "lm-evaluation-harness"
FIELD = "arguments"  # which no other format has
_LAST_NUMBER = re.compile(r"\d+$")


class Sample(LogPart):
    """A document, what a model was sent for it, and what it said.

    `arguments` are those of each request, by name ("gen_args_0") or, in older versions,
    in order; files that were converted have nulls where a document has fewer requests
    than another. `resps` has for each request a list of answers: texts, or
    log-probability and greediness.
    """

    doc_id: int
    doc: dict[str, Any]
    arguments: dict[str, dict[str, Any] | list[Any] | None] | list[list[Any] | None]
    resps: list[list[Any] | None]
    filter: str = ""


class Counts(LogPart):
    """Number of documents of a task, and of those that were asked."""

    effective: int | None = None


class Results(LogPart):
    """The file of results, next to that of the samples."""

    model_name: Name | None = None
    counts: dict[str, Counts] | None = Field(None, alias="n-samples")


def read(path: Path, rows: Iterable[Record]) -> Log:
    """Return the records of a log.

    Raises InputError where a row is none of this format.
    """
    results = _results(path)
    folder = path.absolute().parent
    model = results.model_name or writable(folder.name)
    named_after = {} if results.model_name else {model: folder}
    records = list[LogRecord]()
    filters: dict[tuple[int, tuple[str, ...]], str] = {}
    for place, row in rows:
        where = f"{path}, {place}"
        sample = parsed(Sample, row, where, NAME)
        requests = _requests(sample.arguments)
        completions = _completions(requests, sample, where)
        # Each filter writes all documents again, with the same answers.
        key = (sample.doc_id, tuple(completions))
        if filters.setdefault(key, sample.filter) != sample.filter:
            continue
        prompts = dict.fromkeys(text_of(request[:1]) for request in requests)
        offered = dict.fromkeys(text_of(request[1:]) for request in requests)
        for epoch, completion in enumerate(completions, start=1):
            record = LogRecord(
                place=where,
                model=model,
                id="",
                number=sample.doc_id,
                doc=sample.doc,
                prompt="\n".join(prompts),
                offered="\n".join(offered),
                completion=completion,
                epoch=epoch,
            )
            records.append(record)
    return Log(path, tuple(records), _claimed(path, results), named_after)


def _results(path: Path) -> Results:
    """Read the results of a log, if they are there."""
    file = path.with_name(f"results_{path.stem.rpartition('_')[2]}.json")
    if not file.is_file():
        return Results.model_validate({})
    return parsed(Results, file.read_bytes(), str(file), NAME)


def _claimed(path: Path, results: Results) -> int | None:
    task = path.stem.removeprefix("samples_").rpartition("_")[0]
    counts = (results.counts or {}).get(task)
    return counts.effective if counts else None


def _requests(arguments: Mapping[str, Any] | Sequence[Any]) -> list[list[Any]]:
    """Return the arguments of each request, without padding, in the order of the requests."""
    padded = _in_order(arguments)
    requests = [_in_order(request) for request in padded if request is not None]
    return [request for request in requests if request.count(None) < len(request)]


def _in_order(values: Mapping[str, Any] | Sequence[Any]) -> list[Any]:
    """Return values by the number in which their names end: 10 comes after 9."""
    if not isinstance(values, Mapping):
        return list(values)
    return [values[name] for name in sorted(values, key=_number)]


def _number(name: str) -> int:
    match = _LAST_NUMBER.search(name)
    return int(match.group()) if match else 0


def _completions(
    requests: Sequence[Sequence[Any]],
    sample: Sample,
    where: str,
) -> list[str]:
    """Return what the model wrote, once for each repeat.

    It is "" where it wrote or chose nothing.
    """
    answers = [answer for answer in sample.resps if answer is not None]
    if not requests or len(requests) != len(answers):
        problem = f"{len(requests)} requests, and resps has answers to {len(answers)}"
        raise not_as(where, NAME, problem)
    if any(len(request) < 2 for request in requests):
        return [""]  # the likelihood of a whole text: nothing is answered
    texts = list(chain.from_iterable(answers))
    # Settings may be a text, too, in a table that somebody has flattened.
    chosen = isinstance(requests[0][1], str)
    if chosen and not all(isinstance(text, str) for text in texts):
        return [_likeliest(requests, answers)]
    return [text if isinstance(text, str) else "" for text in texts] or [""]


def _likeliest(
    requests: Sequence[Sequence[Any]],
    answers: Sequence[Sequence[Any]],
) -> str:
    """Return the likeliest of several continuations of one prompt; "" if no single one is.

    So it is where a log-probability is no number, where two continuations are as likely,
    and where there is one alone, which is the target.
    """
    values: dict[str, float] = {}
    for request, answer in zip(requests, answers, strict=True):
        if request[0] != requests[0][0]:  # asked without the question, for its prior
            continue
        value = _log_probability(answer)
        if math.isnan(value):
            return ""
        values[str(request[1])] = value
    if len(values) < 2:
        return ""
    highest = max(values.values())
    best = [text for text, value in values.items() if value == highest]
    return best[0] if len(best) == 1 else ""


def _log_probability(answer: Sequence[Any]) -> float:
    """Return the first number of an answer, [[nats, greedy]]; NaN if there is none."""
    first = next(leaves(answer), None)
    try:
        return float(first) if isinstance(first, str | float | int) else math.nan
    except (ValueError, OverflowError):
        return math.nan
