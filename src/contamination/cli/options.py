"""Options that several commands share, as dataclasses whose fields become options."""

import dataclasses
import functools
import inspect
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar, get_origin, get_type_hints

import typer

from contamination.audit.export import format_of
from contamination.audit.registry import help_text
from contamination.audit.request import CHOICES, MOST_PERMUTATIONS, Axis, Request
from contamination.cli.flags import revision_of_data
from contamination.cli.hints import refuse_swapped, say_template
from contamination.errors import InputError
from contamination.files import check_directory, writing
from contamination.scoring.models import label, label_control
from contamination.testsets.registry import entries

if TYPE_CHECKING:
    from contamination.scoring.contract import Scorer
    from contamination.testsets.example_set import Declared, ExampleSet
    from contamination.testsets.variants import VariantSet

T = TypeVar("T")
WRITTEN = ("csv", "html", "output")  # options that name files
LIMITS = ("concurrency", "max_requests", "timeout", "api_key_env")  # of the client of an endpoint


def option(text: str, *names: str, **settings: Any) -> Any:
    """Return an option by its help, the names that its parameter does not give, and limits."""
    if "min" in settings:
        settings.setdefault("metavar", "N")  # the range would take the room of the help
    return typer.Option(*names, help=text, **settings)


ModelName = Annotated[
    str,
    typer.Argument(
        help="Directory, hub id, .gguf file, or smollm2-135m; with --endpoint, its name there."
    ),
]
AsJson = Annotated[bool, option("Print JSON on standard output.", "--json")]
Seed = Annotated[int, option("Seed of all that is drawn.", min=0)]
CsvFile = Annotated[Path | None, option("CSV file for the table.")]


def add_options(command: Callable[..., T]) -> Callable[..., T]:
    """Check the files that a command writes, and turn a dataclass into an option for each field."""
    given = inspect.signature(command).parameters.values()
    shared: list[Any] = [kind for p in given if dataclasses.is_dataclass(kind := p.annotation)]
    hints = {kind: get_type_hints(kind, include_extras=True) for kind in shared}
    fields = [  # one without `Annotated` is no option
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[kind][field.name],
        )
        for kind in shared
        for field in dataclasses.fields(kind)
        if get_origin(hints[kind][field.name]) is Annotated
    ]
    own = [each for each in given if each.annotation not in shared]
    parameters = [*(each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own), *fields]

    @functools.wraps(command)
    def wrapper(**arguments: Any) -> T:
        for file in _paths(value for name, value in arguments.items() if name in WRITTEN):
            _check_file(file, _paths(v for name, v in arguments.items() if name not in WRITTEN))
        chosen = {field.name: arguments.pop(field.name) for field in fields}
        return command(*(kind(**chosen) for kind in shared), **arguments)

    wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {p.name: p.annotation for p in parameters}
    return wrapper


def _paths(arguments: Iterable[Any]) -> list[Path]:
    """Return whatever could be a path."""
    listed = (value if isinstance(value, list) else [value] for value in arguments)
    return [Path(one) for each in listed for one in each if isinstance(one, str | Path)]


def _check_file(file: Path, read: list[Path]) -> None:
    """Refuse a file that cannot be written, or over what is read, before anything is computed."""
    if file.exists() and not file.is_file():
        raise InputError(f"{file} is no file that can be written to; name another")
    if file.exists() and file.resolve() in (path.resolve() for path in read):
        raise InputError(f"{file} is what is read; give another path")
    folder = next(folder for folder in file.absolute().parents if folder.exists())
    with writing(file):
        tempfile.TemporaryFile(dir=folder).close()


def template_of(typed: str | None) -> str | None:
    """Return the template that was typed: a shell passes `\\n` and `\\t` on as two letters each."""
    return typed and typed.replace("\\n", "\n").replace("\\t", "\t")


@dataclass(frozen=True)
class DataOptions:
    """Which records are examples, and how they become text."""

    template: Annotated[
        str | None,
        option(
            "Template of an example: its name, or text with {field}; default: that of a registered "
            "set, or of the layout of the records."
        ),
    ] = None
    field: Annotated[str | None, option("Field that is the whole example.")] = None
    max_records: Annotated[
        int | None, option("Records to read, from the start; default: 5,000 of a registered set.")
    ] = None
    mirror: Annotated[Path | None, option("Mirror; default: that of CONTAMINATION_DATA.")] = None
    split: Annotated[str | None, option("Split of a data set of the hub; default: test.")] = None
    data_revision: Annotated[str | None, option("Branch, tag or commit of a hub's set.")] = None

    def load(self, dataset: str, declared: "Declared | None" = None) -> "ExampleSet":
        """Open the test set; one of items, of which that is declared.

        Raises `InputError` as `open_test_set` and `open_items` do.
        """
        if self.field is not None and self.template is not None:
            raise InputError("--field and --template say the same thing: give one of them")
        template = self.template if self.field is None else f"{{{self.field}}}\n"
        chosen: dict[str, Any] = {
            "template": template_of(template),
            "max_records": self.max_records,
            "mirror": self.mirror,
            "revision": self.data_revision,
            "split": self.split,
        }
        if declared is not None:
            from contamination.testsets.variants import open_items

            with revision_of_data():
                return open_items(dataset, declared=declared, **chosen)
        from contamination.testsets.sources import open_test_set

        with revision_of_data():
            examples = open_test_set(dataset, **chosen)
        if template is None and dataset not in entries():
            say_template(dataset, examples.template)
        return examples


