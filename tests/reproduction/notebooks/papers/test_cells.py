"""Every cell that the papers print appears once, with a place to look it up."""

import math
from collections import Counter

import pandas as pd
import pytest

from contamination.scoring.models import load_models
from fakes.data_fixtures import ROOT
from reproduction.notebooks.papers.measure import (
    LOG10_P,
    SOURCES,
    Cell,
    our_name,
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


def test_every_source_is_a_table_of_a_notebook() -> None:
    assert {cell.source for cell in CELLS} == set(SOURCES)


@pytest.mark.parametrize(
    ("fields", "wanted", "published"),
    [
        (
            {
                "paper": "Oren et al. (2024)",
                "table": "Table 1",
                "row": "MNLI",
                "column": "sharded_t",
            },
            ("contam-1.4b-dupcount-higher", "MNLI", "sharded_t"),
            math.log10(1.96e-11),
        ),
        (
            {"table": "Table 2", "row": "Arc-Easy", "model": "Mistral-7B"},
            ("mistral-7b", "Arc-Easy", "sharded_t"),
            -3.0,
        ),
        (
            {"table": "Table 2", "row": "MMLU (Fisher)", "model": "LLaMA2-7B"},
            ("llama2-7b", "MMLU (Fisher)", "sharded_t"),
            math.log10(0.014),
        ),
        (
            {"table": "Table 4", "row": "virology", "model": "GPT-2 XL"},
            ("gpt2-xl", "virology", "sharded_t"),
            math.log10(0.796),
        ),
        (
            {
                "table": "Table 1",
                "model": "NeoX-20B",
                "row": "Min-20% Prob",
                "column": "paraphrase",
            },
            (our_name("NeoX-20B"), "min_k_20", "paraphrased"),
            0.74,
        ),
        ({"table": "Table 6", "row": "Zlib"}, ("average", "zlib", "TPR@5%FPR"), 20.6),
        (
            {"table": "Table 7", "row": "PPL_50", "column": "Github"},
            ("pythia-70m", "PPL_50", "Github"),
            49.4,
        ),
        (
            {"table": "Figure 18", "row": "Github", "column": "FreeLaw"},
            (our_name("pythia-6.9b"), "Github", "FreeLaw", "Min 25% token"),
            77.1,
        ),
        (
            {"table": "Table 3", "row": "PPL_200, members", "column": "ArXiv"},
            (our_name("Pythia-6.9B"), "member", "ArXiv"),
            7.9,
        ),
    ],
)
def test_a_cell_knows_where_to_look(
    fields: dict[str, str], wanted: tuple[str, ...], published: float
) -> None:
    cell = _find(**fields)
    assert cell.wanted == wanted
    assert cell.published == pytest.approx(published)


def test_floors_are_those_of_the_paper() -> None:
    """0.009 is 1/101, cut off; elsewhere it is a p-value like others."""
    floors = [cell for cell in CELLS if cell.at_floor]
    first = [cell for cell in floors if cell.table == "Table 1"]
    assert Counter(cell.column for cell in first) == {"permutation": 7, "sharded_t": 5}
    others = [cell for cell in floors if cell.table != "Table 1"]
    assert others and all(cell.published == pytest.approx(-38) for cell in others)
    history = _find(table="Table 4", row="high_school_european_history", model="LLaMA2-7B")
    assert history.published == pytest.approx(math.log10(0.009)) and not history.at_floor


def test_models_of_the_papers_have_the_names_of_the_registry() -> None:
    of_oren = {c.wanted[0] for c in CELLS if c.source in ("open_models", "checkpoints")}
    assert of_oren <= set(load_models())
    assert our_name("Pythia-1.4B") == our_name("pythia-1.4b") == "pythia-1.4b"
    assert our_name("OLMo-2-7B") == our_name("OLMo-2-1124-7B")
