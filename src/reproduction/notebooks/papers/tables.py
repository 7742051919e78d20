"""The comparison laid out: each published table with ours beside it, and a summary of all."""

import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from contamination.scoring.status import OK
from contamination.tables import MISSING, SIGNIFICANT, Layout, format_estimate, format_p, lay_out
from reproduction.notebooks.papers.measure import AUC, LOG10_P


def table_layouts(rows: pd.DataFrame) -> Iterator[tuple[str, str, Layout]]:
    """Lay out each published table of `compare`; yield the name of its file, a title and it.

    A cell is ours, and the published number in brackets; "—" where nothing was measured.
    """
    for (paper, table), found in rows.groupby(["paper", "table"], sort=False):
        name = f"papers_{paper.split()[0]}_{re.sub(r'[^a-z0-9]', '_', table.lower())}".lower()
        parts = [part for part in ("model", "column") if found[part].nunique() > 1] or ["column"]
        headed = found.assign(heading=found[parts].agg(", ".join, axis=1))
        yield name, f"{paper}, {table}", lay_out(headed, {"row": ""}, _cell)


def _cell(row: dict[Any, Any]) -> dict[str, str]:
    def shown(value: float) -> str:
        if row["unit"] == LOG10_P and not math.isnan(value):
            return format_p(10**value, value)
        return format_estimate(value, digits=2 if row["unit"] == AUC else 1, interval=False)

    return {row["heading"]: f"{shown(row['ours'])} ({shown(row['published'])})"}


def summary_layout(rows: pd.DataFrame) -> Layout:
    """Sum up the comparison: a row for each published table and unit.

    The median is of absolute differences; a verdict is the same on one side of 0.05.
    """
    level, sums = np.log10(SIGNIFICANT), []
    for (paper, table, unit), found in rows.groupby(["paper", "table", "unit"], sort=False):
        done = found[found["status"] == OK]
        same = ((done["ours"] <= level) == (done["published"] <= level)).sum()
        row = {"Paper": paper, "Table": table, "Unit": unit}
        row |= {"Cells": str(len(found)), "Measured": str(len(done))}
        change = format_estimate(done["difference"].abs().median(), interval=False)
        verdicts = f"{same} of {len(done)}" if unit == LOG10_P and len(done) else MISSING
        sums.append(row | {"Median difference": change, "Same verdict at 0.05": verdicts})
    return Layout(sums)
