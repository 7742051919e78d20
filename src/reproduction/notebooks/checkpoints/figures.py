"""Figures of the released checkpoints: evidence by count, shards, permutations (Oren, 2 and 3)."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from contamination.audit.battery import TESTS
from contamination.scoring.status import OK
from contamination.tables import SIGNIFICANT
from reproduction.output.evidence import draw_ablation, mean_log10_p, plot_power
from reproduction.output.figures import mark_level, say_nothing


def plot_checkpoints(rows: pd.DataFrame) -> Figure:
    """Draw log10 p against the duplication count, a panel for each model (Figure 2).

    `rows` come from `reproduction.notebooks.checkpoints.tables.judge_stores`. The model of
    the lowest counts stands first, as the paper's figure is of that one alone. Controls, which have
    read nothing, and sets of unknown counts are left out.
    """
    done = rows[(rows["status"] == OK) & (rows["dup_count"] > 0).fillna(value=False)]
    if done.empty:
        return say_nothing("no cell was measured")
    done = done.astype({"dup_count": int})
    most = done.groupby("model")["dup_count"].max().sort_values(kind="stable")
    return plot_power({model: done[done["model"] == model] for model in most.index}, TESTS.values())


def plot_settings(rows: pd.DataFrame, setting: str, label: str) -> Figure:
    """Draw mean log10 p against a setting, a panel for each model, over single sets (Figure 3).

    `rows` come from `by_shards` or `by_permutations` of
    `reproduction.notebooks.checkpoints.tables`. Means are over the sets that were measured
    in every setting, so that all points of a line are of the same sets.
    """
    done = rows[rows["status"] == OK].rename(columns={"mean_log10_p": "log10_p"})
    of_set = done.groupby(["model", "test", "dataset"])[setting]
    done = done[of_set.transform("nunique") == done[setting].nunique()]
    if done.empty:
        return say_nothing("no cell was measured")
    done = done.astype({setting: int})
    models = list(dict.fromkeys(done["model"]))
    size = (0.4 + 3.6 * len(models), 3.9)
    figure, panels = plt.subplots(1, len(models), figsize=size, squeeze=False)
    for axes, model in zip(panels[0], models, strict=True):
        own = done[done["model"] == model]
        draw_ablation(axes, mean_log10_p(own, setting), own, setting, TESTS.values())
        axes.set(xlabel=label)
        axes.set_title(model, fontsize="medium")
        axes.axhline(np.log10(SIGNIFICANT), color="0.35", lw=0.9, ls="--")
    panels[0][0].set_ylabel("log10 p")
    mark_level(panels[0][-1])
    panels[0][-1].legend(loc="lower left")
    return figure
