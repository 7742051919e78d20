"""The figure of the canary sets: evidence against duplication count (Oren, Figure 2)."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from contamination.audit.battery import TESTS
from contamination.results.figures import count_axis, mark_level
from contamination.results.tables import SIGNIFICANT

FEW = 7  # the largest duplication count of Oren's Figure 2


def plot_duplication_power(rows: pd.DataFrame) -> Figure:
    """Draw the mean log10 p of the sets of each duplication count, by test, over single sets.

    `rows` have columns dup_count, test and log10_p. On the left the counts up to 7, as in Oren's
    Figure 2, on the right all of them. Points are single sets.
    """
    figure, panels = plt.subplots(1, 2, figsize=(7.6, 3.9))
    few = rows[rows["dup_count"] <= FEW]
    for axes, table, title in zip(
        panels, (few, rows), (f"Up to {FEW} copies", "All duplication counts"), strict=True
    ):
        shown = [test for test in TESTS.values() if (table["test"] == test.name).any()]
        for index, test in enumerate(shown):
            chosen = table[table["test"] == test.name]
            # Side by side, so that equal values of different tests stay visible.
            aside = 2.0 ** (0.09 * (index - (len(shown) - 1) / 2))
            x = chosen["dup_count"] * aside
            axes.plot(x, chosen["log10_p"], test.marker, ms=4, color=test.colour, alpha=0.4)
            means = chosen.groupby("dup_count")["log10_p"].mean()
            (line,) = axes.plot(means.index * aside, means, marker=test.marker, ms=6, lw=1.4)
            line.set(color=test.colour, label=test.label)
        count_axis(axes, table["dup_count"])
        axes.set(xlabel="Duplication count")
        axes.set_title(title, fontsize="medium")
        axes.axhline(np.log10(SIGNIFICANT), color="0.35", lw=0.9, ls="--")
    panels[0].set_ylabel("log10 p")
    mark_level(panels[1])
    panels[1].legend(loc="lower left")  # free, since evidence grows to the right
    return figure
