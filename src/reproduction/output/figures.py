"""Figures: one style everywhere, written as SVG and PNG."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from contamination.files import replacing
from contamination.tables import SIGNIFICANT

MODEL_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9")
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
    sns.set_theme(context="paper", style="ticks", font="DejaVu Sans", font_scale=1.05)
    mpl.rcParams.update(
        {
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
    )


def save_figure(figure: Figure, results: Path | str, name: str) -> None:
    """Write `results/figures/<name>.svg` and `.png`."""
    for suffix in ("svg", "png"):
        metadata = {"Date": None} if suffix == "svg" else {"Software": None}
        with replacing(Path(results) / "figures" / f"{name}.{suffix}") as temporary:
            figure.savefig(temporary, dpi=160, metadata=metadata)


def say_nothing(reason: str) -> Figure:
    """Return the figure of a run that has nothing to draw, which says why."""
    figure, axes = plt.subplots(figsize=(6.0, 1.2))
    axes.axis("off")
    axes.text(0.5, 0.5, reason, ha="center", va="center", color="0.35")
    return figure


def score_style(score: str) -> dict[str, Any]:
    """Colour and marker of a column of membership scores, as matplotlib takes them."""
    colour, marker = SCORES[score if score in SCORES else score.rpartition("_")[0]]
    return {"color": colour, "marker": marker}


def draw_intervals(
    axes: Axes, at: ArrayLike, rows: pd.DataFrame, *, sideways: bool = False, **style: Any
) -> None:
    """Draw estimates and their intervals at places `at`; columns of `rows` are value, low, high."""
    value, low, high = (rows[name] for name in rows)
    errors = [value - low, high - value]
    if sideways:
        axes.errorbar(value, at, xerr=errors, **style)
    else:
        axes.errorbar(at, value, yerr=errors, **style)


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


def mark_level(axes: Axes) -> None:
    """Draw the level of significance of log10 p as a dashed line with its name."""
    axes.axhline(np.log10(SIGNIFICANT), color="0.35", lw=0.9, ls="--")
    axes.annotate(
        f"p = {SIGNIFICANT}",
        (1.01, np.log10(SIGNIFICANT)),
        xycoords=("axes fraction", "data"),
        va="center",
        fontsize="small",
        color="0.35",
    )
