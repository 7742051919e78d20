"""Table 2 of Oren: their p-values, and ours in the same layout."""

import math

import pandas as pd

from contamination.experiments.open_models.controls import COMPRESSOR
from contamination.results.tables import format_p
from contamination.scoring.status import OK


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
