"""Figures: the same data give the same bytes, and colours differ where they stand together."""

from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from contamination.audit.battery import TESTS
from reproduction.output.figures import SCORES, save_figure, score_style, use_style


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


def test_tests_have_colours_and_markers_of_their_own() -> None:
    assert len({test.colour for test in TESTS.values()}) == len(TESTS)
    assert len({test.marker for test in TESTS.values()}) == len(TESTS)


def test_scores_differ_from_each_other_and_from_the_tests_beside_them() -> None:
    for columns in zip(*SCORES.values(), strict=True):  # colours, then markers
        assert len(set(columns)) == len(SCORES)
    beside = {TESTS[test].colour for test in ("sharded_t", "sharded_exact", "successor")}
    for score in ("loss", "zlib", "min_k_20", "min_k_pp_20"):
        assert score_style(score)["color"] not in beside
    assert score_style("min_k_pp_5") == {"color": "#000000", "marker": "v"}
    assert score_style("reference_difference")["marker"] == "X"


def test_the_same_data_give_the_same_bytes(tmp_path: Path) -> None:
    for directory in ("a", "b"):
        save_figure(_figure(), tmp_path / directory, "power")
    assert sorted(f.name for f in (tmp_path / "a" / "figures").iterdir()) == [
        "power.png",
        "power.svg",
    ]
    for suffix in ("svg", "png"):
        a, b = ((tmp_path / d / "figures" / f"power.{suffix}").read_bytes() for d in "ab")
        assert a == b
    save_figure(_figure(2.0), tmp_path / "c", "power")
    assert (tmp_path / "c" / "figures" / "power.png").read_bytes() != a
