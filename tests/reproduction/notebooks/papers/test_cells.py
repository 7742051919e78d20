"""Every cell that the papers print appears once, with a place to look it up."""

import math
from collections import Counter

import pandas as pd
import pytest

from fakes.data_fixtures import ROOT
from reproduction.notebooks.papers.measure import (
    LOG10_P,
    Cell,
    published_cells,
)

PUBLISHED = ROOT / "data" / "published"
CELLS = published_cells(PUBLISHED)
# What no released model can repeat: inputs, and experiments that train models or ask others.
LEFT_OUT = {
    "oren2024_table3_injected": "the sets that were planted",
    "shi2023_downstream": "a model that reads on",
    "shi2023_text": "books and unlearning",
}
MODELS_OF_OREN = ["llama2_7b", "mistral_7b", "pythia_1_4b", "gpt2_xl", "biomedlm"]
NUMBERS = {  # columns that hold a cell each
    "oren2024_table1_canaries": ["permutation_p", "sharded_p"],
    "oren2024_table2_open_models": MODELS_OF_OREN,
    "oren2024_table4_mmlu": MODELS_OF_OREN,
    "oren2024_table5_mink": ["mink_detected_percent"],
    "oren2024_text": ["value"],
    "shi2023_headline": ["value"],
    "fu2025_table3": ["auc_percent"],
    "fu2025_within_domain_auc": ["auc_percent"],
    "fu2025_cross_domain_auc": ["auc_percent"],
    "fu2025_perplexity": ["ppl_200_mean"],
}


def _values(name: str) -> list[float]:
    table = pd.read_csv(PUBLISHED / f"{name}.csv")
    if name == "shi2023_headline":  # its others are of notebooks 09 and 10, which train
        table = table[table["table"].isin(["Table 1", "Table 6"])]
    return table[NUMBERS[name]].stack().dropna().tolist()


def _find(**fields: str) -> Cell:
    (cell,) = (c for c in CELLS if all(getattr(c, key) == v for key, v in fields.items()))
    return cell


def test_each_published_number_is_one_cell() -> None:
    files = {path.stem for path in PUBLISHED.glob("*.csv")}
    assert files == set(LEFT_OUT) | set(NUMBERS)
    printed = Counter(round(value, 9) for name in NUMBERS for value in _values(name))
    as_numbers = (10**c.published if c.unit == LOG10_P else c.published for c in CELLS)
    assert Counter(round(value, 9) for value in as_numbers) == printed
    places = Counter((c.paper, c.table, c.model, c.row, c.column) for c in CELLS)
    assert places.most_common(1)[0][1] == 1
    assert len(CELLS) == sum(len(_values(name)) for name in NUMBERS) > 1500


def test_floors_are_those_of_the_paper() -> None:
    """0.009 is 1/101, cut off; elsewhere it is a p-value like others."""
    floors = [cell for cell in CELLS if cell.at_floor]
    first = [cell for cell in floors if cell.table == "Table 1"]
    assert Counter(cell.column for cell in first) == {"permutation": 7, "sharded_t": 5}
    others = [cell for cell in floors if cell.table != "Table 1"]
    assert others and all(cell.published == pytest.approx(-38) for cell in others)
    history = _find(table="Table 4", row="high_school_european_history", model="LLaMA2-7B")
    assert history.published == pytest.approx(math.log10(0.009)) and not history.at_floor
