"""AUCs, trends and conclusions, on made-up scores of which the truth is known."""

import numpy as np
import pandas as pd
import pytest

from contamination.membership.evaluate import auc
from fakes.made_up_runs import HALF, STRONG, made_up
from reproduction.notebooks.controlled.measure import LEFT_OUT
from reproduction.notebooks.controlled.tables import (
    BASE,
    CONCLUSIONS,
    COUNT,
    INSIDE,
    KEYS,
    MEAN,
    OUTLIER,
    RATE,
    SIZE,
    TRAINED,
    auc_table,
    conclusions,
    main_layout,
    mean_draws,
    rate_layout,
    trends,
)


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


# --- layouts ------------------------------------------------------------------------------------

LABELS = {"loss": "PPL", "min_k_20": "Min-20%"}
SCORES = (*LABELS, "zlib")


@pytest.fixture
def laid_out() -> pd.DataFrame:
    """AUCs that say where they stand; intervals leave out 0.5 under the trained model alone."""
    runs = [(SIZE, 0, 0.0, BASE), (SIZE, 100, 1e-3, TRAINED), (SIZE, 300, 1e-3, TRAINED)]
    runs += [(RATE, 0, 0.0, BASE), (RATE, 100, 1e-3, TRAINED), (RATE, 100, 1e-4, TRAINED)]
    names = ["experiment", "corpus_tokens", "learning_rate", "model", "dataset", "score"]
    sets = ("question", "files.jsonl", LEFT_OUT, MEAN)
    rows = [(*run, dataset, score) for run in runs for dataset in sets for score in SCORES]
    table = pd.DataFrame(rows, columns=names)
    left = table["dataset"] == LEFT_OUT
    table = table.assign(contaminant=left.map({True: INSIDE, False: OUTLIER}))
    table = table[~left | (table["experiment"] == SIZE)]
    auc = 0.6 + table["corpus_tokens"] / 1000 + table["learning_rate"] * 20
    auc = auc.where(table["model"] != BASE, 0.5)
    return table.assign(
        auc=auc + 0.01 * (table["score"] == "loss"),
        auc_low=auc - 0.1,
        auc_high=auc + 0.1,
        tpr_at_5_fpr=table["corpus_tokens"] / 1000,
    )


def test_table_3_is_at_the_largest_size(laid_out: pd.DataFrame) -> None:
    shown = main_layout(laid_out, LABELS)
    assert list(shown) == [
        *("Method", "Question", "Files.jsonl", "Mean", "Before training", "TPR at 5% FPR"),
        "Left-out documents",
    ]
    assert shown["Method"].tolist() == ["PPL", "Min-20%"]
    first = shown.iloc[0].tolist()
    assert first == [
        *("PPL", "**0.93**", "**0.93**", "**0.93** (0.82 to 1.02)", "0.51 (0.40 to 0.60)", "30%"),
        "**0.93**",
    ]


def test_table_4_has_a_row_for_each_rate_and_the_base_first(laid_out: pd.DataFrame) -> None:
    shown = rate_layout(laid_out, "min_k_20")
    assert shown["Learning rate"].tolist() == ["before training", "0.0001", "0.001"]
    assert shown["Question"].tolist() == ["0.50", "**0.70**", "**0.72**"]
    assert shown["Mean"].tolist()[2] == "**0.72** (0.62 to 0.82)"
