"""Figures of the released checkpoints: evidence by count, shards, permutations (Oren, 2 and 3)."""

import pandas as pd
from matplotlib.figure import Figure

from contamination.audit.battery import TESTS
from contamination.scoring.status import OK
from reproduction.output import figures


def plot_checkpoints(rows: pd.DataFrame) -> Figure:
    """Draw log10 p against the duplication count, a panel for each model (Figure 2).

    `rows` come from `judge_stores`. The model of the lowest counts stands first, as the paper's
    figure is of that one alone. Controls and sets of unknown counts are left out.
    """
    done = rows[(rows["status"] == OK) & (rows["dup_count"] > 0).fillna(value=False)]
    if done.empty:
        return figures.say_nothing("no cell was measured")
    done = done.astype({"dup_count": int})
    most = done.groupby("model")["dup_count"].max().sort_values(kind="stable")
    return figures.plot_power(
        {model: done[done["model"] == model] for model in most.index}, TESTS.values()
    )


def plot_settings(rows: pd.DataFrame, setting: str, label: str) -> Figure:
    """Draw mean log10 p against a setting, a panel for each model, over single sets (Figure 3).

    `rows` come from `by_shards` or `by_permutations`. Means are over the sets that were measured in
    every setting, so that all points of a line are of the same sets.
    """
    done = rows[rows["status"] == OK].rename(columns={"mean_log10_p": "log10_p"})
    of_set = done.groupby(["model", "test", "dataset"])[setting]
    done = done[of_set.transform("nunique") == done[setting].nunique()]
    if done.empty:
        return figures.say_nothing("no cell was measured")
    done = done.astype({setting: int})
    return figures.plot_settings(dict(list(done.groupby("model", sort=False))), setting, label)
