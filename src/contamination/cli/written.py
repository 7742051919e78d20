"""Files that a command writes: none of them replaces what the command reads."""

import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from contamination.errors import InputError
from contamination.files import writing

OUTPUTS = ("csv", "html", "output")  # options that name files to write
ENDS = (".csv", ".html", ".json", ".md")  # of what commands write
# Arguments and options that name what a command reads, a file or a folder of files. Of the folder
# of all stores (`directory`) only the stores count: it may hold results as well.
SOURCES = (
    *("model", "models", "control", "reference", "tokenizer", "own"),
    *("dataset", "sets", "suspect", "held_out", "mirror", "seal", "key", "logs", "stores"),
)
IN_STORES = ("store.json", "completions.json")  # one of them lies in each store


def check_written(typed: Mapping[str, Any]) -> None:
    """Raise InputError for files that cannot be written, are named twice, or may be read.

    `SOURCES` name what may be read. Nor is a file replaced that lies in a store, or an
    existing one whose name is none of a table or a page.

    Parameters
    ----------
    typed
        The values of all arguments and options of the command, by their names.
    """
    files = list[Path]()
    sources = list[Path]()
    for name, value in typed.items():
        if name in OUTPUTS:
            files.extend(Path(text) for text in _texts(value))
        elif name in SOURCES:
            sources.extend(_paths(value))
    written = set[Path]()
    for file in files:
        _check_file(file, sources)
        if file.resolve() in written:
            raise InputError(f"{file} would be written twice; name another")
        written.add(file.resolve())


def _texts(value: Any) -> list[str]:
    """Return the texts and paths of an option, which may have been given several times."""
    values = value if isinstance(value, list | tuple) else [value]
    return [str(each) for each in values if isinstance(each, str | Path)]


def _paths(value: Any) -> list[Path]:
    """Return what the texts of an option may name: FILE, or as KIND:FILE or SET=FILE."""
    paths = list[Path]()
    for text in _texts(value):
        parts = (text, *re.split("[:=]", text))
        paths.extend(Path(part).absolute() for part in parts if part)
    return paths


def _check_file(file: Path, sources: Sequence[Path]) -> None:
    if file.exists():
        if not file.is_file():
            raise InputError(f"{file} is no file that can be written to; name another")
        for source in sources:
            if _is_in(file, source):
                raise InputError(f"{file} is what is read, or lies in it; give another path")
        if any(file.with_name(name).exists() for name in IN_STORES):
            raise InputError(f"{file} lies in a store; give another path")
        if file.suffix not in ENDS:
            raise InputError(f"{file} is there, and no table or page; give another path")
    folder = next(folder for folder in file.absolute().parents if folder.exists())
    with writing(file):
        tempfile.TemporaryFile(dir=folder).close()


def _is_in(file: Path, source: Path) -> bool:
    """Return whether a file is a source, or lies in it; a name that is too long is none."""
    try:
        return file.resolve().is_relative_to(source.resolve())
    except (OSError, ValueError):
        return False
