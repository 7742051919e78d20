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

MODEL_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
EVIDENCE = "−log10 p"  # what every axis of evidence shows
LINEAR = 2  # -log10 p up to which such an axis is linear, if it is logarithmic beyond
BREAK = ((-1.0, -0.6), (1.0, 0.6))
WIDEST = 7.6  # inches: its smallest text, 8.4 points, has 7 on the report's pages
# Contaminated models and members; clean models and non-members.
READ, UNREAD = "#D55E00", "#0072B2"
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
    """Colour and marker of a column of membership scores, as matplotlib takes them."""
    colour, marker = SCORES[score if score in SCORES else score.rpartition("_")[0]]
    return {"color": colour, "marker": marker}


def draw_aucs(axes: Axes, rows: pd.DataFrame, x: str, labels: Mapping[str, str]) -> list[float]:
    """Draw the AUC of every score of `labels`, with its interval, at each value of the column `x`.

    Values, which are returned, stand equally far apart, and scores of a value side by side, so that
    intervals do not hide each other. Chance is dotted.
    """
    rows = rows.dropna(subset=x)
    values = sorted(rows[x].unique())
    for index, (score, label) in enumerate(labels.items()):
        own = rows[rows["score"] == score].sort_values(x)
        places = own[x].map(values.index) + 0.1 * (index - (len(labels) - 1) / 2)
        style = score_style(score) | {"ms": 4.5, "lw": 1.2, "elinewidth": 0.8, "label": label}
        ends = [own["auc"] - own["auc_low"], own["auc_high"] - own["auc"]]
        axes.errorbar(places, own["auc"], ends, **style)
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
    draw = axes.axvline if sideways else axes.axhline
    name = f"p = {SIGNIFICANT}"
    return draw(-np.log10(SIGNIFICANT), color="0.35", lw=0.9, ls="--", label=name)


def evidence_axis(axes: Axes, most: float, *, sideways: bool = False) -> Line2D:
    """Make an axis one of evidence up to `most`: -log10 p, which grows upwards or to the right.

    The axis is linear up to `LINEAR`, where its line is broken, and logarithmic beyond: the level,
    whose line is returned, and the strongest evidence can both be read. It is linear throughout if
    the strongest evidence is little more.
    """
    name, axis = ("x", axes.xaxis) if sideways else ("y", axes.yaxis)
    top = 1.3 * max(most, LINEAR)
    if most <= 2 * LINEAR:
        axes.set(**{f"{name}lim": (-0.15, top), f"{name}ticks": range(int(top) + 1)})
        return mark_level(axes, sideways=sideways)
    getattr(axes, f"set_{name}scale")("symlog", linthresh=LINEAR)
    shown = [tick for tick in (0, *(s * 10**k for k in range(5) for s in (1, 2, 5))) if tick < top]
    axis.set_ticks(shown, [str(tick) for tick in shown])
    axes.minorticks_off()
    axes.set(**{f"{name}lim": (-0.15, top)})
    slashes: dict[str, Any] = {"ls": "", "ms": 9, "color": "0.15", "clip_on": False, "zorder": 9}
    across = axes.get_xaxis_transform() if sideways else axes.get_yaxis_transform()
    at = ([LINEAR], [0]) if sideways else ([0], [LINEAR])
    axes.plot(*at, marker=(BREAK[::-1] if sideways else BREAK), transform=across, **slashes)
    return mark_level(axes, sideways=sideways)


# --- evidence against what it depends on ----------------------------------------------------------


def mean_log10_p(rows: pd.DataFrame, setting: str) -> pd.DataFrame:
    """Mean log10 p over sets (each set's replicates first), by setting and test."""
    by_set = rows.groupby([setting, "test", "dataset"], as_index=False)["log10_p"].mean()
    grouped = by_set.groupby([setting, "test"], as_index=False)
    return grouped.agg(mean_log10_p=("log10_p", "mean"), datasets=("log10_p", "size"))


def plot_settings(panels: Mapping[str, pd.DataFrame], setting: str, label: str) -> Figure:
    """Draw mean -log10 p against a setting, by test, with the single sets behind (Oren, Figure 3).

    `panels`: title -> rows with columns dataset, test, log10_p and that of the setting.
    """
    size = (0.4 + 3.6 * len(panels), 4.2) if len(panels) > 1 else (6.0, 4.0)
    figure, row = panel_row(panels, size=size)
    for axes, rows in zip(row, panels.values(), strict=True):
        table = mean_log10_p(rows, setting)
        for test in TESTS.values():
            for _, group in rows[rows["test"] == test.name].groupby("dataset"):
                line = -group.groupby(setting)["log10_p"].mean()
                axes.plot(line.index, line, color=test.colour, lw=0.7, alpha=0.35)
            chosen = table[table["test"] == test.name]
            if len(chosen):
                (line,) = axes.plot(chosen[setting], -chosen["mean_log10_p"], label=test.label)
                line.set(marker=test.marker, color=test.colour)
        count_axis(axes, table[setting])
        axes.set(xlabel=label)
        mark_level(axes)
    row[0].set_ylabel(EVIDENCE)
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
    figure, row = panel_row(panels, size=(0.4 + 3.6 * len(panels), 4.2))
    for axes, table in zip(row, panels.values(), strict=True):
        shown = [test for test in tests if (table["test"] == test.name).any()]
        for index, test in enumerate(shown):
            chosen = table[table["test"] == test.name]
            # Side by side, so that equal values of different tests stay visible.
            aside = 2.0 ** (0.09 * (index - (len(shown) - 1) / 2))
            x = chosen["dup_count"] * aside
            axes.plot(x, -chosen["log10_p"], test.marker, ms=4, color=test.colour, alpha=0.4)
            means = -chosen.groupby("dup_count")["log10_p"].mean()
            (line,) = axes.plot(means.index * aside, means, marker=test.marker, ms=6, lw=1.4)
            line.set(color=test.colour, label=test.label)
        count_axis(axes, table["dup_count"])
        axes.set(xlabel="Duplication count")
        mark_level(axes)
    row[0].set_ylabel(EVIDENCE)
    _key(figure, Line2D([], [], ls="", marker="o", ms=4, color="0.6", label="single sets"))
    return figure
