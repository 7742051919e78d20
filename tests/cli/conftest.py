"""A command as a person types it, in a directory of its own."""

import json
import shutil
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _terminal(monkeypatch, tmp_path) -> None:
    """Nothing that a command writes under a relative path lands in the repository."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")


@pytest.fixture
def here(model_directory) -> None:
    shutil.copytree(model_directory, "model")
    lines = (json.dumps({"text": f"lamp {i} stone"}) for i in range(40))
    Path("in.jsonl").write_text("\n".join(lines))
    spaces = [" " * width for width in range(1, 20)]  # plain: a count
    blank = (json.dumps({"id": i, "text": text}) for i, text in enumerate(["a", *spaces]))
    Path("blank.jsonl").write_text("\n".join(blank))
    Path("other.jsonl").write_text(json.dumps({"goal": "lamp", "sol": "stone", "label": 1}))
