"""Figure of an audit: evidence by set and model, as Oren's Table 2 lists it."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from contamination.audit.registry import TESTS
from reproduction.output.figures import EVIDENCE, MODEL_COLOURS, evidence_axis, panel_row

# A colour and a marker each: print in grey still tells the models.
MODELS = tuple(zip(MODEL_COLOURS, "Do^vsPX", strict=True))


def plot_open_models(rows: pd.DataFrame, alpha: float) -> Figure:
    """Draw -log10 p of every set (from top to bottom) and model, a panel for each test.

    A filled marker: p is at most `alpha` after Holm's correction. A bar of the same colour: what
    the paper prints. Cells without a p-value leave a gap.
    """
    sets = list(dict.fromkeys(rows["dataset"]))
    models = list(dict.fromkeys(rows["model"]))
    tests = [test for test in TESTS if (rows["test"] == test).any()]
    size = (1.6 + 3.2 * len(tests), 1.5 + 0.24 * len(sets))
    labels = [TESTS[test].label for test in tests]
    figure, panels = panel_row(labels, size=size, sharex=True, sharey=True)
    rows = rows.assign(printed=-np.log10(rows["published_p"].astype(float)))
    most = np.nanmax([rows["printed"].max(), -rows["log10_p"].min()])
    for panel, test in zip(panels, tests, strict=True):
        for index, model in enumerate(models):
            colour, marker = MODELS[index % len(MODELS)]
            chosen = rows[(rows["test"] == test) & (rows["model"] == model)]
            # Side by side, so that equal values of different models stay visible.
            shift = 0.5 * ((index + 0.5) / len(models) - 0.5)
            height = np.array([sets.index(name) for name in chosen["dataset"]]) + shift
            faces = [colour if p <= alpha else "white" for p in chosen["holm_p"]]
            points = panel.scatter(-chosen["log10_p"], height, s=22, marker=marker, zorder=3)
            points.set(edgecolors=colour, facecolors=faces, linewidths=1)
            printed = panel.scatter(chosen["printed"], height, s=60, marker="|", color=colour)
            printed.set(linewidths=1.2)
        panel.set_xlabel(EVIDENCE)
        level = evidence_axis(panel, most, sideways=True)
    panels[0].set_yticks(range(len(sets)), sets)
    panels[0].set_ylim(len(sets) - 0.5, -0.5)
    marks = [(model, *MODELS[i % len(MODELS)], "white") for i, model in enumerate(models)]
    marks.append((f"Holm p ≤ {alpha:g}", "0.35", "o", "0.35"))
    if rows["printed"].notna().any():
        marks.append(("published", "0.35", "|", "white"))
    handles = [
        Line2D([], [], ls="", ms=5, label=label, color=colour, marker=marker, mfc=face)
        for label, colour, marker, face in marks
    ]
    figure.legend(handles=[*handles, level], loc="outside upper center", ncols=4, fontsize="small")
    return figure
