"""The figure of the audit of unlearning: what the ratio finds, and what is still brought back."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reproduction.output.figures import READ, UNREAD

MODELS = {"original": READ, "unlearned": "#009E73", "clean": UNREAD}
PROBES = {"completion": "Rest of a chunk", "answers": "Answer to a question"}
CHUNKS = {False: ("Left alone", "#E69F00", "o"), True: ("To be forgotten", "#CC79A7", "s")}


def plot_unlearning(table: pd.DataFrame, *, window: float) -> Figure:
    """Draw the ratio of every chunk, and the mean recall of suspicious and other chunks by model.

    A column `treated` colours the chunks above; shaded, the `window` of ratios in which a chunk is
    suspicious. Below, means over the suspicious chunks are filled, over the others hollow, with 95%
    intervals (1.96 standard errors).
    """
    models = [name for name in MODELS if f"completion_{name}" in table]
    probes = {name: label for name, label in PROBES.items() if f"{name}_{models[0]}" in table}
    figure = plt.figure(figsize=(6.6, 5.2))
    grid = figure.add_gridspec(2, len(probes), height_ratios=[1, 1.1])
    _draw_ratios(figure.add_subplot(grid[0, :]), table, window)
    for index, (probe, label) in enumerate(probes.items()):
        axes = figure.add_subplot(grid[1, index])
        for place, model in enumerate(models):
            _draw_means(axes, table, f"{probe}_{model}", place, MODELS[model])
        axes.set_xticks(range(len(models)), map(str.capitalize, models), fontsize="small")
        # Means are below 1, their intervals may not be.
        axes.set(xlim=(-0.5, len(models) - 0.5), ylim=(-0.05, 1.16), yticks=np.linspace(0, 1, 6))
        axes.set_title(label, fontsize="medium")
        axes.grid(visible=False, axis="x")
    figure.axes[1].set_ylabel("Mean ROUGE-L recall")
    axes.legend(loc="upper right", fontsize="small")
    return figure


def _draw_ratios(axes: Axes, table: pd.DataFrame, window: float) -> None:
    ordered = table.sort_values("ratio", kind="stable").reset_index(drop=True)
    axes.axhspan(1 / window, window, color="0.88", zorder=0, label="Suspicious")
    for treated, (label, colour, marker) in CHUNKS.items():
        rows = ordered[ordered["treated"] == treated]
        axes.plot(rows.index + 1, rows["ratio"], marker, color=colour, label=label, ms=4.5)
    axes.set_yscale("log")
    low, high = np.floor(np.log2(ordered["ratio"].min())), np.ceil(np.log2(ordered["ratio"].max()))
    ticks = 2.0 ** np.arange(min(low, -1), max(high, 1) + 1)
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set(xlabel="Chunks, by their ratio", ylabel="Ratio of Min-K%")
    axes.legend(loc="upper left", fontsize="small")


def _draw_means(axes: Axes, table: pd.DataFrame, column: str, place: int, colour: str) -> None:
    for side, (suspicious, label) in enumerate(((True, "Suspicious"), (False, "Other chunks"))):
        values = table.loc[table["suspicious"] == suspicious, column].dropna()
        if len(values):
            error = 1.96 * values.sem() if len(values) > 1 else None
            style: dict[str, Any] = {"fmt": "o^"[side], "color": colour, "ms": 6}
            style |= {"mfc": colour if suspicious else "white"}
            style |= {"label": label if place == 0 else None}
            axes.errorbar(place + 0.18 * (2 * side - 1), values.mean(), yerr=error, **style)