def _fields(text: str) -> Any:
    return option(f"{text}; may be repeated.", metavar="FIELD")


@dataclass(frozen=True)
class ItemOptions:
    """Which fields make a record an item whose options can be rearranged."""

    answer: Annotated[
        list[str] | None,
        _fields("Field that names the right option, by label, index, text or flags"),
    ] = None
    options: Annotated[
        list[str] | None,
        _fields("Field with options, as a list or one for each, or parallel to them"),
    ] = None
    other: Annotated[list[str] | None, _fields("Field that does not depend on the options")] = None

    @property
    def declared(self) -> "Declared":
        """The fields that were named."""
        from contamination.testsets.example_set import Declared

        return Declared(*(tuple(each or ()) for each in (self.answer, self.options, self.other)))


@dataclass(frozen=True)
class ModelOptions:
    """How a model is loaded, or reached."""

    revision: Annotated[str | None, option("Branch, tag or commit of a hub id.")] = None
    precision: Annotated[str, option("auto, float32, bfloat16 or float16.")] = "auto"
    attention: Annotated[str | None, option("sdpa, flash_attention_2 or eager.")] = None
    compile: Annotated[bool, option("Use torch.compile.", "--compile")] = False
    context: Annotated[int | None, option("Tokens read at once; default: all it can.")] = None
    batch_tokens: Annotated[int | None, option("Most tokens of a batch.", min=1)] = None
    trust_remote_code: Annotated[bool, option("Run its own code.", "--trust-remote-code")] = False
    endpoint: Annotated[str | None, option("URL of an OpenAI-compatible API (.../v1).")] = None
    tokenizer: Annotated[str | None, option("Its tokenizer: directory or hub id.")] = None
    concurrency: Annotated[int, option("Requests at a time.")] = 8
    max_requests: Annotated[int | None, option("Budget of requests, retries included.")] = None
    timeout: Annotated[float, option("Seconds for an answer; up to 7 tries in ten minutes.")] = (
        120.0
    )
    api_key_env: Annotated[str, option("Variable that holds the key.")] = "OPENAI_API_KEY"

    def open(self, model: str) -> "Scorer":
        """Return the scorer of a model: hub id, directory, GGUF file, or its name at `endpoint`.

        Raises InputError if the model cannot be found, or options contradict each other.
        """
        if self.endpoint is None:
            from contamination.scoring.loading import ModelSource
            from contamination.scoring.local import TransformersScorer

            if self.tokenizer is not None:
                raise InputError("--tokenizer goes with --endpoint: a local model brings its own")
            fields = {field.name for field in dataclasses.fields(ModelSource)} - {"name"}
            source = ModelSource(model, **{name: getattr(self, name) for name in fields})
            return TransformersScorer(source, batch_tokens=self.batch_tokens)
        from contamination.scoring.endpoint import EndpointScorer

        if self.tokenizer is None or self.context is None:
            raise InputError("--endpoint needs --tokenizer (directory or hub id) and --context")
        settings: dict[str, Any] = {name: getattr(self, name) for name in ("context", *LIMITS)}
        return EndpointScorer(self.endpoint, model, self.tokenizer, **settings)


@dataclass(frozen=True, kw_only=True)
class ScoringOptions(ModelOptions, DataOptions):
    """A data set under a model: the arguments MODEL and DATASET."""

    model: ModelName
    dataset: Annotated[
        str,
        typer.Argument(
            help="Test set in its own order: a registered name (`contamination data list`), a "
            ".jsonl, .json, .csv, .parquet or .txt file, lm-eval:TASK, a directory, or "
            "ORG/NAME[:CONFIG] of the hub."
        ),
    ]


@dataclass(frozen=True, kw_only=True)
class TestOptions(ModelOptions, DataOptions, Request):
    """What an audit is asked of any model and set, with the defaults of `Request`."""

    tests: Annotated[
        list[str] | None,
        option(
            f"May be repeated.\n\n\b\n{help_text().replace('(axis ', '(--axis ')}",
            "--test",
            show_default=False,
        ),
    ]
    shards: Annotated[
        int | None,
        option("Contiguous parts of the set; default: of 10 examples, 4 for other tests."),
    ]
    permutations: Annotated[
        int,
        option(
            f"Shuffled orderings of each shard to compare with, {MOST_PERMUTATIONS:,} at most; more"
            " permit a smaller p-value. Tests of pairs sample thousands of their own."
        ),
    ]
    seed: Seed
    directory: Annotated[Path, option("Where log-probabilities are kept.", "--store")]
    as_json: AsJson = False


