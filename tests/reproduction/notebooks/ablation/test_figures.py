"""The figure of an ablation shows means, and a test keeps its colour whatever stands beside it."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from contamination.audit.battery import COMPARED, TESTS
from reproduction.notebooks.ablation.figures import plot_ablation
from reproduction.output.evidence import mean_log10_p


@pytest.fixture
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        [
            {"dataset": name, "shards": shards, "test": test, "log10_p": -9 * rng.random()}
            for name in ("long", "short")
            for shards in (5, 10)
            for test in COMPARED
        ]
    )


def test_lines_are_means_in_the_colours_of_their_tests(rows: pd.DataFrame) -> None:
    fewer = rows[rows["test"] != COMPARED[0]].iloc[::-1]
    for drawn in (rows, fewer):
        axes = plot_ablation(mean_log10_p(drawn, "shards"), drawn, "shards", "Shards").axes[0]
        lines = {line.get_label(): line for line in axes.get_lines()}
        names = set(drawn["test"])
        assert {label for label in lines if not label.startswith("_")} == {
            TESTS[name].label for name in names
        }
        for test in map(TESTS.__getitem__, names):
            line = lines[test.label]
            expected = drawn[drawn["test"] == test.name].groupby("shards")["log10_p"].mean()
            np.testing.assert_allclose(line.get_ydata(), expected)
            assert to_hex(line.get_color()) == test.colour.lower()
            assert line.get_marker() == test.marker
        assert axes.get_xlabel() == "Shards"
