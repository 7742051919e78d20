"""Figures: the same data give the same bytes."""

import re
from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from fakes.data_fixtures import ROOT
from reproduction.output.figures import save_figure, use_style

PAPER, SCREEN = 459, 696  # points and pixels that a line has in the PDF and on the page


@pytest.fixture(autouse=True)
def style() -> Iterator[None]:
    backend = mpl.get_backend()
    mpl.use("agg")
    with mpl.rc_context():
        use_style()
        yield
    plt.close("all")
    mpl.use(backend)


def _figure(factor: float = 1.0) -> Figure:
    figure, axes = plt.subplots()
    axes.plot([1, 2, 3], factor * np.array([1.0, 4.0, 9.0]), marker="o", label="drawn")
    axes.legend()
    return figure


def test_text_of_figures_has_seven_points_on_paper_and_ten_pixels_on_screens(tmp_path) -> None:
    wide, axes = plt.subplots(figsize=(12, 3))
    axes.set_title("wide")
    save_figure(wide, tmp_path, "wide")
    assert _sizes(tmp_path / "figures" / "wide.svg")[0] < 548
    shown = re.compile(r"figures/(\w+)\.svg\)\{[^}]*width=(\d+)%\}")
    for document in (ROOT / "paper").glob("*.qmd"):
        for name, percent in shown.findall(document.read_text()):
            if (file := ROOT / "results" / "reference" / "figures" / f"{name}.svg").is_file():
                width, smallest = _sizes(file)
                points = int(percent) / 100 * smallest / width
                assert points * PAPER >= 7, (document.name, name)
                assert points * SCREEN >= 10, (document.name, name)


def _sizes(file: Path) -> tuple[float, float]:
    """Width of a figure and its smallest text, in points; glyphs are drawn at a hundredth."""
    svg = file.read_text()
    found = re.search(r'width="([\d.]+)pt"', svg)
    assert found
    return float(found[1]), 100 * min(map(float, re.findall(r"scale\((0\.\d+) -0", svg)))


def test_the_same_data_give_the_same_bytes(tmp_path: Path) -> None:
    for directory in ("a", "b"):
        save_figure(_figure(), tmp_path / directory, "power")
    for suffix in ("svg", "png"):
        a, b = ((tmp_path / d / "figures" / f"power.{suffix}").read_bytes() for d in "ab")
        assert a == b
    save_figure(_figure(2.0), tmp_path / "c", "power")
    assert (tmp_path / "c" / "figures" / "power.png").read_bytes() != a
