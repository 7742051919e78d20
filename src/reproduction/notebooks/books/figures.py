"""Figures of the audit of books: how well scores separate books, and the rate of each."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from contamination.membership.books import SCORES
from reproduction.notebooks.books.tables import AGAIN, ELSEWHERE, ONCE, TRUTHS, VALIDATIONS
from reproduction.notebooks.books.tables import UNREAD as UNREAD_BOOKS
from reproduction.output.figures import READ, UNREAD, draw_intervals

STYLES = {
    AGAIN: (READ, "o"),
    ONCE: ("#E69F00", "s"),
    UNREAD_BOOKS: (UNREAD, "^"),
    ELSEWHERE: ("#56B4E9", "v"),
}
# A validation has the colour of its unread books.
OF_VALIDATION = {label: STYLES[truth] for truth, label in VALIDATIONS.items()}


def plot_books(aucs: pd.DataFrame, table: pd.DataFrame, *, accused: float) -> Figure:
    """Draw the AUC of every score, and the contamination rate of every audited book by its truth.

    Above, AUCs (`Validation.aucs` with a column `validation`) with 95% intervals. Below, a point
    for each book and a bar at the mean; a dashed line at the rate above which a book is `accused`,
    a dotted one at the share of unread validation snippets that the threshold calls read.
    """
    kinds = list(dict.fromkeys(table["validation"]))
    truths = [truth for truth in TRUTHS if (table["truth"] == truth).any()]
    figure = plt.figure(figsize=(6.6, 5.5))
    grid = figure.add_gridspec(2, len(kinds), height_ratios=[0.32 * len(SCORES) + 0.3, 3])
    _draw_aucs(figure.add_subplot(grid[0, :]), aucs, kinds)
    for index, kind in enumerate(kinds):
        axes = figure.add_subplot(grid[1, index])
        _draw_rates(axes, table[table["validation"] == kind], truths, accused)
        axes.set_title(f"Unread: {kind}", fontsize="medium")
        axes.tick_params(labelleft=index == 0)
    figure.axes[1].set_ylabel("Snippets called read (%)")
    named = {"AUC: chance; rate: accused above": "--", "unread validation snippets": ":"}
    named |= {"mean of books": "-"}
    handles = [Line2D([], [], color="0.35", ls=ls, label=name) for name, ls in named.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize="small")
    return figure


def _draw_aucs(axes: Axes, aucs: pd.DataFrame, kinds: list[str]) -> None:
    for index, kind in enumerate(kinds):
        colour, marker = OF_VALIDATION[kind]
        rows = aucs[aucs["validation"] == kind].set_index("score").loc[list(SCORES)]
        y = np.arange(len(SCORES)) + 0.22 * (index - (len(kinds) - 1) / 2)
        style = {"fmt": marker, "color": colour, "ms": 5, "lw": 1.2, "label": kind}
        draw_intervals(axes, y, rows[["auc", "auc_low", "auc_high"]], sideways=True, **style)
    axes.axvline(0.5, color="0.35", lw=0.9, ls="--")
    axes.set_yticks(range(len(SCORES)), list(SCORES.values()))
    axes.invert_yaxis()
    axes.set(xlim=(None, 1.01), xlabel="AUC over the validation snippets")
    title = "Unread validation books"
    axes.figure.legend(title=title, loc="outside upper center", ncols=len(kinds), fontsize="small")


def _draw_rates(axes: Axes, table: pd.DataFrame, truths: list[str], accused: float) -> None:
    for place, truth in enumerate(truths):
        rates = 100 * np.sort(table.loc[table["truth"] == truth, "rate"])
        # Equal rates stand side by side, so that all of them are seen.
        _, first, count = np.unique(rates, return_index=True, return_counts=True)
        number = np.arange(len(rates)) - np.repeat(first + (count - 1) / 2, count)
        x = place + number * min(0.1, 0.7 / count.max())
        colour, marker = STYLES[truth]
        axes.plot(x, rates, marker, color=colour, ms=4.5, alpha=0.75)
        axes.plot([place - 0.34, place + 0.34], [rates.mean()] * 2, color=colour, lw=1.6)
    axes.axhline(100 * accused, color="0.35", lw=0.9, ls="--")
    axes.axhline(100 * table["validation_fpr"].iloc[0], color="0.35", lw=1.1, ls=":")
    axes.set_xticks(range(len(truths)), [truth.replace(" ", "\n") for truth in truths])
    axes.tick_params(axis="x", labelsize="small")
    axes.set(xlim=(-0.5, len(truths) - 0.5), ylim=(-4, 104))
    axes.grid(visible=False, axis="x")
