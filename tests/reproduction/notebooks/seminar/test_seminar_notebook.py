"""The notebook of the seminar, executed: with its solutions, and without an answer.

Two tiny models are trained for it, once.
"""

import json
from pathlib import Path

import pandas as pd
import pytest

from fakes.data_fixtures import ROOT
from fakes.notebook import run_cells
from reproduction.notebooks.seminar.exercises import EXERCISES

NOTEBOOK = ROOT / "notebooks" / "seminar.ipynb"
QUICK = {"dup_counts": [2, 20], "examples": 12, "documents": 30, "shards": 6, "successor_shards": 2}
QUICK |= {"permutations": 19, "whole_set_permutations": 19, "trials": 30, "chosen_trials": 5}


@pytest.fixture(scope="module")
def build(tmp_path_factory) -> Path:
    """Return where both runs find the models that the first of them trains."""
    return tmp_path_factory.mktemp("seminar")


def test_solutions_are_folded_and_can_be_taken_out():
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    solutions = [cell["metadata"] for cell in cells if "if solve:" in "".join(cell["source"])]
    tagged = {"jupyter": {"source_hidden": True}, "tags": ["solution"]}
    assert solutions == [tagged] * len(EXERCISES)


def test_solutions_pass_every_check(build, tmp_path, capsys):
    # A wrong solution raises.
    run_cells(NOTEBOOK, **QUICK, build=str(build), results=str(tmp_path), solve=True)
    table = pd.read_csv(tmp_path / "tables" / "seminar_answers.csv")
    assert table["outcome"].tolist() == ["right"] * len(EXERCISES)
    assert f"{len(EXERCISES)} of {len(EXERCISES)} exercises are right." in capsys.readouterr().out


def test_a_notebook_without_answers_runs_to_its_end(build, tmp_path, capsys):
    run_cells(NOTEBOOK, **QUICK, build=str(build), results=str(tmp_path))
    printed = capsys.readouterr().out
    for name in EXERCISES:
        assert f"Exercise {name}: not answered yet." in printed
    assert f"0 of {len(EXERCISES)} exercises are right." in printed
