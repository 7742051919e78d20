"""The figure of controlled contamination draws what the table holds."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

from fakes.made_up_runs import STRONG, made_up
from reproduction.notebooks.controlled.aucs import MEAN, auc_table
from reproduction.notebooks.controlled.contaminants import INSIDE
from reproduction.notebooks.controlled.figures import plot_controlled
from reproduction.notebooks.controlled.runs import BASE, COUNT, RATE, SIZE, TRAINED
from reproduction.output.figures import short_count

LABELS = {"loss": "PPL", "min_k_20": "Min-20%"}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return auc_table(made_up(STRONG, half=20), rng=np.random.default_rng(0), resamples=20)


def _heights(axes: Axes, style: str) -> list[list[float]]:
    return [np.ravel(line.get_ydata()).tolist() for line in axes.lines if line.get_ls() == style]


def test_panels_show_the_measured_aucs_and_the_legend_their_scores(table: pd.DataFrame) -> None:
    figure = plot_controlled(table, LABELS)
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["PPL", "Min-20%", "before training"]
    picked = {
        0: (table["experiment"] == SIZE) & (table["dataset"] == MEAN),
        1: (table["experiment"] == SIZE) & (table["contaminant"] == INSIDE),
        2: (table["experiment"] == COUNT) & (table["dataset"] == MEAN),
    }
    for panel, rows in picked.items():
        axes = figure.axes[panel]
        chosen = table[rows].sort_values(["corpus_tokens", "dup_count"])
        for i, score in enumerate(LABELS):
            one = chosen[chosen["score"] == score]
            wanted = one.loc[one["model"] == TRAINED, "auc"].tolist()
            assert _heights(axes, "-")[i] == pytest.approx(wanted)
            base = one.loc[one["model"] == BASE, "auc"].tolist()
            assert set(_heights(axes, "--")[i]) == set(base)
        assert _heights(axes, ":") == [[0.5, 0.5]]
        ticks = [tick.get_text() for tick in axes.get_xticklabels()]
        assert ticks == (["1", "2", "4"] if panel == 2 else ["100", "200", "400"])


def test_a_panel_may_be_empty(table: pd.DataFrame) -> None:
    figure = plot_controlled(table[table["contaminant"] != INSIDE], LABELS)
    assert _heights(figure.axes[1], "-") == [[], []]
    assert plot_controlled(table[table["experiment"] != RATE], LABELS).axes


def test_short_numbers() -> None:
    shown = [short_count(value) for value in (4, 90_000, 1_200_000, 2e10)]
    assert shown == ["4", "90k", "1.2M", "20B"]
