"""Open a test set wherever it is: registered name, file, directory or data set of the hub.

A set that is registered or of the hub is looked for in a local mirror, then in the
cache, then at its public source. The cache is laid out like a mirror: copy it to a
machine without a network. Wherever a set lies, its records are counted and the SHA-256
of its examples is compared, which does not depend on the kind of file.
"""

import json
import os
import re
from pathlib import Path
from typing import NamedTuple

import platformdirs

from contamination.errors import InputError
from contamination.files import (
    check_directory,
    is_path,
    locked,
    require_path,
    sha256_of,
    writable,
    write_json,
    write_text,
)
from contamination.testsets.example_set import ExampleSet, make_test_set
from contamination.testsets.inside import is_inner_name
from contamination.testsets.layouts import template_for
from contamination.testsets.records import (
    FORMATS,
    Record,
    normalise,
    read_lines,
    read_records,
    without_bytes,
)
from contamination.testsets.registry import (
    FIRST,
    Entry,
    Hub,
    entries,
    registered,
    suggestion,
)
from contamination.testsets.saved import is_saved, read_saved
from contamination.testsets.templates import parse
from contamination.testsets.verified import ORIGIN, checksum, read_verified, require_same

DATA_VARIABLE = "CONTAMINATION_DATA"  # directory of a local mirror; without it, `data`
CACHE_VARIABLE = "CONTAMINATION_CACHE"  # directory of what was fetched
HARNESSES = ("lm-eval", "lm-eval-samples", "inspect", "lighteval")  # before a colon
HUB_ID = re.compile(r"(?P<id>[\w.-]+/[\w.-]+)(:(?P<config>[\w.-]+))?")


def open_test_set(
    what: str | Path,
    *,
    template: str | None = None,
    max_records: int | None = None,
    mirror: Path | str | None = None,
    revision: str | None = None,
    split: str | None = None,
) -> ExampleSet:
    """Open a test set in its canonical order, the order of the public file.

    Parameters
    ----------
    what
        A registered name ("gsm8k", "mmlu/anatomy"); a .jsonl, .json, .csv, .parquet or
        .txt file; what a harness has (`contamination.testsets.harness`:
        "lm-eval:TASK"); a folder that `save_to_disk` wrote, or a directory laid out
        like a repository of the hub; or a data set of the hub ("org/name",
        "org/name:config").
    template
        Name, text with {field}, or a field; None is the registry's, else that of the
        layout of the records (`contamination.testsets.layouts.template_for`).
        "line/1" takes the line of each record, every field as the file writes it. So
        the public script of Oren et al. reads a file, and so their models have most
        likely read the planted sets: for four of them the words per example in Table 3
        are those of whole lines (235 of MNLI, and 30 of its two sentences and its
        label).
    max_records
        Largest number of records, taken from the start. None takes 5,000 of a
        registered set, as Oren et al. do, and all of any other set.
    mirror
        Directory with files of sets, laid out like the cache; None is `data_directory`.
    revision, split
        Those of a data set of the hub; its main branch and "test" without them. A
        folder may have splits, too.

    Raises
    ------
    InputError
        If nothing has that name, there is no network, the checksum or the number of
        records is wrong, or the file or the template is wrong (with line and field).
    """
    if template is not None:
        parse(template)  # a wrong one is refused before anything is fetched
    opened = open_records(
        what, max_records=max_records, mirror=mirror, revision=revision, split=split
    )
    records = opened.records
    if template == "line/1":
        records = _with_lines(opened)
    if template is None and opened.entry is not None:
        template = opened.entry.template
    if template is None:
        refuse_log(opened)
        template = template_for(records, opened.where)
    return make_test_set(opened.name, records, template, opened.where, opened.used)


def is_mirrored(what: str) -> bool:
    """Return whether a set is looked for in a mirror: one that is registered, or of the hub."""
    if what in entries():
        return True
    if what.partition(":")[0] in HARNESSES:
        return False
    return not (is_path(what) or Path(what).suffix in FORMATS)


def refuse_log(opened: "OpenedRecords") -> None:
    """Raise InputError for records of a log that was named as a file of records."""
    from contamination.testsets.logs import recognised

    if opened.records and opened.where.partition(":")[0] not in HARNESSES:
        recognised.refuse_log(opened.records[0][1], opened.where)


class OpenedRecords(NamedTuple):
    """Records that were found, before they are rendered.

    Attributes
    ----------
    name, where
        Name of the set in tables, and of its source in messages.
    records
        Records of the whole file, each with its place; the first `used` are wanted.
    entry
        Entry of the registry, where they are registered.
    """

    name: str
    where: str
    records: list[Record]
    used: int
    entry: Entry | None


