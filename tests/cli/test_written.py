"""Files that a command may not replace: whatever else was typed may name what it reads."""

from importlib import import_module
from pathlib import Path
from typing import get_type_hints

import pytest

from contamination.cli.written import OUTPUTS, SOURCES, check_written
from fakes.made_up_registry import refusal

FILES = ("set.jsonl", "set.csv", "model/config.json", "stores/a/store.json", "control.json")


@pytest.fixture
def here(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (*FILES, "old.csv", "published.jsonl"):
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("kept")
    Path("link.csv").symlink_to("set.csv")


@pytest.mark.parametrize("option", ["csv", "html", "output"])
@pytest.mark.parametrize(
    ("file", "typed"),
    [
        ("set.csv", {"dataset": "set.csv"}),
        ("set.csv", {"dataset": Path("./set.csv")}),
        ("set.csv", {"dataset": "link.csv"}),
        ("link.csv", {"dataset": "set.csv"}),
        ("set.csv", {"sets": ["other", "set.csv={text}"]}),
        ("set.jsonl", {"dataset": "lm-eval-samples:set.jsonl"}),
        ("set.csv", {"held_out": ["kept=set.csv"]}),
        ("model/config.json", {"model": "model"}),
        ("control.json", {"control": "control.json"}),
        ("stores/a/store.json", {"stores": Path("stores")}),
        ("set.csv", {"suspect": "set.csv"}),
        ("set.csv", {"logs": [Path("set.jsonl"), Path("set.csv")]}),
        ("set.csv", {"mirror": Path()}),
    ],
)
def test_what_is_read_is_never_replaced(here, option, file, typed) -> None:
    value = [Path(file)] if option == "output" else Path(file)
    assert f"{file} is what is read" in refusal(check_written, {**typed, option: value})


def test_the_default_of_an_option_is_no_folder(here, call) -> None:
    """`audit` has --order published by default."""
    Path("published").mkdir()
    Path("published/old.csv").write_text("kept")
    files = ("--csv", "published/old.csv", "--html", "set.jsonl")
    _, _, err = call("audit", "set.jsonl", "--model", "stores", *files)
    assert "set.jsonl is what is read" in err  # the table is looked at first


def test_a_text_that_is_no_path_may_be_the_name_of_a_folder(here) -> None:
    """The template {text}, the field text or the split text read nothing of the folder text."""
    Path("text").mkdir()
    Path("text/old.csv").write_text("kept")
    for option in ("field", "template", "split", "label", "revision", "tests", "within"):
        check_written({option: "text", "csv": Path("text/old.csv")})


@pytest.mark.parametrize(
    "command", ["test", "compare", "audit", "audit_logs", "leaderboard", "membership"]
)
def test_each_path_of_a_command_that_writes_files_is_a_source(command) -> None:
    function = getattr(import_module(f"contamination.cli.{command}"), command)
    paths = {name for name, kind in get_type_hints(function).items() if "Path" in str(kind)}
    assert paths & {*OUTPUTS}
    assert paths <= {*OUTPUTS, *SOURCES, "directory"}


def test_what_is_no_table_is_never_replaced(here) -> None:
    """The published set stands beside a seal that is read, and is not typed."""
    assert "published.jsonl is there" in refusal(check_written, {"csv": Path("published.jsonl")})


def test_a_store_is_never_replaced_and_an_older_result_beside_stores_is(here) -> None:
    typed = {"directory": Path("stores")}
    for name in ("store.json", "test-successor.json"):
        path = Path("stores/a") / name
        path.write_text("kept")
        assert "lies in a store" in refusal(check_written, {**typed, "output": [path]})
    Path("stores/result.json").write_text("old")
    check_written({**typed, "output": [Path("stores/result.json")]})


def test_a_file_is_written_once(here) -> None:
    typed = {"csv": Path("new"), "output": [Path("./new")]}
    assert "new would be written twice" in refusal(check_written, typed)


def test_an_older_table_and_new_files_are_written(here) -> None:
    typed = {"dataset": "set.csv", "csv": Path("old.csv"), "output": [Path("model/new.json")]}
    check_written({**typed, "model": "model"})
    assert Path("old.csv").read_text() == "kept"
    assert not Path("model/new.json").exists()
