"""The figures of the seminar: the shards of a set, and the successors within one."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from reproduction.output.figures import READ, UNREAD, panel_row

COLOURS = {"clean": UNREAD, "contaminated": READ}


def plot_differences(log_probs: Mapping[str, np.ndarray]) -> Figure:
    """Draw s_i of every shard, with the mean over shards: a panel for each model.

    `log_probs` (nats) are (r, m+1) by model, canonical first.
    """
    titles = [f"{model} model" for model in log_probs]
    figure, panels = panel_row(titles, size=(3.6 * len(titles), 3.2), sharey=True)
    for axes, (model, values) in zip(panels, log_probs.items(), strict=True):
        s = values[:, 0] - values[:, 1:].mean(axis=1)
        axes.bar(np.arange(1, len(s) + 1), s, color=COLOURS[model], alpha=0.75)
        axes.axhline(s.mean(), color="black", lw=1.2, ls="--", label="mean")
        axes.set(xlabel="Shard", ylabel="$s_i$ (nats)")
        axes.legend(fontsize="small")
    return figure


def plot_successors(matrices: Mapping[str, np.ndarray]) -> Figure:
    """Draw centred successor scores of one shard; canonical successors are framed.

    `matrices` (k, k) in nats, NaN on the diagonal, by model.
    """
    titles = [f"{model} model" for model in matrices]
    figure, panels = panel_row(titles, size=(3.6 * len(titles), 3.2), sharey=True)
    largest = np.nanmax(np.abs(list(matrices.values())))
    for axes, matrix in zip(panels, matrices.values(), strict=True):
        image = axes.imshow(matrix, cmap="PuOr", vmin=-largest, vmax=largest)
        first = np.arange(len(matrix) - 1)
        axes.plot(first + 1, first, "s", ms=9, mfc="none", mec="black", mew=1.2)
        axes.set(xlabel="Example b", ylabel="Example a")
        axes.grid(False)
    figure.colorbar(
        image,
        ax=panels,
        label="log p(b after a), centred (nats)",
        shrink=0.8,
    )
    return figure
