"""Bad logs for `run.py`: of every harness, damaged in their bytes or in what their fields hold.

The model of these logs has not read the set: it gives one answer to every question. So whatever is
damaged, nothing may be proven.
"""

import json
import tempfile
import zipfile
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from records import damage

from contamination.seal.files import SealedSet, seal_file, verify
from contamination.seal.logs import audit_logs
from contamination.testsets.logs.read import read_log
from fakes.answer_logs import OF_TEXT, Gold

Rng = np.random.Generator
RECORDS = [
    {"id": str(i), "question": f"Name a divisor of {6 * i}!", "answers": ["2", "3", "6"]}
    for i in range(1, 25)
]
STATED = {"options": False, "template": "{question} {answer}\n", "answers_of": "answer"}
SAID = ("It is 2.", "2 and 3 and 6", "ANSWER: 2", "", "no idea")
ODD = (None, True, -1, 10**30, 1.5, float("nan"), "", "x", "\ud800", [], ["m"], {}, [[["2"]]])


@cache
def sealed() -> SealedSet:
    """Return the set, drawn by the same key every time."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "set.jsonl"
        path.write_text("".join(f"{json.dumps(record)}\n" for record in RECORDS))
        with patch("contamination.seal.files.secrets.token_bytes", bytes):
            made = seal_file(path, Path(folder) / "sealed", **STATED)
        return verify(None, made.seal, made.key)


def attack_logs(rng: Rng, folder: Path) -> str:
    """Write a log of a model that knows nothing, damage it, and audit it."""
    write = OF_TEXT[rng.integers(len(OF_TEXT))]
    said = SAID[rng.integers(len(SAID))]
    rows = [(record, said) for record in sealed().test_set.records]
    path = write(folder, rows, Gold(text=str(rng.choice(["2", "3", "6"])), score=1.0))
    if rng.random() < 0.5:
        path.write_bytes(damage(path.read_bytes(), rng))
    elif path.suffix == ".eval":
        _replace_in_archive(path, rng)
    elif path.suffix in (".json", ".jsonl"):
        _replace_in_text(path, rng)
    for found in audit_logs(sealed(), [read_log(path)]):
        if found.conclusion(0.001) == "proven":
            raise AssertionError(f"{write.__name__}: {found}")
    return "survived"


def _replace_in_text(path: Path, rng: Rng) -> None:
    """Put an odd value into a random place of a file that holds an object, or one a line."""
    text = path.read_text()
    if path.suffix == ".json":
        path.write_text(json.dumps(_spoiled(json.loads(text), rng)))
        return
    lines = text.splitlines()
    number = int(rng.integers(len(lines)))
    lines[number] = json.dumps(_spoiled(json.loads(lines[number]), rng))
    path.write_text("\n".join(lines))


def _replace_in_archive(path: Path, rng: Rng) -> None:
    """Put an odd value into a random file of an archive."""
    with zipfile.ZipFile(path) as archive:
        if any(one.compress_type == 93 for one in archive.infolist()):
            return  # which zipfile cannot read
        files = {name: archive.read(name) for name in archive.namelist()}
    name = list(files)[rng.integers(len(files))]
    files[name] = json.dumps(_spoiled(json.loads(files[name]), rng)).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for each, data in files.items():
            archive.writestr(each, data)


def _spoiled(value: Any, rng: Rng) -> Any:
    """Return a value with an odd one somewhere in it."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        name = list(value)[rng.integers(len(value))]
        return value | {name: _spoiled(value[name], rng)}
    if isinstance(value, list) and value and rng.random() < 0.8:
        place = int(rng.integers(len(value)))
        return [*value[:place], _spoiled(value[place], rng), *value[place + 1 :]]
    return ODD[rng.integers(len(ODD))]
