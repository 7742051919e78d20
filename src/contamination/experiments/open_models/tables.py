"""Table 2 of Oren: their p-values, and ours in the same layout."""

import math
from functools import cache
from pathlib import Path

import pandas as pd

from contamination.models import ModelEntry
from contamination.open_controls import COMPRESSOR
from contamination.open_status import OK
from contamination.published import load_published
from contamination.registry import entries
from contamination.tables import format_p

# Families of registered sets -> the table that lists their titles; all others are in Table 2.
TABLES = {"canaries/": "oren2024_table1_canaries", "mmlu/": "oren2024_table4_mmlu"}
TABLE2 = "oren2024_table2_open_models"


def published_p(entry: ModelEntry, dataset: str, published: Path | str | None) -> float:
    """Return the p-value that the paper prints for a model and a set (Tables 1, 2 and 4), or NaN.

    Theirs is the sharded t-test with 50 shards and 250 permutations, 1,000 for MMLU.
    """
    if published is None or entry.published is None:
        return math.nan
    if dataset not in entries():
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


def paper_layout(rows: pd.DataFrame, alpha: float) -> pd.DataFrame:
    """Lay out an audit as the paper does: sets below each other, models side by side.

    Returns
    -------
    DataFrame
        Text under its headings, a row for each set and test: Set, Examples, Order (the verdict on
        the records), Test, a column for each model, bold where Holm's correction leaves p <= alpha,
        beside it the paper's value where there is one, and the compressor where it is the control.
    """
    printed = set(rows.loc[rows["published_p"].notna(), "model"])
    compressed = (rows["control"] == COMPRESSOR).any()
    lines = []
    for (dataset, test), cells in rows.groupby(["dataset", "test"], sort=False):
        line = {
            "Set": str(dataset),
            "Examples": _first(cells["examples"]),
            "Order": _first(cells["verdict"]),
            "Test": str(test).replace("_", " "),
        }
        for cell in cells.to_dict("records"):
            ours = cell["status"].partition(":")[0]  # why there is none
            if ours == OK:
                ours = format_p(cell["p"], cell["log10_p"])
            line[cell["model"]] = f"**{ours}**" if cell["holm_p"] <= alpha else ours
            if cell["model"] in printed:
                line[f"{cell['model']}, paper"] = _shown(cell["published_p"])
        if compressed:
            by_compressor = cells.loc[cells["control"] == COMPRESSOR, "control_p"]
            line["Compressor"] = _shown(by_compressor.min())  # of several models, the same
        lines.append(line)
    return pd.DataFrame(lines)


def _shown(p: float) -> str:
    return "—" if math.isnan(p) else format_p(p)


def _first(values: pd.Series) -> str:
    known = values.dropna()
    return "—" if known.empty else str(known.iloc[0])
