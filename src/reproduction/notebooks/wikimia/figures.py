"""Figure 2 of Shi et al.: AUC against the size of the model and the length of texts."""

from textwrap import fill

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from contamination.scoring.status import OK
from reproduction.notebooks.wikimia.measure import SCORES
from reproduction.notebooks.wikimia.texts import CONTROL, ORIGINAL, READ_HERE
from reproduction.output.figures import draw_aucs

BAND = "Read by nobody"
TITLE = 36  # letters that the width of a panel holds


def plot_wikimia(
    table: pd.DataFrame,
    *,
    source: str,
    length: int,
    family: str = "",
) -> Figure:
    """Draw the AUC of every score: left by size of the model, right by length of the texts.

    Original texts of the benchmark `source` are drawn, under the models whose names
    start with `family`: on the left texts of `length` words, on the right the largest
    model. Bars are 95% intervals, grey bars go from the lowest to the highest AUC of
    the control.

    Parameters
    ----------
    table
        The table of the notebook.
    source
        Name of the benchmark.
    length
        Words of the texts on the left.
    family
        Beginning of the names of the models.
    """
    rows = table[(table["status"] == OK) & (table["variant"] == ORIGINAL)]
    unread = CONTROL if source == READ_HERE else f"{CONTROL} ({source})"
    drawn = rows[(rows["source"] == source) & rows["model"].str.startswith(family)]
    control = rows[rows["source"] == unread]
    figure, (left, right) = plt.subplots(1, 2, figsize=(6.6, 3.6), sharey=True)
    _draw_panel(
        left,
        _of_length(drawn, length),
        _of_length(control, length),
        "parameters",
    )
    largest = _of_largest_model(drawn)
    _draw_panel(right, largest, _of_largest_model(control), "length")
    left.set(
        xlabel="Parameters of the model",
        ylabel="AUC",
        title=f"Texts of {length} words",
    )
    names = ", ".join(largest["model"].unique())
    right.set(xlabel="Words of a text", title=fill(f"Largest model ({names})", TITLE))
    handles, _ = right.get_legend_handles_labels()
    figure.legend(handles=handles, loc="outside upper center", ncols=4, fontsize="small")
    return figure


def _of_length(rows: pd.DataFrame, length: int) -> pd.DataFrame:
    return rows[rows["length"] == length]


def _of_largest_model(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["parameters"] == rows["parameters"].max()]


def _draw_panel(axes: Axes, rows: pd.DataFrame, control: pd.DataFrame, x: str) -> None:
    if rows.empty:
        axes.annotate("not run here", (0.5, 0.5), xycoords="axes fraction", ha="center")
        return
    present = {score: label for score, label in SCORES.items() if (rows["score"] == score).any()}
    values = draw_aucs(axes, rows, x, present)
    band = control[control[x].isin(values)].groupby(x)["auc"].agg(["min", "max"])
    if len(band):
        places = [values.index(value) for value in band.index]
        height = band["max"] - band["min"]
        axes.bar(
            places,
            height,
            bottom=band["min"],
            color="0.85",
            lw=0,
            zorder=0,
            label=BAND,
        )
