"""Figures: one style everywhere, written as SVG and PNG.

Also log10 p against what it depends on, averaged and drawn as in Figures 2 and 3 of
Oren, for every experiment that has such numbers.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D

from contamination.audit.registry import TESTS, Test
from contamination.files import replacing
from contamination.tables import SIGNIFICANT
from reproduction.output.frames import show_frames
from reproduction.output.line_labels import label_ends

# Tol's muted colours, for models and settings: none of them is the colour of a test.
MODEL_COLOURS = (
    "#332288",
    "#CC6677",
    "#117733",
    "#88CCEE",
    "#999933",
    "#AA4499",
    "#DDCC77",
)
EVIDENCE = "−log10 p"  # what every axis of evidence shows
LITTLE = 4  # -log10 p up to which such an axis is linear
TICKS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)  # of other axes of evidence
# of the distance of two values, over which scores of a value stand side by side
SPREAD = 0.5
# Inches that a mark of a key takes with its margins, and each letter beside it.
KEY_MARK = 0.5
KEY_LETTER = 0.062
WIDEST = 6.6  # inches: at the width of a page, and of a slide, its text stays readable
READ = "#222222"  # contaminated models and members
UNREAD = "#999999"  # clean models and non-members
# Membership scores by family; the first four are drawn with tests and have none of
# their colours.
SCORES = {
    "loss": ("#009E73", "o"),
    "zlib": ("#56B4E9", "s"),
    "min_k": ("#E69F00", "^"),
    "min_k_pp": ("#000000", "v"),
    "lowercase": ("#CC79A7", "P"),
    "neighbour": ("#0072B2", "D"),
    "reference_difference": ("#D55E00", "X"),
}


def use_style() -> None:
    """Set fonts, sizes and colours for all figures, and how notebooks show tables.

    SVG output is made reproducible.
    """
    show_frames()
    own = {
        "figure.figsize": (6.0, 3.8),
        "figure.constrained_layout.use": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.linewidth": 0.4,
        "grid.alpha": 0.5,
        "legend.frameon": False,
        "savefig.facecolor": "white",
        "svg.hashsalt": "contamination",
    }
    sns.set_theme(
        context="paper",
        style="ticks",
        font="DejaVu Sans",
        font_scale=1.05,
        rc=own,
    )


def save_figure(figure: Figure, results: Path | str, name: str) -> None:
    """Write `results/figures/<name>.svg` and `.png`, no wider than keeps its text readable.

    Parameters
    ----------
    figure
        The figure.
    results
        Directory of the run's results.
    name
        Name of the files, without an ending.
    """
    figure.set_figwidth(min(figure.get_figwidth(), WIDEST))
    for suffix, varying in {"svg": "Date", "png": "Software"}.items():
        with replacing(Path(results) / "figures" / f"{name}.{suffix}") as temporary:
            figure.savefig(temporary, dpi=160, metadata={varying: None})


def say_nothing(reason: str) -> Figure:
    """Return a figure that says why a run has nothing to draw."""
    figure, axes = plt.subplots(figsize=(6.0, 1.2))
    axes.axis("off")
    axes.text(0.5, 0.5, reason, ha="center", va="center", color="0.35")
    return figure


def panel_row(
    titles: Iterable[str],
    size: tuple[float, float],
    **shared: Any,
) -> tuple[Figure, list[Axes]]:
    """Return a figure with a panel for each title, side by side; `shared` are sharex and sharey.

    Parameters
    ----------
    titles
        Titles of the panels, from left to right.
    size
        Size of the figure, in inches.
    shared
        Sharex and sharey of `subplots`.
    """
    names = list(titles)
    figure, panels = plt.subplots(1, len(names), figsize=size, squeeze=False, **shared)
    for axes, name in zip(panels[0], names, strict=True):
        axes.set_title(name, fontsize="medium")
    return figure, list(panels[0])


def score_style(score: str) -> dict[str, Any]:
    """Return colour and marker of a column of membership scores."""
    family = score if score in SCORES else score.rpartition("_")[0]
    colour, marker = SCORES[family]
    return {"color": colour, "marker": marker}


def draw_aucs(
    axes: Axes,
    rows: pd.DataFrame,
    x: str,
    labels: Mapping[str, str],
) -> list[float]:
    """Draw the AUC of every score, with its interval, at each value of a column; return the values.

    Values stand equally far apart, between thin lines, and scores of a value side by
    side, so that intervals do not hide each other. Chance is dotted.

    Parameters
    ----------
    axes
        Axes to draw in.
    rows
        Rows with the columns score, auc, auc_low, auc_high and that of `x`.
    x
        Name of the column.
    labels
        Score -> its name in the key.
    """
    rows = rows.dropna(subset=x)
    values = sorted(rows[x].unique())
    for index, (score, label) in enumerate(labels.items()):
        own = rows[rows["score"] == score].sort_values(x)
        aside = SPREAD * ((index + 0.5) / len(labels) - 0.5)
        places = own[x].map(values.index) + aside
        ends = [own["auc"] - own["auc_low"], own["auc_high"] - own["auc"]]
        axes.errorbar(
            places,
            own["auc"],
            ends,
            ms=4.5,
            lw=1.2,
            elinewidth=0.8,
            label=label,
            **score_style(score),
        )
    axes.axhline(0.5, color="0.35", lw=0.9, ls=":", label="chance")
    axes.set_xticks(range(len(values)), [short_count(value) for value in values])
    # The scores of a single value stay a group, and do not look like several values.
    margin = 0.5 if len(values) > 1 else 1.5
    axes.set_xlim(-margin, len(values) - 1 + margin)
    axes.grid(axis="x", visible=False)
    for place in range(len(values) - 1):
        axes.axvline(place + 0.5, color="0.8", lw=0.6)
    return values


def key_columns(labels: Iterable[str], width: float) -> int:
    """Return the number of columns of small text, 4 at most, in which a key fits `width` inches."""
    longest = max(map(len, labels), default=0)
    column = KEY_MARK + KEY_LETTER * longest
    return int(np.clip(width // column, 1, 4))


def short_count(value: float) -> str:
    """Write 4.3M for 4,300,000 and 30k for 30,000; below a thousand the number as it is."""
    for size, unit in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:g}"


def count_axis(axes: Axes, values: Iterable[int]) -> None:
    """Make the horizontal axis logarithmic, with a tick for each distinct count."""
    ticks = sorted(set(values))
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()


def mark_level(axes: Axes, *, sideways: bool = False) -> Line2D:
    """Draw the level of significance on an axis of evidence, and return the line for a key."""
    draw_line = axes.axvline if sideways else axes.axhline
    label = f"p = {SIGNIFICANT}"
    return draw_line(-np.log10(SIGNIFICANT), color="0.35", lw=0.9, ls="--", label=label)


def evidence_axis(axes: Axes, most: float, *, sideways: bool = False) -> Line2D:
    """Make an axis one of evidence up to `most`: -log10 p, which grows upwards or to the right.

    Its scale is linear near 0 and logarithmic far from it, without a break (arsinh), so
    that the level, whose line is returned, and the strongest evidence can both be read.
    It is linear throughout if the strongest evidence is little more.

    Parameters
    ----------
    axes
        Axes of the panel.
    most
        Largest -log10 p that is drawn.
    sideways
        Whether evidence grows to the right.
    """
    axis = axes.xaxis if sideways else axes.yaxis
    set_scale = axes.set_xscale if sideways else axes.set_yscale
    set_limits = axes.set_xlim if sideways else axes.set_ylim
    if most <= LITTLE:
        top = 1.15 * max(most, 2)
        axis.set_ticks(range(int(top) + 1))
    else:
        top = 1.15 * most
        set_scale("asinh", linear_width=1.0)
        shown = [tick for tick in TICKS if tick < top]
        axis.set_ticks(shown, [str(tick) for tick in shown])
        axes.minorticks_off()
    set_limits(-0.1, top)
    return mark_level(axes, sideways=sideways)


# --- evidence against what it depends on ----------------------------------------------


def mean_log10_p(rows: pd.DataFrame, setting: str) -> pd.DataFrame:
    """Return the mean log10 p over sets (each set's replicates first), by setting and test."""
    by_set = rows.groupby([setting, "test", "dataset"], as_index=False)["log10_p"].mean()
    grouped = by_set.groupby([setting, "test"], as_index=False)
    return grouped.agg(mean_log10_p=("log10_p", "mean"), datasets=("log10_p", "size"))


def plot_settings(
    panels: Mapping[str, pd.DataFrame],
    setting: str,
    label: str,
) -> Figure:
    """Draw mean -log10 p against a setting, by test, with the single sets behind (Oren, Figure 3).

    Parameters
    ----------
    panels
        Title -> rows with columns dataset, test, log10_p and that of the setting.
    setting
        The column of the horizontal axis.
    label
        Label of that axis.
    """
    size = (5.0, 3.4)
    if len(panels) > 1:
        size = (1.4 + 3.6 * len(panels), 4.2)
    figure, row = panel_row(panels, size=size)
    for axes, rows in zip(row, panels.values(), strict=True):
        means = []
        for test in TESTS.values():
            chosen = rows[rows["test"] == test.name]
            if len(chosen):
                means.append(_draw_setting(axes, chosen, setting, test))
        count_axis(axes, rows[setting])
        axes.set(xlabel=label)
        evidence_axis(axes, -rows["log10_p"].min())
    row[0].set_ylabel(EVIDENCE)
    label_ends(row[-1], means)
    thin = [Line2D([], [], color=line.get_color(), lw=0.7, alpha=0.5) for line in means]
    _key(figure, {"single sets": tuple(thin)})
    return figure


def _draw_setting(axes: Axes, rows: pd.DataFrame, setting: str, test: Test) -> Line2D:
    """Draw a thin line for each set and a thick one for their mean, which is returned."""
    for _, group in rows.groupby("dataset"):
        evidence = -group.groupby(setting)["log10_p"].mean()
        axes.plot(evidence.index, evidence, color=test.colour, lw=0.7, alpha=0.35)
    means = mean_log10_p(rows, setting)
    evidence = -means["mean_log10_p"]
    (line,) = axes.plot(
        means[setting],
        evidence,
        marker=test.marker,
        color=test.colour,
        ls=test.line,
    )
    line.set_label(test.label)
    return line


def _key(figure: Figure, marks: Mapping[str, Line2D | tuple[Line2D, ...]]) -> None:
    """Put the level and further marks above the panels.

    A tuple stands for several colours.
    """
    level = next(line for line in figure.axes[-1].lines if line.get_linestyle() == "--")
    handles: list[Any] = [level, *marks.values()]
    labels = [str(level.get_label()), *marks]
    figure.legend(
        handles,
        labels,
        handler_map={tuple: HandlerTuple(ndivide=None)},
        loc="outside upper center",
        ncols=4,
        fontsize="small",
    )


def plot_power(
    panels: Mapping[str, pd.DataFrame], tests: Iterable[Test], *, one_scale: bool = False
) -> Figure:
    """Draw the mean -log10 p of the sets of each duplication count, by test, over single sets.

    As Oren's Figure 2, panels side by side. Points are single sets.

    Parameters
    ----------
    panels
        Title -> rows with columns dup_count, test and log10_p. With a column
        floor_log10_p, the least that a test can give for a set, points that have
        reached it are hollow.
    tests
        The tests that are drawn.
    one_scale
        Whether all panels have the same axis of evidence.
    """
    figure, row = panel_row(panels, size=(1.4 + 3.6 * len(panels), 4.2))
    tests = list(tests)
    most_of_all = max(-table["log10_p"].min() for table in panels.values())
    for axes, table in zip(row, panels.values(), strict=True):
        means = []
        for test in tests:
            chosen = table[table["test"] == test.name]
            if len(chosen):
                means.append(_draw_counts(axes, chosen, test))
        count_axis(axes, table["dup_count"])
        axes.set(xlabel="Copies read")
        evidence_axis(axes, most_of_all if one_scale else -table["log10_p"].min())
    row[0].set_ylabel(EVIDENCE)
    label_ends(row[-1], means)
    marks = {"single sets": _point("0.5")}
    if any("floor_log10_p" in table for table in panels.values()):
        marks["at the least p of its test"] = _point("white")
    _key(figure, marks)
    return figure


def _point(face: str) -> Line2D:
    return Line2D([], [], ls="", marker="o", ms=4, color="0.5", mfc=face)


def _draw_counts(axes: Axes, rows: pd.DataFrame, test: Test) -> Line2D:
    """Draw a point for each set and a line for the means of the counts, which is returned."""
    evidence = -rows["log10_p"]
    reached = np.zeros(len(rows), dtype=bool)
    if "floor_log10_p" in rows:
        reached = np.isclose(rows["log10_p"], rows["floor_log10_p"])
    faces = np.where(reached, "white", test.colour)
    points = axes.scatter(
        rows["dup_count"],
        evidence,
        s=22,
        marker=test.marker,
        zorder=3,
    )
    points.set(facecolors=faces, edgecolors=test.colour, alpha=0.5)
    means = evidence.groupby(rows["dup_count"]).mean()
    (line,) = axes.plot(means.index, means, color=test.colour, lw=1.4, ls=test.line)
    line.set_label(test.label)
    return line
