"""What notebook 00 shows: p-values of shipped stores, and what is known of a subset of MMLU."""

import numpy as np
import pandas as pd
import pytest

from contamination.statistics import permutation_test
from fakes.data_fixtures import ROOT
from reproduction.notebooks.start.shipped import open_shipped
from reproduction.notebooks.start.tables import (
    measured_layout,
    p_layout,
    p_values,
    published_layout,
    whole_orderings,
)
from reproduction.output.published import load_published

MEASURED = ROOT / "docs" / "measurements" / "mmlu_lines.csv"


@pytest.fixture(scope="module")
def shipped():
    return open_shipped(ROOT / "data" / "stores")


@pytest.fixture(scope="module")
def rows(shipped) -> pd.DataFrame:
    return p_values(shipped)


def test_the_orderings_give_the_p_value_of_the_permutation_test(shipped, rows) -> None:
    most = shipped.with_tokens[0]
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
    assert list(table) == ["Set", "Model", "Copies read", "Permutation", "Successor"]
    assert table["Set"].tolist() == ["two", "two", "one", "one"]
    assert table["Model"].tolist() == ["contaminated", "clean"] * 2
    assert table["Copies read"].tolist() == ["2", "0", "1", "0"]
    assert set(table["Successor"]) == {"0.250"}


# --- MMLU -----------------------------------------------------------------------------------------


def test_published_p_values_stand_as_printed_with_the_controls_last() -> None:
    table4 = load_published(ROOT / "data" / "published", "oren2024_table4_mmlu")
    table = published_layout(table4, ["astronomy", "abstract_algebra"])
    names = ["LLaMA2-7B", "Mistral-7B", "Pythia-1.4B", "BioMedLM (control)", "GPT-2 XL (control)"]
    assert table["Model"].tolist() == names
    assert list(table) == ["Model", "astronomy", "abstract_algebra"]
    assert table["astronomy"].tolist() == ["0.550", "0.657", "0.050", "0.050", "0.003"]
    assert table["abstract_algebra"].tolist()[:2] == ["0.103", "0.246"]


def test_what_was_measured_stands_in_two_segmentations() -> None:
    lines = pd.read_csv(MEASURED)
    subset = "high_school_european_history"
    table = measured_layout(lines, ["abstract_algebra", subset])
    assert list(table) == ["Witness", "What was shuffled", "abstract_algebra", subset]
    said = table.set_index(["Witness", "What was shuffled"])[subset]
    assert len(said) == 2 * 4
    questions, cut = said.xs("whole questions", level=1), said.xs("lines of the file", level=1)
    assert questions["statistics of the records"] == "quiet"
    assert cut["statistics of the records"] == "order carries information"
    assert questions["a compressor: p"] == f"{10**-0.1409:.3f}"
    assert questions["our clean model, sharded t: p"] == "0.986"
    assert cut["our clean model, successor: p"] == "0.810"
