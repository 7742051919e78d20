"""What the notebook shows is what the functions say, on scores that are known.

Null experiments keep the level, and choosing afterwards does not.
"""

import numpy as np
import pytest

from contamination.statistics import sharded_exact_test, sharded_t_test
from contamination.testsets.tokens import tokenize
from reproduction.notebooks.seminar.tables import (
    chosen_afterwards,
    each_example_alone,
    null_p_values,
    power_table,
    with_bos_between,
)

POOL = np.random.default_rng(5).normal(size=(30, 26))


def test_power_table_has_every_test_of_every_set_under_both_models(classroom):
    rows = power_table(
        classroom, shards=3, successor_shards=2, permutations=20, whole_set_permutations=30
    )
    assert len(rows) == 2 * 2 * 4
    found = rows.set_index(["model", "dataset", "test"])["p"]
    assert found["contaminated", "x150", "permutation"] == pytest.approx(1 / 31)
    assert found["contaminated", "x150", "sharded_exact"] < 0.002
    assert found["contaminated", "x150", "successor"] < 0.002
    assert found["clean"].min() > 0.002
    assert dict(zip(rows["dataset"], rows["dup_count"], strict=True)) == {"x1": 1, "x150": 150}


def test_a_start_token_stands_before_every_example_and_is_not_counted(classroom):
    planted, scorer = classroom.sets["x150"], classroom.scorers["contaminated"]
    scores = with_bos_between(classroom, "contaminated", planted, shards=3, permutations=2)
    assert scores.shape == (3, 3)
    ids = tokenize(scorer.tokenizer, planted.examples[4:8])  # the second shard
    started = [np.append(one, scorer.start) for one in ids[:3]]
    ((_, values),) = scorer.token_logprobs([np.concatenate([*started, ids[3]])])
    inserted = np.cumsum([len(ids[0]), 1 + len(ids[1]), 1 + len(ids[2])])
    expected = np.delete(values.astype(np.float64), inserted).sum()
    assert scores[1, 0] == pytest.approx(expected, abs=1e-3)
    plain = classroom.log_probs("contaminated", planted, shards=3, permutations=2)
    assert not np.allclose(scores, plain, atol=0.1)


def test_examples_scored_alone_have_no_order(classroom):
    planted = classroom.sets["x150"]
    scores = each_example_alone(classroom, "contaminated", planted, shards=3, permutations=20)
    assert scores.shape == (3, 21)
    assert np.ptp(scores, axis=1).max() == 0
    assert sharded_exact_test(scores).p == sharded_t_test(scores).p == 1
    # Alone they are less likely than after the examples that the model has read before them.
    plain = classroom.log_probs("contaminated", planted, shards=3, permutations=20)
    assert (scores[:, 0] < plain[:, 0]).all()


def test_null_experiments_keep_their_level():
    p = null_p_values(POOL, shards=8, trials=600, rng=np.random.default_rng(0))
    assert list(p) == ["sharded_t", "sharded_t, ddof=0", "sharded_exact"]
    for test in ("sharded_t", "sharded_exact"):
        assert (p[test] <= 0.1).mean() == pytest.approx(0.1, abs=0.04)
    assert (p["sharded_t, ddof=0"] <= p["sharded_t"])[p["sharded_t"] < 0.5].all()


def test_the_best_of_many_rejects_too_often_and_the_corrected_ones_do_not():
    scores = np.random.default_rng(1).normal(size=(6, 5, 20))
    p = chosen_afterwards(scores, trials=80, rng=np.random.default_rng(0))
    rates = (p <= 0.1).mean()
    assert rates["best, as it is"] > 0.25
    assert rates[["fixed in advance", "best, times q", "min_p"]].max() < 0.2
    assert (p["best, as it is"] <= p["fixed in advance"]).all()
    assert (p["best, times q"] == np.minimum(1, 6 * p["best, as it is"])).all()
