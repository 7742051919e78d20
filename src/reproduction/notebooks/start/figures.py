"""Figures of notebook 00: orderings, where they differ, and every set."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from contamination.audit.registry import TESTS
from reproduction.output.figures import EVIDENCE, READ, UNREAD, evidence_axis, panel_row
from reproduction.run.experiment import MODELS

COLOURS = dict(zip(MODELS, (READ, UNREAD), strict=True))


def plot_orderings(sets: Mapping[str, Mapping[str, np.ndarray]]) -> Figure:
    """Draw every ordering of a set: a panel for each set, a line for each model.

    `sets` are log-probabilities (nats) of whole sets, (m+1,) canonical first, by title
    and model. Shown are differences from the mean of the shuffled orderings, so that
    models compare.
    """
    figure, panels = plt.subplots(len(sets), 1, figsize=(6.6, 0.7 + 1.5 * len(sets)))
    for axes, (title, scores) in zip(np.atleast_1d(panels), sets.items(), strict=True):
        for height, (model, values) in enumerate(scores.items()):
            gains = values - values[1:].mean()
            below = np.full(len(gains) - 1, height)
            axes.plot(gains[1:], below, "|", ms=13, mew=1.2, color="0.35", alpha=0.6)
            axes.plot(gains[0], height - 0.33, "v", ms=9, color=COLOURS[model])
        axes.set_yticks(
            range(len(scores)),
            [f"{model} model".capitalize() for model in scores],
        )
        axes.set_ylim(len(scores) - 0.5, -0.65)
        axes.set_title(title, loc="left", fontsize="medium")
        axes.grid(axis="y", visible=False)
    axes.set_xlabel(
        "Log-probability of the set, minus the mean of the shuffled orders (nats)",
    )
    shuffled = Line2D([], [], ls="", marker="|", color="0.35", ms=11)
    canonical = Line2D([], [], ls="", marker="v", color="0.35", ms=8)
    names = [f"{len(below)} shuffled orders", "The canonical order"]
    figure.legend([shuffled, canonical], names, loc="outside upper right", ncols=2)
    return figure


def plot_sets(rows: pd.DataFrame) -> Figure:
    """Draw -log10 p of every set: a panel for each model, a marker for each test.

    `rows` come from `p_values`. Sets with more copies stand further down, as in the
    tables.
    """
    order = rows.drop_duplicates("dataset").sort_values(
        ["dup_count", "dataset"],
        ascending=[True, False],
    )
    places = {name: place for place, name in enumerate(order["dataset"])}
    size = (6.6, 1.3 + 0.25 * len(places))
    titles = [f"{model} model".capitalize() for model in MODELS]
    figure, panels = panel_row(titles, size=size, sharex=True, sharey=True)
    shown = rows["test"].unique()
    for axes, model in zip(panels, MODELS, strict=True):
        for index, name in enumerate(shown):
            test = TESTS[name]
            own = rows[(rows["model"] == model) & (rows["test"] == name)]
            # equal values of two tests stay visible
            aside = 0.13 * ((len(shown) - 1) / 2 - index)
            heights = own["dataset"].map(places) + aside
            axes.plot(
                -own["log10_p"],
                heights,
                test.marker,
                color=test.colour,
                label=test.label,
            )
        axes.set_xlabel(EVIDENCE)
        evidence_axis(axes, -rows["log10_p"].min(), sideways=True)
    axes.invert_yaxis()
    copies = order.set_index("dataset")["dup_count"]
    axes.set_yticks(
        range(len(places)),
        [f"{name} ({copies[name]} ×)" for name in places],
    )
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=5)
    return figure


def plot_gains(sets: Mapping[str, Mapping[str, np.ndarray]]) -> Figure:
    """Draw the gain of the canonical order at each place of an example, by title and model.

    `sets` are mean gains (nats), (tokens,), entry 0 the first token.
    """
    figure, panels = panel_row(sets, size=(6.6, 3.0), sharey=True)
    for axes, gains in zip(panels, sets.values(), strict=True):
        for style, (model, values) in zip(("o-", "s--"), gains.items(), strict=True):
            at = np.arange(1, len(values) + 1)
            axes.plot(
                at,
                values,
                style,
                ms=3.5,
                lw=1.3,
                color=COLOURS[model],
                label=f"{model} model".capitalize(),
            )
        axes.axhline(0, color="0.35", lw=0.8)
        axes.set_xlabel("Token of the example")
    panels[0].set_ylabel("Gain of the canonical order (nats)")
    panels[0].legend()
    return figure
