"""Power, calibration and failures: every row is the test it names, at its cost and its level."""

from copy import copy
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from contamination.audit.registry import TESTS
from contamination.scoring.plan import StorePlan
from contamination.statistics import (
    anytime_test,
    relabel_canonical,
    sharded_exact_test,
    sharded_t_test,
)
from contamination.tables import read_csv
from contamination.testsets.example_set import ExampleSet
from fakes.data_fixtures import EXAMPLES, ROOT, MadeUpRun
from reproduction.notebooks.beyond.calibration import (
    P_VALUES,
    RESAMPLES,
    calibration_table,
    heavy_tailed,
    null_p_values,
)
from reproduction.notebooks.beyond.measure import score_orders, score_texts
from reproduction.notebooks.beyond.tables import (
    AS_PUBLISHED,
    GENERATED,
    ORDERS,
    pools_of,
    power_rows,
    ranking,
    successor_tokens,
    summarise,
)

PLANTED = ("one", "sixty-four")


@pytest.fixture(scope="module")
def rows(run: MadeUpRun) -> pd.DataFrame:
    return power_rows(
        run.experiment,
        "contaminated",
        permutations=(2, 6),
        successor_shards=(2,),
        fractions=(0.5, 1.0),
        replicates=3,
        rng=np.random.default_rng(0),
    )


def test_all_shards_and_permutations_are_the_direct_tests(rows: pd.DataFrame, run) -> None:
    whole = rows[rows["fraction"] == 1.0].set_index(["dataset", "test", "permutations"])
    for name in PLANTED:
        sums = run.sums["contaminated", name, 4]
        for m in (2, 6):
            for test in (sharded_t_test, sharded_exact_test):
                result = test(sums[:, : m + 1])
                row = whole.loc[(name, result.test, m)]
                assert row["log10_p"] == pytest.approx(result.log10_p, abs=1e-5)
                assert row["tokens"] == sum(run.lengths[name]) * (m + 1)
                assert row["passes"] == m + 1


