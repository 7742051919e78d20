"""The figure of the canary sets shows every point, and the means of few copies by themselves."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from contamination.audit.battery import COMPARED, TESTS
from reproduction.notebooks.canaries.figures import plot_duplication_power

SHOWN = ("permutation", *COMPARED)  # more never stand in one figure
COUNTS = (1, 2, 4, 7, 16, 64)


@pytest.fixture
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        [
            {"dup_count": count, "test": test, "log10_p": -count * rng.random()}
            for count in COUNTS
            for _ in range(3)
            for test in SHOWN
        ]
    )


@pytest.mark.parametrize(("panel", "counts"), [(0, COUNTS[:4]), (1, COUNTS)])
def test_every_set_and_every_mean_in_the_colour_of_its_test(rows, panel, counts) -> None:
    """Figure 2 of the paper has the means of 1, 2, 4 and 7 copies, and the sets behind them."""
    axes = plot_duplication_power(rows).axes[panel]
    for test in map(TESTS.__getitem__, SHOWN):
        chosen = rows[(rows["test"] == test.name) & rows["dup_count"].isin(counts)]
        points, means = _lines(axes, test.colour)
        assert (points.get_linestyle(), means.get_linestyle()) == ("None", "-")
        assert {points.get_marker(), means.get_marker()} == {test.marker}
        assert means.get_label() == test.label
        np.testing.assert_array_equal(points.get_ydata(), chosen["log10_p"])
        wanted = chosen.groupby("dup_count")["log10_p"].mean()
        np.testing.assert_allclose(means.get_ydata(), wanted)
        # Moved sideways a little, never to another count.
        ratio = np.asarray(points.get_xdata()) / chosen["dup_count"].to_numpy()
        np.testing.assert_allclose(ratio, ratio[0])
        np.testing.assert_allclose(means.get_xdata() / wanted.index, ratio[0])
        assert abs(np.log2(ratio[0])) < 0.25
    assert [tick.get_text() for tick in axes.get_xticklabels()] == [str(c) for c in counts]
    level = next(line for line in axes.get_lines() if line.get_linestyle() == "--")
    assert level.get_ydata()[0] == pytest.approx(np.log10(0.05))


def _lines(axes: Axes, colour: str) -> list:
    return [line for line in axes.get_lines() if to_hex(line.get_color()) == colour.lower()]
