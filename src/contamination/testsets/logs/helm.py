"""`scenario_state.json` of HELM.

What a model answered is the text of the completions. References are not read: they say
which one is right. Of a question that HELM asked in perturbed forms as well, the
unperturbed one counts.
"""

from collections import Counter
from pathlib import Path
from typing import Any

from contamination.errors import InputError
from contamination.testsets.logs.record import (
    Log,
    LogPart,
    LogRecord,
    Name,
    number_of,
    parsed,
    text_of,
)

NAME = "HELM"
FIELD = "request_states"


class Text(LogPart):
    """A question, or one of its references."""

    text: str = ""


class Perturbation(LogPart):
    """The change of a question."""

    name: str = ""


class Instance(LogPart):
    """A question."""

    id: str
    input: Text = Text()
    perturbation: Perturbation | None = None


class Request(LogPart):
    """The request that the model received."""

    prompt: str = ""
    messages: list[Any] | None = None


class Result(LogPart):
    """The answer of the model."""

    completions: list[Text] | None = None


class State(LogPart):
    """A question and its answer.

    `reference_index` is given where each option is a request.
    """

    instance: Instance
    request: Request = Request()
    result: Result | None = None
    reference_index: int | None = None
    request_mode: str | None = None
    output_mapping: dict[str, str] | None = None


class Adapter(LogPart):
    """The form in which the model was asked."""

    model: Name


class Whole(LogPart):
    """The file."""

    adapter_spec: Adapter
    request_states: list[State]


def read(path: Path, value: Any) -> Log:
    """Return the records of a log, of which `value` is what the file holds.

    Raises InputError where it is none of HELM, or asks for the likelihood of each
    option alone.
    """
    whole = parsed(Whole, value, str(path), NAME)
    records = list[LogRecord]()
    epochs = Counter[str]()
    for number, state in enumerate(whole.request_states):
        if not _counts(state):
            continue
        name = state.instance.id
        for completion in _completions(state):
            epochs[name] += 1
            record = LogRecord(
                place=f"{path}, request_states.{number}",
                model=whole.adapter_spec.model,
                id=name,
                number=number_of(name),
                doc={"id": name, "input": state.instance.input.text},
                prompt=text_of([state.request.prompt, state.request.messages]),
                offered=text_of(state.output_mapping),
                completion=completion,
                epoch=epochs[name],
                labels=state.output_mapping or {},
            )
            records.append(record)
    if not records:
        raise InputError(
            f"{path}: no request asks for an answer in words or letters; give a log of "
            "a run that shows all options in one prompt, or of one that generates"
        )
    return Log(path, tuple(records))


def _counts(state: State) -> bool:
    """Whether a request asks the question as it is, for an answer."""
    perturbation = state.instance.perturbation
    if perturbation is not None and perturbation.name != "identity":
        return False
    return state.reference_index is None and state.request_mode != "calibration"


def _completions(state: State) -> list[str]:
    if state.result is None or not state.result.completions:
        return [""]
    return [completion.text for completion in state.result.completions]
