"""The figure of controlled contamination: AUC against size and occurrences (Shi, Figure 5)."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from contamination.experiments.controlled.contaminants import INSIDE, OUTLIER
from contamination.experiments.controlled.contamination import BASE, TRAINED
from contamination.experiments.controlled.plan import SIZE, TIMES
from contamination.experiments.controlled.results import MEAN, VARIED
from contamination.results.figures import score_style, short_count

PANELS = (  # experiment, contaminant, title, label of the horizontal axis
    (SIZE, OUTLIER, "a  Outliers", "Tokens read"),
    (SIZE, INSIDE, "b  In-distribution", "Tokens read"),
    (TIMES, OUTLIER, "c  Outliers", "Occurrences"),
)


def plot_controlled(table: pd.DataFrame, labels: Mapping[str, str]) -> Figure:
    """Draw the three panels of Figure 5, a line for each score.

    Bars are 95% intervals, dashed lines the same score under the base model, dotted chance. A panel
    without data, as where no document was left out of the corpus, stays empty.

    Parameters
    ----------
    table : of `contamination.experiments.controlled.results.auc_table`; outliers are shown by their
        mean.
    labels : score -> what the legend calls it.
    """
    figure, panels = plt.subplots(1, 3, figsize=(8.2, 3.2), sharey=True)
    for axes, (experiment, contaminant, title, label) in zip(panels, PANELS, strict=True):
        rows = table[(table["experiment"] == experiment) & (table["contaminant"] == contaminant)]
        if contaminant == OUTLIER:
            rows = rows[rows["dataset"] == MEAN]
        values = sorted(rows.loc[rows["model"] == TRAINED, VARIED[experiment]].unique())
        for index, score in enumerate(labels):
            shift = 0.1 * (index - (len(labels) - 1) / 2)
            one = rows[rows["score"] == score]
            _draw(axes, one, experiment, values, score_style(score), shift)
        axes.axhline(0.5, color="0.35", lw=0.9, ls=":")
        axes.set_xticks(range(len(values)), [short_count(value) for value in values])
        axes.set(title=title, xlabel=label)
    panels[0].set_ylabel("AUC")
    handles = [
        Line2D([], [], color=score_style(score)[1], marker=score_style(score)[2], label=label)
        for score, label in labels.items()
    ]
    handles.append(Line2D([], [], color="0.35", ls="--", label="before training"))
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), fontsize="small")
    return figure


def _draw(
    axes: Axes,
    rows: pd.DataFrame,
    experiment: str,
    values: list[float],
    style: tuple[str, str, str],
    shift: float,
) -> None:
    """Draw one score: a line with intervals, side by side with the others, and its control."""
    place = {value: i for i, value in enumerate(values)}
    key, (_, colour, marker) = VARIED[experiment], style
    trained = rows[rows["model"] == TRAINED].sort_values(key)
    errors = [trained["auc"] - trained["auc_low"], trained["auc_high"] - trained["auc"]]
    x = trained[key].map(place) + shift
    axes.errorbar(
        x,
        trained["auc"],
        errors,
        color=colour,
        marker=marker,
        ms=4.5,
        lw=1.2,
        elinewidth=0.8,
    )
    base = rows[rows["model"] == BASE]
    if len(base) == 1:  # one model before all of them
        axes.axhline(base["auc"].item(), color=colour, lw=0.9, ls="--")
    else:  # other texts at every number of occurrences
        base = base.sort_values(key)
        axes.plot(base[key].map(place), base["auc"], color=colour, lw=0.9, ls="--")
