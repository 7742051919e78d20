"""The two charts of the explorer as figures, for the notebook."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from contamination.audit.battery import TESTS
from contamination.report.explorer.outcomes import Outcome

SIZE = (4.2, 2.6)  # two of them stand side by side in JupyterLab


def plot_null(outcome: Outcome) -> Figure:
    """Draw the null distribution, and the published order as a line."""
    figure, axes = plt.subplots(figsize=SIZE)
    null, colour = outcome.null, TESTS[outcome.test].colour
    edges = np.linspace(null.low, null.high, len(null.counts) + 1)
    axes.stairs(null.counts / null.counts.sum(), edges, fill=True, color="0.7")
    axes.axvline(outcome.canonical, color=colour, lw=2)
    axes.set_title(f"published order: {outcome.canonical:.2f}", fontsize="medium", loc="left")
    axes.set(xlabel="t" if outcome.test == "sharded_t" else "z", ylabel="Share of orders")
    return figure


def plot_by_shard(outcome: Outcome) -> Figure:
    """Draw the evidence of each shard as a bar, and their mean as a dashed line."""
    figure, axes = plt.subplots(figsize=SIZE)
    values, colour = outcome.by_shard, TESTS[outcome.test].colour
    axes.bar(np.arange(1, len(values) + 1), values, color=colour)
    axes.axhline(0, color="0.35", lw=0.8)
    axes.axhline(values.mean(), color="black", lw=1, ls="--")
    axes.set_title(f"mean: {values.mean():.2f}", fontsize="medium", loc="left")
    label = "z-score" if outcome.unit == "z" else "Difference (nats)"
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set(xlabel="Shard", ylabel=label)
    return figure
