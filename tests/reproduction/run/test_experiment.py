"""Tables of a measurement: read with the parameters that they were made with, or not at all."""

from pathlib import Path

import pandas as pd
import pytest

from contamination.errors import InputError
from fakes.data_fixtures import write_profile
from reproduction.run.experiment import Experiment, parts_of, read_measured, write_measured

TABLE = pd.DataFrame({"text": ["é", "\u2028"], "value": [0.1, float("nan")], "read": [True, False]})


def test_tables_come_back_as_they_were_or_not_at_all(tmp_path: Path) -> None:
    run = Experiment(write_profile(tmp_path / "tiny.yaml"), tmp_path / "build")
    parts = parts_of(run, "mmlu")
    parts.mkdir(parents=True)
    wanted = {"words": 3, "rates": [1e-3, 2.0], "files": {"a": "b"}}
    tables = {"one": TABLE, "two": TABLE[:0]}
    write_measured(run, "mmlu", wanted, tables)
    found = read_measured(run, "mmlu", files={"a": "b"}, rates=(1e-3, 2.0), words=3)
    assert list(found) == ["one", "two"]
    pd.testing.assert_frame_equal(found["one"], TABLE)
    assert list(found["two"]) == list(TABLE)
    write_measured(run, "mmlu", {"words": 5}, tables)
    assert sorted(path.name for path in parts.parent.iterdir()) == ["parts", "tables"]
    for package, other in (("mmlu", wanted), ("mmlu", {"words": 4}), ("wikimia", {"words": 5})):
        with pytest.raises(InputError, match="nothing was measured"):
            read_measured(run, package, **other)
