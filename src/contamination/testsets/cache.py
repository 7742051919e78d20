"""Sets on this machine: found in a mirror or the cache, fetched into the cache, proved to be whole.

The cache is laid out like a mirror: copy it to a machine without a network. Wherever a set is found
its records are counted and the SHA-256 of its examples is compared, which does not depend on the
kind of file.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from contamination.errors import InputError
from contamination.files import read_json, sha256_of, write_json, write_text
from contamination.testsets.example_set import render
from contamination.testsets.fetching import download
from contamination.testsets.records import (
    Record,
    articles,
    check_ids,
    normalised,
    read_records,
    read_text,
)
from contamination.testsets.registry import Entry

DATA_VARIABLE = "CONTAMINATION_DATA"  # directory of a local mirror; without it, `data`
CACHE_VARIABLE = "CONTAMINATION_CACHE"  # directory of what was fetched


@dataclass(frozen=True)
class Found:
    """Where a set is without a network."""

    place: Literal["mirror", "cache"]
    path: Path


def find(entry: Entry, mirror: Path | str | None = None) -> Found | None:
    """Return where a set lies: in the mirror, else in the cache; None if it has to be fetched.

    Parameters
    ----------
    mirror : None is the directory that CONTAMINATION_DATA names, else `data`.

    Raises
    ------
    InputError
        The mirror is no directory.
    """
    given = mirror or os.environ.get(DATA_VARIABLE)
    if given and not Path(given).is_dir():
        raise InputError(f"{given}: no such directory; give that of a mirror (data/README.md)")
    kept = kept_at(entry)
    root = Path(given or "data")
    for path in (root / entry.mirror, root / kept.relative_to(cache_directory())):
        if path.is_file():
            return Found("mirror", path)
    return Found("cache", kept) if kept.is_file() else None


def cache_directory() -> Path:
    """Directory of what was fetched: that of CONTAMINATION_CACHE, else the system's for caches."""
    import pooch

    return Path(os.environ.get(CACHE_VARIABLE) or pooch.os_cache("contamination"))


def kept_at(entry: Entry) -> Path:
    """Path of a set in the cache."""
    return (cache_directory() / entry.mirror).with_suffix(".jsonl")


def verified(entry: Entry, found: Found) -> list[Record]:
    """Read a set where it was found, and compare the number and checksum of its records.

    Raises
    ------
    InputError
        Records are missing, too many or changed, an id comes twice, or the file is malformed.
    """
    path = found.path
    if entry.normalise == "wikitext" and path.suffix == ".txt":
        # As records of a .txt file they would have lost the blank lines.
        records = [("", {"text": text}) for text in articles(read_text(path))]
    else:
        records = read_records(path)
    records = normalised(records, entry.normalise, str(path))
    if found.place == "mirror":
        advice = "it is another version, or was cut: data/README.md names the source"
    else:
        advice = "it was damaged: remove it, and it is fetched again"
    told = "the registry has" if entry.checksum else "what was fetched had"
    _compare(entry, records, expected_checksum(entry, path), str(path), told, advice)
    return records


def expected_checksum(entry: Entry, path: Path) -> str | None:
    """SHA-256 that the registry has, else the one recorded when `path` was fetched, if it was."""
    return entry.checksum or _recorded(path).get("checksum")


def fetch(entry: Entry, *, again: bool = False) -> Path:
    """Return the file of a set in the cache; it is fetched if it is not there, or if asked `again`.

    Beside it lies what was fetched: source, commit, number of records and checksum. A later fetch
    has to bring the same.

    Raises
    ------
    InputError
        As `contamination.testsets.fetching.download`; or what arrived is not what was fetched
        before, or not what the registry says. Nothing is kept then.
    """
    from filelock import FileLock

    path, source = kept_at(entry), str(entry.source)
    cache_directory().mkdir(parents=True, exist_ok=True)
    with FileLock(cache_directory() / ".lock"):  # several processes may start with one set
        if path.is_file() and not again:
            return path
        archives = cache_directory() / "downloads"
        rows, commit = download(entry.source, entry.split, archives, again=again)
        rows = normalised(rows, entry.normalise, source)
        lines = [json.dumps(row, default=str) for _, row in rows]
        records = [(place, json.loads(line)) for (place, _), line in zip(rows, lines, strict=True)]
        known = _recorded(path)
        if entry.checksum:
            told = "the registry has"
            advice = (
                f"it changed upstream or was damaged on the way: try `contamination data fetch "
                f"{entry.name} --again`, else use a mirror of the registered version (--mirror)"
            )
        else:
            told = f"{known.get('commit') or 'what was fetched before'} had"
            advice = (
                f"it changed upstream: keep what is in the cache, or remove {_note(path)} and "
                "fetch it again"
            )
        _compare(entry, records, expected_checksum(entry, path), source, told, advice)
        write_text(path, "".join(f"{line}\n" for line in lines))
        facts = {"source": source, "split": entry.split, "commit": commit}
        proof = {"records": len(records), "checksum": checksum(entry, records, source)}
        write_json(_note(path), facts | proof)
    return path


def checksum(entry: Entry, records: Sequence[Record], where: str) -> str:
    """SHA-256 over the examples in order, as the registry renders them; else over the records."""
    if entry.template is None:
        return sha256_of(*(json.dumps(r, sort_keys=True) for _, r in records))
    return sha256_of(*render(records, entry.template, where))


def _compare(
    entry: Entry,
    records: Sequence[Record],
    expected: str | None,
    where: str,
    told: str,
    advice: str,
) -> None:
    if entry.records not in (None, len(records)):
        raise InputError(
            f"{where}: {len(records):,} records, {entry.name} has {entry.records:,}; {advice}"
        )
    check_ids(records, where)
    found = checksum(entry, records, where)
    if expected not in (None, found):
        raise InputError(f"{where}: checksum {found[:16]}..., {told} {expected[:16]}...; {advice}")


def _note(path: Path) -> Path:
    return path.with_suffix(".source.json")


def _recorded(path: Path) -> dict[str, Any]:
    """What was written down when a file was fetched; empty if it was not."""
    found: dict[str, Any] = read_json(_note(path)) if _note(path).is_file() else {}
    return found
