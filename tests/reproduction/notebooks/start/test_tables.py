"""Notebook 00 as a reader meets it, and the tables that it shows."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from contamination.statistics import permutation_test
from contamination.tables import SIGNIFICANT
from fakes.data_fixtures import ROOT
from fakes.notebook import run_cells
from reproduction.notebooks.start.shipped import open_shipped
from reproduction.notebooks.start.tables import p_layout, p_values, whole_orderings


@pytest.fixture(scope="module")
def shipped():
    return open_shipped(ROOT / "data" / "stores")


def test_the_orderings_give_the_p_value_of_the_permutation_test(shipped) -> None:
    most, rows = shipped.with_tokens[0], p_values(shipped)
    for model, scores in whole_orderings(shipped, most).items():
        row = rows.set_index(["model", "dataset", "test"]).loc[model, most, "permutation"]
        assert permutation_test(scores).p == row["p"]
        assert len(scores) == 1 + shipped.scoring.whole_set_permutations


def test_a_line_for_each_set_and_model_and_no_copies_in_the_clean_one() -> None:
    rows = pd.DataFrame(
        [
            (model, name, 8, count, test, 0.25, np.log10(0.25))
            for model in ("contaminated", "clean")
            for name, count in (("one", 1), ("two", 2))
            for test in ("permutation", "successor")
        ],
        columns=["model", "dataset", "examples", "dup_count", "test", "p", "log10_p"],
    )
    table = p_layout(rows)
    assert table["Set"].tolist() == ["two", "two", "one", "one"]
    assert table["Model"].tolist() == ["contaminated", "clean"] * 2
    assert table["Copies read"].tolist() == ["2", "0", "1", "0"]
    assert set(table["Successor"]) == {"0.250"}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("start")


@pytest.fixture(scope="module")
def shown(results: Path) -> list[Any]:
    return run_cells(ROOT / "notebooks" / "00_start_here.ipynb", results=str(results))


def test_it_runs_without_a_model_and_shows_three_figures(shown, results: Path) -> None:
    assert sum(isinstance(value, Figure) for value in shown) == 3
    for name in ("start_orderings", "start_sets", "start_gains"):
        assert (results / "figures" / f"{name}.svg").is_file()


def test_the_set_of_most_copies_is_found_and_the_clean_model_is_not_accused_of_it(
    shown, results: Path
) -> None:
    rows = pd.read_csv(results / "tables" / "start.csv")
    most = rows[rows["dup_count"] == rows["dup_count"].max()].set_index(["model", "test"])
    for test in ("sharded_t", "sharded_exact", "successor"):
        assert most.loc[("contaminated", test), "holm_p"].max() < 1e-4
    assert most.loc["contaminated"].loc["permutation", "p"] == 1 / 20  # "can never say less"
    assert most.loc["clean", "holm_p"].min() > SIGNIFICANT
