"""Oren's Tables 1 and 5 of the released checkpoints, with what the paper prints beside ours."""

from typing import Any

import pandas as pd

from contamination.audit.battery import TESTS
from contamination.scoring.status import OK
from contamination.tables import Layout, format_estimate, format_p, lay_out

KEYS = {
    "model": "Model",
    "title": "Set",
    "examples": "Examples",
    "dup_count": "Duplication count",
}


def checkpoint_layout(rows: pd.DataFrame, alpha: float) -> Layout:
    """Lay out Table 1: a row for each model and set, a column for each test.

    `rows` come from `reproduction.notebooks.checkpoints.evaluation.judge_stores`. A p-value is
    bold where Holm's correction over the sets leaves at most `alpha`; where there is none, its
    column says "failed" or "not run here". Beside it stands the paper's value where there is one.
    """
    printed = set(rows.loc[rows["published_p"].notna(), "test"])

    def cells(row: dict[Any, Any]) -> dict[str, str]:
        label, ours = TESTS[row["test"]].label, row["status"].partition(":")[0]
        if ours == OK:
            ours = format_p(row["p"], row["log10_p"], bold=row["holm_p"] <= alpha)
        paper = {f"{label}, paper": format_p(row["published_p"])} if row["test"] in printed else {}
        return {label: ours} | paper

    return lay_out(rows, KEYS, cells)


def min_k_layout(rates: pd.DataFrame, k: float) -> Layout:
    """Lay out Table 5: percent of the spans of each set that Min-K% detects, under each model.

    `rates` come from `reproduction.notebooks.checkpoints.min_k.detection_rates`.
    """

    def cells(row: dict[Any, Any]) -> dict[str, str]:
        ours = row["status"].partition(":")[0]
        if ours == OK:
            numbers = (row[f"rate_{name}"] for name in ("percent", "low", "high"))
            ours = format_estimate(*numbers, digits=0)
        paper = format_estimate(row["published_percent"], digits=0, interval=False)
        return {f"Min-{k:g}%": ours, "Paper": paper}

    return lay_out(rates, KEYS | {"spans": "Spans"}, cells)
