"""The figure of controlled contamination: AUC against size and count (Shi, Figure 5)."""

import math
from collections.abc import Mapping

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from reproduction.notebooks.controlled import tables
from reproduction.output.figures import draw_aucs, score_style

PANELS = (  # experiment, contaminant, title, label of the horizontal axis
    (tables.SIZE, tables.OUTLIER, "a  Outliers, by size", "Tokens read"),
    (tables.SIZE, tables.INSIDE, "b  In-distribution, by size", "Tokens read"),
    (tables.COUNT, tables.OUTLIER, "c  Outliers, by copies", "Copies read"),
)


def plot_controlled(table: pd.DataFrame, labels: Mapping[str, str]) -> Figure:
    """Draw the three panels of Figure 5: a line for each score of `labels`.

    Bars are 95% intervals, dashed lines the same score under the base model. A panel
    without data, as where no document was left out of the corpus, stays empty.
    """
    figure, panels = plt.subplots(1, 3, figsize=(6.6, 3.2), sharey=True)
    for axes, panel in zip(panels, PANELS, strict=True):
        experiment, contaminant, title, label = panel
        rows = table[(table["experiment"] == experiment) & (table["contaminant"] == contaminant)]
        if contaminant == tables.OUTLIER:
            rows = rows[rows["dataset"] == tables.MEAN]
        key = tables.VARIED[experiment]
        trained = rows["model"] == tables.TRAINED
        values = draw_aucs(axes, rows[trained], key, labels)
        for score in labels:
            base = rows[~trained & (rows["score"] == score)].sort_values(key)
            colour = score_style(score)["color"]
            if len(base) == 1:  # one model before all of them
                axes.axhline(base["auc"].item(), color=colour, lw=0.9, ls="--")
            else:  # other texts at every duplication count
                axes.plot(
                    base[key].map(values.index),
                    base["auc"],
                    color=colour,
                    lw=0.9,
                    ls="--",
                )
        axes.set(title=title, xlabel=label)
    panels[0].set_ylabel("AUC")
    handles, _ = panels[0].get_legend_handles_labels()
    handles.append(Line2D([], [], color="0.35", ls="--", label="before training"))
    figure.legend(
        handles=handles,
        loc="outside upper center",
        ncols=math.ceil(len(handles) / 2),
        fontsize="small",
    )
    return figure
