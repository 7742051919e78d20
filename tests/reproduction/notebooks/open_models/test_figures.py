"""The figure of an audit: where its markers lie, and which are filled."""

import math

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgba

from reproduction.notebooks.open_models.figures import MODELS, plot_open_models


@pytest.fixture
def rows() -> pd.DataFrame:
    """Three sets, two models, two tests; one cell failed, two have a published value."""
    table = [
        (model, dataset, test, -1.0 - i - 10 * j, holm, published)
        for test in ("sharded_t", "successor")
        for i, (model, holm) in enumerate((("bad", 0.01), ("good", 0.5)))
        for j, (dataset, published) in enumerate((("a", 0.1), ("b", math.nan), ("c", math.nan)))
    ]
    columns = ["model", "dataset", "test", "log10_p", "holm_p", "published_p"]
    rows = pd.DataFrame(table, columns=columns)
    rows.loc[rows["model"] == "good", "published_p"] = math.nan
    rows.loc[(rows["model"] == "good") & (rows["dataset"] == "c"), ["log10_p", "holm_p"]] = math.nan
    return rows


def markers(panel):
    """Collections of points: ours and the paper's, by turns."""
    return panel.collections[0::2], panel.collections[1::2]


def test_the_markers_lie_at_the_values(rows):
    for panel in plot_open_models(rows, 0.05).axes:
        ours, _ = markers(panel)
        for i, points in enumerate(ours):
            x, y = np.ma.filled(points.get_offsets().astype(float), np.nan).T
            known = ~np.isnan(x)
            assert known.tolist() == [True, True, i == 0]
            assert x[known].tolist() == [-1.0 - i - 10 * j for j in range(3) if known[j]]
            assert np.nanmax(np.abs(y - [0, 1, 2])) < 0.5
        first, second = (points.get_offsets()[0][1] for points in ours)
        assert first < second


def test_filled_is_what_holm_rejects(rows):
    for panel in plot_open_models(rows, 0.05).axes:
        bad, good = markers(panel)[0]
        assert (bad.get_facecolors() == to_rgba(MODELS[0][0])).all()
        assert (good.get_facecolors() == to_rgba("white")).all()
        assert (good.get_edgecolors() == to_rgba(MODELS[1][0])).all()
    for panel in plot_open_models(rows, 0.005).axes:
        assert (markers(panel)[0][0].get_facecolors() == to_rgba("white")).all()


def test_published_values_are_marked_and_explained_where_there_are_any(rows):
    figure = plot_open_models(rows, 0.05)
    for panel in figure.axes:
        x = np.ma.filled(markers(panel)[1][0].get_offsets().astype(float), np.nan)[:, 0]
        assert x[0] == pytest.approx(-1)
        assert np.isnan(x[1:]).all()
    assert _legend(figure) == ["bad", "good", "Holm p ≤ 0.05", "published"]
    figure = plot_open_models(rows.assign(published_p=math.nan), 0.05)
    assert _legend(figure) == ["bad", "good", "Holm p ≤ 0.05"]


def _legend(figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]
