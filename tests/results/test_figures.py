"""Figures: the same data give the same bytes, and a test has one colour everywhere."""

import re
from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from contamination.audit.battery import COMPARED, TESTS
from contamination.experiments.ablation.figures import plot_ablation
from contamination.experiments.ablation.settings import mean_log10_p
from contamination.experiments.canaries.figures import plot_duplication_power
from contamination.experiments.canaries.tables import published_power
from contamination.results.figures import (
    SCORES,
    save_figure,
    score_style,
    use_style,
)
from contamination.results.published import load_published
from fakes.data_fixtures import ROOT

TABLE_1 = load_published(ROOT / "data" / "published", "oren2024_table1_canaries")
PUBLISHED = published_power(TABLE_1)
SHOWN = [TESTS[name] for name in ("permutation", *COMPARED)]  # more never stand in one figure


@pytest.fixture(autouse=True)
def style() -> Iterator[None]:
    backend = mpl.get_backend()
    mpl.use("agg")
    with mpl.rc_context():
        use_style()
        yield
    plt.close("all")
    mpl.use(backend)


@pytest.fixture
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        [
            {
                "dataset": f"{test_set}-{count}",
                "dup_count": count,
                "shards": shards,
                "test": test,
                "log10_p": -count * rng.random(),
            }
            for count in (1, 8, 64)
            for test_set in ("long", "short")
            for shards in (5, 10)
            for test in TESTS
            if TESTS[test] in SHOWN
        ]
    )


def _lines(figure: Figure) -> dict[str, tuple[str, str]]:
    lines = figure.axes[0].get_lines()
    labelled = [line for line in lines if not line.get_label().startswith("_")]
    return {line.get_label(): (to_hex(line.get_color()), line.get_marker()) for line in labelled}


EXPECTED = {test.label: (test.colour.lower(), test.marker) for test in SHOWN}


def test_colours_and_markers_are_distinct_and_the_same_everywhere(rows: pd.DataFrame) -> None:
    assert len({test.colour for test in TESTS.values()}) == len(TESTS)
    assert len({test.marker for test in TESTS.values()}) == len(TESTS)
    assert _lines(plot_duplication_power(rows, PUBLISHED)) == EXPECTED
    assert _lines(plot_ablation(mean_log10_p(rows, "shards"), rows, "shards", "Shards")) == EXPECTED
    # Colours belong to the test and not to its place: a test less, or another order.
    fewer = rows[rows["test"] != "permutation"].iloc[::-1]
    lines = _lines(plot_ablation(mean_log10_p(fewer, "shards"), fewer, "shards", "Shards"))
    assert lines == {k: v for k, v in EXPECTED.items() if k != TESTS["permutation"].label}


def test_scores_differ_from_each_other_and_from_the_tests_beside_them() -> None:
    assert len({colour for _, colour, _ in SCORES.values()}) == len(SCORES)
    assert len({marker for _, _, marker in SCORES.values()}) == len(SCORES)
    beside = {TESTS[test].colour for test in ("sharded_t", "sharded_exact", "successor")}
    for score in ("loss", "zlib", "min_k_20", "min_k_pp_20"):
        assert score_style(score)[1] not in beside
    assert score_style("min_k_pp_5")[0] == "Min-5%++"
    assert score_style("reference_difference")[0] == "Smaller Ref"


def test_duplication_power_shows_every_point(rows: pd.DataFrame) -> None:
    axes = plot_duplication_power(rows, PUBLISHED).axes[0]
    points = {line.get_label(): line for line in axes.get_lines()}
    for test in SHOWN:
        chosen, label = rows[rows["test"] == test.name], test.label
        np.testing.assert_array_equal(points[label].get_ydata(), chosen["log10_p"])
        # Moved sideways a little, never to another count.
        ratio = points[label].get_xdata() / chosen["dup_count"]
        assert np.allclose(ratio, ratio.iloc[0] if hasattr(ratio, "iloc") else ratio[0])
        assert (np.abs(np.log2(ratio)) < 0.25).all()
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["1", "8", "64"]
    level = next(line for line in axes.get_lines() if line.get_linestyle() == "--")
    assert level.get_ydata()[0] == pytest.approx(np.log10(0.05))


def test_duplication_power_beside_the_published_points(rows: pd.DataFrame) -> None:
    ours, theirs = plot_duplication_power(rows, PUBLISHED).axes
    points = {line.get_label(): line for line in theirs.get_lines()}
    for column, test in (("permutation_p", "permutation"), ("sharded_p", "sharded_t")):
        label, colour, marker = TESTS[test].label, TESTS[test].colour, TESTS[test].marker
        np.testing.assert_allclose(10 ** points[label].get_ydata(), TABLE_1[column], rtol=1e-9)
        assert (to_hex(points[label].get_color()), points[label].get_marker()) == (
            colour.lower(),
            marker,
        )
        ratio = points[label].get_xdata() / TABLE_1["dup_count"]
        assert (np.abs(np.log2(ratio)) < 0.25).all()
    assert len([label for label in points if not label.startswith("_")]) == 2
    assert ours.get_ylim() == theirs.get_ylim()


def test_ablation_shows_means(rows: pd.DataFrame) -> None:
    table = mean_log10_p(rows, "shards")
    axes = plot_ablation(table, rows, "shards", "Shards").axes[0]
    points = {line.get_label(): line for line in axes.get_lines()}
    for test in SHOWN:
        expected = rows[rows["test"] == test.name].groupby("shards")["log10_p"].mean()
        np.testing.assert_allclose(points[test.label].get_ydata(), expected)
    assert axes.get_xlabel() == "Shards"


def test_the_same_data_give_the_same_bytes(rows: pd.DataFrame, tmp_path: Path) -> None:
    for directory in ("a", "b"):
        save_figure(plot_duplication_power(rows, PUBLISHED), tmp_path / directory, "power")
    for suffix in ("svg", "png"):
        a, b = ((tmp_path / d / "figures" / f"power.{suffix}").read_bytes() for d in "ab")
        assert a == b
    other = rows.assign(log10_p=rows["log10_p"] * 2)
    save_figure(plot_duplication_power(other, PUBLISHED), tmp_path / "c", "power")
    assert (tmp_path / "c" / "figures" / "power.svg").read_bytes() != a


def test_files(rows: pd.DataFrame, tmp_path: Path) -> None:
    figure = plot_duplication_power(rows, PUBLISHED)
    save_figure(figure, tmp_path, "power")
    directory = tmp_path / "figures"
    assert sorted(f.name for f in directory.iterdir()) == ["power.png", "power.svg"]
    svg = (directory / "power.svg").read_text(encoding="utf-8")
    assert svg.rstrip().endswith("</svg>")
    assert not re.search(r"<dc:date>|\d{4}-\d\d-\d\dT", svg)
    png = (directory / "power.png").read_bytes()
    assert png.startswith(b"\x89PNG")
    pixels = plt.imread(directory / "power.png")
    assert pixels.shape[1] > 600
    assert len(np.unique(pixels.reshape(-1, pixels.shape[2]), axis=0)) > 10  # not blank
