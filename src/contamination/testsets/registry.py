"""The data registry: where each public test set comes from, and its checksum.

`data/registry.yaml` is the table; the file next to this module is a link to it, so that
an installed package finds it too. The environment variable CONTAMINATION_REGISTRY names
another table that takes its place, such as one with the addresses of a mirror in one's
own network.
"""

import difflib
import json
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from contamination.errors import InputError
from contamination.files import read_yaml
from contamination.testsets.inside import is_inner_name

if TYPE_CHECKING:
    from pydantic import TypeAdapter

REGISTRY = Path(__file__).with_name("registry.yaml")
REGISTRY_VARIABLE = "CONTAMINATION_REGISTRY"
FIRST = 5000  # Oren et al. take at most this number of examples, from the start of a set

Fields = dict[str, Any]


@dataclass(frozen=True)
class Hub:
    """A data set of the hub.

    `revision` None is its main branch, resolved when it is fetched.
    """

    id: str
    config: str | None = None
    revision: str | None = None
    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    def __str__(self) -> str:
        """Return what messages and notes call it."""
        config = f":{self.config}" if self.config else ""
        commit = f"@{self.revision}" if self.revision else ""
        return f"hub {self.id}{config}{commit}"


@dataclass(frozen=True)
class Url:
    """A file behind an address, or the `member` of that name in a zip archive there."""

    url: str
    member: str | None = None
    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    def __str__(self) -> str:
        """Return what messages and notes call it."""
        if self.member is None:
            return self.url
        return f"{self.url} ({self.member})"


@dataclass(frozen=True)
class Entry:
    """One set of the registry.

    Attributes
    ----------
    title
        Name of the set in the paper's tables.
    licence
        Licence of the data; "unknown" where it states none.
    records
        Number of records.
    checksum
        SHA-256 of the examples in order, whatever file they come from.
    lines
        SHA-256 of the lines of its file (template line/1). None: unknown.
    mirror
        Path of its file below the directory of a mirror, and below the cache.
    normalise
        Kind of records, as `contamination.testsets.records.normalise` takes it.
    """

    name: str
    title: str
    source: Hub | Url
    split: str
    mirror: str
    licence: str = "unknown"
    template: str | None = None
    records: int | None = None
    checksum: str | None = None
    normalise: str | None = None
    lines: str | None = None
    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}


def registered(prefix: str = "") -> tuple[str, ...]:
    """Return the names that start with `prefix`, in the order of the registry.

    `registered("mmlu/")` are the 56 subsets of Oren's Table 4 in its order, then
    professional_law, which the table leaves out.
    """
    return tuple(name for name in entries() if name.startswith(prefix))


def suggestion(name: str) -> str:
    """Return the likeliest sets that a misspelt name meant, as advice in a message."""
    members = registered(f"{name.rstrip('/')}/")
    if members:
        examples = f"{members[0]}, {members[1]} ..."
        return f"it has {len(members)} sets, each tested by itself: {examples}"
    close = difflib.get_close_matches(name, entries(), n=3, cutoff=0.5)
    advice = "`contamination data list` shows what is registered"
    if close:
        advice = f"did you mean {' or '.join(close)}? {advice}"
    return advice


@cache
def entries() -> dict[str, Entry]:
    """Return all entries by name, in the order of the registry.

    Raises InputError if CONTAMINATION_REGISTRY names no file, or the file is no registry;
    and for an entry with a field that is missing, unknown or of another type.
    """
    path = Path(os.environ.get(REGISTRY_VARIABLE) or REGISTRY)
    if not path.is_file():
        raise InputError(
            f"{path}: no such file; {REGISTRY_VARIABLE} is to name a registry of sets",
        )
    tables: dict[str, dict[str, Fields]] = _checked(
        dict[str, dict[str, Fields]], read_yaml(path), str(path)
    )
    listed = list[Entry]()
    for name, fields in tables.get("sets", {}).items():
        listed.append(_entry(name, fields, f"{path}, {name}"))
    for family, shared in tables.get("families", {}).items():
        where = f"{path}, {family}"
        members: dict[str, Fields] = _checked(
            dict[str, Fields], shared.pop("members", None), f"{where}, members"
        )
        for member, own in members.items():
            text = json.dumps(shared, default=str).replace("{name}", member)
            fields = {"title": member} | json.loads(text) | own
            name = f"{family}/{member}"
            listed.append(_entry(name, fields, f"{path}, {name}"))
    return {entry.name: entry for entry in listed}


def _entry(name: str, fields: Fields, where: str) -> Entry:
    """Return the entry of that name; InputError that names the field that is wrong."""
    if "hub" in fields:
        source: Hub | Url = _checked(Hub, fields.pop("hub"), f"{where}, hub")
    elif "url" in fields:
        source = _checked(Url, fields.pop("url"), f"{where}, url")
    else:
        raise InputError(f"{where}: no source; give hub or url")
    entry: Entry = _checked(Entry, fields | {"name": name, "source": source}, where)
    if not is_inner_name(entry.mirror):
        raise InputError(
            f"{where}: mirror: {entry.mirror!r} leads out of the directory of a mirror; "
            "write a path below it"
        )
    return entry


def _checked(kind: Any, value: Any, where: str) -> Any:
    """Return a value as the kind; InputError with the place and the first wrong field."""
    from pydantic import ValidationError

    try:
        return _adapter(kind).validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"])) or "all of it"
        raise InputError(f"{where}: {field}: {first['msg']}; correct the entry") from error


@cache
def _adapter(kind: Any) -> "TypeAdapter[Any]":
    """Return the validator of a kind, which takes longer to build than to use."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind)
