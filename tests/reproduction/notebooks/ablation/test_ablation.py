"""The ablations, on stores filled with random numbers instead of a model's."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest

from contamination.statistics import sharded_exact_test, sharded_t_test
from fakes.data_fixtures import MadeUpRun
from reproduction.notebooks.ablation.measure import measure, permutation_ablation
from reproduction.notebooks.ablation.settings import Settings
from reproduction.output.figures import mean_log10_p
from reproduction.run.experiment import Experiment


def test_shard_ablation(run: MadeUpRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Experiment, "score", run.stand_in())
    table = measure(run.experiment, Settings(datasets=["one", "eight"], shards=[2, 4, 6]))[
        "by_shards"
    ]
    rows = table.set_index(["dataset", "shards", "test"])
    for name in ("one", "eight"):
        for shards in (2, 4, 6):
            sums = run.sums["contaminated", name, shards]
            for test in (sharded_t_test, sharded_exact_test):
                expected = test(sums)
                found = rows.loc[(name, shards, expected.test), "log10_p"]
                assert found == pytest.approx(expected.log10_p)
    assert (table["permutations"] == 6).all()


def test_fewer_permutations_are_subsets_with_the_canonical_ordering(run: MadeUpRun) -> None:
    rng = np.random.default_rng(0)
    table = permutation_ablation(run.experiment, ["one", "eight"], [1, 3], replicates=5, rng=rng)
    rows = table[table["test"] == "sharded_exact"].set_index(["dataset", "permutations"])
    for name in ("one", "eight"):
        sums = run.sums["contaminated", name, 4]
        for m in (1, 3):
            possible = {
                round(sharded_exact_test(sums[:, [0, *chosen]]).log10_p, 6)
                for chosen in permutations(range(1, 7), m)
            }
            found = set(rows.loc[(name, m), "log10_p"].round(6))
            assert found <= possible
            assert len(found) > 1  # the replicates are different draws
            assert sorted(rows.loc[(name, m), "replicate"]) == [0, 1, 2, 3, 4]


def test_mean_over_sets_weighs_sets_equally() -> None:
    rows = pd.DataFrame(
        {
            "dataset": ["a", "a", "a", "b", "a"],
            "shards": [5, 5, 5, 5, 10],
            "log10_p": [-1.0, -3.0, -5.0, -9.0, -4.0],
        }
    ).assign(test="sharded_exact")
    table = mean_log10_p(rows, "shards").set_index("shards")
    assert table["mean_log10_p"].to_dict() == {5: -6.0, 10: -4.0}
    assert table["datasets"].to_dict() == {5: 2, 10: 1}
