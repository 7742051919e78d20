"""Heat maps and densities: what stands where."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import Rectangle

from reproduction.notebooks.assumptions import figures
from reproduction.notebooks.assumptions.figures import plot_cross, plot_density

SEEN, UNSEEN = ("b", "a"), ("b", "a", "c")
METRICS = ("loss", "mem_25")
PHASES = ("pre-training", "fine-tuning")


def value(phase: str, seen: str, unseen: str, metric: str) -> float:
    return 50 + 10 * UNSEEN.index(unseen) + SEEN.index(seen) + 20 * METRICS.index(metric)


@pytest.fixture
def cross() -> pd.DataFrame:
    rows = [(*key, value(*key)) for key in product(PHASES, SEEN, UNSEEN, METRICS)]
    columns = ["phase", "seen_domain", "unseen_domain", "metric", "auc_percent"]
    return pd.DataFrame(rows, columns=columns)


@pytest.fixture
def scored() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = [
        (phase, domain, seen, rng.normal(5 * UNSEEN.index(domain)))
        for phase in PHASES
        for domain in UNSEEN
        for seen in (True, False)
        for _ in range(30)
        if domain != "c" or not seen
    ]
    return pd.DataFrame(rows, columns=["phase", "domain", "member", "loss"])


@pytest.mark.parametrize("stacked", [True, False])
def test_each_cell_says_its_auc(cross, monkeypatch: pytest.MonkeyPatch, stacked: bool) -> None:
    monkeypatch.setattr(figures, "WIDEST", 0 if stacked else 99)
    figure = plot_cross(cross, METRICS, "pre-training")
    panels = figure.axes[: len(METRICS)]
    assert [axes.get_title() for axes in panels] == ["PPL", "Mem 25"]
    for axes, metric in zip(panels, METRICS, strict=True):
        found = [float(text.get_text()) for text in axes.texts]
        assert found == [value("", s, u, metric) for s in SEEN for u in UNSEEN]
        (mesh,) = axes.collections
        assert (mesh.norm.vmin, mesh.norm.vmax) == (0, 100)  # white is chance
        frames = [p.get_xy() for p in axes.patches if isinstance(p, Rectangle)]
        assert sorted(frames) == [(0, 0), (1, 1)]
    left, low = panels[0], panels[-1]
    assert [text.get_text() for text in left.get_yticklabels()] == list(SEEN)
    assert [text.get_text() for text in low.get_xticklabels()] == list(UNSEEN)
    positions = [axes.get_position() for axes in panels]
    assert (positions[0].x0 == positions[1].x0) == stacked
    figure.canvas.draw()


def test_densities_of_all_domains_and_of_the_pair_furthest_apart(scored, cross) -> None:
    figure = plot_density(scored, cross, "loss")
    expected = [f"{p}, {pair}" for p in PHASES for pair in ("within domains", "a against c")]
    assert [axes.get_title() for axes in figure.axes] == expected
    assert all(len(axes.collections) == 2 for axes in figure.axes)
    peaks = [_peak(axes, index) for axes in figure.axes[1::2] for index in (0, 1)]
    assert peaks == pytest.approx([5, 10, 5, 10], abs=1)
    figure.canvas.draw()


def _peak(axes, index: int) -> float:
    """Where the first (members) or second (non-members) density is highest."""
    points = axes.collections[index].get_paths()[0].vertices
    return float(points[points[:, 1].argmax(), 0])


def test_that_nothing_was_measured_is_said(scored, cross) -> None:
    empty = cross[:0]
    for figure in (plot_cross(empty, METRICS, PHASES[0]), plot_density(scored, empty, "loss")):
        (text,) = figure.axes[0].texts
        assert text.get_text() == "No cell was measured"
