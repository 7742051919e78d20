"""The comparison laid out: each published table with ours beside it, and a summary of all."""

import math
import re
import textwrap
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from contamination.scoring.status import OK
from contamination.tables import MISSING, SIGNIFICANT, Layout, format_estimate, format_p, lay_out
from reproduction.notebooks.papers.measure import DIGITS, LOG10_P

OURS, PUBLISHED, DIFFERENCE = "ours", "published", "difference"
SIDE_BY_SIDE = 2  # columns; with more of them the three numbers stand below each other
LONGEST = 45  # characters of a reason: the table has to fit its page
LABELS = {"permutation": "Permutation p", "sharded_t": "Sharded p", "detected": "Detected, %"}


def table_layout(rows: pd.DataFrame) -> Layout:
    """Lay out the rows of one published table of `compare`.

    Each cell is three numbers, ours, published and their difference: side by side where the table
    has one or two columns, else below each other. p-values differ by powers of ten. "—" where
    nothing was measured, or where a p-value is a floor, so that a difference would mean nothing.
    """
    heading = rows["column"].map(lambda name: LABELS.get(name, name))
    if rows["model"].nunique() > 1:
        alone = rows["column"].nunique() == 1
        heading = rows["model"] if alone else rows["model"] + ", " + heading
    rows = rows.assign(heading=heading)
    if heading.nunique() <= SIDE_BY_SIDE:
        return lay_out(
            rows,
            {"row": ""},
            lambda row: {f"{row['heading']}, {w}": text for w, text in _numbers(row).items()},
        )
    stacked = pd.concat([rows.assign(what=what) for what in (OURS, PUBLISHED, DIFFERENCE)])
    # A row of the paper stays together.
    place = {name: i for i, name in enumerate(dict.fromkeys(rows["row"]))}
    stacked = stacked.sort_values("row", key=lambda names: names.map(place), kind="stable")
    keys = {"row": "", "what": " "}
    return lay_out(stacked, keys, lambda row: {row["heading"]: _numbers(row)[row["what"]]})


def _numbers(row: dict[Any, Any]) -> dict[str, str]:
    """The three numbers of a cell as text."""
    unit, digits = row["unit"], DIGITS[row["unit"]]

    def shown(value: float) -> str:
        if unit == LOG10_P and not math.isnan(value):
            return format_p(10**value, value)
        return format_estimate(value, digits=digits, interval=False)

    change = format_estimate(row["difference"], digits=digits, interval=False)
    return {OURS: shown(row["ours"]), PUBLISHED: shown(row["published"]), DIFFERENCE: change}


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Sum up the comparison: a row for each published table and unit.

    cells, measured and not_measured count; `reason` is the commonest status of the latter, with its
    count; median_difference is that of the absolute differences, NaN without any; same_verdict of
    `verdicts` p-values are on the same side of 0.05 as the published ones.
    """
    level, sums = np.log10(SIGNIFICANT), []
    for (paper, table, unit), found in rows.groupby(["paper", "table", "unit"], sort=False):
        done, absent = found[found["status"] == OK], found.loc[found["status"] != OK, "status"]
        counts = absent.value_counts()
        same = (done["ours"] <= level) == (done["published"] <= level)
        row = {"paper": paper, "table": table, "unit": unit, "cells": len(found)}
        row |= {"measured": len(done), "not_measured": len(absent)}
        row["reason"] = f"{counts.index[0]} ({counts.iloc[0]})" if len(counts) else ""
        row["median_difference"] = done["difference"].abs().median()
        row["same_verdict"] = int(same.sum()) if unit == LOG10_P else 0
        sums.append(row | {"verdicts": len(done) if unit == LOG10_P else 0})
    return pd.DataFrame(sums)


def summary_layout(sums: pd.DataFrame) -> Layout:
    """Lay out `summary`, reasons cut at `LONGEST` characters."""

    def cells(row: dict[Any, Any]) -> dict[str, str]:
        verdicts = f"{row['same_verdict']} of {row['verdicts']}" if row["verdicts"] else MISSING
        return {
            "Cells": str(row["cells"]),
            "Measured": str(row["measured"]),
            "Median difference": format_estimate(row["median_difference"], interval=False),
            "Same verdict at 0.05": verdicts,
            "Commonest reason where not": textwrap.shorten(row["reason"], LONGEST) or MISSING,
        }

    return lay_out(sums, {"paper": "Paper", "table": "Table", "unit": "Unit"}, cells)


def reasons(rows: pd.DataFrame) -> pd.DataFrame:
    """Count the cells that were not measured: paper, status, cells; the commonest first."""
    absent = rows[rows["status"] != OK].groupby(["paper", "status"], sort=False).size()
    return absent.sort_values(ascending=False, kind="stable").rename("cells").reset_index()


def file_names(rows: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Yield each published table: name of its file, its title, its rows of the comparison."""
    for (paper, table), found in rows.groupby(["paper", "table"], sort=False):
        first = paper.split()[0].lower()
        place = re.sub(r"\W", "_", table.lower())
        yield f"papers_{first}_{place}", f"{paper}, {table}", found
