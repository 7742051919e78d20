"""The page shows of MMLU exactly what the tables say."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from contamination.statistics import fisher
from contamination.tables import write_csv
from fakes.data_fixtures import ROOT
from reproduction.notebooks.mmlu.evidence import MmluEvidence, load_evidence
from reproduction.notebooks.mmlu.tables import published_subsets
from reproduction.output.published import load_published
from reproduction.report.explorer import mmlu as explorer
from reproduction.report.explorer.mmlu import mmlu_payload

PUBLISHED = ROOT / "data" / "published"
MEASUREMENTS = ROOT / "docs" / "measurements"
RELEASED = ROOT / "results" / "reference" / "pocket"


def column(mmlu: dict[str, Any], heading: str) -> dict[str, Any]:
    """Cells of a column of the table of subsets, by subset."""
    titles = [each["title"] for each in mmlu["table"]["columns"]]
    place = titles.index(heading)
    rows = zip(mmlu["names"], mmlu["table"]["rows"], strict=True)
    return {name: row[place] for name, row in rows}


@pytest.fixture
def few_subsets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the panels of six subsets alone, where no test looks at those of all."""
    names = explorer.subset_names()[:6]
    monkeypatch.setattr(explorer, "subset_names", lambda: names)


def test_table_4_and_its_exclusions(mmlu: dict[str, Any]) -> None:
    excluders = column(mmlu, "Excluded by")
    assert column(mmlu, "LLaMA2-7B")["professional_law"]["text"] == "—"
    table4 = load_published(PUBLISHED, "oren2024_table4_mmlu")
    for row in published_subsets(table4, 0.05).itertuples():
        cell = column(mmlu, row.model)[row.subset]
        assert 10 ** cell["value"] == pytest.approx(row.published_p, rel=1e-9, abs=0)
        assert ("paper" in excluders[row.subset].split(", ")) == row.excluded
        for control in row.reason.partition("under ")[2].split(", "):
            assert control in mmlu["subsets"][row.subset]["why"]


def test_what_our_controls_exclude(mmlu: dict[str, Any]) -> None:
    records = pd.read_csv(MEASUREMENTS / "mmlu_subsets.csv").query("source == 'measured'")
    excluded = records[records["excluded"]]
    ours = set(zip(excluded["subset"], excluded["test"].str.replace("_", " "), strict=True))
    found = set()
    for name, excluders in column(mmlu, "Excluded by").items():
        found |= {(name, excluder) for excluder in excluders.split(", ")}
    assert {(name, excluder) for name, excluder in found if excluder not in ("", "paper")} == ours
    assert "not in this run" in mmlu["source"]


def test_curves_are_those_of_kept_subsets_combined_by_fishers_method(mmlu: dict[str, Any]) -> None:
    rows = mmlu["fisher"]["rows"]
    assert [row[:3] for row in rows[:3]] == [
        ["LLaMA2-7B", 43, "0.014"],
        ["Mistral-7B", 43, "0.011"],
        ["Pythia-1.4B", 43, "0.362"],
    ]
    table4 = load_published(PUBLISHED, "oren2024_table4_mmlu")
    kept = table4[(table4[["biomedlm", "gpt2_xl"]] >= 0.05).all(axis=1)]["llama2_7b"]
    assert 10 ** rows[0][3]["value"] == pytest.approx(fisher(log10_p=np.log10(kept)).p)
    first = mmlu["curves"][0]
    assert [p for p, _ in first["points"][1:-1]] == pytest.approx(sorted(kept))
    assert first["points"][0] == (0.0, 0.0)
    assert first["points"][-1] == (1.0, 1.0)
    assert len(mmlu["curves"]) == len(rows) == 6


def test_a_released_model_stands_beside_those_of_the_paper(mmlu: dict[str, Any]) -> None:
    combined = pd.read_csv(RELEASED / "tables" / "mmlu_fisher.csv").query("source == 'measured'")
    (row,) = [row for row in mmlu["fisher"]["rows"] if row[0].startswith("SmolLM2")]
    assert row[1] == combined["subsets_kept"].item()
    assert row[3]["value"] == pytest.approx(combined["log10_p"].item())


@pytest.mark.usefixtures("few_subsets")
@pytest.mark.parametrize("measured", [False, True])
def test_a_run_that_measured_mmlu_shows_its_own_numbers(tmp_path: Path, measured: bool) -> None:
    subsets = pd.read_csv(MEASUREMENTS / "mmlu_subsets.csv")
    lines = pd.read_csv(MEASUREMENTS / "mmlu_lines.csv")
    write_csv(subsets.assign(log10_p=-0.5), tmp_path, "mmlu_subsets")
    write_csv(lines.assign(log10_p=-0.25) if measured else lines[:0], tmp_path, "mmlu_lines")
    evidence = load_evidence(PUBLISHED, MEASUREMENTS, RELEASED, tmp_path)
    shown = mmlu_payload(evidence)
    assert ("Measured in this run" in shown["source"]) is measured
    by_line = {cell["value"] for cell in column(shown, "our clean model, by line").values()}
    assert (by_line == {-0.25}) is measured
    own = {cell["value"] for cell in column(shown, "our clean model").values()}
    assert (own == {-0.5}) is measured


@pytest.mark.usefixtures("few_subsets")
def test_each_model_that_was_asked_by_line_has_a_column_of_its_name(tmp_path: Path) -> None:
    subsets = pd.read_csv(MEASUREMENTS / "mmlu_subsets.csv")
    lines = pd.read_csv(MEASUREMENTS / "mmlu_lines.csv")
    by_model = {"biomedlm": -0.25, "gpt2-xl": -0.75}
    of_models = [lines.assign(model=model, log10_p=log10_p) for model, log10_p in by_model.items()]
    write_csv(subsets, tmp_path, "mmlu_subsets")
    write_csv(pd.concat(of_models), tmp_path, "mmlu_lines")
    evidence = load_evidence(PUBLISHED, MEASUREMENTS, RELEASED, tmp_path)
    shown = mmlu_payload(evidence)
    for model, log10_p in by_model.items():
        by_line = {cell["value"] for cell in column(shown, f"{model}, by line").values()}
        assert by_line == {log10_p}
    said = {panel["lines"].partition(" Asked by line: ")[2] for panel in shown["subsets"].values()}
    assert said == {"biomedlm, gpt2-xl."}
    headings = [each["title"] for each in shown["table"]["columns"]]
    assert "our clean model, by line" not in headings


@pytest.mark.usefixtures("few_subsets")
def test_a_run_of_a_released_model_does_not_show_it_twice() -> None:
    evidence = load_evidence(PUBLISHED, MEASUREMENTS, RELEASED, RELEASED)
    curves = [curve["name"] for curve in mmlu_payload(evidence)["curves"]]
    assert len(curves) == len(set(curves)) == 4


def test_the_panel_of_every_subset_names_what_is_missing(
    mmlu: dict[str, Any], evidence: MmluEvidence
) -> None:
    for name in mmlu["names"]:
        shown = mmlu["subsets"][name]
        assert len(shown["p_values"]) == (evidence.p_values["subset"] == name).sum()
        assert [row[0] for row in shown["ways"]["rows"]] == ["record", "line"]
        assert "Table 4" in shown["why"] or name != "professional_law"
