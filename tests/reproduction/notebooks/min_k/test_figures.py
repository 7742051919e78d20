"""The figure of Table 5: where its points lie, and what it says of the tests."""

import numpy as np
import pandas as pd
import pytest

from reproduction.notebooks.min_k.figures import plot_min_k

SETS = {"a": 1, "b": 8, "c": 8}
LABELS = {"loss": "Loss", "min_k_20": "Min-20%"}


@pytest.fixture
def figure():
    models = ("contaminated", "clean")
    shares = [
        (model, name, count, score, (0.1 + 0.02 * i + 0.05 * count) * (model != "clean"))
        for model in models
        for i, (name, count) in enumerate(SETS.items())
        for score in (*LABELS, "zlib")
    ]
    tests = [
        (model, name, count, test, 0.01 if (model, name) == ("contaminated", "b") else 0.2)
        for model in models
        for name, count in SETS.items()
        for test in ("sharded_t", "sharded_exact", "permutation")
    ]
    columns = ["model", "dataset", "dup_count"]
    return plot_min_k(
        pd.DataFrame(shares, columns=[*columns, "score", "share_detected"]),
        pd.DataFrame(tests, columns=[*columns, "test", "holm_p"]),
        LABELS,
        tests=("sharded_t", "sharded_exact"),
        fpr=0.05,
        alpha=0.05,
    )


def test_points_means_and_the_level(figure):
    above = figure.axes[0]
    points, means, line = above.lines[:3]
    assert sorted(points.get_ydata()) == pytest.approx([0, 0, 0, 15, 52, 54])
    assert list(means.get_ydata()) == pytest.approx([0, 15, 53])
    assert list(means.get_xdata()) == [0, 1, 2]
    assert list(line.get_xdata()) == [1, 2]  # none from one model to the other
    assert np.abs(points.get_xdata() - [1, 2, 2, 0, 0, 0]).max() < 0.5
    assert list(above.lines[-1].get_ydata()) == [5, 5]
    assert [t.get_text() for t in figure.legends[0].get_texts()] == list(LABELS.values())


def test_verdicts_stand_below_their_duplication_count(figure):
    below = figure.axes[1]
    found = {text.xy: text.get_text() for text in below.texts}
    assert found == {
        (column, row): text for row in (0, 1) for column, text in enumerate(("0/3", "0/1", "1/2"))
    }
    assert [t.get_text() for t in below.get_yticklabels()] == ["Sharded t", "Sharded exact"]
    assert [t.get_text() for t in below.get_xticklabels()] == ["0 (clean)", "1", "8"]
    figure.canvas.draw()
