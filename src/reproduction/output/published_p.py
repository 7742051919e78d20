"""The p-values that the paper prints (Oren, Tables 1, 2 and 4)."""

import math
from functools import cache
from pathlib import Path

import pandas as pd

from contamination.scoring.models import ModelEntry
from contamination.testsets.registry import entries
from reproduction.output.published import load_published

# Families of registered sets -> the table that lists their titles; all others are in Table 2.
TABLES = {"canaries/": "oren2024_table1_canaries", "mmlu/": "oren2024_table4_mmlu"}
TABLE2 = "oren2024_table2_open_models"


def published_p(entry: ModelEntry, dataset: str, published: Path | str | None) -> float:
    """Return the p-value that the paper prints for a model and a set, or NaN if it prints none.

    Theirs is the sharded t-test with 50 shards and 250 permutations, 1,000 for MMLU.
    """
    if published is None or entry.published is None or dataset not in entries():
        return math.nan
    names = [name for family, name in TABLES.items() if dataset.startswith(family)]
    table, row = _table(Path(published), (*names, TABLE2)[0]), entries()[dataset].title
    if row not in table.index or entry.published not in table:
        return math.nan
    return float(table.loc[row, entry.published])


@cache
def _table(published: Path, name: str) -> pd.DataFrame:
    table = load_published(published, name)
    return table.set_index(table.columns[0])
