"""Training documents from files of the data directory, one at a time."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

from contamination.errors import InputError
from contamination.test_set import read_text

DATA_VARIABLE = "CONTAMINATION_DATA"  # directory that `files` of a profile are relative to

Document = tuple[str, str]  # (source: package or file, text)


def data_file(name: str) -> Path:
    """Path of a downloaded file: below the directory of the environment variable, else `data/`.

    Raises
    ------
    InputError
        There is no such file.
    """
    path = Path(os.environ.get(DATA_VARIABLE, "data")) / name
    if not path.is_file():
        raise InputError(
            f"{path}: no such file; set {DATA_VARIABLE} to the directory that holds {name} "
            "(data/README.md says where it is published)"
        )
    return path


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
        # A WikiText article starts with " = Title = "; deeper headings have more equal signs.
        for text in re.split(r"\n(?= = [^=\n]+ = \n)", read_text(path)):
            if text.strip():
                yield name, text.strip()
