"""Which axis sees which kind of contamination: the table of notebook 14, laid out for readers."""

from typing import Any

import pandas as pd

from contamination.audit.battery import OPTION_TEST
from contamination.tables import Layout, format_p, lay_out
from reproduction.notebooks.options.evaluation import AXES, BOTH, ORDER

HEADINGS = {ORDER: "Order of records", OPTION_TEST: "Order of options", BOTH: "Both"}
KINDS = {
    "whole": "whole, in canonical order",
    "shuffled": "whole, shuffled each time",
    "single": "single records, scattered",
}
CONTROL = "the clean model, smallest of {}"


def axes_layout(table: pd.DataFrame, *, alpha: float) -> Layout:
    """Lay out p by planting and number of copies, a column for each axis; bold up to `alpha`.

    `table` has the columns of `options_table`. The last line is the control: the smallest p of each
    axis among the same sets under the clean model.
    """

    def cells(row: dict[Any, Any]) -> dict[str, str]:
        shown = format_p(row["p"], row["log10_p"], bold=row["p"] <= alpha)
        return {HEADINGS[row["test"]]: shown}

    parts = [table[table["planting"] == name].assign(kind=kind) for name, kind in KINDS.items()]
    lowest = table.loc[table.groupby("test", sort=False)["control_log10_p"].idxmin()]
    control = lowest.assign(
        kind=CONTROL.format(table["dataset"].nunique()),
        dup_count=0,
        p=lowest["control_p"],
        log10_p=lowest["control_log10_p"],
    )
    return lay_out(
        pd.concat([*parts, control]),
        {"kind": "Planted", "dup_count": "Copies"},
        cells,
        columns_first=[HEADINGS[axis] for axis in AXES],
    )
