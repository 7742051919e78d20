"""Evidence against what it depends on: log10 p by duplication count, shards or permutations.

How Figures 2 and 3 of Oren are averaged and drawn, for every experiment that has such numbers.
"""

from collections.abc import Iterable, Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from contamination.audit.battery import Test
from contamination.tables import SIGNIFICANT
from reproduction.output.figures import count_axis, mark_level


def mean_log10_p(rows: pd.DataFrame, setting: str) -> pd.DataFrame:
    """Mean log10 p over sets (each set's replicates first), by setting and test."""
    by_set = rows.groupby([setting, "test", "dataset"], as_index=False)["log10_p"].mean()
    grouped = by_set.groupby([setting, "test"], as_index=False)["log10_p"]
    table = grouped.mean().rename(columns={"log10_p": "mean_log10_p"})
    table["datasets"] = grouped.size()["size"]
    return pd.DataFrame(table)


def draw_ablation(
    axes: Axes, table: pd.DataFrame, rows: pd.DataFrame, setting: str, tests: Iterable[Test]
) -> None:
    """Draw mean log10 p against a setting, by test, with the single sets behind (Oren, Figure 3).

    `table` comes from `mean_log10_p` of the `rows`.
    """
    for test in tests:
        single = rows[rows["test"] == test.name]
        for _, group in single.groupby("dataset"):
            line = group.groupby(setting)["log10_p"].mean()
            axes.plot(line.index, line, color=test.colour, lw=0.7, alpha=0.35)
        chosen = table[table["test"] == test.name]
        if len(chosen):
            (line,) = axes.plot(chosen[setting], chosen["mean_log10_p"], label=test.label)
            line.set(marker=test.marker, color=test.colour)
    count_axis(axes, table[setting])


def plot_power(panels: Mapping[str, pd.DataFrame], tests: Iterable[Test]) -> Figure:
    """Draw the mean log10 p of the sets of each duplication count, by test, over single sets.

    As Oren's Figure 2, side by side for each of the `panels`: title -> rows with columns dup_count,
    test and log10_p. Points are single sets.
    """
    width = 0.4 + 3.6 * len(panels)
    figure, all_axes = plt.subplots(1, len(panels), figsize=(width, 3.9), squeeze=False)
    for axes, (title, table) in zip(all_axes[0], panels.items(), strict=True):
        shown = [test for test in tests if (table["test"] == test.name).any()]
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
    all_axes[0][0].set_ylabel("log10 p")
    mark_level(all_axes[0][-1])
    all_axes[0][-1].legend(loc="lower left")  # free, since evidence grows to the right
    return figure
