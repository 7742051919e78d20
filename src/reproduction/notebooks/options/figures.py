"""The figure of notebook 14: evidence against the number of copies, by planting and axis."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from contamination.audit.battery import OPTION_TEST, TESTS
from contamination.tables import SIGNIFICANT
from reproduction.notebooks.options.evaluation import AXES, BOTH, ORDER
from reproduction.notebooks.options.planting import PLANTINGS
from reproduction.output.figures import count_axis, mark_level

TITLES = {"whole": "Whole", "shuffled": "Shuffled", "single": "Single records"}
STYLES = {
    ORDER: ("Order of records", TESTS[ORDER].colour, TESTS[ORDER].marker),
    OPTION_TEST: ("Order of options", TESTS[OPTION_TEST].colour, TESTS[OPTION_TEST].marker),
    BOTH: ("Both, by Fisher", "#000000", "*"),
}
LINEAR = 3  # log10 p: linear down to there, logarithmic below
TICKS = (0, -1, -2, -3, *(-step * 10**power for power in range(1, 7) for step in (1, 3)))


def plot_axes(table: pd.DataFrame) -> Figure:
    """Draw log10 p against the number of copies, a panel for each planting, a line for each axis.

    `table` has the columns of `options_table`. Thin dotted lines with hollow markers are the clean
    model on the same sets. The scale of log10 p is linear down to minus `LINEAR` and logarithmic
    below, so that both the level and the strongest evidence can be read.
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
            axes.plot(line["dup_count"], line["log10_p"], label=label, **style)
            axes.plot(
                *(line["dup_count"], line["control_log10_p"]),
                **style,
                ls=":",
                lw=0.8,
                mfc="white",
                label=f"{label}, clean model",
            )
        count_axis(axes, table["dup_count"])
        axes.set(title=TITLES[planting], xlabel="Copies read")
        axes.axhline(np.log10(SIGNIFICANT), color="0.35", lw=0.9, ls="--")
    first, last = panels[0][0], panels[0][-1]
    lowest = min(table["log10_p"].min(), table["control_log10_p"].min())
    first.set_yscale("symlog", linthresh=LINEAR)
    ticks = [tick for tick in TICKS if tick > lowest] + [next(t for t in TICKS if t <= lowest)]
    first.set_yticks(ticks, [f"{tick:g}".replace("-", "−") for tick in ticks])
    first.minorticks_off()
    first.set(ylim=(1.1 * ticks[-1], 0.3), ylabel="log10 p")
    mark_level(last)
    handles, labels = first.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize="small")
    return figure
