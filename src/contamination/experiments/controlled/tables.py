"""Tables of controlled contamination laid out as Shi has them, and the published ones."""

from collections.abc import Mapping

import pandas as pd

from contamination.experiments.controlled.contaminants import OUTLIER
from contamination.experiments.controlled.contamination import BASE
from contamination.experiments.controlled.plan import RATE, SIZE
from contamination.experiments.controlled.results import MEAN
from contamination.results.tables import format_estimate

PUBLISHED = ("Table 3", "Table 7", "Table 4")  # of Shi


def main_layout(table: pd.DataFrame, labels: Mapping[str, str]) -> pd.DataFrame:
    """Lay out Table 3, at the largest size: a row per score, a column per set.

    Parameters
    ----------
    table : of `contamination.experiments.controlled.results.auc_table`.
    labels : score -> what the table calls it.

    Returns
    -------
    DataFrame
        Text: Method, a column per outlier set, their mean with its interval, that mean before
        training, its TPR at 5% FPR (Table 7), and a column for in-distribution contaminants; bold
        where the interval leaves out 0.5.
    """
    rows = table[(table["experiment"] == SIZE) & table["score"].isin(list(labels))]
    last = rows[rows["corpus_tokens"] == rows["corpus_tokens"].max()]
    shown = pd.DataFrame({"Method": labels})
    for sets in (last[last["contaminant"] == OUTLIER], last[last["contaminant"] != OUTLIER]):
        for name, found in sets.groupby("dataset", sort=False):
            cells = found.set_index("score").apply(_cell, axis=1)
            if name != MEAN:
                shown[str(name).capitalize()] = cells
                continue
            before = rows[(rows["model"] == BASE) & (rows["dataset"] == MEAN)]
            shown["Mean"] = cells
            shown["Before training"] = before.set_index("score").apply(_cell, axis=1)
            rates = found.set_index("score")["tpr_at_5_fpr"]
            shown["TPR at 5% FPR"] = rates.map("{:.0%}".format)
    return shown.reset_index(drop=True)


def rate_layout(table: pd.DataFrame, score: str) -> pd.DataFrame:
    """Lay out Table 4: a row per learning rate, the base model first, a column per set."""
    rows = table[(table["experiment"] == RATE) & (table["score"] == score)]
    cells = rows.assign(cell=rows.apply(_cell, axis=1)).pivot_table(
        index="learning_rate", columns="dataset", values="cell", aggfunc="first", sort=False
    )
    cells = cells.sort_index().rename(index=lambda rate: f"{rate:g}" if rate else "before training")
    cells.columns = [str(name).capitalize() for name in cells.columns]
    return cells.rename_axis("Learning rate").reset_index()


def published_layout(headline: pd.DataFrame) -> pd.DataFrame:
    """Lay out what Shi prints in Tables 3, 7 and 4: a row per method, a column per set.

    Parameters
    ----------
    headline : columns table, setting (a set, " lr " and a learning rate after it in Table 4),
        method, metric and value.
    """
    rows = headline[headline["table"].isin(PUBLISHED)].copy()
    parts = rows["setting"].str.partition(" lr ")
    rows["set"] = parts[0].replace("downstream average", "Average")
    rows["Method"] = rows["method"].replace("Min-20% Prob", "Min-20%") + parts[2].map(
        lambda rate: f", rate {rate}" if rate else ""
    )
    rows["order"] = rows["table"].map(PUBLISHED.index)
    rows = rows.rename(columns={"table": "Table", "metric": "Measure"})
    wide = rows.sort_values("order", kind="stable").pivot_table(
        index=["Table", "Method", "Measure"], columns="set", values="value", sort=False
    )
    wide.columns.name = None
    return wide.map(lambda value: "—" if pd.isna(value) else f"{value:g}").reset_index()


def _cell(row: "pd.Series[float]") -> str:
    numbers = (row["auc"], row["auc_low"], row["auc_high"])
    return format_estimate(*numbers, null=0.5, interval=row["dataset"] == MEAN)
