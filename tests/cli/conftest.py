"""What a person types, in a directory of its own."""

import pytest


@pytest.fixture(autouse=True)
def _terminal(monkeypatch, tmp_path) -> None:
    """Nothing that a command writes under a relative path lands in the repository."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
