"""The figure of notebook 14: evidence against the number of copies, by planting and axis."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from contamination.audit.battery import OPTION_TEST, TESTS
from reproduction.notebooks.options.tables import AXES, BOTH, ORDER
from reproduction.output.figures import EVIDENCE, count_axis, evidence_axis, mark_level
from reproduction.run.injection import PLANTINGS

TITLES = {"whole": "Whole", "shuffled": "Shuffled", "single": "Single records"}
STYLES = {
    ORDER: ("Order of records", TESTS[ORDER].colour, TESTS[ORDER].marker),
    OPTION_TEST: ("Order of options", TESTS[OPTION_TEST].colour, TESTS[OPTION_TEST].marker),
    BOTH: ("Both, by Fisher", "#000000", "*"),
}


def plot_axes(table: pd.DataFrame) -> Figure:
    """Draw -log10 p against the number of copies, a panel for each planting, a line for each axis.

    `table` has the columns of `options_table`. Thin dotted lines with hollow markers are the clean
    model on the same sets.
    """
    shown = [name for name in PLANTINGS if (table["planting"] == name).any()]
    figure, panels = plt.subplots(
        1, len(shown), figsize=(2.6 * len(shown) + 0.6, 3.4), sharey=True, squeeze=False
    )
    for axes, planting in zip(panels[0], shown, strict=True):
        rows = table[table["planting"] == planting].sort_values("dup_count")
        for axis in AXES:
            label, colour, marker = STYLES[axis]
            line = rows[rows["test"] == axis]
            style = {"color": colour, "marker": marker}
            axes.plot(line["dup_count"], -line["log10_p"], label=label, **style)
            axes.plot(
                *(line["dup_count"], -line["control_log10_p"]),
                **style,
                ls=":",
                lw=0.8,
                mfc="white",
                label=f"{label}, clean model",
            )
        count_axis(axes, table["dup_count"])
        axes.set(title=TITLES[planting], xlabel="Copies read")
        mark_level(axes)
        evidence_axis(axes, -table[["log10_p", "control_log10_p"]].min().min())
    first = panels[0][0]
    first.set_ylabel(EVIDENCE)
    *handles, level = first.get_legend_handles_labels()[0]
    handles.insert(2, level)  # columns are filled one by one: an axis of proof has a column
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize="small")
    return figure
