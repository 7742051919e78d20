"""Null experiments keep the level, and choosing afterwards does not."""

import numpy as np
import pytest

from contamination.experiments.seminar.null_experiments import (
    chosen_afterwards,
    null_p_values,
    null_permutation_p_values,
)

POOL = np.random.default_rng(5).normal(size=(30, 26))


def test_null_experiments_keep_their_level():
    p = null_p_values(POOL, shards=8, trials=600, rng=np.random.default_rng(0))
    assert list(p) == ["sharded_t", "sharded_t, ddof=0", "sharded_exact"]
    rates = (p <= 0.1).mean()
    assert rates["sharded_t"] == pytest.approx(0.1, abs=0.04)
    assert rates["sharded_exact"] == pytest.approx(0.1, abs=0.04)
    assert (p["sharded_t, ddof=0"] <= p["sharded_t"])[p["sharded_t"] < 0.5].all()


def test_permutation_p_values_can_be_0_05_and_are_uniform():
    p = null_permutation_p_values(POOL, permutations=19, trials=4000, rng=np.random.default_rng(0))
    assert set(np.round(p * 20).astype(int)) == set(range(1, 21))
    assert np.mean(p <= 0.05) == pytest.approx(0.05, abs=0.015)
    assert np.mean(p <= 0.5) == pytest.approx(0.5, abs=0.04)


def test_the_best_of_many_rejects_too_often_and_the_corrected_ones_do_not():
    scores = np.random.default_rng(1).normal(size=(6, 5, 20))
    p = chosen_afterwards(scores, trials=80, rng=np.random.default_rng(0))
    rates = (p <= 0.1).mean()
    assert rates["best, as it is"] > 0.25
    assert rates["fixed in advance"] < 0.2
    assert rates["best, times q"] < 0.2
    assert rates["min_p"] < 0.2
    assert (p["best, as it is"] <= p["fixed in advance"]).all()
    assert (p["best, times q"] == np.minimum(1, 6 * p["best, as it is"])).all()
