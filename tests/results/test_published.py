"""The papers' numbers are all there, and their own aggregation of them comes out as printed."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from contamination.errors import InputError
from contamination.results.published import (
    AUDITED,
    CONTROLS,
    load_published,
    mmlu_fisher,
    mmlu_subsets,
    side_by_side,
)
from fakes.data_fixtures import ROOT

PUBLISHED = ROOT / "data" / "published"

# file -> (rows, text columns, number columns, number columns that may be empty)
FILES = {
    "oren2024_table1_canaries": (
        10,
        "dataset",
        "size dup_count permutation_p sharded_p",
        "",
    ),
    "oren2024_table2_open_models": (
        8,
        "dataset",
        "llama2_7b mistral_7b pythia_1_4b",
        "size gpt2_xl biomedlm",
    ),
    "oren2024_table3_injected": (10, "dataset tokens", "examples avg_words dup_high", "dup_low"),
    "oren2024_table4_mmlu": (
        56,
        "subset",
        "size llama2_7b mistral_7b pythia_1_4b gpt2_xl biomedlm",
        "",
    ),
    "oren2024_table5_mink": (5, "dataset", "size dup_count mink_detected_percent", ""),
    "oren2024_text": (2, "key where", "value", ""),
    "shi2023_downstream": (60, "table setting method metric", "value", ""),
    "shi2023_headline": (28, "table setting method metric", "value", ""),
    "fu2025_table3": (91, "table model domain metric", "auc_percent", ""),
    "fu2025_within_domain_auc": (972, "table model domain metric", "auc_percent", ""),
    "fu2025_cross_domain_auc": (
        81,
        "figure model metric seen_domain unseen_domain",
        "auc_percent",
        "",
    ),
}


def _is_mistaken(table: pd.DataFrame, name: str) -> pd.Series:
    """Rows in which the transcription of Fu's Table 8 has perplexities instead of AUCs."""
    if name != "fu2025_within_domain_auc":
        return pd.Series(False, index=table.index)
    return (table["model"] == "pythia-160m") & (table["metric"] == "PPL_200")


def _checked(name: str) -> pd.DataFrame:
    """Return a table without the known mistakes, which must still be the only ones."""
    table = load_published(PUBLISHED, name)
    mistaken = _is_mistaken(table, name)
    if mistaken.any():
        assert mistaken.sum() == 9
        assert pd.to_numeric(table.loc[mistaken, "auc_percent"], errors="coerce").isna().all()
        table = table[~mistaken].assign(auc_percent=table.loc[~mistaken, "auc_percent"].map(float))
    return table


@pytest.fixture(scope="module")
def subsets() -> pd.DataFrame:
    return mmlu_subsets(load_published(PUBLISHED, "oren2024_table4_mmlu"), 0.05)


@pytest.fixture(scope="module")
def combined(subsets: pd.DataFrame) -> pd.DataFrame:
    table2 = load_published(PUBLISHED, "oren2024_table2_open_models")
    return mmlu_fisher(subsets, table2).set_index("model")


def test_every_file_is_described_here() -> None:
    assert sorted(path.stem for path in PUBLISHED.glob("*.csv")) == sorted(FILES)


@pytest.mark.parametrize("name", FILES)
def test_files_parse_into_the_expected_columns(name: str) -> None:
    rows, text, numbers, optional = FILES[name]
    assert len(load_published(PUBLISHED, name)) == rows
    table = _checked(name)
    assert set(table) == set(f"{text} {numbers} {optional}".split())
    for column in text.split():
        assert (table[column].str.strip() == table[column]).all()
        assert (table[column] != "").all()
    for column in f"{numbers} {optional}".split():
        assert pd.api.types.is_numeric_dtype(table[column]), column
    assert table[numbers.split()].notna().all(axis=None)
    assert not table.duplicated().any()


def test_values_are_in_range() -> None:
    for name in FILES:
        table = _checked(name)
        for column in table:
            if column.endswith("_p") or column in {**AUDITED, **CONTROLS}:
                values = table[column].dropna()
                assert ((values > 0) & (values <= 1)).all()
            if column.endswith("_percent"):
                assert table[column].between(0, 100).all()


@pytest.mark.parametrize(
    ("model", "printed"), [("LLaMA2-7B", 0.0146), ("Mistral-7B", 0.0113), ("Pythia-1.4B", 0.362)]
)
def test_fisher_reproduces_the_paper_to_the_last_digit(
    model: str, printed: float, combined: pd.DataFrame
) -> None:
    assert float(f"{combined.loc[model, 'p']:.3g}") == printed
    assert combined.loc[model, "log10_p"] == pytest.approx(np.log10(combined.loc[model, "p"]))
    # Table 2 cuts off after three decimals.
    assert combined.loc[model, "published_p"] == np.floor(printed * 1000) / 1000


