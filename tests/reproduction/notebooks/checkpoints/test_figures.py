"""Figures of the released checkpoints: a panel for each, and a word where nothing was measured."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from contamination.audit.battery import TESTS
from reproduction.notebooks.checkpoints.figures import plot_checkpoints, plot_settings

COUNTS = {"higher": {"a": 1, "b": 10, "c": 10, "d": 100}, "lower": {"a": 1, "b": 2, "c": 4, "d": 7}}
SHOWN = ("sharded_t", "successor")


@pytest.fixture
def rows() -> pd.DataFrame:
    found = [
        (model, name, count, test, -float(count) - index, "ok")
        for model, sets in COUNTS.items()
        for name, count in sets.items()
        for index, test in enumerate(SHOWN)
    ]
    found += [("old", name, 0, test, -99.0, "ok") for name in "abcd" for test in SHOWN]
    found += [("higher", "e", 50, test, np.nan, "failed: gone") for test in SHOWN]
    found += [("higher", "f", pd.NA, test, -55.0, "ok") for test in SHOWN]
    columns = ["model", "dataset", "dup_count", "test", "log10_p", "status"]
    return pd.DataFrame(found, columns=columns).astype({"dup_count": "Int64"})


def lines(axes, test: str) -> list:
    colour = TESTS[test].colour.lower()
    return [line for line in axes.get_lines() if to_hex(line.get_color()) == colour]


def test_a_panel_for_each_checkpoint_the_lower_counts_first(rows) -> None:
    figure = plot_checkpoints(rows)
    assert [axes.get_title() for axes in figure.axes] == ["lower", "higher"]
    for axes, counts in zip(figure.axes, ([1, 2, 4, 7], [1, 10, 100]), strict=True):
        assert [tick.get_text() for tick in axes.get_xticklabels()] == [str(c) for c in counts]
        for index, test in enumerate(SHOWN):
            points, means = lines(axes, test)
            assert len(points.get_ydata()) == 4  # neither failed cells nor unknown counts
            assert means.get_ydata().tolist() == [-float(c) - index for c in counts]
    figure.canvas.draw()


def settings() -> pd.DataFrame:
    found = [
        (model, dataset, shards, test, -float(shards) - len(dataset), "ok")
        for model in ("higher", "lower")
        for dataset in ("a", "bb", "ccc")
        for shards in (10, 20)
        for test in ("sharded_t", "sharded_exact")
    ]
    columns = ["model", "dataset", "shards", "test", "mean_log10_p", "status"]
    return pd.DataFrame(found, columns=columns)


def test_means_are_over_sets_that_were_measured_in_every_setting() -> None:
    rows = settings()
    lost = (rows["dataset"] == "ccc") & (rows["shards"] == 20) & (rows["model"] == "lower")
    rows.loc[lost, ["mean_log10_p", "status"]] = np.nan, "failed: too few examples"
    figure = plot_settings(rows, "shards", "Shards")
    assert [axes.get_title() for axes in figure.axes] == ["higher", "lower"]
    for axes, kept in zip(figure.axes, ([1, 2, 3], [1, 2]), strict=True):
        for test in ("sharded_t", "sharded_exact"):
            *single, mean = lines(axes, test)
            assert len(single) == len(kept)
            assert mean.get_ydata().tolist() == [-10 - np.mean(kept), -20 - np.mean(kept)]
        assert axes.get_xlabel() == "Shards"
    figure.canvas.draw()
