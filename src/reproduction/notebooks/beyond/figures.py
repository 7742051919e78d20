"""Figures of the tests beyond the paper: power per token, and calibration under the null."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from contamination.audit.battery import COMPARED, TESTS, variant_name
from reproduction.notebooks.beyond.tables import P_VALUES
from reproduction.output.figures import EVIDENCE, evidence_axis

SCORES = {"sum": "all tokens", "heavy_tailed": "heavy tails"}  # others are named as their test is


def plot_power_per_token(table: pd.DataFrame) -> Figure:
    """Draw mean -log10 p against passes over the set, by test, a panel per duplication count.

    `table` comes from `reproduction.notebooks.beyond.tables.summarise`. All panels have one scale.
    """
    whole = table[(table["fraction"] == 1.0)].sort_values("passes").fillna({"se_log10_p": 0.0})
    wrap = min(4, whole["dup_count"].nunique())
    size = {"height": 2.9, "aspect": max(0.75, 1.8 / wrap)}  # the key needs the width of two
    with plt.rc_context({"figure.constrained_layout.use": False}):  # seaborn brings its own
        grid = sns.FacetGrid(whole, col="dup_count", col_wrap=wrap, **size)
    for count, panel in grid.axes_dict.items():
        for test in map(TESTS.__getitem__, COMPARED):
            name = variant_name(test.name, test.b)
            rows = whole[(whole["dup_count"] == count) & (whole["test"] == name)]
            style = {"color": test.colour, "marker": test.marker, "label": test.label}
            at = (rows["passes"], -rows["mean_log10_p"])
            panel.errorbar(*at, yerr=rows["se_log10_p"], ms=4, lw=1, elinewidth=0.7, **style)
        evidence_axis(panel, -(whole["mean_log10_p"] - whole["se_log10_p"]).min())
        panel.set_xscale("log")
        panel.set_xticks([2, 5, 10, 25, 50], ["2", "5", "10", "25", "50"])
        panel.minorticks_off()
    grid.set_titles("Duplication count {col_name}", size="medium")
    figure: Figure = grid.figure
    figure.set_layout_engine("constrained")
    figure.supxlabel("Tokens read, in passes over the set", fontsize="medium")
    figure.supylabel(f"Mean {EVIDENCE}", fontsize="medium")
    handles, labels = panel.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, fontsize="small")
    return figure


def plot_calibration(table: pd.DataFrame, alpha: float) -> Figure:
    """Draw rejection rates under the null at one level, with 95% intervals, by test and shards.

    The points of a number of shards are those of the permutations, fewest on top.
    """
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
            rates = chosen["rate"]
            ends = [rates - chosen["low"], chosen["high"] - rates]
            axes.errorbar(rates, height, xerr=ends, fmt="o", ms=2.5, lw=0.8, **style)
    axes.axvline(alpha, color="0.35", lw=0.9, ls="--", label=f"level {alpha:g}")
    named = SCORES | {name: test.label.lower() for name, test in TESTS.items()}
    labels = [f"{P_VALUES[test][0]}: {named[scores]}" for scores, test in names]
    axes.set_yticks(range(len(names)), labels)
    axes.invert_yaxis()
    axes.set(xlabel=f"Share of null trials rejected at {alpha:g}")
    counts = ", ".join(map(str, sorted(rows["permutations"].unique())))
    title = f"points of one colour, from top to bottom: {counts} permutations"
    figure.legend(title=title, loc="outside upper center", ncols=5, fontsize="small")
    return figure