def test_successors_cost_their_pairs_and_no_permutations(rows: pd.DataFrame, run) -> None:
    store = run.scored("contaminated", "one", StorePlan("successors", 2, 32))
    assert successor_tokens(store, 32).sum() == store.tokens_read(0)
    lengths = run.lengths["one"]
    by_hand = sum(lengths) + (EXAMPLES // 2 - 1) * sum(min(n, 5) for n in lengths)
    assert successor_tokens(store, 5).sum() == by_hand
    chosen = rows[(rows["test"] == "successor_8") & (rows["dataset"] == "one")]
    whole = chosen.loc[chosen["fraction"] == 1.0, "tokens"]
    assert set(whole) == {successor_tokens(store, 8).sum()}


def test_the_replicates_of_the_reference_are_summed_up_and_ranked_as_it_has_them() -> None:
    reference = ROOT / "results" / "reference"
    table = summarise(read_csv(reference, "power_replicates"), [0.05, 0.01, 0.001])
    pd.testing.assert_frame_equal(table, read_csv(reference, "power_per_token"))
    pd.testing.assert_frame_equal(ranking(table), read_csv(reference, "power_ranking"))
    (row,) = summarise(
        pd.DataFrame({"dataset": ["a", "a", "a", "b"], "log10_p": [-4.0, -2.0, 0.0, -6.0]}).assign(
            dup_count=4, test="t", shards=9, permutations=5, fraction=1, tokens=6, passes=6
        ),
        [0.05],
    ).to_dict("records")
    assert row["datasets"] == 2
    assert row["mean_log10_p"] == -4.0
    assert row["power_0.05"] == pytest.approx((2 / 3 + 1) / 2)


def test_dividing_by_the_number_of_shards_over_rejects_and_exact_tests_keep_their_level():
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
    assert (table["low"] < table["rate"]).all()
    assert (table["rate"] < table["high"]).all()
    pools = heavy_tailed([5], shards=100, rng=rng)
    tests = {"heavy_tailed": ["sharded_exact", "sharded_exact_monte_carlo", "anytime"]}
    table = calibration_table(pools, tests, shards=[5], alphas=[0.05], trials=300, rng=rng)
    assert (table["rejections"] <= stats.binom(300, 0.05).isf(1e-4)).all()
    assert (table.set_index("test")["rejections"].drop("anytime") > 0).all()


@pytest.mark.parametrize("kind", ["successor", "heavy_tailed"])
def test_sampling_stands_for_the_exact_test_on_the_pools_of_the_study(run, kind):
    """calibration.csv samples, since convolving costs seconds where shards are many: same p."""
    rng = np.random.default_rng(4)
    pools = run_pools(run) | heavy_tailed([6], shards=8, rng=rng)
    for _ in range(30):
        scores = rng.permutation(pools[kind, 6])[:4]
        canonical = rng.integers(7, size=(1, 4))
        exact = P_VALUES["sharded_exact"].p_values(scores, canonical, rng)
        sampled = P_VALUES["sharded_exact_monte_carlo"].p_values(scores, canonical, rng)
        four_errors = 4 * np.sqrt(exact * (1 - exact) / RESAMPLES)
        assert sampled == pytest.approx(exact, abs=float(four_errors[0]) + 2 / RESAMPLES)


ONE_BY_ONE = {
    "sharded_t": lambda scores: sharded_t_test(scores).p,
    "sharded_t_ddof_0": lambda scores: sharded_t_test(scores, ddof=0).p,
    "sharded_exact": lambda scores: sharded_exact_test(scores).p,
    "anytime": lambda scores: anytime_test(scores, alpha=0.05).p,
}


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_many_trials_at_once_are_the_test_itself(name):
    rng = np.random.default_rng(5)
    scores = rng.normal(-300, 2, (6, 9))
    canonical = rng.integers(9, size=(20, 6))
    wanted = [ONE_BY_ONE[name](relabel_canonical(scores, chosen)) for chosen in canonical]
    assert P_VALUES[name].p_values(scores, canonical, rng) == pytest.approx(wanted, rel=1e-3)


def test_all_tests_see_the_same_draws_whichever_others_there_are():
    pool = np.random.default_rng(6).standard_t(2, (20, 8))
    names = ["sharded_exact_monte_carlo", "sharded_t", "sharded_t_ddof_0", "anytime"]
    together, alone = (
        null_p_values(pool, tests, shards=5, trials=300, rng=np.random.default_rng(7))
        for tests in (names, ["sharded_t_ddof_0"])
    )
    pd.testing.assert_series_equal(together["sharded_t_ddof_0"], alone["sharded_t_ddof_0"])
    below = together[together["sharded_t"] < 0.5]
    assert (below["sharded_t_ddof_0"] < below["sharded_t"]).all()


def run_pools(run):
    return pools_of(
        run.experiment,
        "clean",
        ["one", "eight"],
        permutations=[2, 6],
        successor_shards=2,
        rng=np.random.default_rng(3),
    )


def test_pools_hold_the_scores_of_every_shard(run):
    pools = run_pools(run)
    kinds = ("sum", "token_standardised", "boundary")
    shapes = {("successor", 6): (4, 7)}
    shapes |= {(kind, 2): (8, 3) for kind in kinds}
    shapes |= {(kind, 6): (8, 7) for kind in kinds}
    assert {key: pool.shape for key, pool in pools.items()} == shapes
    np.testing.assert_allclose(pools["sum", 6][:4], run.sums["clean", "one", 4], rtol=1e-6)


COLOURS = ("red", "green", "blue", "white")


@pytest.fixture
def experiment(make_model, tmp_path):
    model = make_model(64)  # the successor test needs a context of 32 and more
    examples = tuple(
        f"the {COLOURS[(7 * i) % 4]} {'stone ' * (1 + (5 * i) % 9)}number {(13 * i) % 40}.\n"
        for i in range(40)
    )
    return SimpleNamespace(
        test_set=lambda name: ExampleSet(name, examples, "text/1", "made up"),
        model=lambda name: model,
        profile=SimpleNamespace(seed=3),
        build=tmp_path,
    )


def test_every_order_is_tested_and_the_meaningful_ones_are_flagged(experiment):
    table = score_orders(experiment, "clean", "colours", list(ORDERS)).set_index("order")
    assert list(table.index) == list(ORDERS)
    assert (table[["log10_p_successor", "log10_p_sharded_exact"]] <= 0).all(axis=None)
    for order in ("sorted by text", "sorted by length", "numbered"):
        assert table.loc[order, "verdict"] == "order carries information", order
    assert table.loc["near-duplicates in pairs", "examples"] == 40
    # The compressor sees what this model, which has learned nothing, does not.
    assert table.loc["near-duplicates in pairs", "log10_p_compressor"] < -5
    assert table.loc[AS_PUBLISHED, "log10_p_compressor"] > -2


@pytest.mark.parametrize(("model", "p"), [("contaminated", 1 / 20_001), ("clean", 1.0)])
def test_texts_are_tested_beside_the_scores_of_the_same_set(run, tmp_path, monkeypatch, model, p):
    """After each record the one writes the next, the best of all orders, and the other the same."""
    examples = tuple(f"{first} {number}.\n" for number, first in enumerate("abcdefghijkl"))
    after = dict(pairwise(examples)) if model == "contaminated" else {}

    def generate(prompts, sampling):
        return [[after.get(prompt, "z")] * sampling.samples for prompt in prompts]

    writer = SimpleNamespace(
        name=model,
        revision="r",
        protocol="local",
        instruction="",
        served="",
        left_out=(),
        generate=generate,
    )
    experiment = copy(run.experiment)
    monkeypatch.setattr(experiment, "build", tmp_path)
    made_up = ExampleSet("sixty-four", examples, "text/1", "made up")
    monkeypatch.setattr(experiment, "test_set", lambda name: made_up, raising=False)
    rows = pd.DataFrame(score_texts(experiment, writer, "sixty-four"), columns=GENERATED)
    assert [*rows["access"]] == ["generated", "log-probabilities"]
    assert [*rows["test"]] == ["generated_successor", "successor"]
    assert {*rows["dup_count"]} == {64}
    assert {*rows["examples"]} == {12}
    assert rows["samples"][0] == 16
    assert [*rows["tokens"]] == [16, 32]
    assert rows["p"][0] == pytest.approx(p)
    test = TESTS["successor"]
    store, permutations = run.experiment.store_for(model, "sixty-four", test)
    assert rows["p"][1] == test.result(store, permutations).p


def test_processes_that_share_the_work_change_nothing():
    pools = heavy_tailed([4, 9], shards=12, rng=np.random.default_rng(1))
    tests = {"heavy_tailed": ["sharded_t", "sharded_exact_monte_carlo"]}
    alone, shared = (
        calibration_table(
            pools,
            tests,
            shards=[3, 6],
            alphas=[0.2],
            trials=20,
            rng=np.random.default_rng(2),
            jobs=jobs,
        )
        for jobs in (1, 2)
    )
    pd.testing.assert_frame_equal(alone, shared)
    assert alone["rejections"].nunique() > 1
