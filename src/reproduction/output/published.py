"""The numbers that the papers print, and the models in the tables of Oren."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from contamination.errors import InputError
from contamination.scoring.models import ModelEntry
from contamination.tables import Layout, format_p, lay_out
from contamination.testsets.registry import entries

# Column of Tables 2 and 4 -> the model's name in the paper.
CONTROLS = {"biomedlm": "BioMedLM", "gpt2_xl": "GPT-2 XL"}
AUDITED = {
    "llama2_7b": "LLaMA2-7B",
    "mistral_7b": "Mistral-7B",
    "pythia_1_4b": "Pythia-1.4B",
}

# Column of Table 1 -> the test in it, of the checkpoint of higher counts.
PRINTED = {"permutation_p": "permutation", "sharded_p": "sharded_t"}
# Families of registered sets -> the table that lists their titles; all others are in
# Table 2.
TABLES = {"canaries/": "oren2024_table1_canaries", "mmlu/": "oren2024_table4_mmlu"}
# Sources of rows of MMLU that were measured: judged by the paper's filter, and by ours.
MEASURED = "measured"
STRICTER = "measured, compressor too"
TABLE2 = "oren2024_table2_open_models"
FACTS = {"dataset": "Set", "size": "Examples", "dup_count": "Duplication count"}


def load_published(directory: Path | str, name: str) -> pd.DataFrame:
    """Read one table of `data/published/`."""
    path = Path(directory) / f"{name}.csv"
    if not path.is_file():
        raise InputError(
            f"{path}: no such published table; restore data/published from git",
        )
    return pd.read_csv(path)


def published_layout(table: pd.DataFrame, columns: Mapping[str, str]) -> Layout:
    """Lay out Table 1 or 2 as printed: a row for each set; `columns` of p-values -> headings."""

    def p_values(row: dict[str, Any]) -> dict[str, str]:
        return {heading: format_p(row[name]) for name, heading in columns.items()}

    facts = {name: heading for name, heading in FACTS.items() if name in table}
    return lay_out(table.astype({"size": "Int64"}), facts, p_values)


def published_p(
    entry: ModelEntry,
    dataset: str,
    published: Path | str | None,
    test: str = "sharded_t",
) -> float:
    """Return the p-value that the paper prints for a model and a set, or NaN if it prints none.

    The paper's test is the sharded t-test whatever our `test`, with 50 shards and 250
    permutations, 1,000 for MMLU and 51 for planted sets. Only our permutation test is
    compared with theirs, of planted sets.

    Parameters
    ----------
    entry
        Entry of the model.
    dataset
        Name of the registered set.
    published
        Directory of the papers' tables; None for no paper.
    test
        Our test of the row.
    """
    if published is None or dataset not in entries():
        return math.nan
    table = load_published(published, _table_of(dataset))
    table = table.set_index(table.columns[0])
    title = entries()[dataset].title
    column = entry.published
    if column in PRINTED and test == "permutation":
        column = "permutation_p"
    if title not in table.index or column not in table:
        return math.nan
    return float(table.loc[title, column])


def _table_of(dataset: str) -> str:
    """Name the published table that lists a registered set."""
    for family, table in TABLES.items():
        if dataset.startswith(family):
            return table
    return TABLE2
