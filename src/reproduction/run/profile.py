"""A profile, which fixes all that a run depends on but code, and its files.

`base: NAME` takes every key that the file does not give from the profile of that name
beside it. An unknown key is an error: a misspelt parameter that is silently ignored
makes a result look like one that it is not. A profile without a corpus trains nothing.
Its notebooks are those that it lists, and they read models that others have released.
The stages of others write, in this order::

    build/<profile>/corpus/       documents.jsonl, canaries/*.jsonl, left_over/*.jsonl, tokenizer/,
                                  corpus.json
    build/<profile>/released/     of a profile that trains a released model further: its files
    build/<profile>/models/       contaminated/, clean/, and clean-<width>/ for each further size

Training needs no more than these `RunFiles`; `reproduction.run.experiment` adds what
was scored.
"""

from collections.abc import Mapping
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from contamination.errors import InputError
from contamination.files import read_json, read_yaml
from contamination.testsets.example_set import ExampleSet, make_test_set
from contamination.testsets.records import read_records
from reproduction.run.injection import Planting

MODELS = ("contaminated", "clean")
STRICT = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
Count = Annotated[int, Field(strict=True, ge=1)]
Whole = Annotated[int, Field(strict=True, ge=0)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]


@dataclass(frozen=True, config=STRICT)
class CorpusSpec:
    """The text that the models are trained on.

    `packages` are harvested for docstrings; `files` (.txt, or .jsonl with a `text`
    field) are read from the data directory. Documents are shuffled with the seed and
    taken until `characters` are reached. Canary records are made from the packages
    `held_out`.
    """

    packages: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    held_out: tuple[str, ...] = ()
    characters: Count | None = None
    vocabulary: Count = 4096

    def __post_init__(self) -> None:
        """Refuse both sources, and none."""
        if bool(self.packages) == bool(self.files):
            raise ValueError("give either packages or files")


@dataclass(frozen=True, config=STRICT)
class CanarySpec:
    """One canary set: either records of a `kind` made from held-out packages, or a file.

    A `file` lies in the data directory and is rendered by `template`; its first
    `examples` records are used. The set is injected `dup_count` times, as
    `reproduction.run.injection` says.
    """

    name: str
    examples: Count
    dup_count: Whole
    kind: Literal["signature", "question", "parameter", "medium", "long"] | None = None
    file: str | None = None
    template: str | None = None
    planting: Planting = "whole"

    def __post_init__(self) -> None:
        """Refuse both origins, and none."""
        is_made_here = bool(self.kind) and not self.file and not self.template
        is_from_file = not self.kind and bool(self.file) and bool(self.template)
        if not is_made_here and not is_from_file:
            raise ValueError(
                f"canary set {self.name!r}: give a kind, or file and template",
            )


@dataclass(frozen=True, config=STRICT)
class Architecture:
    """Shape of a GPT-2 model; the names are those of `transformers.GPT2Config`."""

    n_embd: Count
    n_layer: Count
    n_head: Count
    n_positions: Count


@dataclass(frozen=True, config=STRICT)
class Released:
    """A released model, by name, path or hub id, which reads on in the corpus.

    It reads blocks of `n_positions` tokens of its own tokenizer.
    """

    released: str
    n_positions: Count


def _kind_of_model(model: Any) -> str:
    if isinstance(model, dict) and "released" in model:
        return "further"
    return "scratch"


Model = Annotated[
    Annotated[Architecture, Tag("scratch")] | Annotated[Released, Tag("further")],
    Discriminator(_kind_of_model),
]
# of a place in a profile, which no file has
PARTS = ("pretraining", "scratch", "further")


@dataclass(frozen=True, config=STRICT)
class TrainingSpec:
    """Hyper-parameters of pre-training (Oren, section 4.1 and appendix).

    `batch_size` counts blocks of the context length per optimiser step over all
    processes; a process runs them up to `micro_batch_size` at a time. The learning rate
    warms up linearly over `warmup_steps`, then follows a cosine down to a tenth. A
    checkpoint is written every `checkpoint_steps`.
    """

    batch_size: Count
    micro_batch_size: Count
    learning_rate: Number
    weight_decay: Number
    warmup_steps: Whole
    checkpoint_steps: Count


@dataclass(frozen=True, config=STRICT)
class ScoringSpec:
    """Shards, permutations per shard, and permutations of the whole set (Oren 3.1 and 3.2)."""

    shards: Count
    permutations: Count
    whole_set_permutations: Count


@dataclass(frozen=True, config=STRICT)
class Pretraining:
    """Corpus, canary sets, models, training and scoring of a profile.

    `sizes` are shapes of further models, each of another width, that read the clean
    text, too.
    """

    corpus: CorpusSpec
    canaries: Annotated[tuple[CanarySpec, ...], Field(min_length=1)]
    model: Model
    training: TrainingSpec
    scoring: ScoringSpec
    sizes: tuple[Architecture, ...] = ()

    def __post_init__(self) -> None:
        """Refuse sets and models that cannot be told apart."""
        names = [spec.name for spec in self.canaries]
        if len(names) > len(set(names)):
            raise ValueError(
                f"two canary sets have one name; they are {', '.join(sorted(names))}",
            )
        shapes = [s for s in (self.model, *self.sizes) if isinstance(s, Architecture)]
        widths = [shape.n_embd for shape in shapes]
        if len(widths) > len(set(widths)):
            raise ValueError(
                f"two models have one n_embd of {sorted(widths)}; give each its own",
            )


