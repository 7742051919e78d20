"""The papers' numbers are all there, and found by the names of our models and sets."""

import math
from pathlib import Path

import pandas as pd
import pytest

from contamination.errors import InputError
from contamination.scoring.models import ModelEntry, load_models
from contamination.testsets.registry import registered
from fakes.data_fixtures import ROOT
from reproduction.output.published import AUDITED, CONTROLS, load_published, published_p

PUBLISHED = ROOT / "data" / "published"

AUDITED_COLUMNS, AUC = "llama2_7b mistral_7b pythia_1_4b", "auc_percent"
# file -> (rows, text columns, number columns, number columns that may be empty)
FILES = {
    "oren2024_table1_canaries": (10, "dataset", "size dup_count permutation_p sharded_p", ""),
    "oren2024_table2_open_models": (8, "dataset", AUDITED_COLUMNS, "size gpt2_xl biomedlm"),
    "oren2024_table3_injected": (10, "dataset tokens", "examples avg_words dup_high", "dup_low"),
    "oren2024_table4_mmlu": (56, "subset", f"size {AUDITED_COLUMNS} gpt2_xl biomedlm", ""),
    "oren2024_table5_mink": (5, "dataset", "size dup_count mink_detected_percent", ""),
    "oren2024_text": (2, "key where", "value", ""),
    "shi2023_text": (13, "key where", "value", ""),
    "shi2023_downstream": (60, "table setting method metric", "value", ""),
    "shi2023_headline": (28, "table setting method metric", "value", ""),
    "fu2025_table3": (91, "table model domain metric", AUC, ""),
    "fu2025_within_domain_auc": (972, "table model domain metric", AUC, ""),
    "fu2025_perplexity": (176, "table model domain side", "ppl_200_mean ppl_200_sd", ""),
    "fu2025_cross_domain_auc": (81, "figure model metric seen_domain unseen_domain", AUC, ""),
}


@pytest.mark.parametrize("name", FILES)
def test_files_parse_into_the_expected_columns(name: str) -> None:
    assert sorted(path.stem for path in PUBLISHED.glob("*.csv")) == sorted(FILES)
    rows, text, numbers, optional = FILES[name]
    table = load_published(PUBLISHED, name)
    assert len(table) == rows
    assert set(table) == set(f"{text} {numbers} {optional}".split())
    for column in text.split():
        assert (table[column].str.strip() == table[column]).all()
        assert (table[column] != "").all()
    for column in f"{numbers} {optional}".split():
        assert pd.api.types.is_numeric_dtype(table[column]), column
    assert table[numbers.split()].notna().all(axis=None)
    assert not table.duplicated().any()
    for column in table.columns:
        if column.endswith("_p") or column in AUDITED | CONTROLS:
            assert table[column].dropna().between(1e-40, 1).all()
        if column.endswith("_percent"):
            assert table[column].between(0, 100).all()


def test_missing_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.csv: no such published table; restore"):
        load_published(tmp_path, "none")


def test_the_averages_that_shi_prints_are_those_of_the_sets() -> None:
    table = load_published(PUBLISHED, "shi2023_downstream")
    cells = table.pivot(index=["table", "method"], columns="setting", values="value")
    sets = ["BoolQ", "CommonsenseQA", "IMDB", "TruthfulQA"]
    for name, digit in (("Table 3", 0.01), ("Table 7", 1)):
        rows = cells.loc[name]
        assert len(rows) == 5
        off = (rows[sets].mean(axis=1) - rows["downstream average"]).abs()
        assert (off <= digit / 2 + 1e-9).all()
    # Table 4 at the larger rate is the Min-20% row of Table 3.
    rates, row = cells.loc["Table 4"].iloc[0], cells.loc[("Table 3", "Min-20% Prob")]
    assert [rates[f"{name} lr 1e-4"] for name in sets] == row[sets].tolist()


def test_cells_of_shi_in_both_files_agree() -> None:
    keys = ["table", "setting", "method", "metric"]
    ours = load_published(PUBLISHED, "shi2023_headline")
    both = ours.merge(load_published(PUBLISHED, "shi2023_downstream"), on=keys)
    assert len(both) == 10
    assert (both["value_x"] == both["value_y"]).all()


# --- p-values, by model and set -------------------------------------------------------------------

BY_COLUMN = {entry.published: entry for entry in load_models().values() if entry.published}


def test_every_value_of_table_2_is_found_once():
    table = load_published(PUBLISHED, "oren2024_table2_open_models")
    printed = table[table["dataset"] != "MMLU (Fisher)"]
    others = [name for name in registered() if not name.startswith(("canaries/", "mmlu/"))]
    for column in AUDITED | CONTROLS:
        found = [published_p(BY_COLUMN[column], name, PUBLISHED) for name in others]
        assert sorted(p for p in found if not math.isnan(p)) == sorted(printed[column])


def test_every_subset_of_table_4_is_found():
    table = load_published(PUBLISHED, "oren2024_table4_mmlu").set_index("subset")
    for column in AUDITED | CONTROLS:
        for subset, p in table[column].items():
            assert published_p(BY_COLUMN[column], f"mmlu/{subset}", PUBLISHED) == p
    assert math.isnan(published_p(BY_COLUMN["biomedlm"], "mmlu/professional_law", PUBLISHED))


@pytest.mark.parametrize(
    ("model", "dataset", "p"),
    [
        ("mistral-7b", "arc_easy", 0.001),
        ("biomedlm", "nq_open", 0.595),
        ("pythia-1.4b", "mmlu/astronomy", 0.05),
        ("contam-1.4b-dupcount-higher", "canaries/mnli", 1.96e-11),
        ("gpt2", "arc_easy", None),
        ("gpt2-xl", "hellaswag", None),
        ("gpt2-xl", "files/mine.jsonl", None),
        (ModelEntry("m", "x/m", published="a column that no table has"), "gsm8k", None),
    ],
)
def test_single_values(model, dataset, p):
    entry = load_models()[model] if isinstance(model, str) else model
    found = published_p(entry, dataset, PUBLISHED)
    assert math.isnan(found) if p is None else found == p
    assert math.isnan(published_p(entry, dataset, None))
