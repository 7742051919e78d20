"""Options as typed for set, model, seal and texts, and how to open what they name."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from contamination.audit.export import FORMATS, format_of
from contamination.audit.request import Axis, Request
from contamination.cli.flags import flag_of, revision_of_data
from contamination.errors import InputError, printable
from contamination.testsets.layouts import LAYOUTS
from contamination.testsets.registry import entries
from contamination.testsets.templates import parse

if TYPE_CHECKING:
    from contamination.scoring.contract import Scorer
    from contamination.scoring.generation import Generator, Sampling
    from contamination.scoring.local import TransformersScorer
    from contamination.testsets.example_set import Declared, ExampleSet


@dataclass(frozen=True)
class SetChoice:
    """A test set, and how its records become text."""

    dataset: str
    template: str | None = None
    field: str | None = None
    max_records: int | None = None
    mirror: Path | None = None
    split: str | None = None
    data_revision: str | None = None
    answer: Sequence[str] | None = None
    options: Sequence[str] | None = None
    other: Sequence[str] | None = None

    @property
    def typed_template(self) -> str | None:
        """The template by --template or --field; None where neither was typed."""
        if self.field is not None and self.template is not None:
            raise InputError(
                "--field and --template say the same thing: give one of them",
            )
        if self.field is not None:
            return f"{{{self.field}}}\n"
        return template_of(self.template)


OF_ENDPOINTS = ("tokenizer", "concurrency", "max_requests", "timeout", "api_key_env")
OF_REFERENCES = ("precision", "attention", "compile", "batch_tokens", "trust_remote_code")


@dataclass(frozen=True)
class ModelChoice:
    """Options by which a model is loaded or reached.

    `control` names the control of the model, to which the revision does not belong.
    `reference` names a second model that is loaded here, also if an endpoint serves the
    first; it may be that control. Raises InputError for a choice that neither model has a use for.
    """

    revision: str | None = None
    precision: str = "auto"
    attention: str | None = None
    compile: bool = False
    context: int | None = None
    batch_tokens: int | None = None
    trust_remote_code: bool = False
    endpoint: str | None = None
    tokenizer: str | None = None
    concurrency: int = 8
    max_requests: int | None = None
    timeout: float = 120.0
    api_key_env: str = "OPENAI_API_KEY"
    control: str | None = None
    reference: str | None = None

    def __post_init__(self) -> None:
        """Refuse what would do nothing."""
        unused: tuple[str, ...] = ("revision",)
        if self.endpoint is None:
            unused = OF_ENDPOINTS
        elif self.reference is None:
            unused = ("revision", *OF_REFERENCES)
        for field in fields(self):
            if field.name not in unused or getattr(self, field.name) == field.default:
                continue
            flag = flag_of(field.name)
            if self.endpoint is None:
                raise InputError(f"{flag} goes with --endpoint: give both, or leave it out")
            raise InputError(
                f"{flag} is for a model that is loaded here: leave it out with --endpoint",
            )

    def of_model(self, name: str) -> "ModelChoice":
        """Return how a model or its control is loaded or reached, by the name as typed."""
        if self.endpoint is not None and name == self.reference:
            return self.of_reference()
        if name == self.control:
            return replace(self, revision=None)
        return self

    def of_reference(self) -> "ModelChoice":
        """Return how a second model is loaded here, whatever serves the first one."""
        return ModelChoice(
            precision=self.precision,
            attention=self.attention,
            compile=self.compile,
            batch_tokens=self.batch_tokens,
            trust_remote_code=self.trust_remote_code,
        )


def reference_of(control: str | None, endpoint: str | None) -> str | None:
    """Return the control if it lies on this machine, and an endpoint serves the model.

    Every other name of a control beside an endpoint is a name at the endpoint.
    """
    if control is None or endpoint is None or not Path(control).exists():
        return None
    return control


@dataclass(frozen=True)
class SealChoice:
    """Statements of an author about a set that is sealed or committed to."""

    template: str | None = None
    axis: Literal["order", "both"] = "both"
    wordings_of: str | None = None
    answers: str | None = None
    tests: Sequence[str] | None = None
    shards: int | None = None
    permutations: int = 25
    arrangements: int = 24
    alpha: float = 0.05
    hold_out: int | None = None
    scores: Sequence[str] | None = None
    commit: bool = False
    beacon_round: int | None = None
    answer: Sequence[str] | None = None
    options: Sequence[str] | None = None
    other: Sequence[str] | None = None

    @property
    def request(self) -> Request:
        """The stated tests; raises InputError for what is no test."""
        return Request(
            tests=self.tests,
            shards=self.shards,
            permutations=self.permutations,
            arrangements=self.arrangements,
        )


@dataclass(frozen=True)
class TextChoice:
    """Options of the texts that a model is to write."""

    quiz: bool = False
    samples: int = 16
    tokens: int | None = None
    temperature: float = 0.8
    price_in: float | None = None
    price_out: float | None = None


def template_of(typed: str | None) -> str | None:
    """Return the template that was typed, with real line ends and tabs.

    A shell passes `\\n` and `\\t` on as two letters each.
    """
    if typed is None:
        return None
    return typed.replace("\\n", "\n").replace("\\t", "\t")


def declared_of(
    answer: Sequence[str] | None,
    options: Sequence[str] | None,
    other: Sequence[str] | None,
) -> "Declared":
    """Return the fields of items that were declared, as `Declared` has them."""
    from contamination.testsets.example_set import Declared

    return Declared(
        answer=tuple(answer or ()),
        options=tuple(options or ()),
        other=tuple(other or ()),
    )


def open_set(choice: SetChoice) -> "ExampleSet":
    """Open the test set, for the order of its records.

    Raises `InputError` as `contamination.testsets.sources.open_test_set` does.
    """
    from contamination.testsets.sources import open_test_set

    template = choice.typed_template
    with revision_of_data():
        examples = open_test_set(
            choice.dataset,
            template=template,
            max_records=choice.max_records,
            mirror=choice.mirror,
            revision=choice.data_revision,
            split=choice.split,
        )
    if template is None and choice.dataset not in entries():
        say_template(choice.dataset, examples.template)
    return examples


def say_template(dataset: str, template: str) -> None:
    """Print the template that the layout of the records chose, if it is unusual."""
    # the first process speaks
    if template == LAYOUTS[0] or os.environ.get("RANK", "0") != "0":
        return
    chosen = parse(template)
    fields = dict.fromkeys(field.name.partition("[")[0] for field in chosen.listed)
    print(
        f"{printable(dataset)}: template {template}, {chosen.pattern!r}, since the "
        f"records have {', '.join(fields)}; --template gives another",
        file=sys.stderr,
    )


def open_set_of_items(choice: SetChoice) -> "ExampleSet":
    """Open the test set, for the order of the options of its items.

    Raises `InputError` as `contamination.testsets.item_sets.open_items` does.
    """
    from contamination.testsets.item_sets import open_items

    with revision_of_data():
        return open_items(
            choice.dataset,
            template=choice.typed_template,
            declared=declared_of(choice.answer, choice.options, choice.other),
            max_records=choice.max_records,
            mirror=choice.mirror,
            revision=choice.data_revision,
            split=choice.split,
        )


def open_scorer(model: str, choice: ModelChoice) -> "Scorer":
    """Return the scorer of a model.

    `model` is a hub id, a directory, a GGUF file, or its name at the endpoint. Raises
    InputError if the model is not found, or options contradict each other.
    """
    if choice.endpoint is None:
        return _open_local(model, choice)
    if choice.tokenizer is None or choice.context is None:
        raise InputError(
            "--endpoint needs --tokenizer (directory or hub id) and --context",
        )

    from contamination.scoring.endpoint import EndpointScorer

    return EndpointScorer(
        choice.endpoint,
        model,
        choice.tokenizer,
        context=choice.context,
        concurrency=choice.concurrency,
        max_requests=choice.max_requests,
        timeout=choice.timeout,
        api_key_env=choice.api_key_env,
    )


def open_generator(
    model: str,
    choice: ModelChoice,
    *,
    asks_letters: bool,
) -> "Generator":
    """Return what makes a model write, here or at the endpoint.

    `asks_letters` says whether the question is the whole prompt of a chat. Raises
    InputError if the model is not found, or options contradict each other.
    """
    from contamination.scoring.generation import (
        CONTINUE,
        EndpointGenerator,
        LocalGenerator,
    )

    if choice.endpoint is None:
        return LocalGenerator(_open_local(model, choice), model)
    return EndpointGenerator(
        choice.endpoint,
        model,
        instruction="" if asks_letters else CONTINUE,
        concurrency=choice.concurrency,
        max_requests=choice.max_requests,
        timeout=choice.timeout,
        api_key_env=choice.api_key_env,
    )


def _open_local(model: str, choice: ModelChoice) -> "TransformersScorer":
    from contamination.scoring.loading import ModelSource
    from contamination.scoring.local import TransformersScorer

    precision: Any = choice.precision  # which the source checks
    source = ModelSource(
        model,
        revision=choice.revision,
        precision=precision,
        attention=choice.attention,
        compile=choice.compile,
        context=choice.context,
        trust_remote_code=choice.trust_remote_code,
    )
    return TransformersScorer(source, batch_tokens=choice.batch_tokens)


def sampling_of(text: TextChoice, axis: Axis) -> "Sampling":
    """Return how texts are sampled; a quiz asks for one letter.

    Raises InputError for options that a quiz does not have.
    """
    from contamination.scoring.generation import ONE_LETTER, Sampling

    sampling = Sampling(samples=text.samples, temperature=text.temperature)
    if text.quiz or axis == "options":
        default = TextChoice()
        if (text.samples, text.temperature) != (default.samples, default.temperature):
            raise InputError("--samples, --temperature: the quiz asks for one letter")
        sampling = ONE_LETTER
    if text.tokens is None:
        return sampling
    return replace(sampling, tokens=text.tokens)


def check_outputs(
    files: Sequence[Path], formats: Mapping[str, Callable[[Any], str]] = FORMATS
) -> None:
    """Raise InputError for names of files that name no format."""
    for file in files:
        format_of(file, formats)
