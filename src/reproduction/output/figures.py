"""Figures: one style everywhere, written as SVG and PNG.

Also log10 p against what it depends on, averaged and drawn as in Figures 2 and 3 of Oren, for every
experiment that has such numbers.
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
from matplotlib.lines import Line2D

from contamination.audit.battery import TESTS, Test
from contamination.files import replacing
from contamination.tables import SIGNIFICANT

MODEL_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9")
EVIDENCE = "−log10 p"  # what every axis of evidence shows
LINEAR = 2  # -log10 p up to which such an axis is linear, if it is logarithmic beyond
BREAK = ((-1.0, -0.6), (1.0, 0.6))
WIDEST = 7.6  # inches: its smallest text, 8.4 points, has 7 on the report's pages
READ = "#D55E00"  # contaminated models and members
UNREAD = "#0072B2"  # clean models and non-members
# Membership scores by family; the first four stand beside tests and have none of their colours.
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
    """Set fonts, sizes and colours for all figures, and make SVG output reproducible."""
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
    sns.set_theme(context="paper", style="ticks", font="DejaVu Sans", font_scale=1.05, rc=own)


def save_figure(figure: Figure, results: Path | str, name: str) -> None:
    """Write `results/figures/<name>.svg` and `.png`, no wider than keeps its text readable."""
    figure.set_figwidth(min(figure.get_figwidth(), WIDEST))
    for suffix, varying in {"svg": "Date", "png": "Software"}.items():
        with replacing(Path(results) / "figures" / f"{name}.{suffix}") as temporary:
            figure.savefig(temporary, dpi=160, metadata={varying: None})


def say_nothing(reason: str) -> Figure:
    """Return the figure of a run that has nothing to draw, which says why."""
    figure, axes = plt.subplots(figsize=(6.0, 1.2))
    axes.axis("off")
    axes.text(0.5, 0.5, reason, ha="center", va="center", color="0.35")
    return figure


def panel_row(
    titles: Iterable[str], size: tuple[float, float], **shared: Any
) -> tuple[Figure, list[Axes]]:
    """Return a figure with a panel for each title, side by side; `shared` are sharex and sharey."""
    names = list(titles)
    figure, panels = plt.subplots(1, len(names), figsize=size, squeeze=False, **shared)
    for axes, name in zip(panels[0], names, strict=True):
        axes.set_title(name, fontsize="medium")
    return figure, list(panels[0])


def score_style(score: str) -> dict[str, Any]:
    """Return colour and marker of a column of membership scores, as matplotlib takes them."""
    family = score if score in SCORES else score.rpartition("_")[0]
    colour, marker = SCORES[family]
    return {"color": colour, "marker": marker}


def draw_aucs(axes: Axes, rows: pd.DataFrame, x: str, labels: Mapping[str, str]) -> list[float]:
    """Draw the AUC of every score, with its interval, at each value of a column; return the values.

    Values stand equally far apart, and scores of a value side by side, so that intervals do not
    hide each other. Chance is dotted.

    Parameters
    ----------
    axes : to draw in.
    rows : with columns score, auc, auc_low, auc_high and that of `x`.
    x : name of the column.
    labels : score -> its name in the key.
    """
    rows = rows.dropna(subset=x)
    values = sorted(rows[x].unique())
    middle = (len(labels) - 1) / 2
    for index, (score, label) in enumerate(labels.items()):
        own = rows[rows["score"] == score].sort_values(x)
        places = own[x].map(values.index) + 0.1 * (index - middle)
        below = own["auc"] - own["auc_low"]
        above = own["auc_high"] - own["auc"]
        axes.errorbar(
            places,
            own["auc"],
            [below, above],
            ms=4.5,
            lw=1.2,
            elinewidth=0.8,
            label=label,
            **score_style(score),
        )
    axes.axhline(0.5, color="0.35", lw=0.9, ls=":", label="chance")
    axes.set_xticks(range(len(values)), [short_count(value) for value in values])
    return values


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

    The axis is linear up to `LINEAR`, where its line is broken, and logarithmic beyond: the level,
    whose line is returned, and the strongest evidence can both be read. It is linear throughout if
    the strongest evidence is little more.

    Parameters
    ----------
    axes : whose vertical axis is set.
    most : the strongest evidence, -log10 p.
    sideways : whether the horizontal axis is set instead.
    """
    top = 1.3 * max(most, LINEAR)
    set_limits = axes.set_xlim if sideways else axes.set_ylim
    set_ticks = axes.set_xticks if sideways else axes.set_yticks
    if most <= 2 * LINEAR:
        set_limits(-0.15, top)
        set_ticks(range(int(top) + 1))
        return mark_level(axes, sideways=sideways)
    set_scale = axes.set_xscale if sideways else axes.set_yscale
    set_scale("symlog", linthresh=LINEAR)
    ticks = [tick for tick in _evidence_ticks() if tick < top]
    set_ticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    set_limits(-0.15, top)
    _draw_break(axes, sideways=sideways)
    return mark_level(axes, sideways=sideways)


