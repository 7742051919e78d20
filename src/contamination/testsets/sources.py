"""Open a test set wherever it is: registered name, file, directory or data set of the hub.

A registered set is looked for in a local mirror, then in the cache, then at its public source.
"""

import re
from pathlib import Path

from contamination.errors import InputError
from contamination.testsets.cache import Found, fetch, find, verified
from contamination.testsets.example_set import ExampleSet, make_test_set, parse
from contamination.testsets.fetching import read_directory
from contamination.testsets.records import FORMATS, Record, read_records
from contamination.testsets.registry import (
    FIRST,
    Entry,
    Hub,
    entries,
    lookup,
    registered,
    suggestion,
)

__all__ = ["available", "entry_of", "open_test_set", "registered"]

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
    what : a registered name ("gsm8k", "mmlu/anatomy"); a .jsonl, .json, .csv, .parquet or .txt
        file; a directory that `datasets` saved, or one laid out like a repository of the hub; or a
        data set of the hub ("org/name", "org/name:config").
    template : name, text with {field}, or a field; None is the registry's, else "text/1".
    max_records : at most so many records, from the start; None takes 5,000 of a registered set, as
        Oren do, and all of any other.
    mirror : directory with files of registered sets; None is the one that the environment variable
        CONTAMINATION_DATA names, else `data`.
    revision, split : of a data set of the hub; its main branch and "test" without them.

    Raises
    ------
    InputError
        Nothing of that name; no network; a wrong checksum or number of records; whatever is wrong
        with the file or the template, with line and field.
    """
    parse(template or "text/1")  # a wrong template is told before anything is fetched
    if max_records is not None and max_records < 1:
        raise InputError(f"max_records is {max_records}: give at least 1")
    text, path = str(what), Path(what)
    if text in entries() and not isinstance(what, Path):
        _refuse(revision or split, f"{text} is registered")
        entry = lookup(text)
        where, records = _registered(entry, mirror)
        template, max_records = template or entry.template, max_records or FIRST
        name = entry.name
    elif path.is_file() or path.suffix in FORMATS:
        _refuse(revision or split, f"{text} is a file")
        name, where, records = path.stem, text, read_records(path)
    elif directory := _directory(text):  # "dir" or "dir:config"
        _refuse(revision, f"{text} is a directory")
        name, where = path.name, text
        records = read_directory(*directory, split or "test")
    elif isinstance(what, Path):
        raise InputError(f"{what}: no such file or directory; give the path of a test set")
    else:
        entry = entry_of(text, revision, split)
        name = where = entry.name
        records = verified(entry, Found("cache", fetch(entry)))
    used = None if max_records is None else min(max_records, len(records))
    return make_test_set(name, records, template or "text/1", where, used)


def available(name: str, mirror: Path | str | None = None) -> bool:
    """Whether a registered set can be had without a network: from the mirror or the cache."""
    return find(lookup(name), mirror) is not None


def entry_of(name: str, revision: str | None = None, split: str | None = None) -> Entry:
    """Return a registered set, or describe a data set of the hub as if it were one.

    Raises
    ------
    InputError
        `name` is neither.
    """
    if name in entries():
        return lookup(name)
    match = HUB_ID.fullmatch(name)
    family = registered(f"{name.partition('/')[0]}/")  # then it is no organisation of the hub
    if match is None or family or name.startswith("."):
        raise InputError(f"{name}: no such file, directory or test set: {suggestion(name)}")
    split = split or "test"
    label = name if split == "test" else f"{name}/{split}"
    version = f"@{revision.replace('/', '--')}" if revision else ""
    folder = f"hub/{match['id'].replace('/', '--')}/{match['config'] or 'default'}"
    return Entry(
        name=label,
        title=label,
        source=Hub(match["id"], match["config"], revision),
        split=split,
        licence="unknown",
        template=None,
        records=None,
        checksum=None,
        mirror=f"{folder}/{split}{version}.jsonl",
    )


def _registered(entry: Entry, mirror: Path | str | None) -> tuple[str, list[Record]]:
    """Where a registered set was found, or to where it was fetched, and its records."""
    found = find(entry, mirror)
    if found is None:
        try:
            found = Found("cache", fetch(entry))
        except InputError as error:
            raise InputError(
                f"{entry.name}: neither mirror (as {entry.mirror}) nor cache has it; {error}"
            ) from error
    return str(found.path), verified(entry, found)


def _directory(text: str) -> tuple[Path, str | None] | None:
    """Return a directory and the configuration asked for ("dir:config"), if it is one."""
    folder, _, config = text.rpartition(":")
    if Path(text).is_dir():
        return Path(text), None
    return (Path(folder), config) if folder and Path(folder).is_dir() else None


def _refuse(option: str | None, reason: str) -> None:
    if option:
        raise InputError(f"{reason}: --split and --data-revision go with ORG/NAME of the hub")
