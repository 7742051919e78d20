"""Spellings of other programs are understood, and help has groups."""

import pytest
import typer.main

from contamination.audit.registry import TESTS
from contamination.cli.main import application
from contamination.errors import InputError


@pytest.fixture(scope="module")
def commands() -> dict[str, object]:
    return typer.main.get_command(application()).commands


@pytest.mark.parametrize(
    ("command", "typed", "read"),
    [
        ("test", ["--model", "m", "set"], ["m", "set"]),
        ("test", ["set", "--model=m"], ["m", "set"]),
        ("test", ["--limit", "5"], ["--max-records", "5"]),
        ("test", ["--limit=5"], ["--max-records=5"]),
        ("score", ["--dtype", "float32"], ["--precision", "float32"]),
        ("membership", ["--base-url", "u"], ["--endpoint", "u"]),
        ("audit", ["set", "--model", "m"], ["set", "--model", "m"]),  # its own option
        ("audit-logs", ["--limit", "5"], ["--limit", "5"]),
        ("verify", ["--limit", "5"], ["--limit", "5"]),  # which has no such option
    ],
)
def test_other_spellings_are_read_as_ours(commands, command, typed, read) -> None:
    assert commands[command].respelled(typed) == read


@pytest.mark.parametrize("flag", ["--batch-size", "--device"])
def test_options_that_mean_something_else_are_refused_with_advice(commands, flag) -> None:
    with pytest.raises(InputError, match=flag):
        commands["test"].respelled([flag, "8"])


@pytest.mark.parametrize("command", ["audit", "verify", "data fetch"])
def test_help_shows_the_type_of_one_value(call, command) -> None:
    shown = call(*command.split(), "--help")[1]
    assert "<list" not in shown
    assert "<str>" in shown or "<path>" in shown


def test_the_membership_table_has_five_scores_and_no_empty_row() -> None:
    import pandas as pd

    from contamination.cli.membership import SHOWN, _few, _unit
    from contamination.membership.api import DEFAULT_COLUMNS

    table = pd.DataFrame({name: [0.0] for name in DEFAULT_COLUMNS})
    assert set(_few(table)) == set(SHOWN)
    assert all(_unit(name) for name in DEFAULT_COLUMNS)


def _help_lines(call, *command: str) -> list[str]:
    return call(*command, "--help")[1].splitlines()


@pytest.mark.parametrize("width", [50, 80])
@pytest.mark.parametrize("command", ["test", "audit", "score", "compare", "seal"])
def test_no_line_of_the_help_is_wider_than_the_terminal(call, monkeypatch, width, command) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert max(map(len, _help_lines(call, command))) <= width


@pytest.mark.parametrize("name", [*TESTS])
def test_the_help_names_every_test(call, name) -> None:
    words = " ".join(_help_lines(call, "test")).split()
    assert name in words


@pytest.mark.parametrize("group", [(), ("data",), ("wikimia",)])
def test_a_list_of_commands_cuts_no_sentence(call, monkeypatch, group) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    assert "..." not in " ".join(_help_lines(call, *group)).partition("Commands:")[2]
