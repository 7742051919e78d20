"""The table of notebook 14: both axes on every planted set, and its layout for readers.

The axes are the order of the records of a set and the order of its items' options. The last row of
each set combines them by `contamination.audit.verdict.joint`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from contamination.audit.battery import OPTION_TEST, TESTS
from contamination.scoring.store import Store
from contamination.statistics import adjust
from contamination.tables import Layout, format_p, lay_out
from reproduction.run.injection import Planting

ORDER, BOTH = "successor", "both"
AXES = (ORDER, OPTION_TEST, BOTH)
PLANTED, CLEAN = "planted", "clean"
COLUMNS = (
    *("dataset", "planting", "dup_count", "examples", "test", "p", "log10_p"),
    *("control_p", "control_log10_p", "tokens_scored"),
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
        """Name of its set: single-16."""
        return f"{self.planting}-{self.dup_count}"


def axis_outcomes(stores: Mapping[str, Store]) -> pd.DataFrame:
    """Test one set under one model by its stores, of `ORDER` and of `OPTION_TEST`: a row for each.

    Columns test (`AXES`), p, log10_p and tokens_scored, what the model reads for it.
    """
    from contamination.audit.verdict import joint  # figures are drawn without torch

    results = {name: TESTS[name].result(store, 0) for name, store in stores.items()}
    tokens = {name: store.header.tokens_of(0) for name, store in stores.items()}
    both = joint(*results.values())
    rows = [(name, one.p, one.log10_p, tokens[name]) for name, one in results.items()]
    rows.append((BOTH, both.p, both.log10_p, sum(tokens.values())))
    return pd.DataFrame(rows, columns=["test", "p", "log10_p", "tokens_scored"])


def options_table(planted: pd.DataFrame, clean: pd.DataFrame) -> pd.DataFrame:
    """Put the outcomes of the planted model beside those of the clean one, its control.

    Both have the columns of `axis_outcomes`, and what is known of the sets. Returns a row for each
    set and axis, with `COLUMNS`.
    """
    control = clean[["dataset", "test", "p", "log10_p"]]
    control = control.rename(columns={name: f"control_{name}" for name in ("p", "log10_p")})
    return planted.merge(control, "left", ["dataset", "test"])[list(COLUMNS)]


def axes_layout(table: pd.DataFrame, *, alpha: float) -> Layout:
    """Lay out p by planting and number of copies, a column for each axis.

    Bold: at most `alpha` after Holm's correction over the planted sets of the table. `table` has
    the columns of `options_table`. The last line is the control: the smallest p of each
    axis among the same sets under the clean model.
    """
    table = table.assign(holm_p=adjust(log10_p=table["log10_p"], method="holm").p)
    parts = [table[table["planting"] == name].assign(kind=kind) for name, kind in KINDS.items()]
    lowest = table.loc[table.groupby("test", sort=False)["control_log10_p"].idxmin()]
    control = lowest.assign(
        kind=f"the clean model, smallest of {table['dataset'].nunique()}",
        dup_count=0,
        holm_p=1.0,
        p=lowest["control_p"],
        log10_p=lowest["control_log10_p"],
    )
    return lay_out(
        pd.concat([*parts, control]),
        {"kind": "Planted", "dup_count": "Copies"},
        lambda row: {
            HEADINGS[row["test"]]: format_p(row["p"], row["log10_p"], bold=row["holm_p"] <= alpha)
        },
        columns_first=list(HEADINGS.values()),
    )
