"""Tables of MMLU: as printed, filtered by controls, combined, and by record beside by line."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from contamination.statistics import cauchy, harmonic_mean
from fakes.data_fixtures import ROOT
from reproduction.notebooks.mmlu.subsets import (
    COMPRESSOR,
    MODEL_FREE,
    model_free,
    segmented,
)
from reproduction.notebooks.mmlu.tables import (
    FISHER_COLUMNS,
    OF_MODEL,
    ROWS,
    SUBSET_COLUMNS,
    exclusions_layout,
    fisher_table,
    line_table,
    measured_subsets,
    outcomes,
    published_subsets,
    table4_layout,
)
from reproduction.output.published import AUDITED, CONTROLS, load_published

PUBLISHED = ROOT / "data" / "published"
TABLE2 = load_published(PUBLISHED, "oren2024_table2_open_models")
TABLE4 = load_published(PUBLISHED, "oren2024_table4_mmlu")


@pytest.fixture(scope="module")
def subsets() -> pd.DataFrame:
    return published_subsets(TABLE4, 0.05)


@pytest.fixture(scope="module")
def combined(subsets: pd.DataFrame) -> pd.DataFrame:
    return fisher_table(subsets, TABLE2).set_index("model")


# --- as published ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "printed"), [("LLaMA2-7B", 0.0146), ("Mistral-7B", 0.0113), ("Pythia-1.4B", 0.362)]
)
def test_fisher_reproduces_the_paper_to_the_last_digit(model, printed, combined) -> None:
    assert float(f"{combined.loc[model, 'p']:.3g}") == printed
    assert combined.loc[model, "log10_p"] == pytest.approx(np.log10(combined.loc[model, "p"]))
    # Table 2 cuts off after three decimals.
    assert combined.loc[model, "published_p"] == np.floor(printed * 1000) / 1000


def test_fisher_table_and_the_rules_beside_it(combined: pd.DataFrame) -> None:
    assert ["model", *combined] == list(FISHER_COLUMNS)
    assert list(combined.index) == ["LLaMA2-7B", "Mistral-7B", "Pythia-1.4B"]
    assert (combined["subsets_kept"] == 43).all()
    assert (combined["source"] == "published").all()
    assert (combined["test"] == "sharded_t").all()
    kept = TABLE4[(TABLE4["biomedlm"] >= 0.05) & (TABLE4["gpt2_xl"] >= 0.05)]
    for column, name in AUDITED.items():
        row, p_values = combined.loc[name], kept[column]
        assert row["statistic"] == pytest.approx(-2 * np.log(p_values).sum())
        assert row["cauchy_p"] == pytest.approx(cauchy(p_values).p)
        assert row["harmonic_mean_p"] == pytest.approx(harmonic_mean(p_values).p)


def test_thirteen_of_56_subsets_are_dropped(subsets: pd.DataFrame) -> None:
    assert tuple(subsets) == SUBSET_COLUMNS
    assert list(subsets["model"].unique()) == [*AUDITED.values(), *CONTROLS.values()]
    for _, rows in subsets.groupby("model"):
        assert len(rows) == 56
        assert rows["excluded"].sum() == 13
    assert not subsets["subset"].str.contains("professional_law").any()


def test_reasons_name_the_control(subsets: pd.DataFrame) -> None:
    table4 = TABLE4.set_index("subset")
    one = subsets[subsets["model"] == "Mistral-7B"].set_index("subset")
    rejecting = ("BioMedLM", "GPT-2 XL", "BioMedLM, GPT-2 XL")
    assert set(one["reason"]) == {"", *(f"p < 0.05 under {names}" for names in rejecting)}
    for column, name in CONTROLS.items():
        named = one["reason"].str.contains(name)
        pd.testing.assert_series_equal(named, table4[column] < 0.05, check_names=False)
    assert ((one["reason"] != "") == one["excluded"]).all()
    assert (one["published_p"] == table4["mistral_7b"]).all()
    # "<" as in the paper: astronomy has p = 0.050 under BioMedLM and falls by GPT-2 XL alone.
    assert one.loc["astronomy", "reason"] == "p < 0.05 under GPT-2 XL"


def test_table_4_laid_out(subsets: pd.DataFrame) -> None:
    rows = [
        ("anatomy", 50, 0.25, np.log10(0.25), False),
        ("professional_law", 60, 1e-320, -500.5, True),
        ("virology", 70, 0.0000123, np.log10(0.0000123), False),
    ]
    ours = pd.DataFrame(rows, columns=["subset", "examples", "p", "log10_p", "excluded"])
    ours = ours.assign(model="clean", source="measured", test="sharded_t", reason="", status="ok")
    ours["published_p"] = float("nan")
    table = table4_layout(pd.concat([subsets, ours], ignore_index=True))
    models = [*AUDITED.values(), *CONTROLS.values()]
    assert list(table) == ["Subset", "Examples", *models, "clean, sharded t, here"]
    rows = table.set_index("Subset")
    assert len(rows) == 57
    assert list(rows.index) == sorted(rows.index)
    anatomy = ["135", "0.586", "0.605", "0.605", "0.649", "0.439", "0.250"]
    assert rows.loc["anatomy"].tolist() == anatomy
    assert rows.loc["professional_law"].tolist()[:-1] == ["60", *["—"] * 5]
    assert rows.loc["professional_law"].iloc[-1] == "**3.2\u00a0×\u00a010⁻⁵⁰¹**"
    assert rows.loc["virology"].iloc[-1] == "1.2\u00a0×\u00a010⁻⁵"
    astronomy = ["**0.550**", "**0.657**", "**0.050**", "**0.050**", "**0.003**", "—"]
    assert rows.loc["astronomy"].tolist()[1:] == astronomy
    assert rows.loc["high_school_us_history", "LLaMA2-7B"] == "**1.0\u00a0×\u00a010⁻³⁸**"
    assert list(table4_layout(subsets)) == ["Subset", "Examples", *models]


# --- measured -------------------------------------------------------------------------------------


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
    rows = [
        (model, subset, "record", 20, test, 5, 6, 1.0, p, np.log10(p), np.nan, 100)
        for (model, test), row in values.items()
        for subset, p in zip(NAMES, row, strict=True)
    ]
    by_line = [("clean", "nutrition", "line", 40, "sharded_t", 5, 6, 1.0, 1e-9, -9.0, np.nan, 1)]
    return pd.DataFrame(rows + by_line, columns=list(ROWS))


def filtered(controls: list[str], compressor: Sequence[float]) -> pd.DataFrame:
    rows = [
        (subset, kind, 20, 1.0, 0.0, 0.0, "quiet", value if kind == "record" else -20.0)
        for subset, value in zip(NAMES, compressor, strict=True)
        for kind in ("record", "line")
    ]
    free = pd.DataFrame(rows, columns=list(MODEL_FREE))
    return measured_subsets(made_up_measurements(), free, controls, 0.05)


def test_a_control_that_rejects_excludes_in_its_own_test() -> None:
    subsets = filtered(["clean", "other"], [-0.1, -1.5, -0.1])
    assert tuple(subsets) == SUBSET_COLUMNS
    assert len(subsets) == 18  # what was measured by line is no part of it
    assert (subsets["source"] == "measured").all()
    reasons = subsets.pivot(index="subset", columns=["model", "test"], values="reason")
    for model in ("contaminated", "clean", "other"):
        assert reasons[model, "sharded_t"].to_dict() == {
            "anatomy": "p < 0.05 under clean, other",
            "nutrition": "p < 0.05 under compressor",
            "professional_law": "",  # the small p of an audited model excludes nothing
        }
        assert reasons[model, "successor"].to_dict() == {
            "anatomy": "",  # 0.05 itself is not below it
            "nutrition": "p < 0.05 under compressor",
            "professional_law": "p < 0.05 under clean",
        }
    assert (subsets["excluded"] == (subsets["reason"] != "")).all()


def test_fisher_over_what_is_kept() -> None:
    subsets = filtered(["clean", "other"], [-0.1, -0.1, -0.1])
    combined = fisher_table(subsets, TABLE2, {"contaminated": None})
    assert combined["model"].tolist() == ["contaminated"] * 2
    rows = combined.set_index("test")
    for test, kept in (("sharded_t", [0.3, 0.004]), ("successor", [0.5, 0.6])):
        expected = stats.combine_pvalues(kept)
        assert rows.loc[test, "subsets_kept"] == 2
        assert rows.loc[test, "statistic"] == pytest.approx(expected.statistic)
        assert rows.loc[test, "p"] == pytest.approx(expected.pvalue)
        assert rows.loc[test, "log10_p"] == pytest.approx(np.log10(expected.pvalue))
    assert rows["published_p"].isna().all()
    printed = fisher_table(subsets, TABLE2, {"contaminated": "llama2_7b"})["published_p"]
    assert printed.tolist() == [TABLE2.set_index("dataset").loc["MMLU (Fisher)", "llama2_7b"]] * 2


def test_nothing_gives_empty_tables_with_their_columns() -> None:
    free, measured = model_free(segmented({}), seed=1), pd.DataFrame(columns=list(ROWS))
    assert (tuple(free), len(free)) == (MODEL_FREE, 0)
    subsets = measured_subsets(measured, free, ["clean"], 0.05)
    assert (tuple(subsets), len(subsets)) == (SUBSET_COLUMNS, 0)
    assert subsets["excluded"].dtype == bool
    assert fisher_table(subsets, TABLE2).empty
    printed = published_subsets(TABLE4, 0.05)  # stands alone where nothing is measured
    pd.testing.assert_frame_equal(
        fisher_table(pd.concat([printed, subsets]), TABLE2), fisher_table(printed, TABLE2)
    )
    lines = line_table(free, measured, TABLE4, 0.05)
    assert lines.empty
    assert {*MODEL_FREE, *OF_MODEL, "excluded_in_paper"} <= set(lines)
    found = outcomes(lines, 0.05)
    assert found.empty
    assert {"subset", "evidence", "record", "line", "outcome"} <= set(found)


# --- by record and by line ------------------------------------------------------------------------


SUBSETS = ("nutrition", "high_school_us_history", "professional_law")


def made_up_free() -> pd.DataFrame:
    found = {
        ("nutrition", "record"): ("quiet", -0.1),
        ("nutrition", "line"): ("order carries information", -4.0),
        ("high_school_us_history", "record"): ("suspicious", -2.0),
        ("high_school_us_history", "line"): ("quiet", -2.0),
        ("professional_law", "record"): ("quiet", np.log10(0.05)),
        ("professional_law", "line"): ("quiet", -1.31),
    }
    rows = [(*key, 10, 1.5, 0.5, 0.0, *values) for key, values in found.items()]
    return pd.DataFrame(rows, columns=list(MODEL_FREE))


def made_up_rows() -> pd.DataFrame:
    rows = [
        (subset, segmentation, "clean", test, 5, 2, 1.0, 10**log10_p, log10_p, 100)
        for test, shift in (("sharded_t", 0.0), ("successor", -1.2))
        for subset, values in zip(SUBSETS, [(-0.5, -9.0), (-3.0, -0.2), (0.0, -0.2)], strict=True)
        for segmentation, value in zip(("record", "line"), values, strict=True)
        for log10_p in [value + shift]
    ]
    return pd.DataFrame(rows, columns=["subset", "segmentation", *OF_MODEL])


@pytest.fixture
def lines() -> pd.DataFrame:
    return line_table(made_up_free(), made_up_rows(), TABLE4, 0.05)


def test_line_table(lines: pd.DataFrame) -> None:
    assert len(lines) == 3 * 2 * 2
    assert not lines.duplicated(["subset", "segmentation", "model", "test"]).any()
    row = lines.set_index(["subset", "segmentation", "test"]).loc["nutrition", "line", "successor"]
    assert row["log10_p"] == pytest.approx(-10.2)
    assert row["compressor_log10_p"] == -4
    assert row["published_gpt2_xl"] == 0.865
    assert row["published_biomedlm"] == 0.609
    of = lines.drop_duplicates("subset").set_index("subset")["excluded_in_paper"]
    subsets = [of[name] for name in ("nutrition", "high_school_us_history", "professional_law")]
    assert subsets == [False, True, pd.NA]
    one = made_up_free().iloc[:1].drop(columns="subset")
    everything = one.merge(TABLE4[["subset"]], how="cross")
    table = line_table(everything[list(MODEL_FREE)], made_up_rows(), TABLE4, 0.05)
    assert table.drop_duplicates("subset")["excluded_in_paper"].sum() == 13


def test_outcomes(lines: pd.DataFrame) -> None:
    found = outcomes(lines, 0.05)
    assert len(found) == 3 * 4
    outcome = found.pivot(index="subset", columns="evidence", values="outcome")
    expected = {  # suspicious is not enough, and p = 0.05 itself is not below 0.05
        "diagnostics": ["by line only", "by neither", "by neither"],
        COMPRESSOR: ["by line only", "by both", "by line only"],
        "clean, sharded_t": ["by line only", "by record only", "by neither"],
        "clean, successor": ["by both", "by both", "by line only"],
    }
    assert outcome.loc[list(SUBSETS)].to_dict("list") == expected
    nutrition = found[found["subset"] == "nutrition"].set_index("evidence")
    assert nutrition["record"].sum() == 1
    assert nutrition["line"].all()


def test_the_exclusions_laid_out() -> None:
    measured = pd.read_csv(ROOT / "docs" / "measurements" / "mmlu_lines.csv")
    layout = exclusions_layout(measured, outcomes(measured, 0.05)).set_index("Subset")
    assert len(layout) == 13
    world = layout.loc["high school world history"]
    assert (world["Compressor"], world["Diagnostics"]) == ("**line only**", "**line only**")
    assert world["Clean, successor"] == "neither"
    assert float(world["Lines per record"]) > 4
    assert layout.loc["econometrics", "BioMedLM"] == "0.035"
    assert layout.loc["high school computer science", "Compressor"] == "both"  # not bold
