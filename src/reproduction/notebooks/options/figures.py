"""The figure of notebook 14: evidence by number of copies, planting and axis."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from contamination.audit.registry import OPTION_TEST, TESTS
from reproduction.notebooks.options.tables import AXES, BOTH, ORDER
from reproduction.output.figures import (
    EVIDENCE,
    count_axis,
    evidence_axis,
    panel_row,
)
from reproduction.output.line_labels import label_ends
from reproduction.run.injection import PLANTINGS

TITLES = {"whole": "Whole", "shuffled": "Shuffled", "single": "Single records"}
LABELS = {
    ORDER: "Order of records",
    OPTION_TEST: "Order of options",
    BOTH: "Both, by Fisher",
}
STYLES = {  # colour and marker
    ORDER: (TESTS[ORDER].colour, TESTS[ORDER].marker),
    OPTION_TEST: (TESTS[OPTION_TEST].colour, TESTS[OPTION_TEST].marker),
    BOTH: ("#000000", "*"),
}


def plot_axes(table: pd.DataFrame) -> Figure:
    """Draw -log10 p by number of copies: a panel per planting, a line per axis.

    `table` has the `COLUMNS` of the tables. Thin dotted lines with hollow markers are
    the clean model on the same sets.
    """
    shown = [name for name in PLANTINGS if (table["planting"] == name).any()]
    size = (2.4 * len(shown) + 1.6, 3.4)
    titles = [TITLES[name] for name in shown]
    figure, panels = panel_row(titles, size=size, sharey=True)
    most = -table[["log10_p", "control_log10_p"]].min().min()
    for axes, planting in zip(panels, shown, strict=True):
        rows = table[table["planting"] == planting].sort_values("dup_count")
        lines = [_draw_axis(axes, rows[rows["test"] == axis], axis) for axis in AXES]
        count_axis(axes, table["dup_count"])
        axes.set(xlabel="Copies read")
        level = evidence_axis(axes, most)
    panels[0].set_ylabel(EVIDENCE)
    label_ends(panels[-1], lines)
    read = Line2D([], [], color="0.35", marker="o", label="read the sets")
    clean = Line2D(
        [],
        [],
        color="0.35",
        marker="o",
        mfc="white",
        ls=":",
        lw=0.8,
        label="clean model",
    )
    figure.legend(
        handles=[read, clean, level],
        loc="outside upper center",
        ncols=3,
        fontsize="small",
    )
    return figure


def _draw_axis(axes: Axes, rows: pd.DataFrame, axis: str) -> Line2D:
    """Draw one axis under both models; return the line of the model that has read."""
    colour, marker = STYLES[axis]
    counts = rows["dup_count"]
    clean = -rows["control_log10_p"]
    axes.plot(counts, clean, color=colour, marker=marker, mfc="white", ls=":", lw=0.8)
    (line,) = axes.plot(
        counts,
        -rows["log10_p"],
        color=colour,
        marker=marker,
        label=LABELS[axis],
    )
    return line
