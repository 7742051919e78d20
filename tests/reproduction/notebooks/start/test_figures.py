"""The figures of notebook 00 show every ordering, every set and every p-value."""

import numpy as np
import pandas as pd

from reproduction.notebooks.start.figures import plot_gains, plot_orderings, plot_sets
from reproduction.output.figures import READ, UNREAD


def test_every_ordering_is_a_mark_and_the_canonical_one_stands_out() -> None:
    scores = {"contaminated": np.array([9.0, 1, 2, 3]), "clean": np.array([5.0, 4, 6, 8])}
    figure = plot_orderings({"a": scores, "b": scores})
    for axes in figure.axes:
        shuffled, canonical, *_ = axes.lines
        assert shuffled.get_xdata().tolist() == [-1, 0, 1]  # minus their mean
        assert canonical.get_xdata() == [7]
        assert [line.get_color() for line in axes.lines[1::2]] == [READ, UNREAD]
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["3 shuffled orders", "the canonical order"]


def test_every_p_value_is_a_marker_in_the_line_of_its_set() -> None:
    rows = pd.DataFrame(
        [
            (model, name, count, test, -count if model == "contaminated" else -0.5)
            for model in ("contaminated", "clean")
            for name, count in (("few", 1), ("many", 30))
            for test in ("sharded_t", "successor")
        ],
        columns=["model", "dataset", "dup_count", "test", "log10_p"],
    )
    left, right = plot_sets(rows).axes
    assert [text.get_text() for text in left.get_yticklabels()] == ["few (1 ×)", "many (30 ×)"]
    for line in left.lines[:2]:
        assert line.get_xdata().tolist() == [-1, -30]
        assert np.round(line.get_ydata()).tolist() == [0, 1]
    low, high = left.get_xlim()
    assert high <= -30 < 0 < low  # evidence grows to the right
    assert left.get_xlim() == right.get_xlim()


def test_gains_of_both_models_are_comparable_between_sets() -> None:
    first, second = plot_gains(
        {
            "a": {"contaminated": np.array([3.0, 1]), "clean": np.zeros(2)},
            "b": {"contaminated": np.array([0.1]), "clean": np.zeros(1)},
        }
    ).axes
    assert first.lines[0].get_xdata().tolist() == [1, 2]
    assert first.get_ylim() == second.get_ylim()
