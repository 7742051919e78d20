"""The notebook of the seminar, executed: with its solutions, and as a student sends it in.

Two tiny models are trained for it, once.
"""

import inspect
import json
import re
from pathlib import Path

import pandas as pd
import pytest
from nbconvert.nbconvertapp import main as export

from fakes.data_fixtures import ROOT
from fakes.notebook import run_cells
from reproduction.notebooks.seminar.exercises import EXERCISES

NOTEBOOK = ROOT / "notebooks" / "seminar.ipynb"
QUICK = {"dup_counts": [2, 20], "examples": 24, "documents": 60, "shards": 6, "successor_shards": 2}
QUICK |= {"permutations": 19, "whole_set_permutations": 19, "trials": 30, "chosen_trials": 5}
WITHOUT_SOLUTIONS = [  # as docs/seminar-guide.md gives it
    *("--to", "notebook", "--TagRemovePreprocessor.enabled=True"),
    "--TagRemovePreprocessor.remove_cell_tags=solution",
]
MISTAKES = {
    "2": ("(scores[1:] >= scores[0]).mean()", "The +1 is missing"),
    "10": ("'a lot'", "times q (Bonferroni)"),
}


@pytest.fixture(scope="module")
def build(tmp_path_factory) -> Path:
    """Return where both runs find the models that the first of them trains."""
    return tmp_path_factory.mktemp("seminar")


def test_every_exercise_has_a_cell_a_check_and_a_folded_solution():
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    cells = [(c["metadata"], "".join(c["source"])) for c in cells if c["cell_type"] == "code"]
    for name, (_, solve) in EXERCISES.items():
        (index,) = [i for i, cell in enumerate(cells) if f"answer_{name} = None" in cell[1]]
        (metadata, asked), (folded, solved) = cells[index : index + 2]
        (check,) = re.findall(rf'^check\("{name}", answer_{name}.*\)$', asked, re.MULTILINE)
        assert re.findall(r"(\w+)=", check) == list(inspect.signature(solve).parameters)
        assert "solution" not in metadata.get("tags", [])
        assert folded == {"jupyter": {"source_hidden": True}, "tags": ["solution"]}
        assert solved.startswith("if solve:\n    ")
        assert solved.rstrip().endswith(check)


def test_solutions_pass_every_check(build, tmp_path, capsys):
    where = {"build": str(build), "results": str(tmp_path)}
    run_cells(NOTEBOOK, **QUICK, **where, solve=True)  # strict: a wrong one would raise
    table = pd.read_csv(tmp_path / "tables" / "seminar_answers.csv")
    assert table["outcome"].tolist() == ["right"] * len(EXERCISES)
    assert f"{len(EXERCISES)} of {len(EXERCISES)} exercises are right." in capsys.readouterr().out


def test_a_students_notebook_runs_to_its_end_and_tells_what_is_wrong(build, tmp_path, capsys):
    handed_out = tmp_path / "seminar-student.ipynb"
    where = (f"--output={handed_out.stem}", f"--output-dir={tmp_path}")
    export([*WITHOUT_SOLUTIONS, *where, str(NOTEBOOK)])
    content = handed_out.read_text(encoding="utf-8")
    assert "if solve:" not in content
    for name, (answer, _) in MISTAKES.items():
        before = content
        content = content.replace(f"answer_{name} = None", f"answer_{name} = {answer}")
        assert content != before
    handed_out.write_text(content, encoding="utf-8")

    where = {"build": str(build), "results": str(tmp_path)}
    run_cells(handed_out, NOTEBOOK.parent, **QUICK, **where)
    printed = capsys.readouterr().out
    for name in EXERCISES:
        if name in MISTAKES:
            (line,) = re.findall(rf"^✗ Exercise {name}: .*$", printed, re.MULTILINE)
            assert MISTAKES[name][1] in line
        else:
            assert f"Exercise {name}: not answered yet." in printed
    assert f"0 of {len(EXERCISES)} exercises are right." in printed
