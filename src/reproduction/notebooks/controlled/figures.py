"""The figure of controlled contamination: AUC against size and count (Shi, Figure 5)."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from reproduction.notebooks.controlled import tables
from reproduction.output.figures import draw_intervals, score_style, short_count

PANELS = (  # experiment, contaminant, title, label of the horizontal axis
    (tables.SIZE, tables.OUTLIER, "a  Outliers", "Tokens read"),
    (tables.SIZE, tables.INSIDE, "b  In-distribution", "Tokens read"),
    (tables.COUNT, tables.OUTLIER, "c  Outliers", "Duplication count"),
)


def plot_controlled(table: pd.DataFrame, labels: Mapping[str, str]) -> Figure:
    """Draw the three panels of Figure 5, a line for each score of `labels`, outliers by their mean.

    Bars are 95% intervals, dashed lines the same score under the base model. A panel without data,
    as where no document was left out of the corpus, stays empty.
    """
    figure, panels = plt.subplots(1, 3, figsize=(8.2, 3.2), sharey=True)
    for axes, (experiment, contaminant, title, label) in zip(panels, PANELS, strict=True):
        rows = table[(table["experiment"] == experiment) & (table["contaminant"] == contaminant)]
        if contaminant == tables.OUTLIER:
            rows = rows[rows["dataset"] == tables.MEAN]
        key = tables.VARIED[experiment]
        values = sorted(rows.loc[rows["model"] == tables.TRAINED, key].unique())
        rows = rows.assign(x=rows[key].map({value: i for i, value in enumerate(values)}))
        for index, score in enumerate(labels):
            shift = 0.1 * (index - (len(labels) - 1) / 2)  # scores stand side by side
            style, own = score_style(score), rows[rows["score"] == score].sort_values("x")
            one, base = own[own["model"] == tables.TRAINED], own[own["model"] == tables.BASE]
            aucs = one[["auc", "auc_low", "auc_high"]]
            draw_intervals(axes, one["x"] + shift, aucs, ms=4.5, lw=1.2, elinewidth=0.8, **style)
            before = {"color": style["color"], "lw": 0.9, "ls": "--"}
            if len(base) == 1:  # one model before all of them
                axes.axhline(base["auc"].item(), **before)
            else:  # other texts at every duplication count
                axes.plot(base["x"], base["auc"], **before)
        axes.axhline(0.5, color="0.35", lw=0.9, ls=":")
        axes.set_xticks(range(len(values)), [short_count(value) for value in values])
        axes.set(title=title, xlabel=label)
    panels[0].set_ylabel("AUC")
    handles = [Line2D([], [], label=label, **score_style(score)) for score, label in labels.items()]
    for name, ls in (("before training", "--"), ("chance", ":")):
        handles.append(Line2D([], [], color="0.35", ls=ls, label=name))
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), fontsize="small")
    return figure
