"""Figures of the ablations: mean log10 p against a setting (Oren, Figure 3)."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from contamination.audit.battery import TESTS
from contamination.results.figures import count_axis, mark_level


def plot_ablation(table: pd.DataFrame, rows: pd.DataFrame, setting: str, label: str) -> Figure:
    """Draw mean log10 p against a setting, by test, with the single sets behind (Figure 3)."""
    figure, axes = plt.subplots()
    for test in TESTS.values():
        single = rows[rows["test"] == test.name]
        for _, group in single.groupby("dataset"):
            line = group.groupby(setting)["log10_p"].mean()
            axes.plot(line.index, line, color=test.colour, lw=0.7, alpha=0.35)
        chosen = table[table["test"] == test.name]
        if len(chosen):
            (line,) = axes.plot(chosen[setting], chosen["mean_log10_p"], label=test.label)
            line.set(marker=test.marker, color=test.colour)
    count_axis(axes, table[setting])
    axes.set(xlabel=label, ylabel="log10 p")
    mark_level(axes)
    axes.legend(loc="lower left")
    return figure
