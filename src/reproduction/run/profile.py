"""A profile: one YAML file that fixes everything a run depends on but the code.

`base: NAME` takes every key that the file does not give from the profile of that name beside it. An
unknown key is an error: a misspelt parameter that is silently ignored makes a result look like one
that it is not.

A profile without a corpus trains nothing. Its notebooks are those that it lists, and they read
models that others have released.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import yaml

from contamination.errors import InputError

T = TypeVar("T")


@dataclass(frozen=True)
class CorpusSpec:
    """What the models are trained on.

    `packages` are harvested for docstrings; `files` (.txt, or .jsonl with a `text` field) are read
    from the data directory. Documents are shuffled with the seed and taken until `characters` are
    reached. Canary records are made from the packages `held_out`.
    """

    packages: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    held_out: tuple[str, ...] = ()
    characters: int | None = None
    vocabulary: int = 4096


@dataclass(frozen=True)
class CanarySpec:
    """One canary set: either records of a `kind` made from held-out packages, or a file.

    A `file` lies in the data directory and is rendered by `template`; its first `examples` records
    are used. The set is injected `dup_count` times.
    """

    name: str
    examples: int
    dup_count: int
    kind: str | None = None
    file: str | None = None
    template: str | None = None


@dataclass(frozen=True)
class Architecture:
    """Shape of a GPT-2 model; the names are those of `transformers.GPT2Config`."""

    n_embd: int
    n_layer: int
    n_head: int
    n_positions: int


@dataclass(frozen=True)
class TrainingSpec:
    """Hyper-parameters of pre-training (Oren, section 4.1 and appendix).

    `batch_size` counts blocks of the context length per optimiser step over all processes; a
    process runs them up to `micro_batch_size` at a time. The learning rate warms up linearly over
    `warmup_steps`, then follows a cosine down to a tenth. A checkpoint is written every
    `checkpoint_steps`.
    """

    batch_size: int
    micro_batch_size: int
    learning_rate: float
    weight_decay: float
    warmup_steps: int
    checkpoint_steps: int


@dataclass(frozen=True)
class ScoringSpec:
    """Shards, permutations per shard, and permutations of the whole set (Oren 3.1 and 3.2)."""

    shards: int
    permutations: int
    whole_set_permutations: int


@dataclass(frozen=True)
class Pretraining:
    """What the models of a profile are trained on and scored on.

    `sizes` are shapes of further models, each of another width, that read the clean text, too.
    """

    corpus: CorpusSpec
    canaries: tuple[CanarySpec, ...]
    model: Architecture
    training: TrainingSpec
    scoring: ScoringSpec
    sizes: tuple[Architecture, ...] = ()


@dataclass(frozen=True)
class Profile:
    """A parsed profile, named by its file; everything random derives from its seed.

    `notebooks` maps the name of a notebook to its parameters, which are checked against the
    notebook when it runs. Without `pretraining` there are neither canary sets nor sizes, and the
    other parts of it raise InputError.
    """

    name: str
    seed: int
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
    if "name" in data:
        raise InputError(f"{path}: unknown key 'name'; the file's own name is the profile's")
    profile = _profile(data, path)
    if profile.pretraining is None:
        if not profile.notebooks:
            raise InputError(f"{path}: without a corpus, list the notebooks that are to run")
        return profile
    names = [spec.name for spec in profile.canaries]
    if repeated := sorted({n for n in names if names.count(n) > 1}):
        raise InputError(f"{path}: canary set {repeated[0]!r} is named twice")
    widths = [shape.n_embd for shape in (profile.model, *profile.sizes)]
    if repeated := sorted({str(n) for n in widths if widths.count(n) > 1}):
        raise InputError(f"{path}: two models have n_embd {repeated[0]}; give each size its own")
    if bool(profile.corpus.packages) == bool(profile.corpus.files):
        raise InputError(f"{path}: give either corpus.packages or corpus.files")
    for spec in profile.canaries:
        given = [bool(spec.kind), bool(spec.file), bool(spec.template)]
        if given not in ([True, False, False], [False, True, True]):
            raise InputError(f"{path}: canary set {spec.name!r}: give a kind, or file and template")
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
    if not isinstance(data, dict):
        raise InputError(f"{path}: write `key: value` lines; see profiles/laptop.yaml")
    return data


def _profile(data: dict[str, Any], path: Path) -> Profile:
    """Sort the keys of a file: those of training, all or none, and those of every profile."""
    training = [field.name for field in fields(Pretraining)]
    known = ["seed", *training, "notebooks"]
    _refuse_unknown(data, known, str(path))
    given = {name: data.pop(name) for name in training if name in data}
    for field in fields(Pretraining) if given else ():
        if _is_missing(field, given):
            together = ", ".join(f.name for f in fields(Pretraining) if f.default is MISSING)
            raise InputError(
                f"{path}: key {field.name!r} is missing; give all of {together}, or none"
            )
    profile = _build(Profile, {**data, "name": path.stem}, str(path))
    return replace(profile, pretraining=_build(Pretraining, given, str(path))) if given else profile


def _refuse_unknown(data: Mapping[Any, Any], known: Sequence[str], where: str) -> None:
    if unknown := sorted(set(data) - set(known), key=str):
        raise InputError(f"{where}: unknown key {unknown[0]!r}; choose from {', '.join(known)}")


def _is_missing(field: Field[Any], data: Mapping[str, Any]) -> bool:
    return field.name not in data and field.default is MISSING


def _build(kind: type[T], data: Any, where: str) -> T:
    """Make a dataclass of checked values; `where` names the place in error messages."""
    if not isinstance(data, Mapping):
        raise InputError(f"{where}: write a mapping with the keys of {kind.__name__}")
    known = {f.name: f for f in fields(kind)}  # type: ignore[arg-type]
    _refuse_unknown(data, list(known), where)
    for name, field in known.items():
        if _is_missing(field, data):
            raise InputError(f"{where}: key {name!r} is missing")
    hints = get_type_hints(kind)
    values = {name: _value(hints[name], value, f"{where}: {name}") for name, value in data.items()}
    return kind(**values)


MAY_BE_ZERO = (": seed", ": warmup_steps", ": dup_count")
LISTS = {str: "names", CanarySpec: "at least one canary set", Architecture: "shapes, as of `model`"}


def _value(hint: Any, value: Any, where: str) -> Any:
    if is_dataclass(hint):
        return _build(hint, value, where)  # type: ignore[arg-type]
    if get_origin(hint) is tuple:
        kind = get_args(hint)[0]
        if not isinstance(value, list) or (kind is CanarySpec and not value):
            raise InputError(f"{where}: write a list of {LISTS[kind]}")
        return tuple(_value(kind, item, f"{where}[{i}]") for i, item in enumerate(value))
    if hint is float:
        # YAML reads 1e-3 (without a dot) as text; a person means the number.
        try:
            number = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise InputError(f"{where}: {value!r} is not a number")
        return number
    if hint in (int, int | None):
        least = 0 if where.endswith(MAY_BE_ZERO) else 1
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InputError(f"{where}: {value!r} is not a whole number of at least {least}")
        return value
    if hint in (str, str | None):
        if not isinstance(value, str):
            raise InputError(f"{where}: {value!r} is not text")
        return value
    if not isinstance(value, Mapping):
        raise InputError(f"{where}: write a mapping from notebook to parameters")
    for name, inner in value.items():
        if not isinstance(inner, Mapping):
            raise InputError(f"{where}.{name}: write a mapping of notebook parameters")
    return value
