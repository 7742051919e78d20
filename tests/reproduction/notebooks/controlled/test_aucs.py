"""AUCs, trends and conclusions, on made-up scores of which the truth is known."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from contamination.errors import InputError
from contamination.membership.evaluate import auc
from fakes.made_up_runs import HALF, STRONG, made_up
from reproduction.notebooks.controlled.aucs import (
    CONCLUSIONS,
    MEAN,
    auc_table,
    conclusions,
    mean_draws,
    trends,
)
from reproduction.notebooks.controlled.contaminants import OUTLIER
from reproduction.notebooks.controlled.runs import BASE, COUNT, KEYS, RATE, SIZE, TRAINED


@pytest.fixture(scope="module")
def scored() -> pd.DataFrame:
    return made_up(STRONG, inside=1.0)


@pytest.fixture(scope="module")
def table(scored) -> pd.DataFrame:
    return auc_table(scored, rng=np.random.default_rng(1), resamples=200)


def test_aucs_are_those_of_the_roc_curve(scored, table) -> None:
    single = table[table["dataset"] != MEAN].set_index([*KEYS, "score"])
    cells = list(scored.groupby(list(KEYS)))
    assert len(single) == 2 * len(cells)
    for key, cell in cells:
        for score in ("min_k_20", "loss"):
            row = single.loc[(*key, score)]
            assert row["auc"] == pytest.approx(auc(cell[score], cell["member"]))
            assert row["members"] == row["non_members"] == HALF


def test_a_mean_is_over_the_outlier_sets(table) -> None:
    keys = ["experiment", "model", "corpus_tokens", "dup_count", "learning_rate", "score"]
    outliers = table[table["contaminant"] == OUTLIER]
    assert set(table.loc[table["dataset"] == MEAN, "contaminant"]) == {OUTLIER}
    for _, rows in outliers.groupby(keys):
        (mean,) = rows[rows["dataset"] == MEAN].to_dict("records")
        others = rows[rows["dataset"] != MEAN]
        assert mean["auc"] == pytest.approx(others["auc"].mean())
        assert mean["tpr_at_5_fpr"] == pytest.approx(others["tpr_at_5_fpr"].mean())
        assert mean["members"] == 2 * HALF
        assert mean["auc_low"] < mean["auc"] < mean["auc_high"]
        # Two sets of independent texts: about 1 / sqrt(2) of the width for one.
        width = (others["auc_high"] - others["auc_low"]).mean()
        assert 0.5 < (mean["auc_high"] - mean["auc_low"]) / width < 0.9


def test_models_are_compared_in_pairs() -> None:
    """The same scores under all models have no slope, and no resample gives them one."""
    flat = made_up({SIZE: dict.fromkeys((100, 200, 400), 1.0)}, inside=1.0)
    found = trends(flat, rng=np.random.default_rng(3), resamples=50)
    assert np.abs(found[["slope", "slope_low", "slope_high"]]).max(axis=None) < 1e-12


def test_a_slope_is_per_doubling(scored) -> None:
    found = trends(scored, rng=np.random.default_rng(3), resamples=200)
    draws = mean_draws(scored, rng=np.random.default_rng(3), resamples=1)
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
            assert (row["first_auc"], row["last_auc"]) == pytest.approx((y[0], y[-1]))
            assert row["slope_low"] <= row["slope"] <= row["slope_high"]
    assert len(found) == 2 * len(CONCLUSIONS)


def _concluded(some: pd.DataFrame) -> pd.DataFrame:
    table = auc_table(some, rng=np.random.default_rng(1), resamples=200)
    found = trends(some, rng=np.random.default_rng(2), resamples=200)
    return conclusions(table, found, score="min_k_20")


def test_conclusions_follow_what_was_planted(scored) -> None:
    concluded = _concluded(scored)
    assert concluded["holds"].tolist() == ["no", "yes", "yes", "yes", "yes"]
    found = trends(scored, rng=np.random.default_rng(2), resamples=200)
    rate = found[(found["experiment"] == RATE) & (found["score"] == "min_k_20")].squeeze()
    ends = f"AUC {rate['first_auc']:.2f} to {rate['last_auc']:.2f}"
    assert concluded["measured"][3].startswith(f"{ends}; per doubling {rate['slope']:+.3f} (")
    reverse = {
        name: dict(zip(gains, list(gains.values())[::-1], strict=True))
        for name, gains in STRONG.items()
    }
    holds = _concluded(made_up(reverse, inside=1.0))["holds"]
    assert holds.tolist() == ["yes", "no", "no", "no", "yes"]


def test_without_an_effect_nothing_is_concluded() -> None:
    """Other texts at every duplication count, so that nothing is compared in pairs."""
    some = made_up({COUNT: {1: 0.0, 2: 0.0, 4: 0.0}})
    part = some["experiment"].eq(COUNT) & some["member"] & some["model"].eq(TRAINED)
    rng = np.random.default_rng(4)
    some.loc[part, "min_k_20"] = rng.normal(size=part.sum())
    concluded = _concluded(pd.concat([some, made_up({SIZE: {100: 1.0, 200: 1.0}})]))
    assert concluded["holds"].tolist()[2] == "undecided"


def test_what_was_not_measured_is_not_concluded() -> None:
    concluded = _concluded(made_up({SIZE: {100: 0.2, 200: 2.0}}, inside=1.0))
    assert concluded["holds"].tolist() == ["yes", "no", "—", "—", "yes"]
    assert concluded["measured"].tolist()[2] == "—"


def test_a_control_that_is_off_is_undecided(scored) -> None:
    off = scored.copy()
    base = (off["model"] == BASE) & off["member"] & (off["dataset"] == "two")
    off.loc[base, "min_k_20"] += 1.0
    *_, control = _concluded(off).to_dict("records")
    assert control["holds"] == "undecided"
    assert "0.5 is outside of 1 of 3 intervals" in control["measured"]


def test_the_generator_decides_the_intervals(scored) -> None:
    found = [trends(scored, rng=np.random.default_rng(s), resamples=20) for s in (1, 1, 2)]
    for (a, b), same in zip(pairwise(found), (True, False), strict=True):
        assert a.equals(b) is same


def test_no_resample(scored) -> None:
    with pytest.raises(InputError, match="0 resamples"):
        trends(scored, rng=np.random.default_rng(0), resamples=0)
