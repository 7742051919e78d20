"""Options that several commands share, as dataclasses whose fields become options."""

import dataclasses
import functools
import inspect
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_origin, get_type_hints

import typer

from contamination.audit.battery import help_text, names_of
from contamination.audit.request import MOST_PERMUTATIONS, Axis, Request
from contamination.errors import InputError
from contamination.scoring.models import label

if TYPE_CHECKING:
    from contamination.scoring.contract import Scorer
    from contamination.testsets.example_set import ExampleSet

R = TypeVar("R")
ModelName = Annotated[
    str, typer.Argument(help="Directory, hub id or .gguf file; with --endpoint, its name there.")
]
AnswerFields = Annotated[
    list[str] | None,
    typer.Option(
        "--answer",
        metavar="FIELD",
        help="Field of an item that names the right option, by label, index from 0, text, or a "
        "flag for each; choices.correct is one within choices. May be repeated.",
    ),
]
OptionsFields = Annotated[
    list[str] | None,
    typer.Option(
        "--options",
        metavar="FIELD",
        help="Field with the options of an item, as a list or one for each; a second list is "
        "parallel to them. May be repeated.",
    ),
]
OtherFields = Annotated[
    list[str] | None,
    typer.Option(
        "--other",
        metavar="FIELD",
        help="Field that does not depend on the options, whatever it looks like. May be repeated.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]


def _require_writable(path: Path | None) -> Path | None:
    """Refuse a path that no table can be written to before anything is computed for it."""
    if path is None:
        return None
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is no file that a table can be written to; give another path")
    folder = next(folder for folder in path.absolute().parents if folder.exists())
    try:
        with tempfile.TemporaryFile(dir=folder):
            return path
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written ({error.strerror}); give another path"
        ) from error


CsvFile = Annotated[
    Path | None, typer.Option(help="CSV file for the table.", callback=_require_writable)
]


def add_options(command: Callable[..., R]) -> Callable[..., R]:
    """Turn the first parameter of a command, a dataclass, into one option for each field."""
    first, *own = inspect.signature(command).parameters.values()
    hints = get_type_hints(first.annotation, include_extras=True)
    fields = [  # one without `Annotated` is no option
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=first.empty if field.default is dataclasses.MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in dataclasses.fields(first.annotation)
        if get_origin(hints[field.name]) is Annotated
    ]
    parameters = [*(p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own), *fields]

    @functools.wraps(command)
    def wrapper(**arguments: Any) -> R:
        _require_new(arguments.get("csv"), arguments)
        options = first.annotation(**{field.name: arguments.pop(field.name) for field in fields})
        return command(options, **arguments)

    wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {p.name: p.annotation for p in parameters}
    return wrapper


def _require_new(table: Path | None, arguments: Mapping[str, Any]) -> None:
    """Refuse to write a table over a file that the command reads."""
    if table is None or not table.exists():
        return
    for name, value in arguments.items():
        path = Path(value) if name != "csv" and isinstance(value, str | Path) else None
        if path is not None and path.is_file() and table.samefile(path):
            raise InputError(f"--csv {table} is what is read; give another path")


def template_of(typed: str | None) -> str | None:
    """Return the template that was typed: a shell passes `\\n` and `\\t` on as two letters each."""
    return typed and typed.replace("\\n", "\n").replace("\\t", "\t")


def _option(panel: str, text: str, *names: str, least: int | None = None) -> Any:
    shown = None if least is None else "N"  # the range would take the room of the help
    return typer.Option(*names, help=text, rich_help_panel=panel, min=least, metavar=shown)


_model = functools.partial(_option, "How to load the model")
_endpoint = functools.partial(_option, "Models behind an endpoint")
_data = functools.partial(_option, "The test set")


@dataclass(frozen=True)
class DataOptions:
    """Which records are examples, and how they become text."""

    template: Annotated[
        str | None,
        _data("Template of an example, by name or as text with {field}; default: the set's own."),
    ] = None
    field: Annotated[str | None, _data("Field that is the whole example.")] = None
    max_records: Annotated[
        int | None,
        _data("Most records to read, from the start; default: 5,000 of a registered set."),
    ] = None
    mirror: Annotated[
        Path | None, _data("Directory with registered sets; default: that of CONTAMINATION_DATA.")
    ] = None
    split: Annotated[str | None, _data("Split of a data set of the hub; default: test.")] = None
    data_revision: Annotated[
        str | None, _data("Branch, tag or commit of a data set of the hub.")
    ] = None
    answer: AnswerFields = None
    options: OptionsFields = None
    other: OtherFields = None

    def load(self, dataset: str, *, items: bool = False) -> "ExampleSet":
        """Open the test set, one of `items` if their options matter.

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
        if items:
            from contamination.testsets.alternatives import open_items
            from contamination.testsets.example_set import Declared

            named = (tuple(fields or ()) for fields in (self.answer, self.options, self.other))
            return open_items(dataset, declared=Declared(*named), **chosen)
        if self.answer or self.options or self.other:
            raise InputError("--answer, --options and --other are about items: give --axis options")
        from contamination.testsets.sources import open_test_set

        return open_test_set(dataset, **chosen)


@dataclass(frozen=True)
class ModelOptions:
    """How a model is loaded, or reached."""

    revision: Annotated[str | None, _model("Branch, tag or commit of a hub id.")] = None
    precision: Annotated[str, _model("auto, float32, bfloat16 or float16.")] = "auto"
    device_map: Annotated[
        str | None,
        _model(
            "Spread a model larger than one device over all of them: auto, balanced, "
            "balanced_low_0 or sequential."
        ),
    ] = None
    bits: Annotated[str | None, _model("Quantise to 8 or 4 bits (bitsandbytes).")] = None
    attention: Annotated[
        str | None, _model("Attention of transformers: sdpa, flash_attention_2, eager.")
    ] = None
    compile: Annotated[bool, _model("Use torch.compile.", "--compile")] = False
    context: Annotated[
        int | None, _model("Tokens read at once, if fewer than the model allows.")
    ] = None
    batch_tokens: Annotated[int | None, _model("Most tokens of a batch.", least=1)] = None
    trust_remote_code: Annotated[
        bool, _model("Run the code that comes with the model.", "--trust-remote-code")
    ] = False
    endpoint: Annotated[
        str | None,
        _endpoint(
            "URL of an OpenAI-compatible API, such as http://localhost:8000/v1, or SGLang's own: "
            "http://localhost:30000/generate."
        ),
    ] = None
    tokenizer: Annotated[str | None, _endpoint("The model's tokenizer: directory or hub id.")] = (
        None
    )
    concurrency: Annotated[int, _endpoint("Requests at a time.")] = 8
    max_requests: Annotated[int | None, _endpoint("Budget of requests, retries included.")] = None
    timeout: Annotated[
        float,
        _endpoint(
            "Seconds for an answer of at most 1 MiB, and 1 KiB more per token of --context. A "
            "request is tried up to 7 times, within 5 times as long."
        ),
    ] = 120.0
    api_key_env: Annotated[str, _endpoint("Environment variable that holds the key.")] = (
        "OPENAI_API_KEY"
    )

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
            raise InputError(
                "--endpoint needs --tokenizer (directory or hub id) and --context (tokens read at "
                "once)"
            )
        names = ("context", "concurrency", "max_requests", "timeout", "api_key_env")
        settings: dict[str, Any] = {name: getattr(self, name) for name in names}
        return EndpointScorer(self.endpoint, model, self.tokenizer, **settings)


@dataclass(frozen=True, kw_only=True)
class ScoringOptions(ModelOptions, DataOptions):
    """A data set under a model: the arguments MODEL and DATASET."""

    model: ModelName
    dataset: Annotated[
        str,
        typer.Argument(
            help="Test set in its own order: a registered name (`contamination data list`), a "
            ".jsonl, .json, .csv, .parquet or .txt file, a directory, or ORG/NAME[:CONFIG] of the "
            "hub."
        ),
    ]


@dataclass(frozen=True, kw_only=True)
class AuditOptions(ScoringOptions, Request):
    """What `test` and `score` share: all that an audit is asked, with the defaults of `Request`."""

    tests: Annotated[
        list[str] | None,
        typer.Option("--test", help=f"May be repeated.\n\n{help_text()}", show_default=False),
    ]
    axis: Annotated[
        Axis,
        typer.Option(
            help="The order to test: that of the records, that of the options of each "
            "multiple-choice item, or both, combined into one p-value."
        ),
    ]
    shards: Annotated[
        int | None,
        typer.Option(
            help="Contiguous parts of the set; default: 10 examples each, 4 for other tests."
        ),
    ]
    budget: Annotated[
        int | None,
        typer.Option(
            help=f"Most tokens to read for a test: {names_of('successors')} take the largest "
            "shards that cost no more."
        ),
    ]
    permutations: Annotated[
        int,
        typer.Option(
            help=f"Shuffled orderings of each shard to compare with, {MOST_PERMUTATIONS:,} at "
            "most. More of them permit a smaller p-value: with two shards and 25 orderings an "
            f"exact one is never below 1 / (26 × 26). {names_of('successors')} sample thousands "
            "of their own instead."
        ),
    ]
    arrangements: Annotated[
        int,
        typer.Option(
            help="Orders of the options of an item to compare, the published one included; 24 "
            "are all of four options.",
            min=2,
            metavar="N",
        ),
    ]
    keep_answer: Annotated[
        bool,
        typer.Option(
            "--keep-answer", help="Leave the right option at its letter, and move only the others."
        ),
    ]
    drawn: Annotated[
        bool,
        typer.Option(
            "--drawn", help="A seed, and no author, has arranged the options of every item."
        ),
    ]
    seed: Annotated[int, typer.Option(help="Seed of the shuffled orderings.", min=0, metavar="N")]
    directory: Annotated[
        Path, typer.Option("--store", help="Where log-probabilities are kept and found again.")
    ]
    as_json: AsJson = False
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print how much there is to score, and about how long."),
    ] = False

    def __post_init__(self) -> None:
        """Check the request, and call the model in tables and stores what the user calls it."""
        object.__setattr__(self, "name", self.name or label(self.model))
        super().__post_init__()
