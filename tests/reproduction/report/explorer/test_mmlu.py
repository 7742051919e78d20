"""What the page holds of MMLU is what the tables say."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from contamination.statistics import fisher
from contamination.tables import write_csv
from contamination.testsets.example_set import ExampleSet
from fakes.data_fixtures import ROOT
from reproduction.notebooks.mmlu.tables import published_subsets
from reproduction.output.published import load_published
from reproduction.report.explorer import page as mmlu_module
from reproduction.report.explorer.page import mmlu_payload

PUBLISHED, MEASUREMENTS = ROOT / "data" / "published", ROOT / "docs" / "measurements"


def excluded(mmlu: dict[str, Any]) -> dict[str, str]:
    rows = mmlu["table"]["rows"]
    return {name: row[1] for name, row in zip(mmlu["names"], rows, strict=True) if row[1]}


def test_table_4_and_its_exclusions(mmlu: dict[str, Any]) -> None:
    titles = [column["title"] for column in mmlu["table"]["columns"]]
    shown = dict(zip(mmlu["names"], mmlu["table"]["rows"], strict=True))
    why = excluded(mmlu)
    assert shown["professional_law"][titles.index("LLaMA2-7B")]["text"] == "—"
    for row in published_subsets(
        load_published(PUBLISHED, "oren2024_table4_mmlu"), 0.05
    ).itertuples():
        cell = shown[row.subset][titles.index(row.model)]
        assert 10 ** cell["value"] == pytest.approx(row.published_p)
        assert ("published: " in why.get(row.subset, "")) == row.excluded
        assert row.reason in why.get(row.subset, "")


def test_what_our_controls_exclude(mmlu: dict[str, Any]) -> None:
    records = pd.read_csv(MEASUREMENTS / "mmlu_subsets.csv").query("source == 'measured'")
    ours = {(row.subset, row.test) for row in records[records["excluded"]].itertuples()}
    found = {
        (name, part.partition(":")[0])
        for name, why in excluded(mmlu).items()
        for part in why.split("; ")
    }
    assert {each for each in found if each[1] != "published"} == ours
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
    assert first["points"][0] == (0.0, 0.0) and first["points"][-1] == (1.0, 1.0)
    assert len(mmlu["curves"]) == len(rows) > 3


def test_a_run_that_measured_mmlu_shows_its_own_numbers(tmp_path: Path) -> None:
    subsets = pd.read_csv(MEASUREMENTS / "mmlu_subsets.csv")
    lines = pd.read_csv(MEASUREMENTS / "mmlu_lines.csv")
    for table, own in ((lines[:0], False), (lines.assign(log10_p=-0.25), True)):
        write_csv(subsets.assign(log10_p=-0.5), tmp_path, "mmlu_subsets")
        write_csv(table, tmp_path, "mmlu_lines")
        shown = mmlu_payload(PUBLISHED, MEASUREMENTS, tmp_path)
        assert ("Measured in this run" in shown["source"]) is own
        here = {row[-1]["value"] for row in shown["table"]["rows"] if row[-1]["text"] != "—"}
        assert (here == {-0.25}) is own


def test_examples_are_those_of_files_at_hand(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def open_test_set(name: str, *, max_records: int) -> ExampleSet:
        assert max_records == 150  # as many as were measured
        return ExampleSet(name, (f"{name} asks\n", "Why?\n"), "mmlu/2", "r")

    monkeypatch.setattr(mmlu_module, "available", {"mmlu/anatomy"}.__contains__)
    monkeypatch.setattr(mmlu_module, "open_test_set", open_test_set)
    shown = mmlu_payload(PUBLISHED, MEASUREMENTS, tmp_path)
    assert shown["at_hand"] == {"anatomy": ["mmlu/anatomy asks", "Why?"]}
