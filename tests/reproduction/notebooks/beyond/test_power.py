"""Power per token: every row is the test it names, at the cost it names."""

import numpy as np
import pandas as pd
import pytest

from contamination.audit.battery import sampled_successors
from contamination.statistics import sharded_exact_test, sharded_t_test
from fakes.data_fixtures import EXAMPLES, MadeUpRun
from reproduction.notebooks.beyond.power import (
    SAMPLED_ORDERINGS,
    PowerSettings,
    power_rows,
    ranking,
    successor_tokens,
    summarise,
)

SETTINGS = PowerSettings(
    shards=4,
    permutations=(2, 6),
    successor_shards=(2,),
    fractions=(0.5, 1.0),
    replicates=3,
    datasets=("one", "sixty-four"),
)


@pytest.fixture(scope="module")
def rows(run: MadeUpRun) -> pd.DataFrame:
    return power_rows(run.experiment, "contaminated", SETTINGS, rng=np.random.default_rng(0))


def test_all_shards_and_permutations_are_the_direct_tests(rows: pd.DataFrame, run) -> None:
    whole = rows[rows["fraction"] == 1.0].set_index(["dataset", "test", "permutations"])
    for name in SETTINGS.datasets:
        sums = run.sums["contaminated", name, 4]
        for m in (2, 6):
            for test in (sharded_t_test, sharded_exact_test):
                result = test(sums[:, : m + 1])
                row = whole.loc[(name, result.test, m)]
                assert row["log10_p"] == pytest.approx(result.log10_p, abs=1e-5)
                assert row["tokens"] == sum(run.lengths[name]) * (m + 1)
                assert row["passes"] == m + 1


def test_successors_cost_their_pairs_and_no_permutations(rows: pd.DataFrame, run) -> None:
    store = run.scored("contaminated", "one", shards=2, kind="successors", tokens_per_example=32)
    assert successor_tokens(store, 32).sum() == store.header.tokens_of(0)
    lengths = run.lengths["one"]
    by_hand = sum(lengths) + (EXAMPLES // 2 - 1) * sum(min(n, 5) for n in lengths)
    assert successor_tokens(store, 5).sum() == by_hand
    chosen = rows[(rows["test"] == "successor_8") & (rows["dataset"] == "one")]
    assert set(chosen["permutations"]) == {0}
    whole = chosen.loc[chosen["fraction"] == 1.0, "tokens"]
    assert set(whole) == {successor_tokens(store, 8).sum()}


def test_fewer_shards_are_drawn_anew_and_cost_less(rows: pd.DataFrame) -> None:
    exact = rows[(rows["test"] == "sharded_exact") & (rows["permutations"] == 6)]
    half = exact[exact["fraction"] == 0.5]
    assert half.groupby("dataset").size().tolist() == [3, 3]
    whole = exact[exact["fraction"] == 1.0].set_index("dataset")["tokens"]
    assert (half["tokens"].to_numpy() < whole[half["dataset"]].to_numpy()).all()


def test_planted_sets_are_found_and_cheaper_by_successors(rows: pd.DataFrame) -> None:
    planted = rows[(rows["dataset"] == "sixty-four") & (rows["fraction"] == 1.0)]
    best = planted.groupby("test")["log10_p"].min()
    assert best["successor_32"] < -3
    assert best["sharded_exact"] < -2
    tokens = planted.groupby("test")["tokens"].max()
    assert tokens["successor_32"] < tokens["sharded_exact"]


def hand_made() -> pd.DataFrame:
    """Two sets: one with replicates at p = 1e-4, 1e-2 and 0.5, one at p = 1e-6."""
    values = {"a": [-4.0, -2.0, np.log10(0.5)], "b": [-6.0, -6.0, -6.0]}
    rows = [(name, i, value) for name, several in values.items() for i, value in enumerate(several)]
    table = pd.DataFrame(rows, columns=["dataset", "replicate", "log10_p"])
    fixed = {"dup_count": 4, "test": "sharded_exact", "shards": 10, "permutations": 5}
    return table.assign(**fixed, fraction=1.0, tokens=600, passes=6.0)


def test_a_set_counts_once_however_many_replicates_it_has() -> None:
    (row,) = summarise(hand_made(), [0.05, 0.001]).to_dict("records")
    assert row["datasets"] == 2
    assert row["power_0.05"] == pytest.approx((2 / 3 + 1) / 2)
    assert row["power_0.001"] == pytest.approx((1 / 3 + 1) / 2)
    mean = (-4 - 2 + np.log10(0.5)) / 3
    assert row["mean_log10_p"] == pytest.approx((mean - 6) / 2)
    assert row["se_log10_p"] == pytest.approx(abs(mean + 6) / 2)
    assert 0 < row["low_0.05"] < row["power_0.05"] < row["high_0.05"] < 1


def test_the_ranking_takes_the_most_permutations_and_the_best_first() -> None:
    rows = hand_made()
    worse = rows.assign(test="sharded_t", log10_p=-1.0)
    fewer = rows.assign(permutations=1, log10_p=-99.0)
    table = ranking(summarise(pd.concat([worse, rows, fewer]), [0.05]))
    assert table["test"].tolist() == ["sharded_exact", "sharded_t"]
    assert table["4"].tolist() == pytest.approx([(-6 + (-6 + np.log10(0.5)) / 3) / 2, -1.0])


def test_sampled_successors_put_the_canonical_ordering_first(run: MadeUpRun) -> None:
    successors = {"kind": "successors", "tokens_per_example": 32}
    store = run.scored("contaminated", "sixty-four", shards=2, **successors)
    rng = np.random.default_rng(1)
    for shard in range(2):
        scores = sampled_successors(store, shard, 32, orderings=SAMPLED_ORDERINGS, rng=rng)
        assert scores.shape == (SAMPLED_ORDERINGS + 1,)
        assert scores[0] > np.quantile(scores[1:], 0.99)