@dataclass(frozen=True, config=STRICT)
class Profile:
    """A parsed profile, named by its file; everything random derives from its seed.

    `notebooks` maps the name of a notebook to its parameters, which are checked against
    the notebook when it runs. Without `pretraining` there are neither canary sets nor
    sizes, and the other parts of it raise InputError.
    """

    name: str
    seed: Whole
    notebooks: Mapping[str, Mapping[str, Any]]
    pretraining: Pretraining | None = None

    @property
    def corpus(self) -> CorpusSpec:
        """Return the description of the text that the models are trained on."""
        return self.require_pretraining().corpus

    @property
    def canaries(self) -> tuple[CanarySpec, ...]:
        """Return the canary sets, in the order of the file."""
        return self.pretraining.canaries if self.pretraining else ()

    @property
    def model(self) -> Architecture | Released:
        """Return the shape of both models, or the released model that they start from."""
        return self.require_pretraining().model

    @property
    def scoring(self) -> ScoringSpec:
        """Return the shards and permutations with which the canary sets are scored."""
        return self.require_pretraining().scoring

    def require_pretraining(self) -> Pretraining:
        """Return the description of the training. Raise InputError if the profile has none."""
        if self.pretraining is None:
            raise InputError(
                f"profile {self.name} has no corpus and trains no model: choose another PROFILE",
            )
        return self.pretraining


def load_profile(path: Path) -> Profile:
    """Read and check a profile; one that trains nothing has to list notebooks.

    Raises InputError if there is no such profile or base, the YAML is malformed, or a
    key is unknown, missing, mistyped or against what the parts above say.
    """
    settings = _read(path)
    reserved = {"name", "pretraining"} & set(settings)
    if reserved:
        raise InputError(f"{path}: unknown key {min(reserved)!r}; remove it")
    pretraining = {}
    for field in fields(Pretraining):
        if field.name in settings:
            pretraining[field.name] = settings.pop(field.name)
    settings["name"] = path.stem
    settings["pretraining"] = pretraining or None
    try:
        profile = TypeAdapter(Profile).validate_python(settings)
    except ValidationError as error:
        raise InputError(f"{path}: {first_mistake(error)}") from error
    if not pretraining and not profile.notebooks:
        raise InputError(f"{path}: without a corpus, list the notebooks that are to run")
    return profile


def _read(path: Path, *above: str) -> dict[str, Any]:
    """Read a profile and its bases; `above` names the profiles that build on it."""
    if not path.is_file() or path.stem in above:
        siblings = {file.stem for file in path.parent.glob("*.yaml")}
        known = ", ".join(sorted(siblings - set(above))) or "none"
        raise InputError(f"unknown profile {path.stem!r}: {path.parent} has {known}")
    settings = read_yaml(path)
    if not isinstance(settings, dict) or not all(isinstance(key, str) for key in settings):
        raise InputError(f"{path}: write `key: value` lines; see profiles/laptop.yaml")
    base = settings.pop("base", None)
    if not base:
        return settings
    base_path = path.parent / f"{base}.yaml".replace("/", " ")  # a name, no path
    return _read(base_path, path.stem, *above) | settings


def first_mistake(error: ValidationError) -> str:
    """Return the key of the first mistake and its fault, in one line."""
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"] if part not in PARTS)
    problem = first["msg"].removeprefix("Value error, ")
    return " ".join(f"{place}: {problem}".removeprefix(": ").split())


class RunFiles:
    """Paths and contents of one run: its profile, and its directory in `build`."""

    def __init__(self, profile: Path | str, build: Path | str) -> None:
        self.file = Path(profile)
        self.profile: Profile = load_profile(self.file)
        self.build = Path(build)
        self.corpus = self.build / "corpus"
        self.released = self.build / "released"

    @cached_property
    def corpus_facts(self) -> dict[str, Any]:
        """Return sizes, versions and checksums, as the corpus stage recorded them."""
        self.require_corpus()
        return dict(read_json(self.corpus / "corpus.json"))

    def require_corpus(self) -> None:
        """Raise InputError if the profile has no corpus, or it is not finished."""
        self.profile.require_pretraining()
        path = self.corpus / "corpus.json"
        if not path.exists():
            raise InputError(
                f"{path} is missing: run `make reproduce` or the corpus stage first",
            )

    def spec(self, name: str) -> CanarySpec:
        """Return the canary set of that name, as the profile describes it."""
        specs = {spec.name: spec for spec in self.profile.canaries}
        if name not in specs:
            known = f"it has {', '.join(specs) or 'none'}"
            raise InputError(
                f"profile {self.profile.name} has no canary set {name!r}; {known}",
            )
        return specs[name]

    @property
    def shapes(self) -> dict[str, Architecture | Released]:
        """Return the shape or start of every model: of `MODELS`, then of the further sizes."""
        pretraining = self.profile.pretraining
        if pretraining is None:
            return {}
        shapes: dict[str, Architecture | Released] = dict.fromkeys(
            MODELS,
            pretraining.model,
        )
        for shape in pretraining.sizes:
            shapes[f"clean-{shape.n_embd}"] = shape
        return shapes

    @property
    def sizes(self) -> tuple[str, ...]:
        """Return the names of the models that read the clean text in other sizes."""
        return tuple(self.shapes)[len(MODELS) :]

    def model(self, name: str) -> Path:
        """Return the directory of a model; raise InputError if none is trained."""
        self.profile.require_pretraining()
        if name not in self.shapes:
            raise InputError(
                f"unknown model {name!r}: choose one of {', '.join(self.shapes)}",
            )
        return self.build / "models" / name

    def test_set(self, name: str) -> ExampleSet:
        """Load a canary set as a test set, in canonical order."""
        path = self.corpus / "canaries" / f"{self.spec(name).name}.jsonl"
        template = self.corpus_facts["canaries"][name]["template"]
        return make_test_set(name, read_records(path), template, str(path))
