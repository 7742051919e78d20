"""Notebook 12 by its two stages: with no model at all, and with a network of a few neurons."""

import json
from pathlib import Path

import pandas as pd
import pytest

from fakes.checkpoint_run import MadeUpCheckpoints
from fakes.data_fixtures import ROOT, profile_data, write_profile
from reproduction.notebooks.checkpoints.tables import COLUMNS, RATES

NOTEBOOK = ROOT / "notebooks" / "12_released_checkpoints.ipynb"
TABLES = ["checkpoints", "checkpoints_min_k", "checkpoints_permutations", "checkpoints_shards"]
FIGURES = ["checkpoints_permutations", "checkpoints_power", "checkpoints_shards"]


@pytest.fixture
def run(call, tmp_path: Path):
    """Return a function that measures and executes the notebook with one model."""
    made_up = MadeUpCheckpoints(tmp_path, None)
    made_up.write()
    sets = list(made_up.sets.values())

    def execute(model: Path) -> dict[str, pd.DataFrame]:
        parameters = {
            "models": [str(model)],
            "controls": [],
            "sets": sets[:2],
            "shards": 6,
            "permutations": 4,
            "whole_set_permutations": 5,
            "ablation_sets": sets[:1],
            "ablation_shards": [3, 6],
            "ablation_permutations": [1, 4],
            "min_k_sets": sets[:1],
            "validation_members": sets[1:2],
            "validation_non_members": sets[2:],
            "length": 16,
            "spans": 8,
        }
        data = profile_data() | {"notebooks": {NOTEBOOK.stem: parameters}}
        profile = write_profile(tmp_path / "made-up.yaml", data)
        where = ("--profile", profile, "--build", tmp_path / "run")
        for verb, more in (("measure", ()), ("notebook", ("--results", tmp_path / "results"))):
            status, _, err = call("stage", verb, NOTEBOOK, *where, *more)
            assert status == 0, err
        results = tmp_path / "results"
        assert sorted(path.stem for path in (results / "figures").glob("*.svg")) == FIGURES
        assert {path.stem for path in (results / "tables").glob("*.md")} <= {*TABLES}
        return {path.stem: pd.read_csv(path) for path in (results / "tables").glob("*.csv")}

    return execute


def test_with_nothing_measured_it_runs_to_its_end(run, tmp_path) -> None:
    tables = run(tmp_path / "nowhere")
    assert sorted(tables) == TABLES
    assert tuple(tables["checkpoints"]) == COLUMNS
    assert tuple(tables["checkpoints_min_k"]) == RATES
    assert [len(tables[name]) for name in TABLES] == [2 * 4, 1, 2 * 2, 2 * 2]
    for table in tables.values():
        assert table["status"].str.startswith("failed: ").all()
    drawn = (tmp_path / "results" / "figures" / "checkpoints_power.svg").read_text("utf-8")
    assert "no cell was measured" in drawn
    executed = json.loads((tmp_path / "results" / "notebooks" / NOTEBOOK.name).read_text("utf-8"))
    outputs = [output for cell in executed["cells"] for output in cell.get("outputs", [])]
    assert not any(output.get("name") == "stderr" for output in outputs)


def test_with_a_network_every_cell_is_measured(run, make_model) -> None:
    tables = run(make_model(128))
    assert [len(tables[name]) for name in TABLES] == [2 * 4, 1, 2 * 2, 2 * 2]
    for table in tables.values():
        assert (table["status"] == "ok").all()
    assert tables["checkpoints"]["p"].between(0, 1).all()
    assert tables["checkpoints_min_k"]["spans"].tolist() == [8]
