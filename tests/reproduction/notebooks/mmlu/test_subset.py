"""Views of one subset: each number is that of its table, and a wrong name is named."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from contamination.errors import InputError
from contamination.statistics import fisher
from contamination.testsets.example_set import ExampleSet
from fakes.data_fixtures import ROOT
from reproduction.notebooks.mmlu import subset as views
from reproduction.notebooks.mmlu.evidence import MmluEvidence, load_evidence
from reproduction.notebooks.mmlu.figures import plot_places, plot_subset
from reproduction.notebooks.mmlu.subset import (
    combination_layout,
    examples_of,
    exclusion_of,
    leave_one_out,
    lines_of,
    p_values_of,
    places_of,
    segmentation_of,
)
from reproduction.output.published import load_published

PUBLISHED = ROOT / "data" / "published"
MEASUREMENTS = ROOT / "docs" / "measurements"
RELEASED = ROOT / "results" / "reference" / "pocket"
VIEWS = [exclusion_of, p_values_of, segmentation_of, lines_of, combination_layout, examples_of]
KEPT, EXCLUDED = "anatomy", "high_school_european_history"


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> MmluEvidence:
    nothing = tmp_path_factory.mktemp("nothing")
    return load_evidence(PUBLISHED, MEASUREMENTS, RELEASED, nothing)


def test_p_values_are_those_of_table_4_and_of_the_measurements(evidence: MmluEvidence) -> None:
    found = p_values_of(evidence, KEPT).set_index("curve")
    row = load_published(PUBLISHED, "oren2024_table4_mmlu").set_index("subset").loc[KEPT]
    assert found.loc["Mistral-7B", "log10_p"] == pytest.approx(np.log10(row["mistral_7b"]))
    measured = pd.read_csv(RELEASED / "tables" / "mmlu_subsets.csv")
    measured = measured[(measured["subset"] == KEPT) & (measured["source"] == "measured")]
    expected = measured["log10_p"].item()
    assert found.loc["SmolLM2-135M-Instruct, successor", "log10_p"] == pytest.approx(expected)
    assert found["kind"].value_counts().to_dict() == {"measured": 5, "published": 3, "control": 2}


def test_an_exclusion_names_the_controls_that_reject(evidence: MmluEvidence) -> None:
    said = exclusion_of(evidence, EXCLUDED)
    assert "excludes" in said
    assert "BioMedLM" in said
    assert "GPT-2 XL" in said
    assert "excludes" not in exclusion_of(evidence, KEPT)
    assert "successor" in exclusion_of(evidence, "college_chemistry")


@pytest.mark.parametrize("name", [KEPT, EXCLUDED])
def test_one_subset_is_left_out_and_no_other(evidence: MmluEvidence, name: str) -> None:
    found = leave_one_out(evidence, name).set_index("curve")
    table4 = load_published(PUBLISHED, "oren2024_table4_mmlu").set_index("subset")
    quiet = (table4[["biomedlm", "gpt2_xl"]] >= 0.05).all(axis=1)
    p_values = table4["llama2_7b"]
    others = p_values[quiet & (table4.index != name)]
    everything = pd.concat([others, p_values[[name]]])
    row = found.loc["LLaMA2-7B"]
    assert row["others"] == len(others)
    assert 10 ** row["log10_p_without"] == pytest.approx(fisher(log10_p=np.log10(others)).p)
    assert 10 ** row["log10_p_with"] == pytest.approx(fisher(log10_p=np.log10(everything)).p)


def test_its_place_counts_the_kept_subsets_up_to_it(evidence: MmluEvidence) -> None:
    place = places_of(evidence, EXCLUDED).set_index("curve").loc["Mistral-7B"]
    assert place["rank"] == 0
    assert place["subsets"] == 43
    assert not place["kept"]
    place = places_of(evidence, KEPT).set_index("curve").loc["Mistral-7B"]
    assert place["rank"] == 32
    assert place["subsets"] == 43
    assert place["kept"]


def test_by_record_and_by_line(evidence: MmluEvidence) -> None:
    table = segmentation_of(evidence, EXCLUDED)
    assert list(table["Read by"]) == ["record", "line"]
    lines = evidence.lines.query("subset == @EXCLUDED and segmentation == 'line'")
    assert list(table["Order"])[1] == lines["verdict"].iloc[0]
    assert "6.7 lines" in lines_of(evidence, EXCLUDED)


def test_figures_show_every_model_and_every_place(evidence: MmluEvidence) -> None:
    rows = p_values_of(evidence, EXCLUDED)
    axes = plot_subset(rows).axes[0]
    drawn = np.concatenate([np.asarray(each.get_offsets()) for each in axes.collections])
    assert sorted(drawn[:, 0]) == pytest.approx(sorted(-rows["log10_p"]))
    places = places_of(evidence, EXCLUDED)
    axes = plot_places(evidence.audited(), places).axes[0]
    circles = [line for line in axes.lines if line.get_marker() == "o"]
    shares = [line.get_ydata()[0] for line in circles]
    assert shares == pytest.approx(list(places["rank"] / places["subsets"]))


def test_examples_are_those_of_files_at_hand(
    monkeypatch: pytest.MonkeyPatch, evidence: MmluEvidence
) -> None:
    def open_test_set(name: str, *, max_records: int) -> ExampleSet:
        assert max_records == 150  # as many as were measured
        return ExampleSet(name, (f"{name} asks\n", "Why?\n"), "mmlu/2", "r")

    monkeypatch.setattr(views, "available", {"mmlu/anatomy"}.__contains__)
    monkeypatch.setattr(views, "open_test_set", open_test_set)
    assert examples_of(evidence, "anatomy") == ["mmlu/anatomy asks", "Why?"]
    assert examples_of(evidence, "virology") == []


@pytest.mark.parametrize("view", VIEWS)
def test_a_name_that_is_no_subset_is_named_with_those_that_are(
    view, evidence: MmluEvidence
) -> None:
    with pytest.raises(InputError) as raised:
        view(evidence, "anatomie")
    assert "anatomie" in str(raised.value)
    assert "anatomy" in str(raised.value)


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="mmlu_subsets"):
        load_evidence(PUBLISHED, MEASUREMENTS, tmp_path, tmp_path)
