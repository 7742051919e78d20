"""Training documents from files of the data directory, one at a time."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

from contamination.errors import InputError
from contamination.testsets.cache import DATA_VARIABLE, fetch
from contamination.testsets.records import articles, read_text
from contamination.testsets.registry import entry_of_file

Document = tuple[str, str]  # (source: package or file, text)


def data_file(name: str) -> Path:
    """Path of a file below the directory that CONTAMINATION_DATA names, else below `data/`.

    If it is not there and the registry knows it (its `mirror`), it is taken from the cache, and
    fetched first if need be.

    Raises
    ------
    InputError
        There is no such file, or it cannot be fetched.
    """
    path = Path(os.environ.get(DATA_VARIABLE, "data")) / name
    if path.is_file():
        return path
    if entry := entry_of_file(name):
        return fetch(entry)
    raise InputError(
        f"{path}: no such file; set {DATA_VARIABLE} to the directory that holds {name} "
        "(data/README.md says where it is published)"
    )


def read_file(name: str) -> Iterator[Document]:
    """Documents of a file: the `text` fields of a .jsonl, or the articles of a WikiText file."""
    path = data_file(name)
    if path.suffix == ".jsonl":
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                try:
                    yield name, json.loads(line)["text"].strip()
                except (ValueError, KeyError, TypeError, AttributeError) as error:
                    raise InputError(
                        f'{path}, line {number}: write {{"text": "..."}}, one object a line'
                    ) from error
    else:
        for article in articles(read_text(path)):
            yield name, article
