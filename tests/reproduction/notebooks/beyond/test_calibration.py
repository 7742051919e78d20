"""The calibration study finds tests that over-reject, and clears those that do not."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from reproduction.notebooks.beyond.calibration import (
    P_VALUES,
    RESAMPLES,
    calibration_table,
    heavy_tailed,
    null_scores,
    pools_of,
)


def test_any_ordering_is_called_canonical_as_often_and_none_is_lost():
    pool = np.arange(60.0).reshape(12, 5)
    rng = np.random.default_rng(0)
    first: Counter[float] = Counter()
    for _ in range(4000):
        rows = null_scores(pool, 3, rng=rng)
        assert rows.shape == (3, 5)
        starts = np.sort(rows, axis=1)[:, 0]
        np.testing.assert_array_equal(np.sort(rows, axis=1), starts[:, None] + np.arange(5))
        assert len(set(starts)) == 3
        first.update((rows[:, 0] - starts).tolist())
    assert stats.chisquare([first[i] for i in range(5)]).pvalue > 1e-4
    np.testing.assert_array_equal(pool, np.arange(60.0).reshape(12, 5))


def test_dividing_by_the_number_of_shards_over_rejects_and_is_seen_to():
    """At 5 shards and level 0.05, sqrt(5/4) t exceeds its quantile with probability 0.065."""
    rng = np.random.default_rng(2)
    pools = {("normal", 25): rng.standard_normal((4000, 26))}
    tests = {"normal": ["sharded_t", "sharded_t_ddof_0"]}
    table = calibration_table(pools, tests, shards=[5], alphas=[0.05, 0.01], trials=4000, rng=rng)
    rows = table[table["alpha"] == 0.05].set_index("test")
    expected = stats.t(4).sf(stats.t(4).isf(0.05) / np.sqrt(5 / 4))
    four_errors = 4 * np.sqrt(expected * (1 - expected) / 4000)
    assert rows.loc["sharded_t_ddof_0", "low"] > 0.05
    assert rows.loc["sharded_t_ddof_0", "rate"] == pytest.approx(expected, abs=four_errors)
    assert rows.loc["sharded_t", "rate"] == pytest.approx(0.05, abs=four_errors)
    assert (table["rate"] == table["rejections"] / table["trials"]).all()
    assert (table["low"] < table["rate"]).all() and (table["rate"] < table["high"]).all()


def test_exact_tests_keep_their_level():
    rng = np.random.default_rng(3)
    pools = heavy_tailed([5], shards=100, rng=rng)
    tests = {"heavy_tailed": ["sharded_exact", "sharded_exact_monte_carlo", "anytime"]}
    table = calibration_table(pools, tests, shards=[5], alphas=[0.05], trials=300, rng=rng)
    limit = stats.binom(300, 0.05).isf(1e-4)
    assert (table["rejections"] <= limit).all()
    found = table.set_index("test")["rejections"]
    assert (found[["sharded_exact", "sharded_exact_monte_carlo"]] > 0).all()


@pytest.mark.parametrize("kind", ["sum", "boundary", "successor", "heavy_tailed"])
def test_sampling_stands_for_the_exact_test_on_the_pools_of_the_study(run, kind):
    """calibration.csv samples, since convolving costs seconds where shards are many: same p."""
    rng = np.random.default_rng(4)
    pools = run_pools(run) | heavy_tailed([6], shards=8, rng=rng)
    for _ in range(60):
        scores = null_scores(pools[kind, 6], 4, rng=rng)
        exact = P_VALUES["sharded_exact"][1](scores, rng)
        sampled = P_VALUES["sharded_exact_monte_carlo"][1](scores, rng)
        four_errors = 4 * np.sqrt(exact * (1 - exact) / RESAMPLES)
        assert sampled == pytest.approx(exact, abs=four_errors + 2 / RESAMPLES)


def test_processes_that_share_the_work_change_nothing():
    pools = heavy_tailed([4, 9], shards=12, rng=np.random.default_rng(1))
    tests = {"heavy_tailed": ["sharded_t", "sharded_exact_monte_carlo"]}
    settings = {"shards": [3, 6], "alphas": [0.2], "trials": 20}
    alone, shared = (
        calibration_table(pools, tests, rng=np.random.default_rng(2), jobs=jobs, **settings)
        for jobs in (1, 2)
    )
    pd.testing.assert_frame_equal(alone, shared)
    assert alone["rejections"].nunique() > 1


def test_settings_with_more_shards_than_there_are_fall_away():
    rng = np.random.default_rng(2)
    pools = heavy_tailed([1, 3], shards=6, rng=rng)
    table = calibration_table(
        pools, {"heavy_tailed": ["sharded_t"]}, shards=[5, 7], alphas=[0.05], trials=10, rng=rng
    )
    assert set(table["shards"]) == {5}
    assert set(table["permutations"]) == {1, 3}


def run_pools(run):
    counts = {"shards": 4, "permutations": [2, 6], "successor_shards": 2}
    rng = np.random.default_rng(3)
    return pools_of(run.experiment, "clean", ["one", "eight"], **counts, rng=rng)


def test_pools_hold_the_scores_of_every_shard(run):
    pools = run_pools(run)
    kinds = ("sum", "token_standardised", "boundary")
    shapes = {(kind, m): (8, m + 1) for m in (2, 6) for kind in kinds}
    assert {key: pool.shape for key, pool in pools.items()} == shapes | {("successor", 6): (4, 7)}
    np.testing.assert_allclose(pools["sum", 6][:4], run.sums["clean", "one", 4], rtol=1e-6)
