"""Tables of a measurement: read with the parameters that they were made with, or not at all."""

from pathlib import Path

import pandas as pd
import pytest

from contamination.errors import InputError
from fakes.data_fixtures import write_profile
from reproduction.run.experiment import Experiment
from reproduction.run.measured import parts_of, read_measured, write_measured

TABLE = pd.DataFrame({"text": ["é", "\u2028"], "value": [0.1, float("nan")], "read": [True, False]})


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    return Experiment(write_profile(tmp_path / "tiny.yaml"), tmp_path / "build")


def test_tables_come_back_as_they_were(experiment: Experiment) -> None:
    parameters = {"words": 3, "rates": [1e-3, 2.0], "files": {"a": "b"}}
    write_measured(
        experiment, "books", parameters, {"one": TABLE, "two": TABLE[:0]}, keep_others=False
    )
    found = read_measured(experiment, "books", files={"a": "b"}, rates=(1e-3, 2.0), words=3)
    assert list(found) == ["one", "two"]
    pd.testing.assert_frame_equal(found["one"], TABLE)
    assert list(found["two"]) == list(TABLE)


def test_other_parameters_are_other_tables(experiment: Experiment) -> None:
    write_measured(experiment, "books", {"words": 3}, {"one": TABLE}, keep_others=False)
    for other in ({"words": 4}, {"words": 3, "each": 1}, {}):
        with pytest.raises(InputError, match="is missing: nothing was measured"):
            read_measured(experiment, "books", **other)
    with pytest.raises(InputError, match="is missing"):
        read_measured(experiment, "wikimia", words=3)


def test_a_measurement_for_make_leaves_no_older_one_but_keeps_the_parts(experiment) -> None:
    parts = parts_of(experiment, "books")
    parts.mkdir(parents=True)
    for words in (3, 4):
        write_measured(experiment, "books", {"words": words}, {"one": TABLE}, keep_others=True)
    read_measured(experiment, "books", words=3)
    write_measured(experiment, "books", {"words": 5}, {"one": TABLE}, keep_others=False)
    assert sorted(path.name[:6] for path in parts.parent.iterdir()) == ["parts", "tables"]
    with pytest.raises(InputError, match="is missing"):
        read_measured(experiment, "books", words=3)
