"""The tables of the canary sets, on stores filled with random numbers instead of a model's."""

from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from contamination.errors import InputError
from contamination.experiments.ablation.settings import (
    mean_log10_p,
    permutation_ablation,
    shard_ablation,
)
from contamination.experiments.canaries.evaluation import canary_table
from contamination.pretraining.experiment import MODELS, Experiment
from contamination.statistics import sharded_exact_test, sharded_t_test
from fakes.data_fixtures import EXAMPLES, SETS, MadeUpRun


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MadeUpRun]:
    made_up = MadeUpRun(tmp_path_factory.mktemp("run"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Experiment, "scored", made_up.stand_in())
        yield made_up


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


def test_every_p_value_comes_from_the_scores_of_its_store(
    table: pd.DataFrame, run: MadeUpRun
) -> None:
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


def test_shard_ablation(run: MadeUpRun) -> None:
    table = shard_ablation(run.experiment, ["one", "eight"], [2, 4, 6])
    assert len(table) == 2 * 3 * 2
    rows = table.set_index(["dataset", "shards", "test"])
    for name in ("one", "eight"):
        for shards in (2, 4, 6):
            sums = run.sums["contaminated", name, shards]
            for test in (sharded_t_test, sharded_exact_test):
                expected = test(sums)
                assert rows.loc[(name, shards, expected.test), "log10_p"] == pytest.approx(
                    expected.log10_p
                )
    assert (table["permutations"] == 6).all()


def _permutations(run: MadeUpRun, counts: list[int], seed: int = 0) -> pd.DataFrame:
    return permutation_ablation(
        run.experiment, ["one", "eight"], counts, replicates=5, rng=np.random.default_rng(seed)
    )


def test_all_permutations_are_the_direct_test(run: MadeUpRun, table: pd.DataFrame) -> None:
    direct = table[table["model"] == "contaminated"].set_index(["dataset", "test"])["log10_p"]
    rows = _permutations(run, [6])
    assert len(rows) == 2 * 2  # one replicate: there is only one such subset
    for _, row in rows.iterrows():
        assert row["log10_p"] == pytest.approx(direct[row["dataset"], row["test"]], rel=1e-6)


def test_fewer_permutations_are_subsets_with_the_canonical_ordering(run: MadeUpRun) -> None:
    table = _permutations(run, [1, 3])
    assert len(table) == 2 * 2 * 5 * 2
    for name in ("one", "eight"):
        sums = run.sums["contaminated", name, 4]
        for m, subsets in ((1, _subsets(6, 1)), (3, _subsets(6, 3))):
            possible = {
                round(sharded_exact_test(sums[:, [0, *chosen]]).log10_p, 6) for chosen in subsets
            }
            rows = table[
                (table["dataset"] == name)
                & (table["permutations"] == m)
                & (table["test"] == "sharded_exact")
            ]
            found = {round(value, 6) for value in rows["log10_p"]}
            assert found <= possible
            assert len(found) > 1  # the replicates are different draws
            assert sorted(rows["replicate"]) == [0, 1, 2, 3, 4]


def _subsets(m: int, size: int) -> list[tuple[int, ...]]:
    return list(permutations(range(1, m + 1), size))


def test_subsets_follow_the_generator(run: MadeUpRun) -> None:
    pd.testing.assert_frame_equal(_permutations(run, [2]), _permutations(run, [2]))
    assert not _permutations(run, [2]).equals(_permutations(run, [2], seed=1))


def test_more_permutations_than_scored_are_refused(run: MadeUpRun) -> None:
    with pytest.raises(InputError, match=r"^permutations 7: only 6 are scored; raise"):
        _permutations(run, [1, 7])


def test_unknown_set_lists_the_known(run: MadeUpRun) -> None:
    with pytest.raises(InputError, match="has no canary set 'tow'; it has one, eight, sixty-four"):
        run.experiment.spec("tow")


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


def test_stale_or_missing_corpus_is_told(tmp_path: Path, run: MadeUpRun) -> None:
    empty = Experiment(run.profile, tmp_path / "none")
    with pytest.raises(InputError, match=r"corpus\.json is missing: run `make reproduce`"):
        canary_table(empty)
