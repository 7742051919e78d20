"""The figure of notebook 14: evidence against the number of copies, by planting and axis."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from contamination.audit.battery import OPTION_TEST, TESTS
from reproduction.notebooks.options.tables import AXES, BOTH, ORDER
from reproduction.output.figures import EVIDENCE, count_axis, evidence_axis, panel_row
from reproduction.run.injection import PLANTINGS

TITLES = {"whole": "Whole", "shuffled": "Shuffled", "single": "Single records"}
LABELS = {ORDER: "Order of records", OPTION_TEST: "Order of options", BOTH: "Both, by Fisher"}
STYLES: dict[str, dict[str, Any]] = {
    name: {"color": TESTS[name].colour, "marker": TESTS[name].marker} for name in AXES[:2]
}
STYLES[BOTH] = {"color": "#000000", "marker": "*"}


def plot_axes(table: pd.DataFrame) -> Figure:
    """Draw -log10 p against the number of copies, a panel for each planting, a line for each axis.

    `table` has the `COLUMNS` of the tables. Thin dotted lines with hollow markers are the clean
    model on the same sets.
    """
    shown = [name for name in PLANTINGS if (table["planting"] == name).any()]
    size = (2.6 * len(shown) + 0.6, 3.4)
    figure, panels = panel_row(map(TITLES.__getitem__, shown), size=size, sharey=True)
    for axes, planting in zip(panels, shown, strict=True):
        rows = table[table["planting"] == planting].sort_values("dup_count")
        for axis in AXES:
            line, style = rows[rows["test"] == axis], {"label": LABELS[axis]} | STYLES[axis]
            axes.plot(line["dup_count"], -line["log10_p"], **style)
            hollow = style | {"label": f"{LABELS[axis]}, clean model", "mfc": "white"}
            axes.plot(line["dup_count"], -line["control_log10_p"], ls=":", lw=0.8, **hollow)
        count_axis(axes, table["dup_count"])
        axes.set(xlabel="Copies read")
        evidence_axis(axes, -table[["log10_p", "control_log10_p"]].min().min())
    panels[0].set_ylabel(EVIDENCE)
    *handles, level = panels[0].get_legend_handles_labels()[0]
    handles.insert(2, level)  # columns are filled one by one: an axis of proof has a column
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize="small")
    return figure