def test_fisher_table(combined: pd.DataFrame, subsets: pd.DataFrame) -> None:
    assert list(combined.index) == ["LLaMA2-7B", "Mistral-7B", "Pythia-1.4B"]
    assert (combined["subsets_kept"] == 43).all()
    assert (combined["source"] == "published").all()
    assert (combined["test"] == "sharded_t").all()
    table4 = load_published(PUBLISHED, "oren2024_table4_mmlu")
    kept = table4[(table4["biomedlm"] >= 0.05) & (table4["gpt2_xl"] >= 0.05)]
    for column, name in AUDITED.items():
        assert combined.loc[name, "statistic"] == pytest.approx(-2 * np.log(kept[column]).sum())


def test_thirteen_of_56_subsets_are_dropped(subsets: pd.DataFrame) -> None:
    assert len(subsets) == 56 * 5
    for _, rows in subsets.groupby("model"):
        assert len(rows) == 56
        assert rows["excluded"].sum() == 13
    assert not subsets["subset"].str.contains("professional_law").any()


def test_reasons_name_the_control(subsets: pd.DataFrame) -> None:
    table4 = load_published(PUBLISHED, "oren2024_table4_mmlu").set_index("subset")
    one = subsets[subsets["model"] == "Mistral-7B"].set_index("subset")
    assert set(one["reason"]) == {
        "",
        "p < 0.05 under BioMedLM",
        "p < 0.05 under GPT-2 XL",
        "p < 0.05 under BioMedLM, GPT-2 XL",
    }
    for column, name in CONTROLS.items():
        named = one["reason"].str.contains(name)
        pd.testing.assert_series_equal(named, table4[column] < 0.05, check_names=False)
    assert ((one["reason"] != "") == one["excluded"]).all()
    assert (one["published_p"] == table4["mistral_7b"]).all()
    # "<" as in the paper: astronomy has p = 0.050 under BioMedLM and falls by GPT-2 XL alone.
    assert one.loc["astronomy", "reason"] == "p < 0.05 under GPT-2 XL"


def test_the_contract_of_the_tables(subsets: pd.DataFrame, combined: pd.DataFrame) -> None:
    wanted = {"model", "subset", "examples", "p", "log10_p", "published_p", "excluded", "reason"}
    assert wanted <= set(subsets)
    wanted = {"model", "source", "subsets_kept", "statistic", "p", "published_p"}
    assert wanted <= set(combined.reset_index())


def test_a_stricter_level_keeps_more() -> None:
    table4 = load_published(PUBLISHED, "oren2024_table4_mmlu")
    kept = [
        56 - int(mmlu_subsets(table4, level)["excluded"].sum()) // 5
        for level in (1e-9, 0.01, 0.05, 0.5)
    ]
    assert kept == sorted(kept, reverse=True)
    assert kept[1] > kept[2] == 43 > kept[3]


def test_table_4_side_by_side(subsets: pd.DataFrame) -> None:
    ours = pd.DataFrame(
        {
            "model": "clean",
            "source": "measured",
            "test": "sharded_t",
            "subset": ["anatomy", "professional_law", "virology"],
            "examples": [50, 60, 70],
            "p": [0.25, 1e-320, 0.0000123],
            "log10_p": [np.log10(0.25), -500.5, np.log10(0.0000123)],
            "published_p": float("nan"),
            "excluded": [False, True, False],
            "reason": "",
        }
    )
    table = side_by_side(pd.concat([subsets, ours], ignore_index=True))
    models = [*AUDITED.values(), *CONTROLS.values()]
    assert list(table) == ["Subset", "Examples", *models, "clean, sharded t, here"]
    rows = table.set_index("Subset")
    assert len(rows) == 57
    assert list(rows.index) == sorted(rows.index)
    assert rows.loc["anatomy"].tolist() == [
        *("135", "0.586", "0.605", "0.605", "0.649", "0.439"),
        "0.250",
    ]
    assert rows.loc["professional_law"].tolist()[:-1] == ["60", *["—"] * 5]
    assert rows.loc["professional_law"].iloc[-1] == r"**$3.2 \times 10^{-501}$**"
    assert rows.loc["virology"].iloc[-1] == r"$1.2 \times 10^{-5}$"
    assert rows.loc["astronomy"].tolist()[1:] == [
        *("**0.550**", "**0.657**", "**0.050**", "**0.050**", "**0.003**"),
        "—",
    ]
    assert rows.loc["high_school_us_history", "LLaMA2-7B"] == r"**$1.0 \times 10^{-38}$**"
    assert list(side_by_side(subsets)) == ["Subset", "Examples", *models]


def test_missing_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.csv: no such published table; restore"):
        load_published(tmp_path, "none")
