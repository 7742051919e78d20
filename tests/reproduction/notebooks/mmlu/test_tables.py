"""Tables of MMLU: as printed, filtered by controls, combined, and by record beside by line."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from contamination.statistics import cauchy, harmonic_mean
from contamination.tables import read_csv
from fakes.data_fixtures import ROOT
from reproduction.notebooks.mmlu.columns import ROWS
from reproduction.notebooks.mmlu.lines import line_table, outcomes
from reproduction.notebooks.mmlu.measure import COMPRESSOR, MODEL_FREE, NOTHING
from reproduction.notebooks.mmlu.released import released_panels, released_rows
from reproduction.notebooks.mmlu.tables import (
    fisher_table,
    measured_subsets,
    published_subsets,
)
from reproduction.output.published import AUDITED, CONTROLS, MEASURED, STRICTER, load_published

PUBLISHED = ROOT / "data" / "published"
TABLE2 = load_published(PUBLISHED, "oren2024_table2_open_models")
TABLE4 = load_published(PUBLISHED, "oren2024_table4_mmlu")


@pytest.fixture(scope="module")
def subsets() -> pd.DataFrame:
    return published_subsets(TABLE4, 0.05)


def test_fisher_reproduces_the_paper_to_the_last_digit_beside_other_rules(subsets) -> None:
    combined = fisher_table(subsets, TABLE2)
    printed = {"LLaMA2-7B": 0.0146, "Mistral-7B": 0.0113, "Pythia-1.4B": 0.362}
    combined = combined.set_index("model")
    assert {model: float(f"{p:.3g}") for model, p in combined["p"].items()} == printed
    # Table 2 cuts off after three decimals.
    assert combined["published_p"].tolist() == [np.floor(p * 1000) / 1000 for p in printed.values()]
    assert (combined["subsets_kept"] == 43).all()
    kept = TABLE4[(TABLE4["biomedlm"] >= 0.05) & (TABLE4["gpt2_xl"] >= 0.05)]
    for column, name in AUDITED.items():
        row, p_values = combined.loc[name], kept[column]
        assert row["statistic"] == pytest.approx(-2 * np.log(p_values).sum())
        assert row["cauchy_p"] == pytest.approx(cauchy(np.log10(p_values)).p)
        assert row["harmonic_mean_p"] == pytest.approx(harmonic_mean(np.log10(p_values)).p)


def test_thirteen_of_56_subsets_are_dropped_and_reasons_name_the_control(subsets) -> None:
    counts = subsets.groupby("model")["excluded"].agg(["size", "sum"])
    assert (counts["size"] == 56).all()
    assert (counts["sum"] == 13).all()
    table4 = TABLE4.set_index("subset")
    one = subsets[subsets["model"] == "Mistral-7B"].set_index("subset")
    rejecting = ("BioMedLM", "GPT-2 XL", "BioMedLM, GPT-2 XL")
    assert set(one["reason"]) == {"", *(f"p < 0.05 under {names}" for names in rejecting)}
    for column, name in CONTROLS.items():
        named = one["reason"].str.contains(name)
        pd.testing.assert_series_equal(named, table4[column] < 0.05, check_names=False)
    assert (one["published_p"] == table4["mistral_7b"]).all()
    # "<" as in the paper: astronomy has p = 0.050 under BioMedLM and falls by GPT-2 XL alone.
    assert one.loc["astronomy", "reason"] == "p < 0.05 under GPT-2 XL"


NAMES = ("anatomy", "nutrition", "professional_law")


def made_up_measurements() -> pd.DataFrame:
    values = {
        ("contaminated", "sharded_t"): [0.2, 0.3, 0.004],
        ("contaminated", "successor"): [0.5, 0.6, 0.7],
        ("clean", "sharded_t"): [0.04, 0.5, 0.9],
        ("clean", "successor"): [0.05, 0.5, 0.02],
        ("other", "sharded_t"): [0.03, 0.5, 0.9],
        ("other", "successor"): [0.9, 0.5, 0.9],
    }
    rows = []
    for (model, test), p_values in values.items():
        for subset, p in zip(NAMES, p_values, strict=True):
            measured = (5, 6, 1.0, p, np.log10(p), np.nan, 100)
            rows.append((model, subset, "record", 20, test, *measured))
    by_line = [("clean", "nutrition", "line", 40, "sharded_t", 5, 6, 1.0, 1e-9, -9.0, np.nan, 1)]
    return pd.DataFrame(rows + by_line, columns=list(ROWS))


def filtered(
    controls: list[str], compressor: Sequence[float], table4: pd.DataFrame = TABLE4
) -> pd.DataFrame:
    rows = []
    for subset, log10_p in zip(NAMES, compressor, strict=True):
        rows.append((subset, "record", 20, 1.0, 0.0, 0.0, "quiet", log10_p))
        rows.append((subset, "line", 20, 1.0, 0.0, 0.0, "quiet", -20.0))
    free = pd.DataFrame(rows, columns=list(MODEL_FREE))
    printed = published_subsets(table4, 0.05)
    return measured_subsets(NOTHING, made_up_measurements(), free, controls, 0.05, printed)


@pytest.mark.parametrize(
    ("source", "nutrition"), [(MEASURED, ""), (STRICTER, "p < 0.05 under compressor")]
)
def test_a_control_that_rejects_excludes_in_its_own_test(source: str, nutrition: str) -> None:
    subsets = filtered(["clean", "other"], [-0.1, -1.5, -0.1])
    subsets = subsets[subsets["source"] == source]
    assert len(subsets) == 18  # what was measured by line is no part of it
    reasons = subsets.pivot(index="subset", columns=["model", "test"], values="reason")
    for model in ("contaminated", "clean", "other"):
        assert reasons[model, "sharded_t"].to_dict() == {
            "anatomy": "p < 0.05 under clean, other",
            "nutrition": nutrition,
            "professional_law": "",  # the small p of an audited model excludes nothing
        }
        assert reasons[model, "successor"].to_dict() == {
            "anatomy": "",  # 0.05 itself is not below it
            "nutrition": nutrition,
            "professional_law": "p < 0.05 under clean",
        }
    assert (subsets["excluded"] == (subsets["reason"] != "")).all()


def test_without_controls_those_of_the_paper_decide_and_what_they_have_not_judged_is_out() -> None:
    rejecting = TABLE4["gpt2_xl"].mask(TABLE4["subset"] == "nutrition", 0.01)
    subsets = filtered([], [-0.1, -0.1, -0.1], TABLE4.assign(gpt2_xl=rejecting))
    for _, found in subsets.groupby(["source", "model", "test"]):
        assert dict(zip(found["subset"], found["reason"], strict=True)) == {
            "anatomy": "",
            "nutrition": "p < 0.05 under GPT-2 XL",
            "professional_law": "not in Table 4",
        }
        assert (found["excluded"] == (found["reason"] != "")).all()


def test_fisher_over_what_is_kept() -> None:
    subsets = filtered(["clean", "other"], [-0.1, -1.5, -0.1])
    combined = fisher_table(subsets, TABLE2, {"contaminated": None})
    rows = combined.set_index(["source", "test"])
    for place, kept in {
        (MEASURED, "sharded_t"): [0.3, 0.004],
        (MEASURED, "successor"): [0.5, 0.6],
        (STRICTER, "sharded_t"): [0.004],
        (STRICTER, "successor"): [0.5],
    }.items():
        expected = stats.combine_pvalues(kept)
        assert rows.loc[place, "subsets_kept"] == len(kept)
        assert rows.loc[place, "statistic"] == pytest.approx(expected.statistic)
        assert rows.loc[place, "p"] == pytest.approx(expected.pvalue)
        assert rows.loc[place, "log10_p"] == pytest.approx(np.log10(expected.pvalue))
    assert rows["published_p"].isna().all()
    printed = fisher_table(subsets, TABLE2, {"contaminated": "llama2_7b"})["published_p"]
    assert printed.tolist() == [TABLE2.set_index("dataset").loc["MMLU (Fisher)", "llama2_7b"]] * 4


def test_lines_are_put_beside_table_4_as_in_the_measurements() -> None:
    lines = pd.read_csv(ROOT / "docs" / "measurements" / "mmlu_lines.csv")
    lines = lines.astype({"excluded_in_paper": "boolean"})
    free = lines[list(MODEL_FREE)].drop_duplicates()
    found = line_table(free, lines.reindex(columns=list(ROWS)), TABLE4, 0.05)
    pd.testing.assert_frame_equal(found, lines)


def test_evidence_is_below_the_level_and_suspicion_is_not_enough() -> None:
    facts = {"subset": "a", "model": "m", "test": "t", "excluded_in_paper": True}
    level = {"compressor_log10_p": np.log10(0.05), "log10_p": np.log10(0.05)}
    by_record = facts | level | {"segmentation": "record", "verdict": "suspicious"}
    by_line = by_record | {"segmentation": "line", "compressor_log10_p": -1.31, "log10_p": -9.0}
    found = outcomes(pd.DataFrame([by_record, by_line]), 0.05).set_index("evidence")["outcome"]
    only = "by line only"
    assert found.to_dict() == {"diagnostics": "by neither", COMPRESSOR: only, "m, t": only}


def test_curves_of_the_released_model_are_over_the_subsets_that_the_paper_keeps() -> None:
    rows = released_rows(read_csv(ROOT / "results" / "reference" / "pocket", "mmlu_subsets"))
    (title, curves), *others = released_panels(rows).items()
    assert not others
    assert "pocket" in title
    kept = rows.loc[~rows["excluded"], "p"]
    assert curves["SmolLM2-135M-Instruct"].tolist() == kept.tolist()
    assert len(kept) < len(rows) == rows["subset"].nunique()
