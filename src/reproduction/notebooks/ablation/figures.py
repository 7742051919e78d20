"""Figures of the ablations: mean log10 p against a setting (Oren, Figure 3)."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from contamination.audit.battery import TESTS
from reproduction.output.evidence import draw_ablation
from reproduction.output.figures import mark_level


def plot_ablation(table: pd.DataFrame, rows: pd.DataFrame, setting: str, label: str) -> Figure:
    """Draw mean log10 p against a setting, by test, with the single sets behind (Figure 3)."""
    figure, axes = plt.subplots()
    draw_ablation(axes, table, rows, setting, TESTS.values())
    axes.set(xlabel=label, ylabel="log10 p")
    mark_level(axes)
    axes.legend(loc="lower left")
    return figure
