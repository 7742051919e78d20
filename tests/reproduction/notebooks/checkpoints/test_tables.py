"""Tables 1 and 5, Figure 3 of made-up models: what was planted is found, the control is silent."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from contamination.audit.battery import TESTS
from contamination.scoring.models import ModelEntry
from contamination.scoring.store import open_store
from contamination.statistics import adjust, sharded_exact_test, sharded_t_test
from fakes.checkpoint_run import MadeUpCheckpoints
from fakes.data_fixtures import ROOT
from reproduction.notebooks.checkpoints import tables
from reproduction.notebooks.checkpoints.measure import STORES
from reproduction.notebooks.checkpoints.tables import (
    by_permutations,
    by_shards,
    checkpoint_layout,
    detection_rates,
    judge_stores,
)
from reproduction.run import experiment

PUBLISHED = ROOT / "data" / "published"


def judged(made_up: MadeUpCheckpoints, measured: dict[str, pd.DataFrame]) -> pd.DataFrame:
    directory = made_up.folder / "build" / STORES
    return judge_stores(measured, made_up.entries(), directory=directory, published=PUBLISHED)


def rates(made_up: MadeUpCheckpoints) -> tuple[pd.DataFrame, pd.DataFrame]:
    measured = made_up.measure(sets=[], ablation_sets=[])
    chosen = {"sets": ["often", "unread"], "members": ["twice"], "non_members": ["other"]}
    paths = {key: [made_up.sets[name] for name in names] for key, names in chosen.items()}
    settings = {"fpr": 0.3, "published": PUBLISHED}
    return detection_rates(measured, made_up.entries(), **paths, **settings), measured["spans"]


def test_what_was_planted_is_found_and_every_p_value_is_that_of_its_store(made_up) -> None:
    measured = made_up.measure()
    table = judged(made_up, measured)
    rows = table.set_index(["model", "title", "test"]).sort_index()
    for test in ("sharded_t", "sharded_exact", "successor"):
        for name, count in (("often", 50), ("twice", 2)):
            assert rows.loc[("reader", name, test), "holm_p"] < 1e-3
            assert rows.loc[("reader", name, test), "dup_count"] == count
        assert rows.loc[("reader", "unread", test), "holm_p"] > 0.05
        assert (rows.loc["old"].xs(test, level="test")["holm_p"] > 0.05).all()
    assert rows.loc[("reader", "often", "permutation"), "p"] == pytest.approx(1 / 20)
    assert (rows.loc["old", "dup_count"] == 0).all()
    assert pd.isna(rows.loc[("reader", "unread", "successor"), "dup_count"])

    cells = measured["cells"].query("purpose == 'table 1'").to_dict("records")
    for cell, row in zip(cells, table.to_dict("records"), strict=True):
        store = open_store(made_up.folder / "build" / STORES / cell["store"])
        result = TESTS[cell["test"]].result(store, cell["permutations"])
        assert (row["p"], row["statistic"]) == (result.p, result.statistic)
        assert row["shards"] == store.header.shards
        assert row["tokens_scored"] == store.header.tokens_of(cell["permutations"])
    for _, group in table.groupby(["model", "test"]):
        holm = adjust(log10_p=group["log10_p"], method="holm").log10_p
        assert np.log10(group["holm_p"]).tolist() == pytest.approx(holm, abs=1e-9)


def test_published_values_stand_beside_their_tests_and_failures_have_reasons(
    made_up, monkeypatch
) -> None:
    def find(name: str) -> ModelEntry:
        published = "sharded_p" if name == "reader" else None
        return ModelEntry(name, f"org/{name}", published=published)

    monkeypatch.setattr(experiment, "find_model", find)
    names = {"often": "MNLI"}
    monkeypatch.setattr(
        tables.measure, "title", lambda path: names.get(Path(path).stem, Path(path).stem)
    )
    measured = made_up.measure()
    cells = measured["cells"]
    ours = cells[cells["model"] == "old"].index
    cells.loc[ours[1], ["status", "store"]] = "failed: no memory", ""
    lost = made_up.folder / "build" / STORES / cells.loc[ours[0], "store"]
    next(lost.glob("part-*.parquet")).unlink()
    rows = judged(made_up, measured)
    found = rows.dropna(subset="published_p").set_index(["model", "title", "test"])["published_p"]
    assert found.to_dict() == {
        ("reader", "MNLI", "permutation"): 0.009,
        ("reader", "MNLI", "sharded_t"): 1.96e-11,
    }
    failed = rows["status"] != "ok"
    first, second = rows.loc[failed, "status"]
    assert "is not scored yet" in first and second == "failed: no memory"
    numbers = ["p", "log10_p", "holm_p", "statistic", "tokens_scored"]
    assert rows.loc[failed, numbers].isna().all(axis=None)
    assert rows.loc[~failed, numbers].notna().all(axis=None)


def test_the_layout_of_table_1() -> None:
    cells = [
        ("higher", "MNLI", 10, "permutation", 0.01, 0.01, 0.009, "ok"),
        ("higher", "MNLI", 10, "sharded_t", 1e-9, 1e-8, 1.96e-11, "ok"),
        ("higher", "MNLI", 10, "successor", math.nan, math.nan, math.nan, "failed: no room"),
        ("old", "MNLI", 0, "permutation", 0.5, 1.0, math.nan, "ok"),
        ("old", "MNLI", 0, "sharded_t", 0.7, 1.0, math.nan, "ok"),
        ("old", "MNLI", 0, "successor", 0.01, 0.06, math.nan, "ok"),
    ]
    names = ["model", "title", "dup_count", "test", "p", "holm_p", "published_p", "status"]
    rows = pd.DataFrame(cells, columns=names).assign(examples=1000, segmentation="line")
    shown = checkpoint_layout(rows.assign(log10_p=np.log10(rows["p"])), 0.05)
    small = ("**1.0\u00a0×\u00a010⁻⁹**", "2.0\u00a0×\u00a010⁻¹¹")
    assert shown.to_numpy().tolist() == [
        ["higher", "MNLI", "line", "1000", "10", "**0.010**", "0.009", *small, "failed"],
        ["old", "MNLI", "line", "1000", "0", "0.500", "—", "0.700", "—", "0.010"],
    ]


def test_shards_and_permutations_by_the_tests_of_their_stores(made_up) -> None:
    cells = made_up.measure(ablation_shards=[3, 6, 13])["cells"]
    directory = made_up.folder / "build" / STORES
    table = by_shards(cells, directory=directory)
    rows = table.set_index(["dataset", "shards", "test"])
    for cell in cells.query("purpose == 'figure 3a' and status == 'ok'").to_dict("records"):
        log_probs = open_store(directory / cell["store"]).log_probs(9)
        for test in (sharded_t_test, sharded_exact_test):
            result = test(log_probs)
            row = rows.loc[(cell["dataset"], cell["shards"], result.test)]
            assert (row["mean_log10_p"], row["status"]) == (result.log10_p, "ok")
    failed = table["shards"] == 13
    assert table.loc[failed, "status"].str.contains("fewer than 2 per shard").all()
    assert table["mean_log10_p"].isna().equals(failed)

    datasets = [made_up.sets["often"], made_up.sets["unread"]]
    settings = {"directory": directory, "replicates": 4, "seed": 1}
    table = by_permutations(cells, datasets, [1, 9, 10], **settings)
    rows = table.set_index(["dataset", "permutations", "test"])
    for dataset in datasets:
        chosen = cells[(cells["dataset"] == dataset) & (cells["test"] == "sharded_t")]
        log_probs = open_store(directory / chosen["store"].iloc[0]).log_probs(9)
        for test in (sharded_t_test, sharded_exact_test):
            whole = test(log_probs)
            found = rows.loc[(dataset, 9, whole.test), "mean_log10_p"]
            assert found == pytest.approx(whole.log10_p)
            single = [test(log_probs[:, [0, j]]).log10_p for j in range(1, 10)]
            low, high = min(single), max(single)
            assert low <= rows.loc[(dataset, 1, whole.test), "mean_log10_p"] <= high
            row = rows.loc[(dataset, 10, whole.test)]
            assert row["status"].startswith("failed: permutations 10: 9 are scored")
            assert math.isnan(row["mean_log10_p"])
    again = by_permutations(cells, datasets[1:], [1], **settings)  # does not depend on the others
    both = table[(table["dataset"] == datasets[1]) & (table["permutations"] == 1)]
    pd.testing.assert_frame_equal(again, both.reset_index(drop=True))


def test_the_rates_by_brute_force(made_up) -> None:
    table, spans = rates(made_up)
    for row in table.to_dict("records"):
        own = spans[spans["model"] == row["model"]].groupby("dataset")["score"].apply(list)
        others = np.array(own[made_up.sets["other"]])
        tried = sorted([*own[made_up.sets["twice"]], *others, math.inf])
        threshold = next(value for value in tried if (others >= value).mean() <= 0.3)
        assert row["threshold"] == threshold
        mine = np.array(own[row["dataset"]])
        hits = int((mine >= threshold).sum())
        assert (row["spans"], row["detected"]) == (len(mine), hits)
        assert row["rate_percent"] == pytest.approx(100 * hits / len(mine))
        ends = stats.binomtest(hits, len(mine)).proportion_ci()
        assert (row["rate_low"], row["rate_high"]) == pytest.approx((100 * ends[0], 100 * ends[1]))


@pytest.mark.parametrize(("lost", "missing"), [("twice", "was planted"), ("other", "not planted")])
def test_without_a_side_of_the_validation_there_is_no_threshold(made_up, lost, missing) -> None:
    Path(made_up.sets[lost]).unlink()
    table, _ = rates(made_up)
    assert table["status"].str.fullmatch(f"failed: .*{missing}, so there is no threshold").all()
    assert table[["spans", "rate_percent", "threshold"]].isna().all(axis=None)
