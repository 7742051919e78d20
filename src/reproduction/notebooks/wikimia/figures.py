"""The figure of Shi et al., Figure 2: AUC against the size of the model and the length of texts."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from contamination.scoring.status import OK
from reproduction.notebooks.wikimia.measure import CONTROL, ORIGINAL, READ_HERE, SCORES
from reproduction.output.figures import draw_intervals, score_style, short_count

SPREAD = 0.06  # octaves between neighbouring scores, so that intervals do not hide each other

BAND = "Read by nobody"


def plot_wikimia(table: pd.DataFrame, *, source: str, length: int, family: str = "") -> Figure:
    """Draw the AUC of every score: left by size of the model, right by length of the texts.

    Original texts of the benchmark `source` are drawn, under the models whose names start with
    `family`: on the left texts of `length` words, on the right the largest model. Bars are 95%
    intervals, the grey band goes from the lowest to the highest AUC of the control.
    """
    rows = table[(table["status"] == OK) & (table["variant"] == ORIGINAL)]
    unread = CONTROL if source == READ_HERE else f"{CONTROL} ({source})"
    drawn, control = (rows[rows["source"] == name] for name in (source, unread))
    drawn = drawn[drawn["model"].str.startswith(family)]
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.6), sharey=True)
    measured, chance = (side[side["length"] == length] for side in (drawn, control))
    _draw_panel(left, measured, chance, "parameters")
    measured, chance = (
        side[side["parameters"] == side["parameters"].max()] for side in (drawn, control)
    )
    _draw_panel(right, measured, chance, "length")
    left.set(xlabel="Parameters of the model", ylabel="AUC", title=f"{length} words")
    right.set(xlabel="Words of a text", title=f"Model {', '.join(measured['model'].unique())}")
    handles, _ = right.get_legend_handles_labels()
    if handles:
        handles.sort(key=lambda handle: handle.get_label() == BAND)  # the band comes last
        figure.legend(handles=handles, loc="outside upper center", ncols=4, fontsize="small")
    return figure


def _draw_panel(axes: Axes, rows: pd.DataFrame, control: pd.DataFrame, x: str) -> None:
    if rows.empty:
        axes.annotate("not run here", (0.5, 0.5), xycoords="axes fraction", ha="center")
        return
    present = [score for score in SCORES if (rows["score"] == score).any()]
    for index, score in enumerate(present):
        one = rows[rows["score"] == score].sort_values(x)
        place = one[x].to_numpy(dtype=float) * 2 ** (SPREAD * (index - (len(present) - 1) / 2))
        style = score_style(score) | {"label": SCORES[score]}
        aucs = one[["auc", "auc_low", "auc_high"]]
        draw_intervals(axes, place, aucs, ms=4.5, lw=1.2, elinewidth=0.7, **style)
    if len(control):
        band = control.groupby(control[x].astype(float))["auc"].agg(["min", "max"])
        places = band.index.to_numpy()
        if len(places) == 1:  # a band needs a width
            places, band = places[0] * pd.Series([0.8, 1.25]).to_numpy(), pd.concat([band, band])
        axes.fill_between(
            places, band["min"], band["max"], color="0.85", lw=0, zorder=0, label=BAND
        )
    axes.axhline(0.5, color="0.35", lw=0.9, ls="--", label="chance")
    axes.set_xscale("log", base=2)
    ticks = sorted(rows[x].astype(float).unique())
    gaps = [
        f"no {SCORES[score]} at {short_count(tick)}"
        for score in present
        for tick in ticks
        if not ((rows["score"] == score) & (rows[x] == tick)).any()
    ]
    axes.annotate("; ".join(gaps), (0.02, 0.02), xycoords="axes fraction", fontsize="small")
    axes.set_xticks(ticks, [short_count(tick) for tick in ticks], minor=False)
    axes.minorticks_off()
