"""Figures of MMLU: the law of p-values (Oren, Figure 4), and both segmentations."""

import itertools
from collections.abc import Iterable, Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from contamination.audit.registry import TESTS
from contamination.statistics import dkw_band, ecdf
from contamination.tables import format_p
from reproduction.notebooks.mmlu.measure import BASELINE, title
from reproduction.output.figures import (
    EVIDENCE,
    MODEL_COLOURS,
    WIDEST,
    evidence_axis,
    key_columns,
    panel_row,
)

LINES = 1.1  # per record, from which on a subset is drawn


def plot_ecdf(
    panels: Mapping[str, Mapping[str, ArrayLike]],
    of: str = "subsets",
) -> Figure:
    """Draw ECDFs of p-values against the uniform law with its 95% DKW band (Oren, Figure 4).

    `panels` give what each panel is called, and its p-values by the name of their
    curve. A curve without a p-value is left out, and a panel without a curve. Curves of
    one name have one colour in all panels, and a test has its own. The band, of
    simultaneous coverage, is that of the panel's shortest curve, so it is wide enough
    for all.
    """
    drawn = {}
    for name, curves in panels.items():
        kept = {label: values for label, values in curves.items() if np.size(values)}
        if kept:
            drawn[name] = kept
    labels = dict.fromkeys(itertools.chain.from_iterable(drawn.values()))
    colours = _curve_colours(labels)
    figure, row = panel_row(drawn, size=(0.6 + 3.0 * len(drawn), 4.2), sharey=True)
    marks: dict[str, Artist] = {}
    for axes, curves in zip(row, drawn.values(), strict=True):
        _draw_uniform(axes, fewest=min(map(np.size, curves.values())))
        for label, values in curves.items():
            x, height = ecdf(values)
            axes.step(
                [0, *x, 1],
                [0, *height, 1],
                where="post",
                color=colours[label],
                label=label,
            )
        axes.set_xlabel("p-value")
        handles, names = axes.get_legend_handles_labels()
        marks |= dict(zip(names, handles, strict=True))
    row[0].set_ylabel(f"Share of {of}")
    # One key for all panels: a curve has the same colour in each.
    figure.legend(
        marks.values(),
        marks,
        loc="outside upper center",
        ncols=key_columns(marks, min(figure.get_figwidth(), WIDEST)),
        fontsize="small",
    )
    return figure


def _curve_colours(labels: Iterable[str]) -> dict[str, str]:
    """Return the colour of each curve: that of its test if it names one, else the next one."""
    of_tests = {test.label: test.colour for test in TESTS.values()}
    others = itertools.cycle(MODEL_COLOURS)
    colours = {}
    for label in labels:
        test_label = label.partition(",")[0]  # without the way in which p is computed
        colours[label] = of_tests.get(test_label) or next(others)
    return colours


def plot_segmentations(lines: pd.DataFrame) -> Figure:
    """Draw -log10 p by record and by line: a panel for each model and test.

    Subsets are those that the paper excludes, in bold, and those with records on
    several lines: the more lines, the further up. `lines` comes from `line_table`, and
    is not empty.
    """
    excluded = lines["excluded_in_paper"].fillna(False).astype(bool)
    rows = lines[excluded | (lines["lines_per_record"] >= LINES)]
    height = rows.groupby("subset")["lines_per_record"].first().sort_values(kind="stable")
    free = rows.drop_duplicates(["subset", "segmentation"])
    panels = {BASELINE: free.assign(log10_p=free["compressor_log10_p"])}
    for (model, test), tested in rows.groupby(["model", "test"], sort=False):
        panels[f"{model}, {TESTS[test].label.lower()}"] = tested
    size = (2.8 + 2.4 * len(panels), 0.24 * len(height) + 1.3)
    figure, row = panel_row(panels, size=size, sharex=True, sharey=True)
    at = np.arange(len(height))
    most = -min(tested["log10_p"].min() for tested in panels.values())
    for panel, tested in zip(row, panels.values(), strict=True):
        wide = -tested.pivot(index="subset", columns="segmentation", values="log10_p")
        wide = wide.reindex(height.index)
        panel.hlines(at, wide["record"], wide["line"], color="0.7", lw=1)
        panel.plot(
            wide["record"],
            at,
            "o",
            color=MODEL_COLOURS[1],
            mfc="white",
            label="record",
        )
        panel.plot(wide["line"], at, "o", color=MODEL_COLOURS[0], label="line")
        panel.set(xlabel=EVIDENCE)
        evidence_axis(panel, most, sideways=True)
    labels = [f"{title(name)} ({lines_each:.1f})" for name, lines_each in height.items()]
    row[0].set_yticks(at, labels)
    row[0].set_ylabel("Subset (lines per record)")
    bold = set(rows.loc[excluded, "subset"])
    for label, name in zip(row[0].get_yticklabels(), height.index, strict=True):
        label.set_fontweight("bold" if name in bold else "normal")
    figure.legend(
        *row[0].get_legend_handles_labels(),
        loc="outside upper center",
        ncols=3,
    )
    return figure


