"""The papers' numbers are all there, and found by the names of our models and sets."""

import math
from itertools import product

import pandas as pd
import pytest

from contamination.scoring.models import ModelEntry, load_models
from contamination.testsets.registry import registered
from fakes.data_fixtures import ROOT
from reproduction.notebooks.controlled.tables import NO_TEXT
from reproduction.output.published import AUDITED, CONTROLS, load_published, published_p

PUBLISHED = ROOT / "data" / "published"


@pytest.mark.parametrize("name", sorted(path.stem for path in PUBLISHED.glob("*.csv")))
def test_published_tables_are_clean(name: str) -> None:
    table = load_published(PUBLISHED, name)
    assert len(table)
    assert not table.duplicated().any()
    for column in table.select_dtypes("str"):
        assert table[column].notna().all()
        assert (table[column].str.strip() == table[column]).all()
    for column in table.columns[table.columns.str.endswith("_percent")]:
        assert table[column].dropna().between(0, 100).all()


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
    for column, subset in product(AUDITED | CONTROLS, table.index):
        found = published_p(BY_COLUMN[column], f"mmlu/{subset}", PUBLISHED)
        assert found == table.loc[subset, column]
    assert math.isnan(published_p(BY_COLUMN["biomedlm"], "mmlu/professional_law", PUBLISHED))


@pytest.mark.parametrize(
    ("model", "dataset", "test", "p"),
    [
        ("contam-1.4b-dupcount-higher", "canaries/mnli", "successor", 1.96e-11),
        ("contam-1.4b-dupcount-higher", "canaries/mnli", "permutation", 0.009),
        ("gpt2-xl", "arc_easy", "permutation", 0.929),
        ("gpt2", "arc_easy", "sharded_t", None),
        ("gpt2-xl", "files/mine.jsonl", "sharded_t", None),
        (ModelEntry("m", "x/m", published="of no table"), "gsm8k", "sharded_t", None),
    ],
)
def test_single_values(model, dataset, test, p):
    entry = load_models()[model] if isinstance(model, str) else model
    found = published_p(entry, dataset, PUBLISHED, test)
    assert math.isnan(found) if p is None else found == p
    assert math.isnan(published_p(entry, dataset, None))


def test_every_published_number_says_where_it_was_read() -> None:
    unchecked = {}
    for path in sorted(PUBLISHED.glob("*.csv")):
        sources = pd.read_csv(path)["source"]
        assert sources.str.strip().ne("").all() and sources.notna().all(), path.name
        unchecked[path.name] = int((sources == NO_TEXT).sum())
    assert unchecked["shi2023_downstream.csv"] == 50
    assert unchecked["oren2024_table4_mmlu.csv"] == 0
