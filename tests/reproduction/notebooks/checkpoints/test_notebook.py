"""Notebook 12 as it runs: with no model at all, and with a network of a few neurons."""

from pathlib import Path

import pandas as pd
import pytest

from fakes.checkpoint_run import MadeUpCheckpoints
from fakes.data_fixtures import ROOT, profile_data, write_profile
from fakes.notebook import run_cells

NOTEBOOK = ROOT / "notebooks" / "12_released_checkpoints.ipynb"
TABLES = ["checkpoints", "checkpoints_min_k", "checkpoints_permutations", "checkpoints_shards"]
FIGURES = ["checkpoints_permutations", "checkpoints_power", "checkpoints_shards"]


@pytest.mark.parametrize("status", ["failed", "ok"])
def test_the_notebook_runs_to_its_end(call, tmp_path: Path, make_model, status: str) -> None:
    made_up = MadeUpCheckpoints(tmp_path, None)
    made_up.write()
    sets = list(made_up.sets.values())
    parameters = {
        "models": [str(make_model(128) if status == "ok" else tmp_path / "nowhere")],
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
    build, results = tmp_path / "run", tmp_path / "results"
    code, _, err = call("stage", "measure", NOTEBOOK, "--profile", profile, "--build", build)
    assert code == 0, err
    where = {"profile": profile, "build": build, "results": results}
    run_cells(NOTEBOOK, **{name: str(path) for name, path in where.items()}, **parameters)
    assert sorted(path.stem for path in (results / "figures").glob("*.svg")) == FIGURES
    tables = {path.stem: pd.read_csv(path) for path in (results / "tables").glob("*.csv")}
    assert sorted(tables) == TABLES
    assert [len(tables[name]) for name in TABLES] == [2 * 4, 1, 2 * 2, 2 * 2]
    for table in tables.values():
        assert set(table["status"].str.partition(":")[0]) == {status}
    drawn = (results / "figures" / "checkpoints_power.svg").read_text("utf-8")
    assert "no cell was measured" in drawn  # of sets whose counts nobody knows
    if status == "ok":
        assert tables["checkpoints"]["p"].between(0, 1).all()
        assert tables["checkpoints_min_k"]["spans"].tolist() == [8]
