"""What the page holds of MMLU is what the tables say."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from contamination.tables import write_csv
from contamination.testsets.example_set import ExampleSet
from fakes.data_fixtures import ROOT
from reproduction.notebooks.mmlu.tables import published_subsets
from reproduction.output.published import load_published
from reproduction.report.explorer import mmlu as mmlu_module
from reproduction.report.explorer.mmlu import Mmlu, load_mmlu, mmlu_payload
from reproduction.report.explorer.page import payload
from reproduction.report.explorer.scored import View

PUBLISHED, MEASUREMENTS = ROOT / "data" / "published", ROOT / "docs" / "measurements"
MODELS = ["LLaMA2-7B", "Mistral-7B", "Pythia-1.4B", "BioMedLM", "GPT-2 XL"]


@pytest.fixture
def table4() -> pd.DataFrame:
    return load_published(PUBLISHED, "oren2024_table4_mmlu")


def test_table_4_and_its_exclusions(mmlu: Mmlu, table4: pd.DataFrame) -> None:
    shown = {each["name"]: each for each in mmlu_payload(mmlu)["subsets"]}
    assert len(shown) == 57
    assert [name for name, each in shown.items() if not each["listed"]] == ["professional_law"]
    assert not shown["professional_law"]["p"].keys() & set(MODELS)
    for row in published_subsets(table4, 0.05).itertuples():
        each = shown[row.subset]
        assert 10 ** each["p"][row.model] == pytest.approx(row.published_p)
        assert each["excluded"].get("published", "") == row.reason
        assert each["records"] == row.examples
    excluded = [name for name, each in shown.items() if "published" in each["excluded"]]
    assert len(excluded) == 13
    assert "astronomy" in excluded  # BioMedLM has 0.050 there, GPT-2 XL 0.003
    assert shown["astronomy"]["excluded"]["published"] == "p < 0.05 under GPT-2 XL"


def test_what_was_measured_by_record_and_by_line(mmlu: Mmlu) -> None:
    data = mmlu_payload(mmlu)
    shown = {each["name"]: each for each in data["subsets"]}
    lines = pd.read_csv(MEASUREMENTS / "mmlu_lines.csv")
    records = pd.read_csv(MEASUREMENTS / "mmlu_subsets.csv")
    found = {
        (name, way, row["model"], row["test"]): (row["shards"], row["log10_p"])
        for name, each in shown.items()
        for way, cut in each["cut"].items()
        for row in cut["rows"]
    }
    expected = {
        (row.subset, row.segmentation, row.model, row.test): (row.shards, row.log10_p)
        for row in lines.itertuples()
    }
    assert expected.items() <= found.items()
    others = records[records["model"] == "contaminated"]
    assert len(found) == len(expected) + len(others)
    for row in others.itertuples():
        shards, log10_p = found[row.subset, "record", "contaminated", row.test]
        assert (shards, log10_p) == (
            expected[row.subset, "record", "clean", row.test][0],
            row.log10_p,
        )
    for row in lines.itertuples():
        cut = shown[row.subset]["cut"][row.segmentation]
        assert (cut["verdict"], cut["compressor"]) == (row.verdict, row.compressor_log10_p)
        assert cut["examples"] == row.examples
        facts = {name: getattr(row, name) for name in shown[row.subset]["facts"]}
        assert shown[row.subset]["facts"] == facts
    rules = {(row.subset, row.test) for row in records[records["excluded"]].itertuples()}
    assert rules == {
        (name, rule)
        for name, each in shown.items()
        for rule in each["excluded"]
        if rule != "published"
    }
    assert "not in this run" in data["source"]
    assert "150 records" in data["source"]


def test_a_run_that_measured_mmlu_shows_its_own_numbers(tmp_path: Path, mmlu: Mmlu) -> None:
    subsets = pd.concat([mmlu.published, mmlu.measured.assign(log10_p=-0.5)])
    for lines, own in ((mmlu.lines[:0], False), (mmlu.lines.assign(log10_p=-0.25), True)):
        write_csv(subsets, tmp_path, "mmlu_subsets")
        write_csv(lines, tmp_path, "mmlu_lines")
        loaded = load_mmlu(PUBLISHED, MEASUREMENTS, tmp_path)
        assert loaded.here is own
        data = mmlu_payload(loaded)
        assert ("Measured in this run" in data["source"]) is own
        rows = data["subsets"][0]["cut"]["line"]["rows"]
        assert ({row["log10_p"] for row in rows} == {-0.25}) is own


def test_examples_are_those_of_files_at_hand_that_were_not_scored(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mmlu: Mmlu, views: list[View]
) -> None:
    def open_test_set(name: str, *, max_records: int) -> ExampleSet:
        assert max_records == 150  # as many as were measured
        return ExampleSet(name, (f"{name} asks\n", "Why?\n"), "mmlu/2", "r")

    at_hand = ("mmlu/anatomy", "mmlu/virology")
    monkeypatch.setattr(mmlu_module, "available", at_hand.__contains__)
    monkeypatch.setattr(mmlu_module, "open_test_set", open_test_set)
    loaded = load_mmlu(PUBLISHED, MEASUREMENTS, tmp_path)
    assert payload([], [], loaded, "t")["at_hand"] == {
        "anatomy": ["mmlu/anatomy asks", "Why?"],
        "virology": ["mmlu/virology asks", "Why?"],
    }
    scored = replace(views[0].scored, group="MMLU")
    scored = replace(scored, test_set=replace(scored.test_set, name="anatomy"))
    shown = payload([replace(views[0], scored=scored)], [], loaded, "t")
    assert list(shown["at_hand"]) == ["virology"]
    assert payload([], [], mmlu, "t")["at_hand"] == {}


def test_columns_know_their_rule_and_what_table_2_prints(mmlu: Mmlu) -> None:
    columns = {each["id"]: each for each in mmlu_payload(mmlu)["columns"]}
    assert list(columns)[:5] == MODELS
    assert [name for name, each in columns.items() if each["control"]] == ["BioMedLM", "GPT-2 XL"]
    assert {each.get("printed") for each in columns.values()} == {"0.014", "0.011", "0.362", None}
    measured = {name: each["rule"] for name, each in columns.items() if each["rule"] != "published"}
    assert measured == {
        "contaminated, sharded_t": "sharded_t",
        "contaminated, successor": "successor",
    }
    colours = [each["colour"] for each in columns.values() if not each["control"]]
    assert len(set(colours)) == len(colours) == 5
    assert not np.isnan(
        [p for each in mmlu_payload(mmlu)["subsets"] for p in each["p"].values()]
    ).any()
