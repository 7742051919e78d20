"""Figure: ours against published, a panel for each unit."""

import pandas as pd
from matplotlib.figure import Figure

from contamination.scoring.status import OK
from reproduction.notebooks.papers.measure import LOG10_P, PERPLEXITY
from reproduction.output import figures


def plot_papers(rows: pd.DataFrame) -> Figure:
    """Draw every measured number of `compare`, a marker for each published table.

    On the dashed line both are equal. Without a measured number the figure says so.
    """
    done = rows[rows["status"] == OK]
    if done.empty:
        return figures.say_nothing("no cell was measured")
    units = dict(list(done.groupby("unit", sort=False)))
    figure, panels = figures.panel_row(units, size=(3.2 * len(units), 4.2))
    for axes, (unit, of_unit) in zip(panels, units.items(), strict=True):
        sign = -1 if unit == LOG10_P else 1
        for (paper, table), part in of_unit.groupby(["paper", "table"], sort=False):
            published = sign * part["published"]
            ours = sign * part["ours"]
            axes.plot(
                published,
                ours,
                "o",
                ms=4,
                alpha=0.7,
                label=f"{paper.split()[0]}, {table}",
            )
        ends = sign * of_unit[["published", "ours"]].stack().agg(["min", "max"])
        axes.plot(ends, ends, color="0.4", lw=0.9, ls="--", zorder=0, label="equal")
        if unit == LOG10_P:
            for sideways in (False, True):
                level = figures.evidence_axis(axes, ends.max(), sideways=sideways)
                level.set(ls=":", label=None)
            axes.set_title(figures.EVIDENCE)
        elif unit == PERPLEXITY:
            axes.set(xscale="log", yscale="log")
        axes.set(xlabel="Published", ylabel="Ours")
        axes.legend(fontsize="x-small", loc="best")
    return figure
