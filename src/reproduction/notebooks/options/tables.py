"""The table of notebook 14: both axes on every planted set, and its layout for readers.

The axes are the order of the records of a set and the order of its items' options. The
last row of each set combines them by `contamination.audit.run.combine_axes`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from contamination.audit.registry import OPTION_TEST, TESTS
from contamination.scoring.store import Store
from contamination.statistics import adjust
from contamination.tables import Layout, format_p, lay_out
from reproduction.run.injection import Planting

ORDER = "successor"
BOTH = "both"
AXES = (ORDER, OPTION_TEST, BOTH)
PLANTED = "planted"
CLEAN = "clean"
COLUMNS = (
    "dataset",
    "planting",
    "dup_count",
    "examples",
    "test",
    "p",
    "log10_p",
    "control_p",
    "control_log10_p",
    "tokens_scored",
)
HEADINGS = {ORDER: "Order of records", OPTION_TEST: "Order of options", BOTH: "Both"}
KINDS = {
    "whole": "whole, in canonical order",
    "shuffled": "whole, shuffled each time",
    "single": "single records, scattered",
}


@dataclass(frozen=True)
class Cell:
    """One set of the design: how it is planted, and how often."""

    planting: Planting
    dup_count: int

    @property
    def name(self) -> str:
        """Return the name of its set, such as single-16."""
        return f"{self.planting}-{self.dup_count}"


def axis_outcomes(
    planted: Mapping[str, Store],
    clean: Mapping[str, Store],
) -> pd.DataFrame:
    """Test one set by its stores of records and of options: a row for each axis.

    Columns test, p, log10_p, the same under the `clean` model as control_p and
    control_log10_p, and tokens_scored, the tokens that one model reads for it.
    """
    from contamination.audit.run import combine_axes  # figures are drawn without torch

    outcomes = pd.DataFrame({"test": AXES})
    for prefix, stores in (("", planted), ("control_", clean)):
        of_order = TESTS[ORDER].result(stores[ORDER], 0)
        of_options = TESTS[OPTION_TEST].result(stores[OPTION_TEST], 0)
        results = [of_order, of_options, combine_axes(of_order, of_options)]
        outcomes[f"{prefix}p"] = [result.p for result in results]
        outcomes[f"{prefix}log10_p"] = [result.log10_p for result in results]
    order_tokens = planted[ORDER].tokens_read(0)
    option_tokens = planted[OPTION_TEST].tokens_read(0)
    outcomes["tokens_scored"] = [
        order_tokens,
        option_tokens,
        order_tokens + option_tokens,
    ]
    return outcomes


def axes_layout(table: pd.DataFrame, *, alpha: float) -> Layout:
    """Lay out p by planting and number of copies, a column for each axis.

    Bold: at most `alpha` after Holm's correction over the planted sets of the table.
    `table` has `COLUMNS`. The last line is the control: the smallest p of each axis
    among the same sets under the clean model.
    """

    def cell(row: dict[Any, Any]) -> dict[str, str]:
        is_found = row["holm_p"] <= alpha
        return {HEADINGS[row["test"]]: format_p(row["p"], row["log10_p"], bold=is_found)}

    table = table.assign(holm_p=adjust(log10_p=table["log10_p"], method="holm").p)
    parts = [table[table["planting"] == name].assign(kind=kind) for name, kind in KINDS.items()]
    lowest = table.loc[table.groupby("test", sort=False)["control_log10_p"].idxmin()]
    clean = f"the clean model, smallest of {table['dataset'].nunique()}"
    control = lowest.assign(kind=clean, dup_count=0, holm_p=1.0).drop(
        columns=["p", "log10_p"],
    )
    control.columns = control.columns.str.removeprefix("control_")
    return lay_out(
        pd.concat([*parts, control]),
        {"kind": "Planted", "dup_count": "Copies"},
        cell,
        columns_first=list(HEADINGS.values()),
    )