def open_records(
    what: str | Path,
    *,
    max_records: int | None = None,
    mirror: Path | str | None = None,
    revision: str | None = None,
    split: str | None = None,
) -> OpenedRecords:
    """Find the records of a test set by the parameters of `open_test_set`, and verify them.

    Raises InputError for what `open_test_set` refuses, but for a template.
    """
    if max_records is not None and max_records < 1:
        raise InputError(f"max_records is {max_records}: give at least 1")
    require_path(what, "the test set")
    text = str(what)
    if not text.strip():
        raise InputError("the test set has no name: give a file, a folder, or a registered name")
    path = Path(what)
    entry = None if isinstance(what, Path) else entries().get(text)
    if entry is not None:
        _refuse_for_hub_alone(text, revision, split)
        file = locate(entry, mirror) or fetch(entry)
        return _opened(text, str(file), read_verified(entry, file), max_records or FIRST, entry)
    if text.partition(":")[0] in HARNESSES:
        from contamination.testsets.harness import read_harness

        _refuse_for_hub_alone(text, revision, split)
        name, records = read_harness(text)
        return _opened(name, text, records, max_records)
    if path.is_file() and path.suffix == ".eval":
        from contamination.testsets.logs.recognised import log_as_set

        raise log_as_set(text, "Inspect", "inspect")
    if path.is_file() or path.suffix in FORMATS:
        _refuse_for_hub_alone(text, revision, split)
        return _opened(writable(path.stem), text, read_records(path), max_records)
    if path.is_dir():
        _refuse_for_hub_alone(text, revision, None)
        records = _read_folder(path, split, where=text)
        name = os.path.basename(os.path.abspath(path))  # noqa: PTH100, PTH119 - of `..` as well
        return _opened(writable(name), text, records, max_records)
    if isinstance(what, Path):
        raise InputError(
            f"{what}: no such file or directory; give the path of a test set",
        )
    described = entry_of(text, revision, split)
    records = read_verified(described, locate(described, mirror) or fetch(described))
    return _opened(described.name, described.name, records, max_records)


def _refuse_for_hub_alone(what: str, revision: str | None, split: str | None) -> None:
    """Raise InputError for what only a data set of the hub has."""
    if revision or split:
        raise InputError(
            f"{what}: a split and a revision go with ORG/NAME of the hub; leave them out",
            parameter="split" if split else "revision",
        )


def _read_folder(folder: Path, split: str | None, *, where: str) -> list[Record]:
    """Return the records of a folder, by `save_to_disk` or laid out like a repository."""
    if is_saved(folder):
        return read_saved(folder, split)
    from contamination.testsets.fetching import read_repository

    return read_repository(folder, None, split or "test", where)


def _opened(
    name: str, where: str, records: list[Record], most: int | None, entry: Entry | None = None
) -> OpenedRecords:
    """Return records that were found, of which `most` are wanted; None wants all."""
    used = len(records) if most is None else min(most, len(records))
    return OpenedRecords(name, where, records, used, entry)


def _with_lines(opened: OpenedRecords) -> list[Record]:
    """Add to each record its `line` in the file; that of other files is JSON.

    Raises InputError where the registry has another checksum of the lines
    (`Entry.lines`).
    """
    records = opened.records
    entry = opened.entry
    path = Path(opened.where)
    if Path(entry.mirror if entry else path).suffix == ".txt":
        lines = [str(record["text"]) for _, record in records]
    elif path.suffix == ".jsonl" and path.is_file():
        lines = [*read_lines(path).values()]
    else:
        lines = [json.dumps(record, default=without_bytes) for _, record in records]
    if entry and entry.lines not in (None, sha256_of(*(f"{line}\n" for line in lines))):
        raise InputError(
            f"{path}: its lines are not those registered of {entry.name}; fetch it",
        )
    pairs = zip(records, lines, strict=True)
    return [(place, {**record, "line": line}) for (place, record), line in pairs]


