"""Files that a command may not replace: whatever else was typed may name what it reads."""

from pathlib import Path

import pytest

from contamination.cli.written import check_written
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


@pytest.mark.parametrize("option", ["field", "template", "split", "revision", "within"])
def test_a_name_within_a_set_is_no_folder(here, option) -> None:
    """A folder `text` does not keep a second run with `--field text` from its table there."""
    Path("text").mkdir()
    Path("text/a.csv").write_text("old")
    check_written({option: "text", "csv": Path("text/a.csv")})


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
