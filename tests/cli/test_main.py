"""Every command answers `--help` at once, and bad options and paths in one line."""

import itertools
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

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


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_is_whole_at_80_columns(path, call, monkeypatch):
    """No word is cut, no bracket is taken for a colour, no line ends where the source's does."""
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = call(*path, "--help")
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= 80
    lines = [line.strip() for line in out.partition("╭")[0].splitlines()]
    for line, after in itertools.pairwise(lines):
        assert not (line and after) or len(f" {line} {after.split()[0]}") > 78


def test_help_shows_brackets_as_they_are(call):
    _, out, _ = call("stage", "notebook", "--help")
    assert "models=[a,b]" in re.sub(r"[\s│]", "", out)


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
BOOKS = ("books", "model", "a", "--members", "b", "--non-members", "c")
WIKIMIA = ("wikimia", "build", "pages.jsonl", "out", "--length", "2")
WIKIMIA += ("--members-before", "2014-01-01", "--non-members-from", "2014-01-01")
LEAST, MOST = "Input should be greater than or equal to ", "Input should be less than or equal to "
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
    ("arguments", "message"),
    [
        ((*TEST, "--seed", "-1"), f"'--seed': {LEAST}0"),
        ((*PLAN, "--seed", "-1"), f"'--seed': {LEAST}0"),
        ((*MEMBERSHIP, "--seed", "-1"), f"'--seed': {LEAST}0"),
        ((*BOOKS, "--seed", "-1"), f"'--seed': {LEAST}0"),
        ((*WIKIMIA, "--seed", "-1"), f"'--seed': {LEAST}0"),
        ((*PLAN, "--pilot", "0"), f"'--pilot': {LEAST}1"),
        ((*TEST, "--batch-tokens", "-1"), f"'--batch-tokens': {LEAST}1"),
        ((*TEST, "--alpha", "nan"), f"'--alpha': {MOST}1"),
        ((*TEST, "--alpha", "-1"), f"'--alpha': {LEAST}0"),
        ((*TEST, "--alpha", "1.5"), f"'--alpha': {MOST}1"),
        ((*TEST, "--permutations", "100000000"), "give at least 1, and no more than 100,000"),
        ((*TEST, "--seed", "x"), "'--seed': Input should be a valid integer"),
        ((*TEST, "--sed", "1"), "No such option: --sed"),
        (("test",), "Missing argument"),
        (("test", LONG, "in.jsonl"), "nnn: File name too long; give another path"),
        (("test", "model", LONG), "nnn: File name too long; give another path"),
        (("test", "model", f"{LONG}.jsonl"), "nnn.jsonl: File name too long; give another path"),
        ((*MEMBERSHIP, "--csv", "/dev/null"), "/dev/null is no file that a table can be written"),
        ((*MEMBERSHIP, "--csv", "folder"), "folder is no file that a table can be written to"),
        ((*MEMBERSHIP, "--csv", ""), ". is no file that a table can be written to"),
        ((*MEMBERSHIP, "--csv", "/proc/x.csv"), "/proc/x.csv: cannot be written ("),
        ((*MEMBERSHIP, "--csv", "in.jsonl/x.csv"), "in.jsonl/x.csv: cannot be written ("),
        ((*MEMBERSHIP, "--csv", LONG), "nnn: File name too long; give another path"),
        ((*MEMBERSHIP, "--csv", "in.jsonl"), "--csv in.jsonl is what is read; give another path"),
        ((*MEMBERSHIP, "--csv", "./in.jsonl"), "in.jsonl is what is read; give another path"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, tuple) else "",
)
def test_a_bad_option_or_path_is_one_line(arguments, message, here, refused, monkeypatch) -> None:
    from contamination.scoring.local import TransformersScorer

    before = Path("in.jsonl").read_text()
    monkeypatch.setattr(TransformersScorer, "token_values", lambda *_: pytest.fail("scored"))
    found = refused(*arguments)
    assert message in found
    assert len(found) < 400
    assert Path("in.jsonl").read_text() == before


def test_pages_are_not_overwritten_by_what_is_made_of_them(here, refused) -> None:
    Path("out").mkdir()
    pages = Path("pages.jsonl").rename("out/WikiMIA_length2.jsonl")
    before = pages.read_text()
    found = refused("wikimia", "build", pages, *WIKIMIA[3:])
    assert (
        found == "out/WikiMIA_length2.jsonl is read, and would be written; give another directory"
    )
    assert pages.read_text() == before


def test_an_error_of_no_path_keeps_its_traceback(call, monkeypatch, tmp_path: Path) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("a bug")

    (tmp_path / "manifest.json").write_text("{}")
    monkeypatch.setattr("reproduction.report.render.render_report", fail)
    with pytest.raises(OSError, match="a bug"):
        call("stage", "report", "--results", tmp_path)
