"""Figures that only the seminar has, in the style and colours of the report."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from contamination.audit.battery import TESTS
from contamination.statistics import dkw_band, ecdf
from reproduction.output.figures import MODEL_COLOURS, READ, UNREAD

COLOURS = {"clean": UNREAD, "contaminated": READ}
STYLES = ("-", "--", ":", "-.")


def plot_differences(log_probs: Mapping[str, np.ndarray]) -> Figure:
    """Draw s_i of every shard, with the mean over shards; `log_probs` (r, m+1) by model."""
    figure, panels = _panels(len(log_probs), sharey=True)
    for axes, (model, values) in zip(panels, log_probs.items(), strict=True):
        s = values[:, 0] - values[:, 1:].mean(axis=1)
        axes.bar(np.arange(1, len(s) + 1), s, color=COLOURS[model], alpha=0.75)
        axes.axhline(0, color="0.35", lw=0.8)
        axes.axhline(s.mean(), color="black", lw=1.2, ls="--", label="mean")
        axes.set(title=f"{model} model", xlabel="Shard")
        axes.legend(fontsize="small")
    panels[0].set_ylabel("$s_i$ (nats)")
    return figure


def plot_successors(matrices: Mapping[str, np.ndarray]) -> Figure:
    """Draw centred successor scores of one shard; canonical successors are framed.

    `matrices` (k, k) in nats, NaN on the diagonal, by model.
    """
    figure, panels = _panels(len(matrices), sharey=True)
    largest = max(float(np.nanmax(np.abs(matrix))) for matrix in matrices.values())
    for axes, (model, matrix) in zip(panels, matrices.items(), strict=True):
        image = axes.imshow(matrix, cmap="PuOr", vmin=-largest, vmax=largest)
        first = np.arange(len(matrix) - 1)
        axes.plot(first + 1, first, "s", ms=9, mfc="none", mec="black", mew=1.2)
        axes.set(title=f"{model} model", xlabel="Example b")
        axes.grid(False)
    panels[0].set_ylabel("Example a")
    figure.colorbar(image, ax=panels, label="log p(b after a), centred (nats)", shrink=0.8)
    return figure


def plot_calibration(p_values: pd.DataFrame, level: float = 0.95) -> Figure:
    """Draw the empirical law of p-values under H0, one column each, and the band around uniform."""
    figure, axes = plt.subplots()
    band, grid = dkw_band(len(p_values), level), np.linspace(0, 1, 101)
    low, high = (np.clip(grid + side, 0, 1) for side in (-band, band))
    axes.fill_between(grid, low, high, color="0.85", label=f"uniform, {level:.0%} band")
    for index, column in enumerate(p_values):
        test = TESTS.get(column)
        label = test.label if test else column
        colour = test.colour if test else MODEL_COLOURS[index % len(MODEL_COLOURS)]
        x, y = ecdf(p_values[column])
        style = STYLES[index % len(STYLES)]
        axes.step([0, *x], [0, *y], where="post", ls=style, color=colour, label=label, lw=1.4)
    axes.set(xlabel="p", ylabel="Share of p-values at or below", xlim=(0, 1), ylim=(0, 1))
    axes.legend(loc="lower right")
    return figure


def _panels(count: int, *, sharey: bool = False) -> tuple[Figure, list[Axes]]:
    size = (3.6 * count, 3.2)
    figure, panels = plt.subplots(1, count, figsize=size, sharey=sharey, squeeze=False)
    return figure, list(panels[0])