def _evidence_ticks() -> list[int]:
    """Return 0, 1, 2, 5, 10, 20, 50 and so on: the ticks of an axis that becomes logarithmic."""
    ticks = [0]
    for exponent in range(5):
        ticks += [10**exponent, 2 * 10**exponent, 5 * 10**exponent]
    return ticks


def _draw_break(axes: Axes, *, sideways: bool) -> None:
    """Draw two slashes across the line of the axis where it becomes logarithmic."""
    if sideways:
        x = [LINEAR]
        y = [0]
        marker = BREAK[::-1]
        across = axes.get_xaxis_transform()
    else:
        x = [0]
        y = [LINEAR]
        marker = BREAK
        across = axes.get_yaxis_transform()
    axes.plot(
        x,
        y,
        marker=marker,
        transform=across,
        ls="",
        ms=9,
        color="0.15",
        clip_on=False,
        zorder=9,
    )


# --- evidence against what it depends on ----------------------------------------------------------


def mean_log10_p(rows: pd.DataFrame, setting: str) -> pd.DataFrame:
    """Return the mean log10 p over sets (each set's replicates first), by setting and test."""
    by_set = rows.groupby([setting, "test", "dataset"], as_index=False)["log10_p"].mean()
    grouped = by_set.groupby([setting, "test"], as_index=False)
    return grouped.agg(mean_log10_p=("log10_p", "mean"), datasets=("log10_p", "size"))


def plot_settings(panels: Mapping[str, pd.DataFrame], setting: str, label: str) -> Figure:
    """Draw mean -log10 p against a setting, by test, with the single sets behind (Oren, Figure 3).

    Parameters
    ----------
    panels : title -> rows with columns dataset, test, log10_p and that of the setting.
    setting : the column of the horizontal axis.
    label : of that axis.
    """
    size = (6.0, 4.0)
    if len(panels) > 1:
        size = (0.4 + 3.6 * len(panels), 4.2)
    figure, axes_of_panels = panel_row(panels, size=size)
    for axes, rows in zip(axes_of_panels, panels.values(), strict=True):
        means = mean_log10_p(rows, setting)
        for test in TESTS.values():
            for _, group in rows[rows["test"] == test.name].groupby("dataset"):
                of_set = -group.groupby(setting)["log10_p"].mean()
                axes.plot(of_set.index, of_set, color=test.colour, lw=0.7, alpha=0.35)
            own = means[means["test"] == test.name]
            if len(own):
                (line,) = axes.plot(own[setting], -own["mean_log10_p"], label=test.label)
                line.set(marker=test.marker, color=test.colour)
        count_axis(axes, means[setting])
        axes.set(xlabel=label)
        mark_level(axes)
    axes_of_panels[0].set_ylabel(EVIDENCE)
    _key(figure, Line2D([], [], color="0.35", lw=0.7, alpha=0.5, label="single sets"))
    return figure


def _key(figure: Figure, single: Line2D) -> None:
    """Put the tests, the level and what single sets are drawn as above the panels."""
    handles, _ = figure.axes[-1].get_legend_handles_labels()
    handles = [*handles, single]
    figure.legend(handles=handles, loc="outside upper center", ncols=4, fontsize="small")


def plot_power(panels: Mapping[str, pd.DataFrame], tests: Iterable[Test]) -> Figure:
    """Draw the mean -log10 p of the sets of each duplication count, by test, over single sets.

    As Oren's Figure 2, side by side for each of the `panels`: title -> rows with columns dup_count,
    test and log10_p. Points are single sets.
    """
    tests = list(tests)
    figure, axes_of_panels = panel_row(panels, size=(0.4 + 3.6 * len(panels), 4.2))
    for axes, rows in zip(axes_of_panels, panels.values(), strict=True):
        shown = [test for test in tests if (rows["test"] == test.name).any()]
        middle = (len(shown) - 1) / 2
        for index, test in enumerate(shown):
            own = rows[rows["test"] == test.name]
            # Side by side, so that equal values of different tests stay visible.
            shift = 2.0 ** (0.09 * (index - middle))
            x = own["dup_count"] * shift
            axes.plot(x, -own["log10_p"], test.marker, ms=4, color=test.colour, alpha=0.4)
            means = -own.groupby("dup_count")["log10_p"].mean()
            (line,) = axes.plot(means.index * shift, means, marker=test.marker, ms=6, lw=1.4)
            line.set(color=test.colour, label=test.label)
        count_axis(axes, rows["dup_count"])
        axes.set(xlabel="Duplication count")
        mark_level(axes)
    axes_of_panels[0].set_ylabel(EVIDENCE)
    _key(figure, Line2D([], [], ls="", marker="o", ms=4, color="0.6", label="single sets"))
    return figure
