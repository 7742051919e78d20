"""Figures of MMLU: the law of the p-values (Oren, Figure 4), and subsets by record and by line."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from contamination.audit.battery import TESTS
from contamination.statistics import dkw_band, ecdf
from reproduction.notebooks.mmlu.subsets import COMPRESSOR, title
from reproduction.output.figures import EVIDENCE, MODEL_COLOURS, evidence_axis, mark_level

LINES = 1.1  # per record, from which on a subset is drawn

Curves = Mapping[str, ArrayLike]  # name -> p-values


def plot_mmlu_ecdf(panels: Mapping[str, Curves], level: float = 0.95) -> Figure:
    """Draw ECDFs of p-values against the uniform law with its DKW band (Oren, Figure 4).

    `panels` give what each panel is called, and its curves. A curve without a p-value is left out,
    and a panel without a curve. The band, of simultaneous coverage `level`, is that of the shortest
    curve, so it is wide enough for all.
    """
    drawn = {
        name: {label: p for label, p in curves.items() if np.size(p)}
        for name, curves in panels.items()
    }
    drawn = {name: curves for name, curves in drawn.items() if curves}
    size = (1.4 + 3.8 * len(drawn), 4.4)
    figure, axes = plt.subplots(1, len(drawn), figsize=size, sharey=True, squeeze=False)
    for panel, (name, curves) in zip(axes[0], drawn.items(), strict=True):
        _draw_ecdf(panel, curves, level)
        panel.set(title=name, xlabel="p-value")
    axes[0, 0].set_ylabel("Share of subsets")
    return figure


def _draw_ecdf(axes: Axes, curves: Curves, level: float) -> None:
    width = dkw_band(min(np.size(values) for values in curves.values()), level)
    grid = np.array([0.0, 1.0])
    name = f"{level:.0%} band of uniform p"
    axes.fill_between(grid, grid - width, grid + width, color="0.88", label=name)
    axes.plot(grid, grid, color="0.4", lw=1, ls="--", label="uniform")
    for (name, values), colour in zip(curves.items(), MODEL_COLOURS, strict=False):
        x, height = ecdf(values)
        axes.step([0, *x, 1], [0, *height, 1], where="post", color=colour, label=name)
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.legend(loc="lower right", fontsize="small")


def plot_segmentations(lines: pd.DataFrame) -> Figure:
    """Draw -log10 p by record and by line, a panel for the compressor and for each model and test.

    Subsets are those that the paper excludes, in bold, and those with records on several lines: the
    more lines, the further up. `lines` comes from `line_table`, and is not empty.
    """
    excluded = lines["excluded_in_paper"].fillna(False).astype(bool)
    rows = lines[excluded | (lines["lines_per_record"] >= LINES)]
    height = rows.groupby("subset")["lines_per_record"].first().sort_values(kind="stable")
    free = rows.drop_duplicates(["subset", "segmentation"])
    panels = {COMPRESSOR.capitalize(): free.assign(log10_p=free["compressor_log10_p"])}
    panels |= {
        f"{model}, {TESTS[test].label.lower()}": found
        for (model, test), found in rows.groupby(["model", "test"], sort=False)
    }
    size = (2.8 + 2.4 * len(panels), 0.24 * len(height) + 1.3)
    figure, axes = plt.subplots(
        1, len(panels), figsize=size, sharex=True, sharey=True, squeeze=False
    )
    at, most = np.arange(len(height)), -min(found["log10_p"].min() for found in panels.values())
    for panel, (name, found) in zip(axes[0], panels.items(), strict=True):
        wide = -found.pivot(index="subset", columns="segmentation", values="log10_p")
        wide = wide.reindex(height.index)
        panel.hlines(at, wide["record"], wide["line"], color="0.7", lw=1)
        panel.plot(wide["record"], at, "o", color=MODEL_COLOURS[0], mfc="white", label="record")
        panel.plot(wide["line"], at, "o", color=MODEL_COLOURS[1], label="line")
        mark_level(panel, sideways=True)
        panel.set(title=name, xlabel=EVIDENCE)
        evidence_axis(panel, most, sideways=True)
    names = [f"{title(name)} ({lines_each:.1f})" for name, lines_each in height.items()]
    axes[0, 0].set_yticks(at, names)
    axes[0, 0].set_ylabel("Subset (lines per record)")
    bold = set(rows.loc[excluded, "subset"])
    for label, name in zip(axes[0, 0].get_yticklabels(), height.index, strict=True):
        label.set_fontweight("bold" if name in bold else "normal")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure
