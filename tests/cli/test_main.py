"""Every command answers `--help` at once, and bad options and paths in one line."""

import errno
import json
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import typer.main

from contamination.cli.main import app, run
from contamination.errors import InputError

SLOW = ("torch", "transformers", "numpy", "pandas", "pyarrow", "scipy", "matplotlib")


def _commands(command: object, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    below = getattr(command, "commands", {}).items()
    return [path, *(deeper for name, own in below for deeper in _commands(own, (*path, name)))]


COMMANDS = _commands(typer.main.get_command(app))


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_is_whole_at_80_columns(path, call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    status, out, err = call(*path, "--help")
    assert (status, err) == (0, "")
    assert "Usage" in out and "…" not in out
    assert all(command[-1] in out for command in COMMANDS if command and command[:-1] == path)


def test_the_registry_is_listed_whole_at_80_columns(call, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("CONTAMINATION_CACHE", str(tmp_path))
    monkeypatch.setenv("CONTAMINATION_DATA", str(tmp_path))
    _, out, _ = call("data", "list")
    assert "…" not in out
    assert {len(line) for line in out.splitlines()} == {80}
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in out.splitlines()]
    assert ["mmlu/high_school_government_and_politics", "193", "MIT", "network"] in rows
    assert ["hellaswag", "10,042", "MIT", "network"] in rows


def test_nothing_slow_is_imported_before_it_is_needed():
    code = f"import sys, contamination.cli.main; sys.exit(str(set({SLOW}) & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stderr == "set()\n"


# --- options and paths ----------------------------------------------------------------------------

TEST, PLAN = ("test", "model", "in.jsonl"), ("plan", "model", "in.jsonl")
MEMBERSHIP = ("membership", "model", "in.jsonl")
LONG = "n" * 5_000


@pytest.fixture
def here(model_directory, tmp_path, monkeypatch) -> Path:
    """Return a working directory with a model, a test set and dated pages."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(model_directory, "model")
    Path("folder").mkdir()
    lines = (json.dumps({"text": f"lamp {i} stone"}) for i in range(40))
    Path("in.jsonl").write_text("\n".join(lines))
    days = ("2013-05-01", "2015-05-01")
    pages = (json.dumps({"title": d, "text": f"on {d} a", "date": d}) for d in days)
    Path("pages.jsonl").write_text("\n".join(pages))
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((*TEST, "--seed", "-1"), "'--seed'"),
        ((*PLAN, "--pilot", "0"), "'--pilot'"),
        ((*TEST, "--alpha", "nan"), "'--alpha'"),
        ((*TEST, "--permutations", "100000000"), "1 to 100,000"),
        ((*TEST, "--sed", "1"), "--sed"),
        (("test",), "Missing argument"),
        (("test", LONG, "in.jsonl"), "nnn: File name too long"),
        (("test", "model", f"{LONG}.jsonl"), "nnn.jsonl: File name too long"),
        (("test", "model", "/"), "/: more than"),
        ((*MEMBERSHIP, "--csv", "/dev/null"), "/dev/null"),
        ((*MEMBERSHIP, "--csv", ""), ". is no file"),
        ((*MEMBERSHIP, "--csv", "/proc/x.csv"), "/proc/x.csv: cannot be written ("),
        ((*MEMBERSHIP, "--csv", LONG), "nnn: File name too long"),
        ((*MEMBERSHIP, "--csv", "./in.jsonl"), "in.jsonl is what is read"),
    ],
)
def test_a_bad_option_or_path_is_one_line(arguments, named, here, refused, monkeypatch) -> None:
    from contamination.scoring.local import TransformersScorer

    before = Path("in.jsonl").read_text()
    monkeypatch.setattr(TransformersScorer, "token_values", lambda *_: pytest.fail("scored"))
    found = refused(*arguments)
    assert named in found
    assert len(found) < 400
    assert Path("in.jsonl").read_text() == before


@pytest.mark.parametrize(
    ("error", "status", "shown"),
    [
        (InputError("a: wrong"), 2, "error: a: wrong\n"),
        (OSError(errno.ENOSPC, "No space left on device", "x[/b]"), 2, "error: x[/b]: No space"),
        (OSError(errno.ENOSPC, "No space left on device"), 2, "No space left on device"),
        (ImportError("no module"), 2, "no module"),
        (MemoryError(), 2, "MemoryError"),
        (KeyError("bug"), 2, "KeyError"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (BrokenPipeError(), 141, ""),
    ],
)
def test_only_a_rejection_ends_with_1(error, status, shown, capsys, monkeypatch) -> None:
    def fail(**_: object) -> None:
        raise error

    with pytest.raises(SystemExit) as caught:
        run(fail)
    assert caught.value.code == status
    assert shown in capsys.readouterr().err


def test_a_version_and_a_short_help(call) -> None:
    assert call("--version") == (0, f"{metadata.version('contamination')}\n", "")
    assert "Usage" in call("test", "-h")[1]


def test_a_reader_that_has_enough_ends_it_without_a_word() -> None:
    code = "import sys; from contamination.cli.main import main; sys.argv[1:] = ['--help']; main()"
    done = subprocess.run(
        f'{sys.executable} -c "{code}" | true; echo ${{PIPESTATUS[0]}}',
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() in ("0", "141")
    assert done.stderr == ""
