"""Figures of the tests beyond the paper: power per token, and calibration under the null."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from contamination.audit.battery import COMPARED, TESTS, variant_name
from contamination.tables import SIGNIFICANT
from reproduction.notebooks.beyond.tables import P_VALUES
from reproduction.output.figures import draw_intervals

SCORES = {"sum": "all tokens", "heavy_tailed": "heavy tails"}  # others are named as their test is


def plot_power_per_token(table: pd.DataFrame) -> Figure:
    """Draw mean log10 p against passes over the set, by test, a panel per duplication count.

    `table` comes from `reproduction.notebooks.beyond.tables.summarise`.
    """
    counts = sorted(table["dup_count"].unique())
    columns = min(4, len(counts))
    height = -(-len(counts) // columns)
    figure, axes = plt.subplots(
        height, columns, figsize=(2.1 * columns + 0.8, 2.0 * height + 0.9), sharex=True
    )
    panels = np.atleast_1d(axes).ravel()
    for panel, count in zip(panels, counts, strict=False):
        for test in map(TESTS.__getitem__, COMPARED):
            name = variant_name(test.name, test.b)
            rows = table[(table["dup_count"] == count) & (table["test"] == name)]
            whole = rows[rows["fraction"] == 1.0].sort_values("passes")
            panel.errorbar(
                whole["passes"],
                whole["mean_log10_p"],
                yerr=whole["se_log10_p"].fillna(0.0),
                color=test.colour,
                marker=test.marker,
                ms=4,
                lw=1,
                elinewidth=0.7,
                label=test.label,
            )
        panel.axhline(np.log10(SIGNIFICANT), color="0.35", lw=0.8, ls="--")
        panel.set_xscale("log")
        panel.set_xticks([2, 5, 10, 25, 50], ["2", "5", "10", "25", "50"])
        panel.minorticks_off()
        panel.set_title(f"Duplication count {count}", fontsize="medium")
    for panel in panels[len(counts) :]:
        panel.set_visible(False)
    for panel in panels[max(0, len(counts) - columns) : len(counts)]:
        panel.tick_params(labelbottom=True)  # also where nothing stands below
    figure.supxlabel("Tokens read, in passes over the set", fontsize="medium")
    figure.supylabel("Mean log10 p", fontsize="medium")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=5, fontsize="small")
    return figure


def plot_calibration(table: pd.DataFrame, alpha: float) -> Figure:
    """Draw rejection rates under the null at one level, with 95% intervals, by test and shards."""
    rows = table[np.isclose(table["alpha"], alpha)]
    names = list(dict.fromkeys(zip(rows["scores"], rows["test"], strict=True)))
    shards = sorted(rows["shards"].unique())
    figure, axes = plt.subplots(figsize=(6.4, 0.42 * len(names) + 1.4))
    shades = plt.get_cmap("viridis")(np.linspace(0.05, 0.8, len(shards)))
    for level, shade in zip(shards, shades, strict=True):
        for line, (scores, test) in enumerate(names):
            chosen = rows[(rows["scores"] == scores) & (rows["test"] == test)]
            chosen = chosen[chosen["shards"] == level]
            middle = line + 0.2 * (shards.index(level) - (len(shards) - 1) / 2)
            height = middle + np.linspace(-0.07, 0.07, len(chosen))
            style = {"color": shade, "label": f"{level} shards" if line == 0 else None}
            rates = chosen[["rate", "low", "high"]]
            draw_intervals(axes, height, rates, sideways=True, fmt="o", ms=2.5, lw=0.8, **style)
    axes.axvline(alpha, color="0.35", lw=0.9, ls="--")
    named = SCORES | {name: test.label.lower() for name, test in TESTS.items()}
    labels = [f"{P_VALUES[test][0]}: {named[scores]}" for scores, test in names]
    axes.set_yticks(range(len(names)), labels)
    axes.invert_yaxis()
    axes.set(xlabel=f"Share of null trials rejected at {alpha:g}")
    figure.legend(loc="outside upper center", ncols=4, fontsize="small")
    return figure
