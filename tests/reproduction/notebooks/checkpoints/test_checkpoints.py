"""Tables 1 and 5, Figure 3 of made-up models: what was planted is found, the control is silent."""

import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from contamination.audit.battery import TESTS
from contamination.randomness import random_stream
from contamination.scoring.models import ModelEntry
from contamination.scoring.store import open_store
from contamination.statistics import adjust, sharded_exact_test, sharded_t_test
from contamination.testsets.sources import open_lines
from fakes.checkpoint_run import SEED, SETS, MadeUpCheckpoints
from fakes.data_fixtures import ROOT
from fakes.made_up_scorer import log_probs_of
from reproduction.notebooks.checkpoints import measure as passes
from reproduction.notebooks.checkpoints import tables
from reproduction.notebooks.checkpoints.measure import ABLATION, STORES, TABLE
from reproduction.run import experiment

PUBLISHED = ROOT / "data" / "published"
ONLY_SPANS = {"sets": [], "ablation_sets": []}


@pytest.fixture
def made_up(tmp_path: Path, tokenizer, monkeypatch: pytest.MonkeyPatch) -> MadeUpCheckpoints:
    """One has read two of four sets, the control none."""
    found = MadeUpCheckpoints(tmp_path, tokenizer)
    found.write()
    found.stand_in(monkeypatch.setattr)
    return found


def stores(made_up: MadeUpCheckpoints) -> Path:
    return made_up.folder / "build" / STORES


def judged(made_up: MadeUpCheckpoints, measured: dict[str, pd.DataFrame]) -> pd.DataFrame:
    where = {"directory": stores(made_up), "published": PUBLISHED}
    return tables.judge_stores(measured, made_up.entries(), **where)


def rates(made_up: MadeUpCheckpoints) -> tuple[pd.DataFrame, pd.DataFrame]:
    measured = made_up.measure(**ONLY_SPANS)
    chosen = {"sets": ["often", "unread"], "members": ["twice"], "non_members": ["other"]}
    paths = {key: [made_up.sets[name] for name in names] for key, names in chosen.items()}
    settings = {"fpr": 0.3, "published": PUBLISHED}
    found = tables.detection_rates(measured, made_up.entries(), **paths, **settings)
    return found, measured["spans"]


def test_every_cell_has_a_store_of_what_the_paper_asks_for_once(made_up, monkeypatch) -> None:
    rendered = {made_up.sets["often"]: SimpleNamespace(template="t")}  # by record as well
    monkeypatch.setattr(passes, "entries", lambda: rendered)
    measured = made_up.measure()
    cells = measured["cells"]
    assert made_up.opened == ["reader", "old"]
    assert len(cells[cells["purpose"] == TABLE]) == 2 * (3 + 1) * 4
    assert set(cells.loc[cells["segmentation"] == "record", "dataset"]) == set(rendered)
    for cell in cells.to_dict("records"):
        store = open_store(stores(made_up) / cell["store"])
        by_line = cell["segmentation"] == "line"
        opened = made_up.open_set(cell["dataset"], max_records=None, lines=by_line)
        header, kind = store.header, "line/1" if by_line else "{t}\n"
        assert (header.template, header.dataset_revision) == (kind, opened.revision)
        if cell["test"] == "successor":
            assert (header.kind, header.shards) == ("successors", len(opened.examples) // 10)
            continue
        whole = cell["test"] == "permutation"
        assert header.shards == (1 if whole else cell["shards"])
        assert cell["permutations"] == (19 if whole else 9)
        assert np.isfinite(store.log_probs(cell["permutations"])).all()
    ablation = cells[cells["purpose"] == ABLATION]
    assert set(ablation["model"]) == {"reader"}  # the control has no part in it
    assert sorted(ablation["shards"]) == [3, 3, 6, 6, 12, 12]
    names = [*(made_up.sets[name] for name in SETS), *rendered]
    assert measured["sets"]["dataset"].tolist() == names
    assert measured["sets"]["examples"].tolist() == [24] * 5
    assert all(scorer.scored for scorer in made_up.scorers.values())
    again = made_up.measure()
    assert not any(scorer.scored for scorer in made_up.scorers.values())
    for name, table in measured.items():
        pd.testing.assert_frame_equal(table, again[name])


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
        store = open_store(stores(made_up) / cell["store"])
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

    def title(path: str) -> str:
        return {"often": "MNLI"}.get(Path(path).stem, Path(path).stem)

    monkeypatch.setattr(experiment, "find_model", find)
    monkeypatch.setattr(passes, "title", title)
    measured = made_up.measure()
    cells = measured["cells"]
    ours = cells[cells["model"] == "old"].index
    cells.loc[ours[1], ["status", "store"]] = "failed: no memory", ""
    next((stores(made_up) / cells.loc[ours[0], "store"]).glob("part-*.parquet")).unlink()
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
    ]
    names = ["model", "title", "dup_count", "test", "p", "holm_p", "published_p", "status"]
    rows = pd.DataFrame(cells, columns=names).assign(examples=1000, segmentation="line")
    shown = tables.checkpoint_layout(rows.assign(log10_p=np.log10(rows["p"])), 0.05)
    small = ("**1.0\u00a0×\u00a010⁻⁹**", "2.0\u00a0×\u00a010⁻¹¹")
    assert shown.to_numpy().tolist() == [
        ["higher", "MNLI", "line", "1000", "10", "**0.010**", "0.009", *small, "failed"],
        ["old", "MNLI", "line", "1000", "0", "0.500", *["—"] * 4],
    ]


