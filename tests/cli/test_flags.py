"""Errors of the library name parameters; the command line names its options."""

import re
from pathlib import Path

import pytest
import typer

from contamination.cli.flags import in_flags, revision_of_data
from contamination.cli.main import application
from contamination.errors import InputError
from fakes.data_fixtures import ROOT

LIBRARY = ROOT / "src" / "contamination"
# Options of other programs, which the library starts or names.
OTHERS = {"--hash", "--quiet", "--no-deps", "--only-binary", "--find-links", "--dest", "--to"}


@pytest.fixture(scope="module")
def app() -> typer.Typer:
    return application()


@pytest.mark.parametrize(
    ("message", "parameter", "command", "shown"),
    [
        ("shards is 0: give more", "shards", "test", "shards is 0: give more (--shards)"),
        ("give axis='both'", "axis", "test", "give --axis 'both'"),
        ("unknown test", "tests", "test", "unknown test (--test)"),
        ("name another directory", "directory", "score", "name another directory (--store)"),
        ("round 7 is over", "beacon_round", "seal", "round 7 is over (--round)"),
        ("level: too small", "level", "seal", "level: too small (--alpha)"),
        ("give axis='both'", "axis", "audit", "give axis='both'"),  # it has no such option
        ("nothing is named", None, "test", "nothing is named"),
        ("fetch it again", "again", "data fetch", "fetch it again (--again)"),
    ],
)
def test_the_option_of_a_parameter_is_named(app, message, parameter, command, shown) -> None:
    error = InputError(message, parameter=parameter)
    assert in_flags(error, app, command.split()) == shown


def test_an_error_behind_another_one_names_its_parameter_too(app) -> None:
    error = InputError("record 3: no options; or seal the order alone", parameter="axis")
    error.__cause__ = InputError("no options", parameter="options")
    assert in_flags(error, app, ["seal"]).endswith("(--axis, --options)")


def test_the_revision_of_a_set_is_not_that_of_the_model(app) -> None:
    with pytest.raises(InputError) as caught, revision_of_data():
        raise InputError("no files; give revision=v2", parameter="revision")
    assert in_flags(caught.value, app, ["test"]) == "no files; give --data-revision v2"


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(LIBRARY.rglob("*.py")) if LIBRARY / "cli" not in path.parents],
    ids=lambda path: str(path.relative_to(LIBRARY)),
)
def test_the_library_names_no_option_of_the_command(path: Path) -> None:
    named = re.findall(r"(?<![-\w])--[a-z][a-z-]*", path.read_text(encoding="utf-8"))
    assert set(named) <= OTHERS
