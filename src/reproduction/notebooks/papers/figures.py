"""Figure: ours against published, a panel for each unit."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, ScalarFormatter

from contamination.scoring.status import OK
from reproduction.notebooks.papers.measure import COUNT, LOG10_P, PERPLEXITY
from reproduction.output import figures

MARKERS = "osD^vPX"


def plot_papers(rows: pd.DataFrame) -> Figure:
    """Draw every measured cell of `compare`, a marker for each published table.

    On the dashed line both are equal. Open markers: one of the two p-values is a floor. Counts are
    left out; without a measured cell the figure says so.
    """
    done = rows[(rows["status"] == OK) & (rows["unit"] != COUNT)]
    units = list(dict.fromkeys(done["unit"]))
    if not units:
        return figures.say_nothing("no cell was measured")
    across = min(3, len(units))
    down = -(-len(units) // across)
    figure, panels = plt.subplots(down, across, figsize=(3.6 * across, 3.9 * down), squeeze=False)
    for axes, unit in zip(panels.flat, units, strict=False):
        _draw(axes, done[done["unit"] == unit], unit)
    for axes in panels.flat[len(units) :]:
        axes.axis("off")
    return figure


def _draw(axes: Axes, rows: pd.DataFrame, unit: str) -> None:
    if unit == LOG10_P:
        rows = rows.assign(published=-rows["published"], ours=-rows["ours"])
    for index, ((paper, table), found) in enumerate(rows.groupby(["paper", "table"], sort=False)):
        known = found["difference"].notna()
        colour = figures.MODEL_COLOURS[index % len(figures.MODEL_COLOURS)]
        axes.scatter(
            found["published"],
            found["ours"],
            s=16,
            marker=MARKERS[index % len(MARKERS)],
            edgecolors=colour,
            facecolors=[to_rgba(colour, 0.7 if filled else 0.0) for filled in known],
            linewidths=0.8,
            label=f"{paper.split()[0]}, {table}",
        )
    both = np.concatenate([rows["published"], rows["ours"]])
    ends = np.array([both.min(), both.max()])
    axes.plot(ends, ends, color="0.4", lw=0.9, ls="--", zorder=0, label="equal")
    if unit == LOG10_P:
        for sideways in (False, True):
            figures.evidence_axis(axes, ends[1], sideways=sideways)
            figures.mark_level(axes, sideways=sideways).set(ls=":", label=None)
    elif unit == PERPLEXITY:
        axes.set(xscale="log", yscale="log")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter(ScalarFormatter())
        axes.minorticks_off()
    axes.set(xlabel="published", ylabel="ours")
    axes.set_title(figures.EVIDENCE if unit == LOG10_P else unit, fontsize="medium")
    axes.legend(fontsize="x-small", loc="best")