# --- one subset -----------------------------------------------------------------------

KINDS = {  # of `subset.p_values_of`: what readers call it, and its colour
    "published": ("published", MODEL_COLOURS[1]),
    "control": ("published, a control", "#000000"),
    "measured": ("measured", MODEL_COLOURS[0]),
}


def plot_subset(rows: pd.DataFrame) -> Figure:
    """Draw the p-value of every model on one axis, with the level.

    `rows` come from `reproduction.notebooks.mmlu.subset.p_values_of`. Hollow: this
    model's rule excludes the subset.
    """
    height = 0.9 + 0.26 * len(rows)
    figure, axes = plt.subplots(figsize=(6.4, height))
    for kind, (_, colour) in KINDS.items():
        own = rows[rows["kind"] == kind]
        faces = np.where(own["excluded"], "white", colour)
        evidence = -own["log10_p"]
        axes.scatter(evidence, own.index, c=faces, edgecolors=colour, zorder=3)
        for line, value in evidence.items():
            text = format_p(10.0**-value, -value)
            place = (value, line)
            axes.annotate(
                text,
                place,
                (7, 0),
                textcoords="offset points",
                va="center",
                size="small",
            )
    axes.set_yticks(range(len(rows)), rows["curve"])
    axes.invert_yaxis()
    axes.set_xlabel(EVIDENCE)
    evidence_axis(axes, -rows["log10_p"].min(), sideways=True)
    axes.set_xlim(right=1.6 * axes.get_xlim()[1])  # room for the text of the last point
    marks = [_circle(label, colour, colour) for label, colour in KINDS.values()]
    marks.append(_circle("excluded", "0.35", "white"))
    figure.legend(handles=marks, loc="outside upper center", ncols=4, fontsize="small")
    return figure


def _circle(label: str, colour: str, face: str) -> Line2D:
    return Line2D([], [], ls="", marker="o", color=colour, mfc=face, label=label)


def plot_places(audited: pd.DataFrame, places: pd.DataFrame) -> Figure:
    """Draw the ECDF of every audited model, and one subset's place on it.

    `audited` comes from `MmluEvidence.audited`, `places` from `subset.places_of`. A hollow
    circle: the subset is not among those of this curve.
    """
    figure, axes = plt.subplots(figsize=(6.4, 4.2))
    kept = audited[~audited["excluded"]]
    _draw_uniform(axes, fewest=int(kept.groupby("curve").size().min()))
    curves = dict(list(kept.groupby("curve", sort=False)))
    for (curve, p_values), colour in zip(curves.items(), MODEL_COLOURS, strict=False):
        x, heights = ecdf(10.0 ** p_values["log10_p"])
        axes.step(
            [0, *x, 1],
            [0, *heights, 1],
            where="post",
            color=colour,
            lw=1,
            label=curve,
        )
        for place in places[places["curve"] == curve].itertuples():
            face = colour if place.kept else "white"
            share = place.rank / place.subsets
            axes.plot(
                10.0**place.log10_p,
                share,
                "o",
                ms=8,
                color=colour,
                mfc=face,
                zorder=4,
            )
    axes.set(xlabel="p-value", ylabel="Share of kept subsets")
    columns = key_columns(curves, figure.get_figwidth())
    figure.legend(loc="outside upper center", ncols=columns, fontsize="small")
    return figure


def _draw_uniform(axes: Axes, fewest: int) -> None:
    """Draw the uniform law and the band of 95% for a curve of so few values."""
    grid = np.array([0.0, 1.0])
    width = dkw_band(fewest, 0.95)
    axes.fill_between(
        grid,
        grid - width,
        grid + width,
        color="0.88",
        lw=0,
        label="95% band of uniform p",
    )
    axes.plot(grid, grid, color="0.4", lw=1, ls="--", label="uniform")
    axes.set(xlim=(0, 1), ylim=(0, 1))
