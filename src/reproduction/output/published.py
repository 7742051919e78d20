"""The numbers that the papers print, and the models in the tables of Oren (section 4.3)."""

import math
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from contamination.errors import InputError
from contamination.scoring.models import ModelEntry
from contamination.tables import Layout, format_p, lay_out
from contamination.testsets.registry import entries

# Column of Tables 2 and 4 -> the model's name in the paper.
CONTROLS = {"biomedlm": "BioMedLM", "gpt2_xl": "GPT-2 XL"}
AUDITED = {"llama2_7b": "LLaMA2-7B", "mistral_7b": "Mistral-7B", "pythia_1_4b": "Pythia-1.4B"}

# Column of Table 1 -> the test in it, of the checkpoint of higher counts.
PRINTED = {"permutation_p": "permutation", "sharded_p": "sharded_t"}
# Families of registered sets -> the table that lists their titles; all others are in Table 2.
TABLES = {"canaries/": "oren2024_table1_canaries", "mmlu/": "oren2024_table4_mmlu"}
# Sources of rows of MMLU that were measured: judged by the paper's filter, and by ours.
MEASURED, STRICTER = "measured", "measured, compressor too"
TABLE2 = "oren2024_table2_open_models"
FACTS = {"dataset": "Set", "size": "Examples", "dup_count": "Duplication count"}


def load_published(directory: Path | str, name: str) -> pd.DataFrame:
    """Read one table of `data/published/`."""
    path = Path(directory) / f"{name}.csv"
    if not path.is_file():
        raise InputError(f"{path}: no such published table; restore data/published from git")
    return pd.read_csv(path)


def published_layout(table: pd.DataFrame, columns: Mapping[str, str]) -> Layout:
    """Lay out Table 1 or 2 as printed: a row for each set; `columns` of p-values -> headings."""
    return lay_out(
        table.astype({"size": "Int64"}),
        {name: heading for name, heading in FACTS.items() if name in table},
        lambda row: {heading: format_p(row[name]) for name, heading in columns.items()},
    )


def published_p(
    entry: ModelEntry, dataset: str, published: Path | str | None, test: str = "sharded_t"
) -> float:
    """Return the p-value that the paper prints for a model and a set, or NaN if it prints none.

    Theirs is the sharded t-test whatever our `test`, with 50 shards and 250 permutations, 1,000 for
    MMLU and 51 for planted sets; beside our permutation test it is theirs of a planted set.
    """
    if published is None or dataset not in entries():
        return math.nan
    names = [name for family, name in TABLES.items() if dataset.startswith(family)]
    table, row = load_published(published, (*names, TABLE2)[0]), entries()[dataset].title
    table, column = table.set_index(table.columns[0]), entry.published
    if column in PRINTED and test == "permutation":
        column = "permutation_p"
    known = row in table.index and column in table
    return float(table.loc[row, column]) if known else math.nan