def test_shards_and_permutations_by_the_tests_of_their_stores(made_up) -> None:
    cells, directory = made_up.measure(ablation_shards=[3, 6, 13])["cells"], stores(made_up)
    table = tables.by_shards(cells, directory=directory)
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
    table = tables.by_permutations(cells, datasets, [1, 9, 10], **settings)
    rows = table.set_index(["dataset", "permutations", "test"])
    for dataset in datasets:
        chosen = cells[(cells["dataset"] == dataset) & (cells["test"] == "sharded_t")]
        log_probs = open_store(directory / chosen["store"].iloc[0]).log_probs(9)
        for test in (sharded_t_test, sharded_exact_test):
            whole = test(log_probs)
            found = rows.loc[(dataset, 9, whole.test), "mean_log10_p"]
            assert found == pytest.approx(whole.log10_p)
            single = [test(log_probs[:, [0, j]]).log10_p for j in range(1, 10)]
            one = rows.loc[(dataset, 1, whole.test), "mean_log10_p"]
            assert min(single) <= one <= max(single)
            row = rows.loc[(dataset, 10, whole.test)]
            assert row["status"].startswith("failed: permutations 10: 9 are scored")
            assert math.isnan(row["mean_log10_p"])
    # A set's replicates do not depend on the others.
    again = tables.by_permutations(cells, datasets[1:], [1], **settings)
    both = table[(table["dataset"] == datasets[1]) & (table["permutations"] == 1)]
    pd.testing.assert_frame_equal(again, both.reset_index(drop=True))


def test_min_k_of_every_span_and_the_rates_by_brute_force(made_up) -> None:
    table, spans = rates(made_up)
    assert (spans["status"] == "ok").all()
    for path in made_up.sets.values():  # of the control, whose numbers are known
        lines = open_lines(path)
        stream = np.concatenate([made_up.tokenizer(one)["input_ids"] for one in lines.examples])
        rng = random_stream(SEED, "spans of a set", lines.revision)
        starts = sorted(rng.choice(len(stream) - 47, 8, replace=False))
        drawn = [stream[i : i + 48] for i in starts]
        expected = [np.sort(log_probs_of(ids)[1:])[:9].mean() for ids in drawn]
        own = spans[(spans["model"] == "old") & (spans["dataset"] == path)]
        assert own["score"].tolist() == pytest.approx(expected, rel=1e-6)
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
