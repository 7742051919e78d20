"""Figures of MMLU show what they are given, and leave out what is not there."""

import numpy as np
import pandas as pd
import pytest

from contamination.statistics import dkw_band
from reproduction.notebooks.mmlu.figures import plot_mmlu_ecdf, plot_segmentations


def test_ecdf_has_a_panel_for_what_was_measured() -> None:
    few, many = np.linspace(0.1, 0.9, 5), np.linspace(0.01, 1, 50)
    both = plot_mmlu_ecdf({"Published": {"A": many}, "Measured": {"B": few, "C": many}})
    left, right = both.axes
    assert [left.get_title(), right.get_title()] == ["Published", "Measured"]
    labels = [text.get_text() for text in right.get_legend().get_texts()]
    assert labels == ["95% band, uniform", "B", "C"]
    band = right.collections[0].get_paths()[0].vertices[:, 1]
    assert band.max() == pytest.approx(1 + dkw_band(5, 0.95))  # that of the shortest curve
    assert left.collections[0].get_paths()[0].vertices[:, 1].max() < band.max()
    # The curve itself: a step of 1/5 at each value.
    x, y = right.get_lines()[1].get_data()
    np.testing.assert_allclose(x, [0, *few, 1])
    np.testing.assert_allclose(y, [0, 0.2, 0.4, 0.6, 0.8, 1, 1])

    (alone,) = plot_mmlu_ecdf({"Published": {"A": many, "D": []}, "Measured": {}}).axes
    assert alone.get_title() == "Published"
    assert len(alone.get_legend().get_texts()) == 2


def made_up_lines() -> pd.DataFrame:
    subsets = {
        "nutrition": (2.0, False, -0.2, -4.0),
        "high_school_us_history": (4.8, True, -0.5, -120.0),
        "philosophy": (1.0, True, -1.0, -1.1),
        "anatomy": (1.0, False, -0.9, -0.8),
        "professional_law": (1.0, pd.NA, -0.9, -0.8),
    }
    rows = [
        (subset, kind, each, -0.3 if kind == "record" else -2.5, "clean", test, p, excluded)
        for subset, (each, excluded, record, line) in subsets.items()
        for kind, p in (("record", record), ("line", line))
        for test in ("sharded_t", "successor")
    ]
    names = ["subset", "segmentation", "lines_per_record", "compressor_log10_p", "model", "test"]
    table = pd.DataFrame(rows, columns=[*names, "log10_p", "excluded_in_paper"])
    return table.astype({"excluded_in_paper": "boolean"})


def test_segmentations_are_drawn_side_by_side() -> None:
    figure = plot_segmentations(made_up_lines())
    titles = ["Compressor", "clean, sharded t", "clean, successor"]
    assert [axes.get_title() for axes in figure.axes] == titles
    labels = figure.axes[0].get_yticklabels()
    names = ["Philosophy (1.0)", "Nutrition (2.0)", "High School US History (4.8)"]
    assert [label.get_text() for label in labels] == names
    assert [label.get_fontweight() for label in labels] == ["bold", "normal", "bold"]
    points = {line.get_label(): line.get_xdata() for line in figure.axes[1].get_lines()}
    np.testing.assert_allclose(points["record"], [-1.0, -0.2, -0.5])
    np.testing.assert_allclose(points["line"], [-1.1, -4.0, -120.0])
    compressor = {line.get_label(): line.get_xdata() for line in figure.axes[0].get_lines()}
    np.testing.assert_allclose(compressor["line"], [-2.5] * 3)
    ticks = [text.get_text() for text in figure.axes[0].get_xticklabels()]
    assert ticks == ["0", "-5", "-10", "-20", "-50", "-100"]
