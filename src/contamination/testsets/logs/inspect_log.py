"""Logs of Inspect: `.eval`, a zip file with a JSON file for each sample, or .json.

What a model answered is its completion. A `Score.answer` is not read: scorers choose it
by the target. Where a user turn follows what the model wrote, such as a critique that
quotes it or the news that it was wrong, what the model wrote before is its answer, and
the turns before are its prompt.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from contamination.errors import InputError
from contamination.testsets.harness_items import sample_item
from contamination.testsets.logs.record import (
    Log,
    LogPart,
    LogRecord,
    Name,
    parsed,
    text_of,
)
from contamination.testsets.option_texts import LETTERS
from contamination.testsets.unpacked import opened_archive

NAME = "Inspect"
HEADER = "header.json"
# Before the key of a text that stands elsewhere in the sample.
ATTACHMENT = "attachment://"
CUT_SHORT = (
    "the run was cut short, and the log never ended; complete it "
    "(`inspect log recover {}`) and give what that writes"
)


class Message(LogPart):
    """A turn; `source` is "generate" where the model wrote it."""

    role: str = ""
    content: str | list[Any] | None = None
    source: str | None = None


class Choice(LogPart):
    """One of the answers of a call."""

    message: Message = Message()


class Output(LogPart):
    """The result of a call; older logs have no `completion`."""

    completion: str | None = None
    choices: list[Choice] | None = None


class Sample(LogPart):
    """A sample, one file of a log."""

    id: int | str
    epoch: int = 1
    input: str | list[Message]
    choices: list[str] | None = None
    target: str | list[str] = ""
    messages: list[Message] | None = None
    output: Output | None = None
    attachments: dict[str, str] | None = None


class Dataset(LogPart):
    """The data set of a run: its ids in the order of the run."""

    sample_ids: list[int | str] | None = None
    shuffled: bool | None = None


class Config(LogPart):
    """The settings of a run."""

    epochs: int | None = None


class About(LogPart):
    """The evaluation that was run."""

    model: Name
    dataset: Dataset = Dataset()
    config: Config = Config()


class Totals(LogPart):
    """Number of samples that were run, counted anew in each epoch."""

    total_samples: int | None = None


class LogHeader(LogPart):
    """A log without its samples."""

    eval: About
    status: str = "success"
    results: Totals | None = None


class Whole(LogHeader):
    """A log in one .json file."""

    samples: list[Sample] | None = None


def read_eval(path: Path) -> Log:
    """Return the records of an `.eval` log.

    Raises InputError where it is damaged, unpacks to too much, or was never ended.
    """
    with opened_archive(path) as archive:
        names = [name for name in archive.files if name.startswith("samples/")]
        if HEADER not in archive.files:
            if "_journal/start.json" in archive.files:
                raise InputError(f"{path}: {CUT_SHORT.format(path)}")
            raise InputError(
                f"{path}: no {HEADER} in it, so no log of Inspect; give the .eval file"
            )
        header = parsed(LogHeader, archive.read(HEADER), f"{path}, {HEADER}", NAME)
        samples = list[tuple[str, Sample]]()
        for name in names:
            where = f"{path}, {name}"
            samples.append((where, parsed(Sample, archive.read(name), where, NAME)))
    return _log(path, header, samples)


def read_json(path: Path, value: Any) -> Log:
    """Return the records of a .json log, of which `value` is what the file holds.

    Raises InputError where it is damaged, or was never ended.
    """
    whole = parsed(Whole, value, str(path), NAME)
    if whole.status == "started" or whole.samples is None:
        raise InputError(
            f"{path}: the run was cut short, or the log has a header alone; give an "
            ".eval log (`inspect log convert --to eval`), which `inspect log recover` "
            "can complete"
        )
    samples = list[tuple[str, Sample]]()
    for number, sample in enumerate(whole.samples, start=1):
        samples.append((f"{path}, sample {number}", sample))
    return _log(path, whole, samples)


def _log(path: Path, header: LogHeader, samples: Sequence[tuple[str, Sample]]) -> Log:
    numbers = _numbers(header.eval.dataset, [sample for _, sample in samples])
    records = [
        _record(where, header.eval.model, sample, numbers.get(sample.id))
        for where, sample in samples
    ]
    return Log(path, tuple(records), _claimed(header))


def _claimed(header: LogHeader) -> int | None:
    if header.results is None or header.results.total_samples is None:
        return None
    return header.results.total_samples // max(1, header.eval.config.epochs or 1)


def _numbers(dataset: Dataset, samples: Iterable[Sample]) -> dict[int | str, int]:
    """Return the places of samples in the published order, from 0, by their ids."""
    # Ids that Inspect gave count from 1, before it shuffles.
    numbers: dict[int | str, int] = {
        sample.id: sample.id - 1 for sample in samples if isinstance(sample.id, int)
    }
    ids = dataset.sample_ids or []
    counted = list(ids) == sorted(numbers)
    if not dataset.shuffled and not counted:
        for place, name in enumerate(ids):
            numbers[name] = place
    return numbers


def _record(where: str, model: str, sample: Sample, number: int | None) -> LogRecord:
    choices = sample.choices or []
    name = str(sample.id)
    question = _contents(_not_generated(sample.input), sample)
    turns, answer = _before_feedback(sample)
    messages = _not_generated(turns)
    return LogRecord(
        place=where,
        model=model,
        id=name,
        number=number,
        doc={"id": name} | sample_item(question, choices, sample.target),
        prompt=_contents(messages or sample.input, sample),
        offered="\n".join(choices),
        completion=_completion(sample) if answer is None else _contents([answer], sample),
        epoch=sample.epoch,
        labels=dict(zip(LETTERS, choices, strict=False)),
    )


def _completion(sample: Sample) -> str:
    output = sample.output or Output()
    if output.completion is not None:
        return _resolved(output.completion, sample)
    if not output.choices:
        return ""
    return _contents([output.choices[0].message], sample)


def _before_feedback(sample: Sample) -> tuple[list[Message], Message | None]:
    """Return the turns before a user speaks again, and what the model wrote last of them.

    The latter is None where no user turn follows what the model wrote.
    """
    turns = sample.messages or []
    answer: Message | None = None
    for number, message in enumerate(turns):
        if message.source == "generate":
            answer = message
        elif message.role == "user" and answer is not None:
            return turns[:number], answer
    return turns, None


def _not_generated(messages: str | Sequence[Message]) -> str | list[Message]:
    """Return what the model was shown: messages without those that it wrote.

    Logs of before 2025 do not say who wrote an assistant's turn; there the last one is
    the model's.
    """
    if isinstance(messages, str):
        return messages
    shown = [message for message in messages if message.source != "generate"]
    last = shown[-1] if shown else None
    if last is not None and last.role == "assistant" and last.source is None:
        shown.pop()
    return shown


def _contents(messages: str | Sequence[Message], sample: Sample) -> str:
    """Return the text of a prompt, which is a text or messages."""
    if isinstance(messages, str):
        return text_of(_resolved(messages, sample))
    texts = list[str]()
    for message in messages:
        content = message.content
        for part in content if isinstance(content, list) else [content]:
            text = part.get("text") if isinstance(part, dict) else part
            if isinstance(text, str):
                texts.append(_resolved(text, sample))
    return text_of(texts)


def _resolved(text: str, sample: Sample) -> str:
    key = text.removeprefix(ATTACHMENT)
    if key == text:
        return text
    return (sample.attachments or {}).get(key, text)
