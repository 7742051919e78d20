"""The tables of the canary sets, on stores filled with random numbers instead of a model's."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from contamination.statistics import adjust
from fakes.data_fixtures import EXAMPLES, SETS, MadeUpRun
from reproduction.notebooks.canaries.tables import canary_table
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
            assert row["shards"] == 1
            assert row["permutations"] == 9
            assert row["tokens_scored"] == sum(run.lengths[name]) * 10

            differences = sharded[:, 0] - sharded[:, 1:].mean(axis=1)
            expected = stats.ttest_1samp(differences, 0, alternative="greater")
            row = rows.loc[model, name, "sharded_t"]
            assert row["p"] == pytest.approx(expected.pvalue)
            assert row["statistic"] == pytest.approx(expected.statistic)
            assert row["shards"] == 4
            assert row["permutations"] == 6

            row = rows.loc[model, name, "sharded_exact"]
            assert row["p"] == pytest.approx(_enumerated(sharded), rel=0.02)
            assert row["tokens_scored"] == sum(run.lengths[name]) * 7

            # One shard of all twelve examples: each is read once, and after every other one.
            row = rows.loc[model, name, "successor"]
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
    for _, group in table.groupby(["model", "test"]):
        holm = adjust(log10_p=group["log10_p"], method="holm").log10_p
        np.testing.assert_allclose(np.log10(group["holm_p"]), holm, atol=1e-9)


def test_redrawn_orders_are_rejected_at_the_level_whatever_was_read(table: pd.DataFrame) -> None:
    rows = table.dropna().set_index(["model", "dataset", "test"])
    assert set(rows["redrawn_orders"]) == {REDRAWN}
    assert set(rows["redrawn_alpha"]) == {ALPHA}
    most = stats.binom(REDRAWN, ALPHA).isf(1e-5)
    assert (rows["redrawn_rejections"] <= most).all()
    assert rows["redrawn_rejections"].sum() > 0
    for _, row in rows.iterrows():
        interval = stats.binomtest(int(row["redrawn_rejections"]), REDRAWN).proportion_ci()
        assert row["redrawn_rate"] == row["redrawn_rejections"] / REDRAWN
        assert (row["redrawn_low"], row["redrawn_high"]) == pytest.approx(interval)
    # A published order that was read stands out among those that nobody has read.
    assert rows.loc[("contaminated", "sixty-four", "successor"), "redrawn_as_small"] == 0
