"""The figure of the canary sets shows every point, ours beside the published ones."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from contamination.audit.battery import COMPARED, TESTS
from contamination.experiments.canaries.figures import plot_duplication_power
from contamination.experiments.canaries.tables import published_power
from contamination.results.published import load_published
from fakes.data_fixtures import ROOT

TABLE_1 = load_published(ROOT / "data" / "published", "oren2024_table1_canaries")
PUBLISHED = published_power(TABLE_1)
SHOWN = ("permutation", *COMPARED)  # more never stand in one figure


@pytest.fixture
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        [
            {"dup_count": count, "test": test, "log10_p": -count * rng.random()}
            for count in (1, 8, 64)
            for _ in range(2)
            for test in SHOWN
        ]
    )


def test_every_point_and_the_colour_of_its_test(rows: pd.DataFrame) -> None:
    axes = plot_duplication_power(rows, PUBLISHED).axes[0]
    points = {line.get_label(): line for line in axes.get_lines()}
    assert {label for label in points if not label.startswith("_")} == {
        TESTS[name].label for name in SHOWN
    }
    for test in map(TESTS.__getitem__, SHOWN):
        chosen, line = rows[rows["test"] == test.name], points[test.label]
        assert (to_hex(line.get_color()), line.get_marker()) == (test.colour.lower(), test.marker)
        np.testing.assert_array_equal(line.get_ydata(), chosen["log10_p"])
        # Moved sideways a little, never to another count.
        ratio = np.asarray(line.get_xdata()) / chosen["dup_count"].to_numpy()
        np.testing.assert_allclose(ratio, ratio[0])
        assert (np.abs(np.log2(ratio)) < 0.25).all()
        means = [one for one in axes.get_lines() if len(one.get_ydata()) == 3]
        (mean,) = [one for one in means if to_hex(one.get_color()) == test.colour.lower()]
        wanted = chosen.groupby("dup_count")["log10_p"].mean()
        np.testing.assert_allclose(mean.get_ydata(), wanted)
        np.testing.assert_allclose(mean.get_xdata() / wanted.index, ratio[0])
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["1", "8", "64"]
    level = next(line for line in axes.get_lines() if line.get_linestyle() == "--")
    assert level.get_ydata()[0] == pytest.approx(np.log10(0.05))


def test_the_published_points_stand_beside(rows: pd.DataFrame) -> None:
    ours, theirs = plot_duplication_power(rows, PUBLISHED).axes
    points = {line.get_label(): line for line in theirs.get_lines()}
    for column, name in (("permutation_p", "permutation"), ("sharded_p", "sharded_t")):
        test, line = TESTS[name], points[TESTS[name].label]
        np.testing.assert_allclose(10 ** line.get_ydata(), TABLE_1[column], rtol=1e-9)
        assert (to_hex(line.get_color()), line.get_marker()) == (test.colour.lower(), test.marker)
        assert (np.abs(np.log2(line.get_xdata() / TABLE_1["dup_count"])) < 0.25).all()
    assert len([label for label in points if not label.startswith("_")]) == 2
    assert ours.get_ylim() == theirs.get_ylim()