@dataclass(frozen=True, kw_only=True)
class AuditOptions(ItemOptions, TestOptions, ScoringOptions):
    """What `test` and `score` share: a model, a set, and what they are asked."""

    axis: Annotated[
        Axis, option("Test the order of records, of the options of each item, or both combined.")
    ]
    arrangements: Annotated[
        int, option("Orders of the options of an item, the published one included.", min=2)
    ]
    keep_answer: Annotated[bool, option("Move the wrong options alone.", "--keep-answer")]
    drawn: Annotated[bool, option("A seed alone has arranged the options.", "--drawn")]
    dry_run: Annotated[bool, option("Print how much there is to score.", "--dry-run")] = False
    access: str = "logprobs"

    def __post_init__(self) -> None:
        """Check the request and --store, and call the model in tables and stores by its name."""
        refuse_swapped(self.model, self.dataset)
        check_directory(self.directory)
        object.__setattr__(self, "name", self.name or label(self.model))
        super().__post_init__()

    def prepare(
        self, control: str | None = None
    ) -> tuple[list[Self], "ExampleSet", "VariantSet | None"]:
        """Return what is asked of the model and of a control, the set, and its arrangements.

        Those are None where the order of records is tested alone. Bad input is reported here,
        before torch is imported.
        """
        requests = [self]
        if control is not None:
            beside = label_control(control, self.model)
            requests.append(dataclasses.replace(self, model=control, name=beside))
        if self.axis == "order":
            if any(dataclasses.astuple(self.declared)):
                raise InputError("--answer, --options and --other need --axis options")
            return requests, self.load(self.dataset), None
        examples = self.load(self.dataset, self.declared)
        count = self.arrangements if self.access == "logprobs" else CHOICES
        asked, typed = dataclasses.replace(self, arrangements=count), self.template or self.field
        template = examples.template if typed else None
        return requests, examples, asked.alternatives(examples, template=template)


@dataclass(frozen=True, kw_only=True)
class TestedOptions(AuditOptions):
    """What `test` takes: log-probabilities as `score`, or what the model writes."""

    access: Annotated[
        Literal["logprobs", "generate"],
        option(
            "What the model gives: log-probabilities, or text alone, which it continues after each "
            "record (--axis options: asked which arrangement is the published one)."
        ),
    ] = "logprobs"
    quiz: Annotated[
        bool, option("With --access generate: ask which of four records comes next.", "--quiz")
    ] = False
    samples: Annotated[int, option("With --access generate: texts a record.")] = 16
    tokens: Annotated[
        int | None, option("Tokens of a text; default: 16, and 4 of an answer to a quiz.")
    ] = None
    temperature: Annotated[float, option("Temperature of its sampling.")] = 0.8
    output: Annotated[
        list[Path] | None,
        option(
            "File for the result, by its name: .json, .eee.json (Every Eval Ever), .conda.csv "
            "(CONDA's database), .md (a model card); may be repeated."
        ),
    ] = None
    price_in: Annotated[float | None, option("Price of a million tokens read.", min=0)] = None
    price_out: Annotated[float | None, option("Price of a million written.", min=0)] = None

    def __post_init__(self) -> None:
        """Check the names of files, too, and refuse what does not go with the access."""
        super().__post_init__()
        for path in self.output or ():
            format_of(path)
        for name in ("quiz", "samples", "tokens", "temperature", "price_in", "price_out"):
            if self.access == "logprobs" and getattr(self, name) != getattr(TestedOptions, name):
                typed = name.replace("_", "-")
                raise InputError(f"--{typed} goes with --access generate: give both")
        if self.quiz and self.axis != "order":
            raise InputError("--quiz asks for the order of records: leave out --axis")
        if self.access == "generate" and self.endpoint and (self.tokenizer or self.context):
            raise InputError(
                "--tokenizer and --context are for log-probabilities: with --access generate the "
                "endpoint is sent text; leave them out"
            )

    @property
    def written(self) -> dict[str, Any]:
        """What is to be written, as `GenerationAudit` has it; InputError for what cannot be."""
        from contamination.scoring.generation import ONE_LETTER, Sampling

        if self.quiz or self.axis == "options":
            asked = (self.samples, self.temperature)
            if asked != (TestedOptions.samples, TestedOptions.temperature):
                raise InputError("--samples, --temperature: the quiz asks for one letter")
            sampling = ONE_LETTER
        else:
            sampling = Sampling(samples=self.samples, temperature=self.temperature)
        if self.tokens is not None:
            sampling = dataclasses.replace(sampling, tokens=self.tokens)
        return {"sampling": sampling, "next_record": self.quiz}

    def open(self, model: str) -> Any:
        """Return the scorer of a model or, by --access, its generator; errors as without that."""
        if self.access == "logprobs":
            return super().open(model)
        from contamination.scoring import generation

        if self.endpoint is None:
            scorer: Any = super().open(model)
            return generation.LocalGenerator(scorer, model)
        asked = "" if self.quiz or self.axis == "options" else generation.CONTINUE
        limits = {name: getattr(self, name) for name in LIMITS}
        return generation.EndpointGenerator(self.endpoint, model, instruction=asked, **limits)
