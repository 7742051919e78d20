"""Tables of controlled contamination laid out as Shi has them, and the published ones."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from contamination.tables import format_estimate, lay_out
from reproduction.notebooks.controlled.aucs import MEAN
from reproduction.notebooks.controlled.contaminants import OUTLIER
from reproduction.notebooks.controlled.runs import BASE, RATE, SIZE

PUBLISHED = ("Table 3", "Table 7", "Table 4")  # of Shi


def main_layout(table: pd.DataFrame, labels: Mapping[str, str]) -> pd.DataFrame:
    """Lay out Table 3, at the largest size: a row for each score that `labels` name.

    `table` comes from `auc_table`. Columns are the outlier sets, their mean with its interval, that
    mean before training, its TPR at 5% FPR (Table 7), and in-distribution contaminants; bold where
    the interval leaves out 0.5.
    """
    rows = table[(table["experiment"] == SIZE) & table["score"].isin(list(labels))]
    rows = rows[rows["corpus_tokens"].isin([0, rows["corpus_tokens"].max()])]
    outliers = rows.loc[rows["contaminant"] == OUTLIER, "dataset"].unique()  # the mean is the last

    def cells(row: dict[Any, Any]) -> dict[str, str]:
        mean = row["dataset"] == MEAN
        if row["model"] == BASE:
            return {"Before training": _cell(row)} if mean else {}
        rate = {"TPR at 5% FPR": f"{row['tpr_at_5_fpr']:.0%}"} if mean else {}
        return {row["dataset"].capitalize(): _cell(row)} | rate

    return lay_out(
        rows.assign(method=rows["score"].map(labels)),
        {"method": "Method"},
        cells,
        rows_first=tuple(labels.values()),
        columns_first=[
            *(name.capitalize() for name in outliers),
            *("Before training", "TPR at 5% FPR"),
        ],
    )


def rate_layout(table: pd.DataFrame, score: str) -> pd.DataFrame:
    """Lay out Table 4: a row per learning rate, the base model first, a column per set."""
    rows = table[(table["experiment"] == RATE) & (table["score"] == score)]
    rows = rows.sort_values("learning_rate", kind="stable")
    named = rows["learning_rate"].map(lambda rate: f"{rate:g}" if rate else "before training")
    return lay_out(
        rows.assign(learning_rate=named),
        {"learning_rate": "Learning rate"},
        lambda row: {row["dataset"].capitalize(): _cell(row)},
    )


def published_layout(headline: pd.DataFrame) -> pd.DataFrame:
    """Lay out what Shi prints in Tables 3, 7 and 4: a row per method, a column per set.

    Parameters
    ----------
    headline : `shi2023_downstream` of `data/published`; " lr " and a learning rate follow the set
        in the setting of Table 4.
    """
    rows = headline[headline["table"].isin(PUBLISHED)]
    parts = rows["setting"].str.partition(" lr ")
    rates = parts[2].map(lambda rate: f", rate {rate}" if rate else "")
    rows = rows.assign(
        set=parts[0].replace("downstream average", "Average"),
        method=rows["method"].replace("Min-20% Prob", "Min-20%") + rates,
    )
    return lay_out(
        rows.sort_values("table", key=lambda names: names.map(PUBLISHED.index), kind="stable"),
        {"table": "Table", "method": "Method", "metric": "Measure"},
        lambda row: {row["set"]: f"{row['value']:g}"},
    )


def _cell(row: dict[Any, Any]) -> str:
    numbers = (row["auc"], row["auc_low"], row["auc_high"])
    return format_estimate(*numbers, null=0.5, interval=row["dataset"] == MEAN)
