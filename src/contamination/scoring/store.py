"""The log-probability store: score once, test many ways.

One store holds the per-token log-probabilities of one test set under one model for one number of
shards: a directory with a header (`store.json`) that says what was scored, and Parquet parts. Parts
are written whole and hold whole units. What is missing is what no part holds, so an interrupted run
that is started again writes the same bytes as one that was not interrupted. Beside them lies a
`run-*.json` for every run that has added parts.

Columns of a part: shard, ordering (0 = canonical; of successors, the predecessor's index within the
shard), example (index in canonical order), position (of the token within its example), logprob
(float32, nats).
"""

import shutil
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from contamination.errors import InputError
from contamination.files import read_json, write_json
from contamination.scoring.store_layout import SCHEMA_VERSION, Header, Unit
from contamination.scoring.store_part import part_name, read_units, write_part
from contamination.scoring.store_reader import StoreReader

ABANDONED_SECONDS = 3600.0  # a temporary file that old belongs to a run that was killed


class Store(StoreReader):
    """A store on disk, bound to its header.

    With `replace`, a store of something else in that directory is removed first: right where the
    directory belongs to one run, as `build/` does.

    Raises
    ------
    InputError
        The directory holds a store of something else; the message names the first difference.
    """

    def __init__(self, directory: Path, header: Header, *, replace: bool = False) -> None:
        super().__init__(directory, header)
        path = self.directory / "store.json"
        expected = header.as_json()
        if replace and path.exists() and read_json(path) != expected:
            shutil.rmtree(self.directory)
        if not path.exists():
            write_json(path, expected)
        elif (found := read_json(path)) != expected:
            field = next(k for k in expected if found.get(k) != expected[k])
            raise InputError(
                f"{path}: this store was scored with another {field.replace('_', ' ')} "
                f"({_brief(found.get(field))}, now {_brief(expected[field])}); "
                f"remove {self.directory} to score again, or name another directory"
            )

    def done(self) -> set[Unit]:
        """Units that are stored, every byte checked; a damaged part is set aside as `.damaged`.

        For one process of a run only: it renames files.
        """
        for file in self.directory.glob(".part-*"):
            if time.time() - file.stat().st_mtime > ABANDONED_SECONDS:
                file.unlink()
        units: set[Unit] = set()
        for path in self.parts():
            try:
                held = [rows.unit for rows in read_units(path, self.header)]
            except InputError:
                held = []
            # Readers go by the name: what it does not tell would not be found.
            if held and path.name == part_name(held[0], held[-1]):
                units.update(held)
            else:
                path.rename(_free_name(path))
        return units

    def append(self, units: Iterable[tuple[Unit, np.ndarray, np.ndarray]]) -> Path:
        """Write one part of (unit, examples in order, log-probabilities of their tokens).

        Raises
        ------
        InputError
            A log-probability that is not finite, or a full disk; nothing has been written.
        """
        return write_part(self.directory, self.header, units)


def open_store(directory: Path | str) -> Store:
    """Open a store that was scored before, whatever it holds.

    Raises
    ------
    InputError
        There is none, or one of another version of this package.
    """
    path = Path(directory) / "store.json"
    if not path.is_file():
        raise InputError(
            f"{path}: no such store; score it first, on several nodes into a directory that all of "
            "them see"
        )
    found = read_json(path)
    if found.get("schema") != SCHEMA_VERSION:
        raise InputError(
            f"{path}: a store of schema {found.get('schema')}, and this version reads "
            f"{SCHEMA_VERSION}; score again into another directory"
        )
    return Store(path.parent, Header.from_json(found))


def _free_name(path: Path) -> Path:
    """Name for a damaged part, beside what was set aside before."""
    names = [path.with_suffix(".damaged")]
    while names[-1].exists():
        names.append(path.with_suffix(f".{len(names) + 1}.damaged"))
    return names[-1]


def _brief(value: object) -> str:
    text = str(value)
    return text if len(text) <= 12 else f"{text[:12]}…"
