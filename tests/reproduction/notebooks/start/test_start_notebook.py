"""Notebook 00 as a reader meets it: executed, and its words true of what it shows."""

import json
from pathlib import Path

import pandas as pd
import papermill
import pytest

from contamination.tables import SIGNIFICANT
from fakes.data_fixtures import ROOT

NOTEBOOK = ROOT / "notebooks" / "00_start_here.ipynb"
CELLS = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
PROSE = "\n".join("".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "markdown")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Execute the notebook in its folder, as `make start` opens it; return what it writes."""
    root = tmp_path_factory.mktemp("start")
    papermill.execute_notebook(
        NOTEBOOK,
        root / NOTEBOOK.name,
        {"results": str(root)},
        cwd=NOTEBOOK.parent,
        progress_bar=False,
        extra_arguments=["--log-level=CRITICAL"],
    )
    return root


def test_it_runs_without_a_model_and_shows_three_figures(results: Path) -> None:
    cells = json.loads((results / NOTEBOOK.name).read_text(encoding="utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 3
    assert not any(output.get("name") == "stderr" for output in outputs)
    for name in ("start_orderings", "start_sets", "start_gains"):
        assert (results / "figures" / f"{name}.svg").is_file()


def test_the_set_of_most_copies_is_found_and_the_clean_model_is_not_accused_of_it(results) -> None:
    rows = pd.read_csv(results / "tables" / "start.csv")
    most = rows[rows["dup_count"] == rows["dup_count"].max()].set_index(["model", "test"])
    for test in ("sharded_t", "sharded_exact", "successor"):
        assert most.loc[("contaminated", test), "holm_p"].max() < 1e-4
    assert most.loc["contaminated"].loc["permutation", "p"] == 1 / 20  # "can never say less"
    assert most.loc["clean", "holm_p"].min() > SIGNIFICANT
