"""The comparison laid out: each published table with ours, and a summary."""

import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from contamination.scoring.status import OK
from contamination.tables import (
    MISSING,
    SIGNIFICANT,
    Layout,
    format_estimate,
    format_p,
    lay_out,
)
from reproduction.notebooks.papers.measure import AUC, LOG10_P


def table_layouts(rows: pd.DataFrame) -> Iterator[tuple[str, str, Layout]]:
    """Yield each published table of `compare`: the name of its file, a title and it.

    A cell is ours, and the published number in brackets; "—" where nothing was measured.
    """
    for (paper, table), cells in rows.groupby(["paper", "table"], sort=False):
        author = paper.split()[0].lower()
        file = f"papers_{author}_{re.sub(r'[^a-z0-9]', '_', table.lower())}"
        headings = [name for name in ("model", "column") if cells[name].nunique() > 1]
        headings = headings or ["column"]
        headed = cells.assign(heading=cells[headings].agg(", ".join, axis=1))
        yield file, f"{paper}, {table}", lay_out(headed, {"row": ""}, _cell)


def _cell(row: dict[Any, Any]) -> dict[str, str]:
    """Return our number, and the published one in brackets."""
    ours = _number(row["ours"], row["unit"])
    published = _number(row["published"], row["unit"])
    return {row["heading"]: f"{ours} ({published})"}


def _number(value: float, unit: str) -> str:
    """Write a number of a unit; a dash for NaN."""
    if unit == LOG10_P and not math.isnan(value):
        return format_p(10**value, value)
    digits = 2 if unit == AUC else 1
    return format_estimate(value, digits=digits, interval=False)


def summary_layout(rows: pd.DataFrame) -> Layout:
    """Lay out a summary of the comparison: a row for each published table and unit.

    The median is of absolute differences; a verdict is the same on one side of 0.05.
    """
    level = np.log10(SIGNIFICANT)
    sums = []
    for (paper, table, unit), cells in rows.groupby(
        ["paper", "table", "unit"],
        sort=False,
    ):
        measured = cells[cells["status"] == OK]
        is_same = (measured["ours"] <= level) == (measured["published"] <= level)
        verdicts = MISSING
        if unit == LOG10_P and len(measured):
            verdicts = f"{is_same.sum()} of {len(measured)}"
        difference = measured["difference"].abs().median()
        sums.append(
            {
                "Paper": paper,
                "Table": table,
                "Unit": unit,
                "Cells": str(len(cells)),
                "Measured": str(len(measured)),
                "Median difference": format_estimate(difference, interval=False),
                "Same verdict at 0.05": verdicts,
            }
        )
    return Layout(sums)
