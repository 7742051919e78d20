"""The tables of the canary sets, on stores filled with random numbers instead of a model's."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from contamination.errors import InputError
from contamination.experiments.canaries.evaluation import canary_table
from contamination.pretraining.experiment import MODELS
from fakes.data_fixtures import EXAMPLES, SETS, MadeUpRun


@pytest.fixture(scope="module")
def table(run: MadeUpRun) -> pd.DataFrame:
    return canary_table(run.experiment)


def test_one_row_per_model_set_and_test(table: pd.DataFrame) -> None:
    contract = ["dataset", "examples", "dup_count", "test", "p", "log10_p", "tokens_scored"]
    assert {*contract, "model", "kind", "shards", "permutations", "holm_p"} <= set(table)
    keys = table.groupby(["model", "dataset", "test"]).size()
    tests = {"permutation", "sharded_t", "sharded_exact", "boundary", "successor"}
    assert len(keys) == len(table) == len(MODELS) * len(SETS) * len(tests)
    assert set(table["test"]) == tests
    assert (table["examples"] == EXAMPLES).all()
    assert (table["dup_count"] == table["dataset"].map(SETS)).all()
    assert table["p"].between(0, 1, inclusive="right").all()
    np.testing.assert_allclose(table["log10_p"], np.log10(table["p"]), rtol=1e-9, atol=1e-12)
    assert not table.isna().any(axis=None)


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


def test_holm_within_each_model_and_test(table: pd.DataFrame) -> None:
    for _, group in table.groupby(["model", "test"]):
        p = np.sort(group["p"].to_numpy())
        steps = np.minimum(1, np.maximum.accumulate(p * np.arange(len(p), 0, -1)))
        expected = pd.Series(steps[stats.rankdata(group["p"], "ordinal") - 1], group.index)
        np.testing.assert_allclose(group["holm_p"], expected)


def test_unknown_set_lists_the_known(run: MadeUpRun) -> None:
    with pytest.raises(InputError, match="has no canary set 'tow'; it has one, eight, sixty-four"):
        run.experiment.spec("tow")
