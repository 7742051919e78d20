"""The notebook of the seminar, executed: with its solutions, and as a student sends it in.

Two kernels and the training of two tiny models: some forty seconds on a busy machine.
"""

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import papermill
import pytest

from fakes.data_fixtures import ROOT
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
    "5": (
        "scipy.stats.t.sf(np.sqrt(shards) * (s := L[:, 0] - L[:, 1:].mean(axis=1)).mean()"
        " / s.std(), shards - 1)",
        "ddof=1",
    ),
    "9": ("successor", "Uncorrected"),
    "10": ("'a lot'", "Give one number"),
}


def _sources(path: Path) -> list[tuple[str, dict, str]]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [(cell["cell_type"], cell["metadata"], "".join(cell["source"])) for cell in cells]


def _printed(path: Path) -> str:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    return "".join("".join(o["text"]) for o in outputs if o.get("name") == "stdout")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return a function that executes a notebook beside the others: (executed, results)."""
    root = tmp_path_factory.mktemp("seminar")

    def execute(source: Path, name: str, **parameters: object) -> tuple[Path, Path]:
        executed, results = root / f"{name}.ipynb", root / name
        papermill.execute_notebook(
            source,
            executed,
            QUICK | {"build": str(root / "build"), "results": str(results)} | parameters,
            cwd=NOTEBOOK.parent,
            progress_bar=False,
            extra_arguments=["--log-level=CRITICAL"],
        )
        return executed, results

    return execute


def test_every_exercise_has_a_cell_a_check_and_a_folded_solution():
    cells = [cell for cell in _sources(NOTEBOOK) if cell[0] == "code"]
    for name, exercise in EXERCISES.items():
        (index,) = [i for i, cell in enumerate(cells) if f"answer_{name} = None" in cell[2]]
        (_, metadata, asked), (_, folded, solved) = cells[index : index + 2]
        (check,) = re.findall(rf'^check\("{name}", answer_{name}.*\)$', asked, re.MULTILINE)
        assert re.findall(r"(\w+)=", check) == list(inspect.signature(exercise.solve).parameters)
        assert "solution" not in metadata.get("tags", [])
        assert folded == {"jupyter": {"source_hidden": True}, "tags": ["solution"]}
        assert solved.startswith("if solve:\n    ")
        assert solved.rstrip().endswith(check)
    text = "\n".join(source for kind, _, source in _sources(NOTEBOOK) if kind == "markdown")
    assert re.findall(r"^### Exercise (\d+)$", text, re.MULTILINE) == list(EXERCISES)


def test_solutions_pass_every_check(run):
    executed, results = run(NOTEBOOK, "solved", solve=True)  # strict: a wrong one would raise
    table = pd.read_csv(results / "tables" / "seminar_answers.csv")
    assert table["outcome"].tolist() == ["right"] * len(EXERCISES)
    assert f"{len(EXERCISES)} of {len(EXERCISES)} exercises are right." in _printed(executed)


def test_a_students_notebook_runs_to_its_end_and_tells_what_is_wrong(run, tmp_path):
    handed_out = tmp_path / "seminar-student.ipynb"
    command = [sys.executable, "-m", "nbconvert", *WITHOUT_SOLUTIONS]
    command += [f"--output={handed_out.stem}", f"--output-dir={tmp_path}", str(NOTEBOOK)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    content = handed_out.read_text(encoding="utf-8")
    assert "if solve:" not in content
    assert "answer_11 = None" in content
    for name, (answer, _) in MISTAKES.items():
        before = content
        content = content.replace(f"answer_{name} = None", f"answer_{name} = {answer}")
        assert content != before
    handed_out.write_text(content, encoding="utf-8")

    executed, results = run(handed_out, "student")
    printed = _printed(executed)
    for name in EXERCISES:
        if name in MISTAKES:
            (line,) = re.findall(rf"^✗ Exercise {name}: .*$", printed, re.MULTILINE)
            assert MISTAKES[name][1] in line
        else:
            assert f"Exercise {name}: not answered yet." in printed
    assert f"0 of {len(EXERCISES)} exercises are right." in printed
    table = pd.read_csv(results / "tables" / "seminar_answers.csv", dtype=str)
    wrong = table.loc[table["outcome"] == "wrong", "exercise"].tolist()
    assert wrong == list(MISTAKES)
