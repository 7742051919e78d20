"""The tables of the canary sets, on stores filled with random numbers instead of a model's."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from fakes.data_fixtures import EXAMPLES, SETS, MadeUpRun
from reproduction.notebooks.canaries.tables import (
    canary_layout,
    canary_table,
    pooled_redrawn,
)
from reproduction.run.experiment import MODELS

ALPHA, REDRAWN = 0.05, 400


@pytest.fixture(scope="module")
def table(run: MadeUpRun) -> pd.DataFrame:
    return canary_table(run.experiment, alpha=ALPHA, redrawn=REDRAWN)


def test_every_p_value_comes_from_the_scores_of_its_store(table, run) -> None:
    rows = table.set_index(["model", "dataset", "test"])
    for model in MODELS:
        for name in SETS:
            whole, sharded = run.sums[model, name, 1][0], run.sums[model, name, 4]
            p = (1 + (whole[1:] >= whole[0]).sum()) / len(whole)
            row = rows.loc[model, name, "permutation"]
            assert row["p"] == pytest.approx(p)
            assert (row["shards"], row["permutations"]) == (1, 9)
            assert row["tokens_scored"] == sum(run.lengths[name]) * 10

            differences = sharded[:, 0] - sharded[:, 1:].mean(axis=1)
            expected = stats.ttest_1samp(differences, 0, alternative="greater")
            row = rows.loc[model, name, "sharded_t"]
            assert row["p"] == pytest.approx(expected.pvalue)
            assert row["statistic"] == pytest.approx(expected.statistic)
            assert (row["shards"], row["permutations"]) == (4, 6)

            row = rows.loc[model, name, "sharded_exact"]
            assert row["p"] == pytest.approx(_enumerated(sharded), rel=0.02)
            assert row["tokens_scored"] == sum(run.lengths[name]) * 7

            # One shard of all twelve examples: each is read once, and after every other one.
            row = rows.loc[model, name, "successor"]
            assert (row["shards"], row["permutations"]) == (1, 10_000)
            assert row["tokens_scored"] == sum(run.lengths[name]) * EXAMPLES


def _enumerated(sums: np.ndarray) -> float:
    """Exact p by going through all (m+1)^r canonical indices."""
    z = (sums - sums.mean(axis=1, keepdims=True)) / sums.std(axis=1, keepdims=True)
    totals = np.zeros(1)
    for row in z:
        totals = (totals[:, None] + row).ravel()
    return float((totals >= z[:, 0].sum() - 1e-9).mean())


def test_planted_sets_stand_out_and_only_under_the_contaminated_model(table: pd.DataFrame) -> None:
    exact = table[table["test"] == "sharded_exact"].set_index(["model", "dataset"])["p"]
    assert exact["contaminated", "sixty-four"] < 0.01
    assert exact["clean"].min() > 0.01
    successor = table[table["test"] == "successor"].set_index(["model", "dataset"])["p"]
    assert successor["contaminated", "sixty-four"] < 0.001
    assert successor["clean"].min() > 0.01


def test_redrawn_orders_are_rejected_at_the_level_whatever_was_read(table: pd.DataFrame) -> None:
    rows = table.dropna().set_index(["model", "dataset", "test"])
    assert set(rows["redrawn_orders"]) == {REDRAWN} and set(rows["redrawn_alpha"]) == {ALPHA}
    most = stats.binom(REDRAWN, ALPHA).isf(1e-5)
    assert (rows["redrawn_rejections"] <= most).all() and rows["redrawn_rejections"].sum() > 0
    for _, row in rows.iterrows():
        interval = stats.binomtest(int(row["redrawn_rejections"]), REDRAWN).proportion_ci()
        assert row["redrawn_rate"] == row["redrawn_rejections"] / REDRAWN
        assert (row["redrawn_low"], row["redrawn_high"]) == pytest.approx(interval)
    # A published order that was read stands out among those that nobody has read.
    assert rows.loc[("contaminated", "sixty-four", "successor"), "redrawn_as_small"] == 0


def test_redrawn_orders_of_all_sets_together(table: pd.DataFrame) -> None:
    pooled = pooled_redrawn(table)
    assert pooled[["model", "test"]].to_numpy().tolist() == [
        [model, test]
        for model in MODELS
        for test in ("sharded_t", "sharded_exact", "boundary", "successor")
    ]
    for _, row in pooled.iterrows():
        chosen = table[(table["model"] == row["model"]) & (table["test"] == row["test"])]
        hits, orders = chosen["redrawn_rejections"].sum(), REDRAWN * len(SETS)
        assert (row["redrawn_rejections"], row["redrawn_orders"]) == (hits, orders)
        assert row["sets"] == len(SETS)
        interval = stats.binomtest(int(hits), orders).proportion_ci()
        assert (row["redrawn_low"], row["redrawn_high"]) == pytest.approx(interval)


def test_one_model_laid_out() -> None:
    tests = {"permutation": 0.1, "sharded_exact": 0.004, "successor": 1e-9}
    canaries = pd.DataFrame(
        [
            (model, dataset, 12, count, test, p, np.log10(p), min(1, p * factor))
            for model, factor in (("contaminated", 5), ("clean", 50))
            for dataset, count in (("b", 8), ("c", 1), ("a", 8))
            for test, p in tests.items()
        ],
        columns=["model", "dataset", "examples", "dup_count", "test", "p", "log10_p", "holm_p"],
    ).assign(redrawn_rate=[np.nan, np.nan, 0.0456] * 6)
    table = canary_layout(canaries, "contaminated", 0.05)
    heads = ["Set", "Examples", "Duplication count", "Permutation", "Sharded exact"]
    assert list(table) == [*heads, "Sharded exact, Holm", "Successor", "Redrawn"]
    assert table["Set"].tolist() == ["c", "a", "b"]
    cells = ["0.100", "0.004", "**0.020**", "1.0\u00a0×\u00a010⁻⁹", "4.6%"]
    assert table.iloc[1].tolist() == ["a", "12", "8", *cells]
    clean = canary_layout(canaries, "clean", 0.05)
    assert set(clean["Duplication count"]) == {"0"}
    assert set(clean["Sharded exact, Holm"]) == {"0.200"}


def test_holm_within_each_model_and_test(table: pd.DataFrame) -> None:
    for _, group in table.groupby(["model", "test"]):
        p = np.sort(group["p"].to_numpy())
        steps = np.minimum(1, np.maximum.accumulate(p * np.arange(len(p), 0, -1)))
        expected = pd.Series(steps[stats.rankdata(group["p"], "ordinal") - 1], group.index)
        np.testing.assert_allclose(group["holm_p"], expected)
