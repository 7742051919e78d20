"""The figure of the audit of books: where its points lie."""

import numpy as np
import pandas as pd
import pytest

from contamination.membership.books import SCORES
from reproduction.notebooks.books.figures import plot_books
from reproduction.notebooks.books.made_books import AGAIN, UNREAD, VALIDATIONS
from reproduction.output.figures import READ
from reproduction.output.figures import UNREAD as UNREAD_COLOUR

KINDS = tuple(VALIDATIONS.values())
RATES = {AGAIN: [0.75, 0.25, 1.0, 0.75], UNREAD: [0.5]}


@pytest.fixture
def figure():
    aucs, table = [], []
    for index, kind in enumerate(KINDS):
        for i, score in enumerate(("loss", "min_k_20", "lowercase", "zlib")):
            aucs.append((kind, score, 0.6 + 0.1 * i, 0.5, 0.9))
        for truth, rates in RATES.items():
            table += [(kind, truth, rate / (1 + index), 0.1 + 0.3 * index) for rate in rates]
    aucs = pd.DataFrame(aucs, columns=["validation", "score", "auc", "auc_low", "auc_high"])
    table = pd.DataFrame(table, columns=["validation", "truth", "rate", "validation_fpr"])
    return plot_books(aucs, table, accused=0.5)


def test_a_row_for_each_score(figure) -> None:
    axes = figure.axes[0]
    assert [t.get_text() for t in axes.get_yticklabels()] == list(SCORES.values())
    points = [container.lines[0] for container in axes.containers]
    for line in points:
        assert line.get_xdata() == pytest.approx([0.7, 0.6, 0.9, 0.8])
    assert np.abs(points[0].get_ydata() - points[1].get_ydata()).min() > 0.1
    low, high = axes.containers[0].lines[2][0].get_segments()[0][:, 0]
    assert (low, high) == pytest.approx((0.5, 0.9))


@pytest.mark.parametrize("index", range(len(KINDS)))
def test_every_book_and_the_lines(figure, index: int) -> None:
    axes = figure.axes[1 + index]
    assert KINDS[index] in axes.get_title()
    assert [t.get_text() for t in axes.get_xticklabels()] == ["read\nagain", "unread"]
    read, mean, unread, _, accused, wrong = axes.lines
    scale = 100 / (1 + index)
    assert read.get_ydata() == pytest.approx(scale * np.array([0.25, 0.75, 0.75, 1.0]))
    assert read.get_xdata() == pytest.approx([0, -0.05, 0.05, 0])  # equal ones side by side
    assert mean.get_ydata() == pytest.approx([scale * 2.75 / 4] * 2)
    assert list(unread.get_xdata()) == [1]
    assert (read.get_color(), unread.get_color()) == (READ, UNREAD_COLOUR)
    assert accused.get_ydata() == pytest.approx([50, 50])
    assert wrong.get_ydata() == pytest.approx([10 + 30 * index] * 2)
