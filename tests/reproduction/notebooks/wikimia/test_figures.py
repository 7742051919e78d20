"""The figure of sizes and lengths: where its points and intervals lie, and the band of chance."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from reproduction.notebooks.wikimia.benchmark import READ_HERE
from reproduction.notebooks.wikimia.figures import plot_wikimia
from reproduction.notebooks.wikimia.tables import FIELDS

SIZES = {"small": 20_000, "large": 4_300_000}
LENGTHS = (32, 64, 128)


def auc_of(model: str, length: int, score: str, source: str) -> float:
    base = {READ_HERE: 0.6, "control": 0.5, "other": 0.9, "control (other)": 0.7}[source]
    return base + 0.02 * list(SIZES).index(model) + length / 2000 + 0.01 * (score == "loss")


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    sources = (READ_HERE, "control", "other", "control (other)")
    variants, scores = ("original", "paraphrased"), ("loss", "min_k_20")
    rows = []
    for model, source, variant, length, score in product(SIZES, sources, variants, LENGTHS, scores):
        auc = auc_of(model, length, score, source) - 0.3 * (variant != "original")
        known = [model, SIZES[model], source, variant, "", length, score]
        rows.append([*known, auc, auc - 0.05, auc + 0.08])
    found = pd.DataFrame(rows, columns=list(FIELDS)[: len(rows[0])])
    found["parameters"] = found["parameters"].astype("Int64")
    return found.assign(status="ok")


@pytest.fixture
def panels(table):
    return plot_wikimia(table, source=READ_HERE, length=64).axes


def series(axes) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(c.lines[0].get_xdata(), c.lines[0].get_ydata()) for c in axes.containers]


def test_sizes_stand_on_the_left_and_lengths_of_the_largest_on_the_right(panels) -> None:
    left, right = panels
    for axes, wanted, ticks in (
        (left, [auc_of(m, 64, "loss", READ_HERE) for m in SIZES], list(SIZES.values())),
        (right, [auc_of("large", n, "loss", READ_HERE) for n in LENGTHS], list(LENGTHS)),
    ):
        assert len(series(axes)) == 2  # no neighbours were scored
        places, values = series(axes)[0]
        assert values == pytest.approx(wanted)
        assert np.abs(np.log2(places / np.array(ticks))).max() < 0.2
    assert [t.get_text() for t in left.get_xticklabels()] == ["20k", "4.3M"]
    assert [t.get_text() for t in right.get_xticklabels()] == ["32", "64", "128"]
    assert (left.get_title(), right.get_title()) == ("64 words", "Model large")


def test_the_band_spans_the_control(panels) -> None:
    (band,) = panels[1].collections[-1:]
    assert band.get_label() == "Read by nobody"
    heights = band.get_paths()[0].vertices[:, 1]
    assert heights.min() == pytest.approx(auc_of("large", 32, "min_k_20", "control"))
    assert heights.max() == pytest.approx(auc_of("large", 128, "loss", "control"))


def test_a_public_benchmark_has_a_band_of_its_own(table) -> None:
    # Models that have read neither side may tell its dates apart: docstrings are no control for it.
    for axes in plot_wikimia(table, source="other", length=64).axes:
        heights = axes.collections[-1].get_paths()[0].vertices[:, 1]
        assert heights.min() > 0.7


def test_nothing_measured_is_said(table) -> None:
    figure = plot_wikimia(table.assign(status="not run here"), source=READ_HERE, length=64)
    assert [axes.texts[0].get_text() for axes in figure.axes] == ["not run here"] * 2
