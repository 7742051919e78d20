"""A profile: one YAML file that fixes everything a run depends on but the code.

`base: NAME` takes every key that the file does not give from the profile of that name beside it. An
unknown key is an error: a misspelt parameter that is silently ignored makes a result look like one
that it is not.

A profile without a corpus trains nothing. Its notebooks are those that it lists, and they read
models that others have released.
"""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic.dataclasses import dataclass

from contamination.errors import InputError

STRICT = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
Count = Annotated[int, Field(strict=True, ge=1)]
Whole = Annotated[int, Field(strict=True, ge=0)]


def _no_switch(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("give a number, not true or false")
    return value


# YAML reads 1e-3 (without a dot) as text; a person means the number.
Number = Annotated[float, BeforeValidator(_no_switch), Field(allow_inf_nan=False)]


@dataclass(frozen=True, config=STRICT)
class CorpusSpec:
    """What the models are trained on.

    `packages` are harvested for docstrings; `files` (.txt, or .jsonl with a `text` field) are read
    from the data directory. Documents are shuffled with the seed and taken until `characters` are
    reached. Canary records are made from the packages `held_out`.
    """

    packages: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    held_out: tuple[str, ...] = ()
    characters: Count | None = None
    vocabulary: Count = 4096

    @model_validator(mode="after")
    def _one_source(self) -> "CorpusSpec":
        if bool(self.packages) == bool(self.files):
            raise ValueError("give either packages or files")
        return self


@dataclass(frozen=True, config=STRICT)
class CanarySpec:
    """One canary set: either records of a `kind` made from held-out packages, or a file.

    A `file` lies in the data directory and is rendered by `template`; its first `examples` records
    are used. The set is injected `dup_count` times.
    """

    name: str
    examples: Count
    dup_count: Whole
    kind: str | None = None
    file: str | None = None
    template: str | None = None

    @model_validator(mode="after")
    def _one_origin(self) -> "CanarySpec":
        given = [bool(self.kind), bool(self.file), bool(self.template)]
        if given not in ([True, False, False], [False, True, True]):
            raise ValueError(f"canary set {self.name!r}: give a kind, or file and template")
        return self


@dataclass(frozen=True, config=STRICT)
class Architecture:
    """Shape of a GPT-2 model; the names are those of `transformers.GPT2Config`."""

    n_embd: Count
    n_layer: Count
    n_head: Count
    n_positions: Count


@dataclass(frozen=True, config=STRICT)
class TrainingSpec:
    """Hyper-parameters of pre-training (Oren, section 4.1 and appendix).

    `batch_size` counts blocks of the context length per optimiser step over all processes; a
    process runs them up to `micro_batch_size` at a time. The learning rate warms up linearly over
    `warmup_steps`, then follows a cosine down to a tenth. A checkpoint is written every
    `checkpoint_steps`.
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
    """What the models of a profile are trained on and scored on.

    `sizes` are shapes of further models, each of another width, that read the clean text, too.
    """

    corpus: CorpusSpec
    canaries: Annotated[tuple[CanarySpec, ...], Field(min_length=1)]
    model: Architecture
    training: TrainingSpec
    scoring: ScoringSpec
    sizes: tuple[Architecture, ...] = ()

    @model_validator(mode="after")
    def _names_differ(self) -> "Pretraining":
        names = [spec.name for spec in self.canaries]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"canary set {repeated[0]!r} is named twice; rename one")
        widths = [shape.n_embd for shape in (self.model, *self.sizes)]
        if repeated := sorted({str(n) for n in widths if widths.count(n) > 1}):
            raise ValueError(f"two models have n_embd {repeated[0]}; give each size its own")
        return self


@dataclass(frozen=True, config=STRICT)
class Profile:
    """A parsed profile, named by its file; everything random derives from its seed.

    `notebooks` maps the name of a notebook to its parameters, which are checked against the
    notebook when it runs. Without `pretraining` there are neither canary sets nor sizes, and the
    other parts of it raise InputError.
    """

    name: str
    seed: Whole
    notebooks: Mapping[str, Mapping[str, Any]]
    pretraining: Pretraining | None = None

    @property
    def corpus(self) -> CorpusSpec:
        """What the models are trained on."""
        return self.require_pretraining().corpus

    @property
    def canaries(self) -> tuple[CanarySpec, ...]:
        """The canary sets, in the order of the file."""
        return self.pretraining.canaries if self.pretraining else ()

    @property
    def model(self) -> Architecture:
        """Shape of the two models, contaminated and clean."""
        return self.require_pretraining().model

    @property
    def training(self) -> TrainingSpec:
        """How the models are trained."""
        return self.require_pretraining().training

    @property
    def scoring(self) -> ScoringSpec:
        """How the canary sets are scored."""
        return self.require_pretraining().scoring

    @property
    def sizes(self) -> tuple[Architecture, ...]:
        """Shapes of the further models that read the clean text."""
        return self.pretraining.sizes if self.pretraining else ()

    def require_pretraining(self) -> Pretraining:
        """Return what is trained. Raises InputError if that is nothing."""
        if self.pretraining is None:
            raise InputError(
                f"profile {self.name} has no corpus and trains no model: choose another PROFILE"
            )
        return self.pretraining


def load_profile(path: Path) -> Profile:
    """Read and check a profile.

    Raises InputError if there is no such profile or base, the YAML is malformed, a key is unknown,
    missing or mistyped, a canary set is named twice or has neither kind nor file, or two models
    have one width. A profile that trains nothing has to list notebooks.
    """
    data = _read(path)
    if "base" in data:
        base = _read(path.with_name(f"{data.pop('base')}.yaml"))
        if "base" in base:
            raise InputError(f"{path}: its base has a base of its own; name that one")
        data = base | data
    if reserved := {"name", "pretraining"} & set(data):
        raise InputError(f"{path}: unknown key {min(reserved)!r}; remove it")
    trained = {
        field.name: data.pop(field.name) for field in fields(Pretraining) if field.name in data
    }
    try:
        profile = TypeAdapter(Profile).validate_python(
            {**data, "name": path.stem, "pretraining": trained or None}
        )
    except ValidationError as error:
        raise InputError(f"{path}: {_described(error)}") from error
    if not trained and not profile.notebooks:
        raise InputError(f"{path}: without a corpus, list the notebooks that are to run")
    return profile


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in path.parent.glob("*.yaml"))) or "none"
        raise InputError(f"unknown profile {path.stem!r}: {path.parent} has {known}")
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, ValueError) as error:  # ValueError: not UTF-8, or no such date
        problem = " ".join(str(error).split())
        raise InputError(f"{path}: not valid YAML: {problem}") from error
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise InputError(f"{path}: write `key: value` lines; see profiles/laptop.yaml")
    return data


def _described(error: ValidationError) -> str:
    """Name the key of the first mistake and its fix, in one line."""
    found = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in found["loc"] if part != "pretraining")
    problem = {
        "missing": "is missing; profiles/laptop.yaml shows how it is given",
        "unexpected_keyword_argument": "is unknown; remove it, or correct its spelling",
        "value_error": found["msg"].removeprefix("Value error, "),
    }.get(found["type"], f"{found['msg']}, not {str(found['input'])[:60]!r}")
    return " ".join(f"{place}: {problem}".removeprefix(": ").split())
