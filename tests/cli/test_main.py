"""Every command answers `--help` at once."""

import subprocess
import sys

import pytest
import typer.main

from contamination.cli.main import app

SLOW = ("torch", "transformers", "numpy", "pandas", "pyarrow", "scipy", "matplotlib")


def _commands(command: object, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    below = getattr(command, "commands", {}).items()
    return [path, *(deeper for name, own in below for deeper in _commands(own, (*path, name)))]


COMMANDS = _commands(typer.main.get_command(app))


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help(path, call):
    status, out, err = call(*path, "--help")
    assert (status, err) == (0, "")
    assert "Usage" in out
    assert all(command[-1] in out for command in COMMANDS if command and command[:-1] == path)


def test_help_names_every_test(call, monkeypatch):
    from contamination.audit.battery import TESTS

    monkeypatch.setenv("COLUMNS", "120")
    _, out, _ = call("test", "--help")
    assert all(name in out for name in TESTS)


def test_nothing_slow_is_imported_before_it_is_needed():
    code = f"import sys, contamination.cli.main; sys.exit(str(set({SLOW}) & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stderr == "set()\n"
