"""What the page holds of MMLU is what the tables say."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from contamination.tables import format_p, write_csv
from contamination.testsets.example_set import ExampleSet
from fakes.data_fixtures import ROOT
from reproduction.notebooks.mmlu.measure import title
from reproduction.notebooks.mmlu.tables import published_subsets
from reproduction.output.published import load_published
from reproduction.report.explorer import page as mmlu_module
from reproduction.report.explorer.page import mmlu_payload

PUBLISHED, MEASUREMENTS = ROOT / "data" / "published", ROOT / "docs" / "measurements"
LABELS = {"sharded_t": "sharded t", "successor": "successor"}


def test_table_4_and_its_exclusions(mmlu: dict[str, Any]) -> None:
    shown = {each["name"]: each for each in mmlu["subsets"]}
    law = shown["professional_law"]
    assert law["words"][0] == "not in Table 4"
    assert law["p"]["LLaMA2-7B"] is None
    for row in published_subsets(
        load_published(PUBLISHED, "oren2024_table4_mmlu"), 0.05
    ).itertuples():
        each = shown[row.subset]
        assert 10 ** each["p"][row.model] == pytest.approx(row.published_p)
        assert (each["out"]["published"] or "") == row.reason
        assert each["words"][0] == ("excluded" if row.excluded else "kept")
    small = "small under an audited model"
    assert small not in shown["astronomy"]["words"]  # Pythia-1.4B has 0.050 there


def test_what_was_measured_by_record_and_by_line(mmlu: dict[str, Any]) -> None:
    found = {tuple(row[:3]): row[3:] for row in mmlu["measured"]["rows"]}
    lines = pd.read_csv(MEASUREMENTS / "mmlu_lines.csv")
    for row in lines.itertuples():
        model = f"{row.model}, {LABELS[row.test]}"
        examples, shards, verdict, _, _, compressor, p = found[
            title(row.subset), model, row.segmentation
        ]
        assert (examples, shards, verdict) == (row.examples, str(row.shards), row.verdict)
        assert (compressor["value"], p["value"]) == (row.compressor_log10_p, row.log10_p)
        assert p["text"] == format_p(10**row.log10_p, row.log10_p)
    records = pd.read_csv(MEASUREMENTS / "mmlu_subsets.csv").query("source == 'measured'")
    for row in records[records["model"] == "contaminated"].itertuples():
        cells = found.pop((title(row.subset), f"contaminated, {LABELS[row.test]}", "record"))
        assert cells[-1]["value"] == row.log10_p
    assert len(found) == len(lines)
    excluded = {(row.subset, row.test) for row in records[records["excluded"]].itertuples()}
    shown = {(e["name"], rule) for e in mmlu["subsets"] for rule, why in e["out"].items() if why}
    assert {each for each in shown if each[1] != "published"} == excluded
    assert {(each["rule"], each["printed"]) for each in mmlu["curves"]} == {
        *(("published", p) for p in ("0.014", "0.011", "0.362")),
        *((rule, "—") for rule in LABELS),
    }
    assert "not in this run" in mmlu["source"]


def test_a_run_that_measured_mmlu_shows_its_own_numbers(tmp_path: Path) -> None:
    subsets = pd.read_csv(MEASUREMENTS / "mmlu_subsets.csv")
    lines = pd.read_csv(MEASUREMENTS / "mmlu_lines.csv")
    for table, own in ((lines[:0], False), (lines.assign(log10_p=-0.25), True)):
        write_csv(subsets.assign(log10_p=-0.5), tmp_path, "mmlu_subsets")
        write_csv(table, tmp_path, "mmlu_lines")
        shown, _ = mmlu_payload(PUBLISHED, MEASUREMENTS, tmp_path)
        assert ("Measured in this run" in shown["source"]) is own
        by_line = [row for row in shown["measured"]["rows"] if row[2] == "line"]
        assert ({row[-1]["value"] for row in by_line} == {-0.25}) is own


def test_examples_are_those_of_files_at_hand(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def open_test_set(name: str, *, max_records: int) -> ExampleSet:
        assert max_records == 150  # as many as were measured
        return ExampleSet(name, (f"{name} asks\n", "Why?\n"), "mmlu/2", "r")

    monkeypatch.setattr(mmlu_module, "available", {"mmlu/anatomy"}.__contains__)
    monkeypatch.setattr(mmlu_module, "open_test_set", open_test_set)
    _, examples = mmlu_payload(PUBLISHED, MEASUREMENTS, tmp_path)
    assert examples == {"anatomy": ("mmlu/anatomy asks\n", "Why?\n")}
