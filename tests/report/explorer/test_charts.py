"""The figures of the notebook draw the numbers of an outcome."""

from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex

from contamination.audit.battery import TESTS
from contamination.report.explorer.charts import plot_by_shard, plot_null
from contamination.report.explorer.outcomes import Outcome
from contamination.report.explorer.scored import Found
from contamination.report.explorer.views import Viewer


@pytest.fixture(autouse=True)
def backend() -> Iterator[None]:
    before = mpl.get_backend()
    mpl.use("agg")
    yield
    plt.close("all")
    mpl.use(before)


@pytest.fixture(scope="module")
def outcomes(found: Found) -> tuple[Outcome, ...]:
    return Viewer().view(found.sets[0]).outcomes


def _different(outcomes: tuple[Outcome, ...]) -> list[Outcome]:
    return list({outcome.test: outcome for outcome in outcomes}.values())


def test_null(outcomes: tuple[Outcome, ...]) -> None:
    for outcome in _different(outcomes):
        axes = plot_null(outcome).axes[0]
        (line,) = axes.get_lines()
        assert line.get_xdata()[0] == outcome.canonical
        assert to_hex(line.get_color()).upper() == TESTS[outcome.test].colour
        values, edges, _ = axes.patches[0].get_data()
        assert values.sum() == pytest.approx(1)
        assert (edges[0], edges[-1]) == (outcome.null.low, outcome.null.high)
        assert axes.get_xlabel() == ("t" if outcome.test == "sharded_t" else "z")


def test_by_shard(outcomes: tuple[Outcome, ...]) -> None:
    for outcome in _different(outcomes):
        axes = plot_by_shard(outcome).axes[0]
        np.testing.assert_allclose([bar.get_height() for bar in axes.patches], outcome.by_shard)
        zero, mean = axes.get_lines()
        assert zero.get_ydata()[0] == 0
        assert mean.get_ydata()[0] == outcome.by_shard.mean()
        assert ("nats" in axes.get_ylabel()) is (outcome.unit == "nats")
