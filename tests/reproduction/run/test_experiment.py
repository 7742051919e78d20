"""Tables of a measurement: read with the settings that they were made with, or not at all."""

from pathlib import Path

import pandas as pd
import pytest

from contamination.errors import InputError
from fakes.data_fixtures import write_profile
from reproduction.run.experiment import Experiment, parts_of, read_measured, write_measured
from reproduction.run.settings import NotebookSettings

TABLE = pd.DataFrame({"text": ["é", "\u2028"], "value": [0.1, float("nan")], "read": [True, False]})
TABLES = {"one": TABLE, "two": TABLE[:0]}


class Settings(NotebookSettings):
    words: int
    rates: tuple[float, ...] = ()
    files: dict[str, str] | None = None


SETTINGS = Settings(words=3, rates=(1e-3, 2.0), files={"a": "b"})


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    return Experiment(write_profile(tmp_path / "tiny.yaml"), tmp_path / "build")


def test_tables_come_back_as_they_were(experiment: Experiment) -> None:
    write_measured(experiment, "mmlu", SETTINGS, TABLES)
    tables = read_measured(experiment, "mmlu", SETTINGS)
    assert list(tables) == ["one", "two"]
    pd.testing.assert_frame_equal(tables["one"], TABLE)
    assert list(tables["two"]) == list(TABLE)


def test_new_tables_replace_old_ones_and_leave_the_parts(experiment: Experiment) -> None:
    parts = parts_of(experiment, "mmlu")
    parts.mkdir(parents=True)
    write_measured(experiment, "mmlu", SETTINGS, TABLES)
    write_measured(experiment, "mmlu", Settings(words=5), {})
    assert sorted(path.name for path in parts.parent.iterdir()) == ["parts", "tables"]
    assert read_measured(experiment, "mmlu", Settings(words=5)) == {}


@pytest.mark.parametrize(
    ("package", "settings"), [("mmlu", Settings(words=4)), ("wikimia", SETTINGS)]
)
def test_other_settings_and_other_packages_have_no_tables(
    experiment: Experiment, package: str, settings: Settings
) -> None:
    write_measured(experiment, "mmlu", SETTINGS, TABLES)
    with pytest.raises(InputError, match="nothing was measured"):
        read_measured(experiment, package, settings)