def entry_of(name: str, revision: str | None = None, split: str | None = None) -> Entry:
    """Return a registered set, or describe a data set of the hub as if it were one.

    The hub has names as "org/name" and "org/name:config". Without a revision (commit,
    branch or tag) its main branch is taken, and without a split "test". Raises
    InputError if the name is neither.
    """
    if name in entries():
        return entries()[name]
    match = HUB_ID.fullmatch(name)
    # Then it is no organisation of the hub.
    family = registered(f"{name.partition('/')[0]}/")
    if match is None or family or name.startswith("."):
        raise InputError(
            f"{name}: no such file, directory or test set: {suggestion(name)}",
        )
    split = split or "test"
    # Both become parts of the path in the cache.
    _require_plain(split, name, "split")
    _require_plain(match["config"] or "default", name, "configuration")
    label = name if split == "test" else f"{name}/{split}"
    version = f"@{revision.replace('/', '--')}" if revision else ""
    folder = f"hub/{match['id'].replace('/', '--')}/{match['config'] or 'default'}"
    source = Hub(match["id"], match["config"], revision)
    return Entry(label, label, source, split, f"{folder}/{split}{version}.jsonl")


def _require_plain(part: str, name: str, what: str) -> None:
    """Raise InputError for a split or a configuration that no data set of the hub has."""
    if not is_inner_name(part) or Path(part).name != part:
        raise InputError(
            f"{name}: {part!r} is the name of no {what}; give one of those on its page",
            parameter=what if what == "split" else None,
        )


def data_directory() -> Path:
    """Return the directory of the mirror: that of CONTAMINATION_DATA, else `data`."""
    return Path(os.environ.get(DATA_VARIABLE) or "data")


def data_file(name: str) -> Path:
    """Return the path of a file in the data directory.

    One that is not there, but is the `mirror` file of a registered set, is taken from
    the cache and fetched first if need be. Raises InputError if there is no such file,
    or it cannot be fetched.
    """
    path = data_directory() / name
    if path.is_file():
        return path
    for entry in entries().values():
        if entry.mirror == name:
            return fetch(entry)
    raise InputError(
        f"{path}: no such file; set {DATA_VARIABLE} to its directory (data/README.md)",
    )


def locate(entry: Entry, mirror: Path | str | None = None) -> Path | None:
    """Return the file of a set: in the mirror, else in the cache.

    It is None if it has to be fetched.

    Raises InputError if `mirror`, or what CONTAMINATION_DATA names without one, is no
    directory.
    """
    folder = mirror or os.environ.get(DATA_VARIABLE)
    if folder and not Path(folder).is_dir():
        raise InputError(
            f"{folder}: no such directory; give that of a mirror (data/README.md)",
        )
    root = Path(mirror or data_directory())
    cached = cache_path(entry)
    places = (root / entry.mirror, root / cached.relative_to(cache_directory()), cached)
    return next((path for path in places if path.is_file()), None)


def available(name: str) -> bool:
    """Return whether a registered set is in the mirror or the cache."""
    return locate(entry_of(name)) is not None


def cache_directory() -> Path:
    """Return the directory of what was fetched.

    That is the one that CONTAMINATION_CACHE names, else the system's for caches. Raises
    InputError if there can be no directory.
    """
    chosen = os.environ.get(CACHE_VARIABLE)
    usual = platformdirs.user_cache_dir("contamination", appauthor=False)
    directory = Path(chosen or usual)
    check_directory(directory)
    return directory


def cache_path(entry: Entry) -> Path:
    """Return the path of a set in the cache."""
    return (cache_directory() / entry.mirror).with_suffix(".jsonl")


def fetch(entry: Entry, *, again: bool = False) -> Path:
    """Return the file of a set in the cache.

    It is fetched if it is not there, or if asked `again`.

    A note next to it records what was fetched: source, commit, number of records and
    checksum. A later fetch has to bring the same. Raises InputError if the set cannot
    be fetched, and if what arrived is not what was fetched before or what the registry
    has; then nothing is kept.
    """
    from contamination.testsets.fetching import download

    path = cache_path(entry)
    source = str(entry.source)
    with locked(cache_directory() / ".lock"):  # several processes may start with one set
        if path.is_file() and not again:
            return path
        archives = cache_directory() / "downloads"
        rows, commit, lines = download(entry.source, entry.split, archives, again=again)
        if entry.normalise or lines is None:
            rows = normalise(rows, entry.normalise, source)
            lines = [json.dumps(row, default=without_bytes) for _, row in rows]
        records: list[Record] = []
        for (place, _), line in zip(rows, lines, strict=True):
            records.append((place, json.loads(line)))
        require_same(entry, records, path, source)
        write_text(path, "".join(f"{line}\n" for line in lines))
        origin = {
            "source": source,
            "split": entry.split,
            "commit": commit,
            "records": len(records),
            "checksum": checksum(entry, records, source),
        }
        write_json(path.with_suffix(ORIGIN), origin)
    return path
