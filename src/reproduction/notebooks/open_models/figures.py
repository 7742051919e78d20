"""Figure of an audit: evidence by set and model, as Oren's Table 2 lists it."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from contamination.audit.battery import TESTS
from reproduction.output.figures import EVIDENCE, evidence_axis, mark_level

# Okabe and Ito's colours, a marker each: print in grey still tells the models.
COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MODELS = tuple(zip(COLOURS, "Do^vsPX", strict=True))


def plot_open_models(rows: pd.DataFrame, alpha: float) -> Figure:
    """Draw -log10 p of every set (from top to bottom) and model, a panel for each test.

    A filled marker: p is at most `alpha` after Holm's correction. A bar of the same colour: what
    the paper prints. Cells without a p-value leave a gap.
    """
    sets, models = list(dict.fromkeys(rows["dataset"])), list(dict.fromkeys(rows["model"]))
    tests = [test for test in TESTS if (rows["test"] == test).any()]
    size = (1.6 + 3.2 * len(tests), 1.5 + 0.24 * len(sets))
    figure, axes = plt.subplots(
        1, len(tests), figsize=size, sharex=True, sharey=True, squeeze=False
    )
    most = -np.log10(rows["published_p"].astype(float)).max(), -rows["log10_p"].min()
    for panel, test in zip(axes[0], tests, strict=True):
        for index, model in enumerate(models):
            colour, marker = MODELS[index % len(MODELS)]
            chosen = rows[(rows["test"] == test) & (rows["model"] == model)]
            # Side by side, so that equal values of different models stay visible.
            shift = 0.5 * ((index + 0.5) / len(models) - 0.5)
            height = np.array([sets.index(name) for name in chosen["dataset"]]) + shift
            filled = (chosen["holm_p"] <= alpha).to_numpy()
            panel.scatter(
                -chosen["log10_p"],
                height,
                s=22,
                marker=marker,
                edgecolors=colour,
                facecolors=[colour if fill else "white" for fill in filled],
                linewidths=1,
                zorder=3,
            )
            printed = -np.log10(chosen["published_p"].to_numpy(dtype=float))
            panel.scatter(printed, height, s=60, marker="|", color=colour, linewidths=1.2)
        level = mark_level(panel, sideways=True)
        panel.set_title(TESTS[test].label, fontsize="medium")
        panel.set_xlabel(EVIDENCE)
        evidence_axis(panel, np.nanmax(most), sideways=True)
    axes[0][0].set_yticks(range(len(sets)), sets)
    axes[0][0].set_ylim(len(sets) - 0.5, -0.5)
    handles = [_handle(model, *MODELS[i % len(MODELS)]) for i, model in enumerate(models)]
    handles.append(_handle(f"Holm p ≤ {alpha:g}", "0.35", "o", filled=True))
    if rows["published_p"].notna().any():
        handles.append(_handle("published", "0.35", "|"))
    handles.append(level)
    figure.legend(handles=handles, loc="outside upper center", ncols=4, fontsize="small")
    return figure


def _handle(label: str, colour: str, marker: str, *, filled: bool = False) -> Line2D:
    face = colour if filled else "white"
    return Line2D([], [], ls="", marker=marker, color=colour, mfc=face, ms=5, label=label)
