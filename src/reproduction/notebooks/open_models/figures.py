"""Figure of an audit: evidence by set and model, as Oren's Table 2 lists it."""

import itertools
from collections.abc import Iterable

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from contamination.audit.registry import TESTS
from reproduction.output.figures import (
    EVIDENCE,
    MODEL_COLOURS,
    READ,
    SPREAD,
    UNREAD,
    WIDEST,
    evidence_axis,
    key_columns,
    panel_row,
)

# Models differ in colour and in marker, so that print in grey still tells them apart.
TRAINED_HERE = {"contaminated": (READ, "D"), "clean": (UNREAD, "o")}
OTHERS = tuple(zip(MODEL_COLOURS, "^vsPX*h", strict=True))


def plot_open_models(rows: pd.DataFrame, alpha: float) -> Figure:
    """Draw -log10 p of every set (from top to bottom) and model, a panel for each test.

    A filled marker: p is at most `alpha` after Holm's correction. A bar of the same
    colour: what the paper prints. Cells without a p-value leave a gap.
    """
    sets = list(dict.fromkeys(rows["dataset"]))
    styles = _styles(dict.fromkeys(rows["model"]))
    tests = [test for test in TESTS if (rows["test"] == test).any()]
    size = (1.6 + 3.2 * len(tests), 1.5 + 0.24 * len(sets))
    labels = [TESTS[test].label for test in tests]
    figure, panels = panel_row(labels, size=size, sharex=True, sharey=True)
    rows = rows.assign(printed=-np.log10(rows["published_p"].astype(float)))
    most = np.nanmax([rows["printed"].max(), -rows["log10_p"].min()])
    for panel, test in zip(panels, tests, strict=True):
        tested = rows[rows["test"] == test]
        for index, (model, style) in enumerate(styles.items()):
            own = tested[tested["model"] == model]
            # Side by side, so that equal values of different models stay visible.
            aside = SPREAD * ((index + 0.5) / len(styles) - 0.5)
            heights = own["dataset"].map(sets.index) + aside
            _draw_model(panel, own, heights, style, alpha)
        panel.set_xlabel(EVIDENCE)
        level = evidence_axis(panel, most, sideways=True)
    panels[0].set_yticks(range(len(sets)), sets)
    panels[0].set_ylim(len(sets) - 0.5, -0.5)
    handles = []
    for model, (colour, marker) in styles.items():
        handles.append(_mark(model, colour, marker, face="white"))
    handles.append(_mark(f"Holm p ≤ {alpha:g}", "0.35", "o", face="0.35"))
    if rows["printed"].notna().any():
        handles.append(_mark("published", "0.35", "|", face="white"))
    handles.append(level)
    columns = key_columns([str(one.get_label()) for one in handles], min(size[0], WIDEST))
    figure.legend(
        handles=handles,
        loc="outside upper center",
        ncols=columns,
        fontsize="small",
    )
    return figure


def _styles(models: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return the colour and the marker of each model, by its name."""
    others = itertools.cycle(OTHERS)
    styles = {}
    for model in models:
        styles[model] = TRAINED_HERE.get(model) or next(others)
    return styles


def _draw_model(
    panel: Axes,
    rows: pd.DataFrame,
    heights: pd.Series,
    style: tuple[str, str],
    alpha: float,
) -> None:
    """Draw the evidence of one model in one test, and what the paper prints for it."""
    colour, marker = style
    faces = np.where(rows["holm_p"] <= alpha, colour, "white")
    points = panel.scatter(-rows["log10_p"], heights, s=22, marker=marker, zorder=3)
    points.set(edgecolors=colour, facecolors=faces, linewidths=1)
    printed = panel.scatter(rows["printed"], heights, s=60, marker="|", color=colour)
    printed.set(linewidths=1.2)


def _mark(label: str, colour: str, marker: str, *, face: str) -> Line2D:
    return Line2D(
        [],
        [],
        ls="",
        ms=5,
        label=label,
        color=colour,
        marker=marker,
        mfc=face,
    )
