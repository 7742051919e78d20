"""The figure of the canary sets: evidence against duplication count, as in Oren's Figure 2."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from contamination.audit.battery import TESTS
from contamination.results.figures import count_axis, mark_level
from contamination.results.tables import SIGNIFICANT


def plot_duplication_power(rows: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Draw log10 p of every set, and its mean, against the duplication count, by test.

    `rows` and `published` have columns dup_count, test and log10_p, and a panel each. The numbers
    of Oren's Figure 2 are not printed; `published` are those of Table 1.
    """
    figure, panels = plt.subplots(1, 2, figsize=(7.6, 3.9), sharey=True, width_ratios=(1.5, 1))
    for axes, table, title in zip(
        panels, (rows, published), ("This run", "Oren et al. (2024), Table 1"), strict=True
    ):
        shown = [test for test in TESTS.values() if (table["test"] == test.name).any()]
        for index, test in enumerate(shown):
            chosen = table[table["test"] == test.name]
            # Side by side, so that equal values of different tests stay visible.
            aside = 2.0 ** (0.09 * (index - (len(shown) - 1) / 2))
            x = chosen["dup_count"] * aside
            (line,) = axes.plot(x, chosen["log10_p"], test.marker, ms=5, alpha=0.85)
            line.set(color=test.colour, label=test.label)
            means = chosen.groupby("dup_count")["log10_p"].mean()
            axes.plot(means.index * aside, means, color=test.colour, lw=1, alpha=0.6)
        count_axis(axes, table["dup_count"])
        axes.set(xlabel="Duplication count")
        axes.set_title(title, fontsize="medium")
        axes.axhline(np.log10(SIGNIFICANT), color="0.35", lw=0.9, ls="--")
    panels[0].set_ylabel("log10 p")
    mark_level(panels[1])
    panels[0].legend(loc="lower left")
    return figure
