"""Figures hold what they were given."""

import numpy as np
import pandas as pd

from reproduction.notebooks.seminar import figures

RNG = np.random.default_rng(0)
MODELS = ("contaminated", "clean")


def test_null_has_a_panel_and_a_line_for_each_model():
    scores = {"contaminated": np.array([3.0, 1, 0, 2]), "clean": np.array([-1.0, 1, 0, 2])}
    figure = figures.plot_null(scores)
    assert [axes.get_title() for axes in figure.axes] == ["contaminated model", "clean model"]
    assert [axes.lines[0].get_xdata()[0] for axes in figure.axes] == [3.0, -1.0]
    assert [sum(bar.get_height() for bar in axes.patches) for axes in figure.axes] == [3, 3]


def test_differences_are_of_the_canonical_ordering():
    figure = figures.plot_differences(dict.fromkeys(MODELS, np.array([[5.0, 1, 3], [0.0, 4, 2]])))
    for axes in figure.axes:
        assert [bar.get_height() for bar in axes.patches] == [3.0, -3.0]


def test_gain_starts_at_token_one():
    axes = figures.plot_gain({"contaminated": np.array([2.0, 1.0])}).axes[0]
    np.testing.assert_array_equal(axes.lines[0].get_xydata(), [[1, 2], [2, 1]])


def test_canonical_pairs_are_framed():
    matrix = np.where(np.eye(4, dtype=bool), np.nan, RNG.normal(size=(4, 4)))
    axes = figures.plot_successors({"contaminated": matrix}).axes[0]
    b, a = axes.lines[0].get_xydata().T
    np.testing.assert_array_equal(b, a + 1)  # x is the successor
    np.testing.assert_array_equal(a, [0, 1, 2])
    low, high = axes.images[0].get_clim()
    assert low == -high == -np.nanmax(np.abs(matrix))


def test_power_has_a_line_for_each_test():
    rows = pd.DataFrame(
        [(t, c, -c / 8) for t in ("permutation", "sharded_exact") for c in (1, 4, 16)],
        columns=["test", "dup_count", "log10_p"],
    )
    axes = figures.plot_power(rows).axes[0]
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["Permutation", "Sharded exact"]
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), [-1 / 8, -1 / 2, -2])


def test_calibration_draws_every_column():
    p = pd.DataFrame({"one": RNG.random(50), "two": RNG.random(50)})
    axes = figures.plot_calibration(p).axes[0]
    for line, column in zip(axes.lines, p, strict=True):
        assert line.get_label() == column
        assert line.get_ydata()[-1] == 1
        assert sorted(p[column]) == line.get_xdata()[1:].tolist()
