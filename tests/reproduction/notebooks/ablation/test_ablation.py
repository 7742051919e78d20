"""The ablations, on stores filled with random numbers instead of a model's."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest

from contamination.statistics import sharded_exact_test, sharded_t_test
from fakes.data_fixtures import MadeUpRun
from reproduction.notebooks.ablation.tables import permutation_ablation, shard_ablation
from reproduction.output.evidence import mean_log10_p


def test_shard_ablation(run: MadeUpRun) -> None:
    table = shard_ablation(run.experiment, ["one", "eight"], [2, 4, 6])
    assert len(table) == 2 * 3 * 2
    rows = table.set_index(["dataset", "shards", "test"])
    for name in ("one", "eight"):
        for shards in (2, 4, 6):
            sums = run.sums["contaminated", name, shards]
            for test in (sharded_t_test, sharded_exact_test):
                expected = test(sums)
                found = rows.loc[(name, shards, expected.test), "log10_p"]
                assert found == pytest.approx(expected.log10_p)
    assert (table["permutations"] == 6).all()


def _permutations(run: MadeUpRun, counts: list[int], seed: int = 0) -> pd.DataFrame:
    return permutation_ablation(
        run.experiment, ["one", "eight"], counts, replicates=5, rng=np.random.default_rng(seed)
    )


def test_fewer_permutations_are_subsets_with_the_canonical_ordering(run: MadeUpRun) -> None:
    table = _permutations(run, [1, 3])
    assert len(table) == 2 * 2 * 5 * 2
    for name in ("one", "eight"):
        sums = run.sums["contaminated", name, 4]
        for m in (1, 3):
            possible = {
                round(sharded_exact_test(sums[:, [0, *chosen]]).log10_p, 6)
                for chosen in permutations(range(1, 7), m)
            }
            rows = table[(table["dataset"] == name) & (table["test"] == "sharded_exact")]
            rows = rows[rows["permutations"] == m]
            found = {round(value, 6) for value in rows["log10_p"]}
            assert found <= possible
            assert len(found) > 1  # the replicates are different draws
            assert sorted(rows["replicate"]) == [0, 1, 2, 3, 4]


def test_mean_over_sets_weighs_sets_equally() -> None:
    rows = pd.DataFrame(
        [
            {"dataset": name, "shards": 5, "test": "sharded_exact", "log10_p": value}
            for name, values in {"a": [-1.0, -3.0, -5.0], "b": [-9.0]}.items()
            for value in values
        ]
        + [{"dataset": "a", "shards": 10, "test": "sharded_exact", "log10_p": -4.0}]
    )
    table = mean_log10_p(rows, "shards")
    assert set(table) == {"shards", "test", "mean_log10_p", "datasets"}
    assert table.set_index("shards")["mean_log10_p"].to_dict() == {5: -6.0, 10: -4.0}
    assert table.set_index("shards")["datasets"].to_dict() == {5: 2, 10: 1}
