"""AUCs, trends and conclusions, on made-up scores of which the truth is known."""

import numpy as np
import pandas as pd
import pytest

from contamination.membership.evaluate import auc
from fakes.made_up_runs import STRONG, made_up
from reproduction.notebooks.controlled import tables
from reproduction.notebooks.controlled.tables import COUNT, KEYS, RATE, SIZE, TRAINED


@pytest.fixture(scope="module")
def scored() -> pd.DataFrame:
    return made_up(STRONG, inside=1.0)


@pytest.fixture(scope="module")
def table(scored) -> pd.DataFrame:
    return tables.auc_table(scored, rng=np.random.default_rng(1), resamples=200)


def test_aucs_are_those_of_the_roc_curve(scored, table) -> None:
    single = table[table["dataset"] != tables.MEAN].set_index([*KEYS, "score"])
    cells = list(scored.groupby(list(KEYS)))
    assert len(single) == 2 * len(cells)
    for key, cell in cells:
        for score in ("min_k_20", "loss"):
            row = single.loc[(*key, score)]
            assert row["auc"] == pytest.approx(auc(cell[score], cell["member"]))


def test_a_slope_is_per_doubling_of_models_in_pairs(scored) -> None:
    flat = made_up({SIZE: dict.fromkeys((100, 200, 400), 1.0)}, inside=1.0)
    found = tables.trends(flat, rng=np.random.default_rng(3), resamples=50)
    assert np.abs(found[["slope", "slope_low", "slope_high"]]).max(axis=None) < 1e-12

    found = tables.trends(scored, rng=np.random.default_rng(3), resamples=200)
    draws = tables.mean_draws(scored, rng=np.random.default_rng(3), resamples=1)
    for (experiment, contaminant), rows in found.groupby(["experiment", "contaminant"]):
        key = {SIZE: 3, COUNT: 4, RATE: 5}[experiment]  # its place among KEYS without the dataset
        points = sorted(
            (at[key], values[0])
            for at, values in draws.items()
            if at[:3] == (experiment, contaminant, TRAINED)
        )
        x = np.log2([value for value, _ in points])
        for i, row in enumerate(rows.to_dict("records")):
            y = [values[i] for _, values in points]
            assert row["slope"] == pytest.approx(np.polyfit(x, y, 1)[0])
            assert row["first_auc"] == pytest.approx(y[0])
            assert row["last_auc"] == pytest.approx(y[-1])
            assert row["slope_low"] <= row["slope"] <= row["slope_high"]
    assert len(found) == 2 * len(tables.CONCLUSIONS)


def _concluded(some: pd.DataFrame) -> pd.DataFrame:
    table = tables.auc_table(some, rng=np.random.default_rng(1), resamples=200)
    found = tables.trends(some, rng=np.random.default_rng(2), resamples=200)
    return tables.conclusions(table, found, score="min_k_20")


def test_conclusions_follow_what_was_planted(scored) -> None:
    assert _concluded(scored)["holds"].tolist() == ["no", "yes", "yes", "yes", "yes"]
    reverse = {
        name: dict(zip(gains, list(gains.values())[::-1], strict=True))
        for name, gains in STRONG.items()
    }
    holds = _concluded(made_up(reverse, inside=1.0))["holds"]
    assert holds.tolist() == ["yes", "no", "no", "no", "yes"]
    # Without an effect nothing is: other texts at every count, so that nothing is in pairs.
    some = made_up({COUNT: {1: 0.0, 2: 0.0, 4: 0.0}})
    part = some["experiment"].eq(COUNT) & some["member"] & some["model"].eq(TRAINED)
    rng = np.random.default_rng(4)
    some.loc[part, "min_k_20"] = rng.normal(size=part.sum())
    concluded = _concluded(pd.concat([some, made_up({SIZE: {100: 1.0, 200: 1.0}})]))
    assert concluded["holds"].tolist()[2] == "undecided"
