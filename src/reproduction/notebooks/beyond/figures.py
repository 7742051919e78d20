"""Figures of the tests beyond the paper: power per token, and calibration."""

import math

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from contamination.audit.registry import COMPARED, TESTS, variant_name
from reproduction.notebooks.beyond.calibration import P_VALUES
from reproduction.output.figures import EVIDENCE, MODEL_COLOURS, evidence_axis

# others are named as their test is
SCORES = {"sum": "all tokens", "heavy_tailed": "heavy tails"}
CORNERS = {"fewest": MODEL_COLOURS[1], "most": MODEL_COLOURS[0]}  # numbers of shards


def plot_power_per_token(table: pd.DataFrame) -> Figure:
    """Draw mean -log10 p against passes, by test: a panel per duplication count.

    `table` comes from `reproduction.notebooks.beyond.tables.summarise`. All panels have
    one scale.
    """
    whole = table[(table["fraction"] == 1.0)].sort_values("passes").fillna({"se_log10_p": 0.0})
    counts = sorted(whole["dup_count"].unique())
    across = min(4, len(counts))
    down = math.ceil(len(counts) / across)
    figure, grid = plt.subplots(
        down,
        across,
        figsize=(1.2 + 1.8 * across, 0.6 + 2.7 * down),
        sharex=True,
        sharey=True,
        squeeze=False,
    )
    most = -(whole["mean_log10_p"] - whole["se_log10_p"]).min()
    panels = list(grid.flat)
    for panel, count in zip(panels, counts, strict=False):
        _draw_costs(panel, whole[whole["dup_count"] == count])
        panel.set_title(f"Copies read: {count}", fontsize="medium")
        evidence_axis(panel, most)
        panel.set_xscale("log")
        panel.set_xticks([2, 5, 10, 25, 50], ["2", "5", "10", "25", "50"])
        panel.minorticks_off()
        panel.tick_params(labelbottom=True)
    figure.supxlabel("Tokens read (passes over the set)", fontsize="medium")
    figure.supylabel(f"Mean {EVIDENCE}", fontsize="medium")
    handles, labels = panels[0].get_legend_handles_labels()
    empty = panels[len(counts) :]
    for panel in empty:
        panel.axis("off")
    if empty:
        empty[0].legend(handles, labels, loc="center", fontsize="small")
    else:
        figure.legend(
            handles,
            labels,
            loc="outside upper center",
            ncols=3,
            fontsize="small",
        )
    return figure


def _draw_costs(panel: Axes, rows: pd.DataFrame) -> None:
    """Draw mean evidence, with its standard error, against cost: a line per test."""
    for name in COMPARED:
        test = TESTS[name]
        own = rows[rows["test"] == variant_name(test.name, test.b)]
        panel.errorbar(
            own["passes"],
            -own["mean_log10_p"],
            yerr=own["se_log10_p"],
            ms=4,
            lw=1,
            elinewidth=0.7,
            color=test.colour,
            marker=test.marker,
            ls=test.line,
            label=test.label,
        )


def plot_calibration(table: pd.DataFrame, alpha: float) -> Figure:
    """Draw rejection rates under the null at one level, with 95% intervals, by test.

    Drawn are the fewest and the most shards (colours) with the fewest and the most
    permutations (hollow and full); the table has every setting.
    """
    rows = table[np.isclose(table["alpha"], alpha)]
    names = list(dict.fromkeys(zip(rows["scores"], rows["test"], strict=True)))
    figure, axes = plt.subplots(figsize=(6.4, 0.38 * len(names) + 1.3))
    for line, (scores, test) in enumerate(names):
        own = rows[(rows["scores"] == scores) & (rows["test"] == test)]
        _draw_rates(axes, line, own)
    axes.axvline(alpha, color="0.35", lw=0.9, ls="--")
    named = SCORES | {name: test.label.lower() for name, test in TESTS.items()}
    labels = [f"{P_VALUES[test].label}: {named[scores]}" for scores, test in names]
    axes.set_yticks(range(len(names)), labels)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set(xlabel=f"Share of rejections at {alpha:g} (dashed)")
    shards = {"fewest": rows["shards"].min(), "most": rows["shards"].max()}
    permutations = {"white": rows["permutations"].min(), "0.35": rows["permutations"].max()}
    marks = []
    for kind, colour in CORNERS.items():
        label = f"shards: {shards[kind]}"
        marks.append(Line2D([], [], ls="", marker="s", color=colour, label=label))
    for face, count in permutations.items():
        label = f"permutations: {count}"
        marks.append(Line2D([], [], ls="", marker="o", color="0.35", mfc=face, label=label))
    figure.legend(handles=marks, loc="outside upper center", ncols=4, fontsize="small")
    return figure


def _draw_rates(axes: Axes, line: int, rows: pd.DataFrame) -> None:
    """Draw one test's rates on its line: extreme shards, and of each extreme permutations."""
    shards = {"fewest": rows["shards"].min(), "most": rows["shards"].max()}
    height = line - 0.24
    for kind, colour in CORNERS.items():
        if kind == "fewest" and shards["fewest"] == shards["most"]:
            continue  # one number of shards is drawn once
        chosen = rows[rows["shards"] == shards[kind]].sort_values("permutations")
        for index in dict.fromkeys((0, len(chosen) - 1)):
            row = chosen.iloc[index]
            full = row["permutations"] == rows["permutations"].max()
            ends = [[row["rate"] - row["low"]], [row["high"] - row["rate"]]]
            face = colour if full else "white"
            axes.errorbar(
                row["rate"],
                height,
                xerr=ends,
                fmt="o",
                ms=4,
                lw=1,
                color=colour,
                mfc=face,
            )
            height += 0.16
