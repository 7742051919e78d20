"""The audit of many models on many sets: its rows, what it survives, and what it never repeats."""

import json
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from contamination.audit import Request, run_audit
from contamination.audit.controls.zlib import zlib_test
from contamination.errors import InputError
from contamination.scoring.models import ModelEntry, find_model
from contamination.scoring.store import open_store
from contamination.statistics import adjust
from contamination.tables import POOLED
from contamination.testsets.sources import open_test_set
from fakes.data_fixtures import EXAMPLES, ROOT, SETS, MadeUpRun, released_data, write_profile
from fakes.made_up_scorer import Breakdown, MadeUpScorer
from fakes.opening import Opening
from fakes.remembering_scorer import RemembersLines, RemembersText
from reproduction.notebooks.open_models import measure as passes
from reproduction.notebooks.open_models.measure import STORES, measure
from reproduction.notebooks.open_models.settings import Settings
from reproduction.notebooks.open_models.tables import audit_models
from reproduction.run import experiment as runs
from reproduction.run import grid
from reproduction.run.experiment import Experiment

TESTS = ("successor", "sharded_t")
SEED = 5  # of the made-up profile
ROLES = {"old": "negative_control", "older": "negative_control", "bad": "contaminated"}


class Bench(Opening):
    """Sets as files in a folder, and models that are scorers."""

    def __init__(self, root: Path, tokenizer, prose: list[str]) -> None:
        super().__init__(tokenizer)
        self.root = root
        profile = write_profile(root / "p.yaml", released_data())
        self.experiment = Experiment(profile, root / "build")
        self.texts = [text.replace("\n", " ")[:40] for text in prose]

    def write(self, name: str, start: int = 0, count: int = 24) -> Path:
        path = self.root / f"{name}.jsonl"
        texts = self.texts[start : start + count]
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        return path

    def remember(self, path: Path) -> None:
        read = open_test_set(path)
        self.scorers["bad"] = RemembersText(self.tokenizer, read, revision="contaminated")

    def run(
        self, models, sets, *, pooled=False, tests=TESTS, experiment=None, by_line=False
    ) -> pd.DataFrame:
        experiment = experiment or self.experiment
        settings = Settings(
            models=models,
            sets=[str(path) for path in sets],
            tests=tests,
            permutations=5,
            max_records=None,
            start_each=False,
            by_line=by_line,
        )
        cells = measure(experiment, settings, access=self)["cells"]
        published = ROOT / "data" / "published"
        table = audit_models(experiment, cells, settings, published=published, alpha=0.05)
        return table[(table["dataset"] == POOLED) == pooled]


@pytest.fixture
def bench(tmp_path, tokenizer, prose, monkeypatch) -> Bench:
    def find(name: str) -> ModelEntry:
        return ModelEntry(name, f"org/{name}", role=ROLES[name]) if name in ROLES else known(name)

    known = find_model
    monkeypatch.setattr(runs, "find_model", find)
    return Bench(tmp_path, tokenizer, prose)


@pytest.fixture
def two(bench) -> list[Path]:
    return [bench.write("first"), bench.write("second", start=24)]


def cell(table: pd.DataFrame, model: str, dataset: str, test: str = "successor") -> pd.Series:
    rows = table.set_index(["model", "dataset", "test"])
    return rows.loc[[(model, dataset, test)]].iloc[0]


def test_a_row_for_every_model_set_and_test_whatever_cannot_be_had(bench, two):
    missing = str(bench.root / "missing.jsonl")
    bench.broken["gone"] = InputError("gone: check the name")
    table = bench.run(["a", "gone", "old"], [missing, *two, two[0]])
    found = zip(table["model"], table["dataset"], table["test"], strict=True)
    assert list(found) == list(product(("a", "gone", "old"), (missing, "first", "second"), TESTS))
    assert bench.opened == ["a", "gone", "old"]
    gone = table["model"] == "gone"
    lost = table["dataset"] == missing
    assert (table.loc[gone, "status"] == "failed: gone: check the name").all()
    assert table.loc[gone & ~lost, "examples"].eq(24).all()
    assert table.loc[lost & ~gone, "status"].str.startswith(f"failed: {missing}: no such ").all()
    assert table.loc[gone | lost, ["p", "holm_p", "control_p"]].isna().all(axis=None)
    assert (table.loc[~gone & ~lost, "status"] == "ok").all()


def test_the_values_are_those_of_a_single_audit(bench, two):
    table = bench.run(["a", "old"], two)
    for path in two:
        other = bench.root / "other"
        request = Request(TESTS, permutations=5, seed=SEED, directory=other, name="a")
        one = run_audit(MadeUpScorer(bench.tokenizer, revision="a"), path, request)
        stem = path.stem
        for test, result in zip(TESTS, one.results, strict=True):
            row = cell(table, "a", stem, test)
            assert row["p"] == result.p
            assert row["log10_p"] == result.log10_p
            assert row["shards"] == result.shards
            assert row["permutations"] == result.permutations
        total = table.loc[(table["dataset"] == stem) & (table["model"] == "a"), "tokens_scored"]
        assert total.sum() == sum(open_store(d).tokens_read(5) for d in one.stores)


def test_the_paper_s_table_1_stands_beside_what_is_measured_by_line(bench, two, monkeypatch):
    """The stand-in of the released checkpoint has read one set in its order, the control none."""
    by_name = dict(zip(("canaries/piqa", "canaries/boolq"), two, strict=True))
    by_line = partial(open_test_set, template="line/1")
    monkeypatch.setattr(grid, "open_test_set", lambda what, **_: by_line(by_name[what]))
    name, tests = "contam-1.4b-dupcount-higher", ("permutation", "sharded_t")
    bench.scorers[name] = RemembersLines(bench.tokenizer, by_line(two[0]), revision=name)
    table = bench.run([name, "old"], list(by_name), tests=tests, by_line=True)
    columns = ["dup_count", "published_p", "control"]
    found = table[table["model"] == name].set_index(["dataset", "test"])
    assert found[columns].to_numpy().tolist() == [
        [50, 0.009, "old"],
        [50, 1e-38, "old"],
        [1, 0.099, "old"],
        [1, 0.156, "old"],
    ]
    assert found.loc[("canaries/piqa", "permutation"), "p"] == pytest.approx(1 / 6)
    assert found.loc[("canaries/piqa", "sharded_t"), "p"] < 0.01
    assert found.loc["canaries/boolq", "p"].min() > 0.05
    assert table.loc[table["model"] == "old", "published_p"].isna().all()
    assert set(table["dataset_revision"]) == {by_line(path).revision for path in two}


def test_a_negative_control_is_that_of_the_others_and_else_a_compressor(bench, two):
    short = bench.write("short", count=3)  # too few for the shards of the t-test
    table = bench.run(["a", "old", "older"], [*two, short])
    kinds = zip(TESTS, ("successors", "orderings"), (2, 6), strict=True)
    for path, (test, kind, shards) in product(two, kinds):
        name, given = path.stem, {"kind": kind, "shards": shards}
        old = cell(table, "old", name, test)
        found = cell(table, "a", name, test)
        assert found["control"] == "old"
        assert found["control_p"] == old["p"]
        assert cell(table, "older", name, test)["control"] == "old"
        expected = zlib_test(open_test_set(path), **given, permutations=5, seed=SEED).p
        assert old["control"] == "compressor"
        assert old["control_p"] == expected
    failed = cell(table, "a", "short", "sharded_t")  # and no other cell of the model
    assert failed["status"].startswith("failed: ")
    assert pd.isna(failed["control"])


def test_planted_sets_are_found_and_corrections_count_all_that_is_evidence(bench, two):
    bench.remember(two[0])
    bench.broken["none"] = InputError("none: no such model")
    table = bench.run(["a", "bad", "old", "none"], two)
    assert table.loc[table["role"] == "negative_control", ["holm_p", "bh_p"]].isna().all(axis=None)
    for test in TESTS:
        hit = cell(table, "bad", "first", test)
        miss = cell(table, "bad", "second", test)
        assert hit["holm_p"] < 2e-3
        assert hit["control_p"] > 0.01
        assert miss["p"] > 0.01
        assert hit["verdict"] == "quiet"
    table = pd.concat([table, bench.run(["a", "bad", "old", "none"], two, pooled=True)])
    rows = table[(table["status"] == "ok") & table["model"].isin(["a", "bad"])]
    assert len(rows) > 4 * len(TESTS)  # pooled rows count, too
    for name, method in (("holm_p", "holm"), ("bh_p", "benjamini_hochberg")):
        expected = adjust(log10_p=rows["log10_p"], method=method).log10_p
        assert np.log10(rows[name]).tolist() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"tests": ["exakt"]}, "'exakt'"),
        ({"permutations": 0}, "permutations is 0"),
        ({"models": ["a", "a"]}, "'a'"),
        ({"sets": ["profile/x", "x"]}, "'x'"),
    ],
)
def test_bad_requests_are_refused_before_anything_is_opened(bench, wrong, named):
    parameters = {"models": ["a"], "sets": ["x"], "tests": TESTS, "permutations": 5} | wrong
    settings = Settings(**parameters, max_records=None, start_each=False)  # plain: the bad one
    with pytest.raises(InputError, match=named):
        measure(bench.experiment, settings, access=None)


def test_an_interrupted_audit_goes_on_where_it_was(bench, two, tmp_path_factory, prose):
    whole = Bench(tmp_path_factory.mktemp("whole"), bench.tokenizer, prose)
    expected = whole.run(["a", "b"], [whole.write("first"), whole.write("second", start=24)])

    bench.scorers["b"] = MadeUpScorer(bench.tokenizer, revision="b", survives=60)
    with pytest.raises(Breakdown):
        bench.run(["a", "b"], two)
    lost = bench.scorers["a"].scored
    bench.scorers["b"].survives = np.inf
    pd.testing.assert_frame_equal(bench.run(["a", "b"], two), expected)
    assert bench.scorers["a"].scored == lost  # whole before the interruption
    assert bench.scorers["b"].scored < 2 * whole.scorers["b"].scored


@pytest.fixture
def run(tmp_path, bench, monkeypatch) -> MadeUpRun:
    (tmp_path / "run").mkdir()
    made_up = MadeUpRun(tmp_path / "run")
    canaries = made_up.experiment.corpus / "canaries"
    canaries.mkdir(parents=True)
    for i, name in enumerate(SETS):
        texts = bench.texts[EXAMPLES * i : EXAMPLES * (i + 1)]
        lines = [json.dumps({"question": text, "answer": "yes"}) + "\n" for text in texts]
        (canaries / f"{name}.jsonl").write_text("".join(lines))
    for name in ("scored", "score"):
        monkeypatch.setattr(Experiment, name, made_up.stand_in())
    return made_up


def test_canary_sets_read_what_the_score_stage_has_scored(run, bench, monkeypatch):
    monkeypatch.setattr(passes, "registered", lambda: ())
    table = bench.run([], [], experiment=run.experiment)  # all that is at hand
    assert (table["status"] == "ok").all()
    assert list(dict.fromkeys(table["dataset"])) == [*SETS]
    assert not any(scorer.scored for scorer in bench.scorers.values())
    assert not (run.experiment.build / STORES).exists()
    for (name, count), test in product(SETS.items(), TESTS):
        planted, clean = (cell(table, m, name, test) for m in ("contaminated", "clean"))
        assert planted["dup_count"] == count
        assert clean["dup_count"] == 0
        assert planted["control"] == "clean"
        assert planted["control_p"] == clean["p"]
        assert clean["control"] == "compressor"
    log_probs = run.sums["contaminated", "sixty-four", 4]
    t = (log_probs[:, 0] - log_probs[:, 1:].mean(axis=1)).tolist()
    expected = np.mean(t) / (np.std(t, ddof=1) / 2)
    row = cell(table, "contaminated", "sixty-four", "sharded_t")
    assert row["statistic"] == pytest.approx(expected, rel=1e-4)
    assert row["permutations"] == 6  # the profile's, not the audit's


def test_a_registered_set_comes_before_a_canary_set_of_that_name(run, bench, two, monkeypatch):
    monkeypatch.setattr(passes, "registered", lambda: ("one", "gsm8k"))
    opened = replace(open_test_set(two[0]), name="one")
    monkeypatch.setattr(grid, "open_test_set", lambda what, **_: opened)
    sets = ["one", "profile/one", "eight", "profile/eight"]
    table = bench.run(["contaminated"], sets, experiment=run.experiment, tests=["sharded_t"])
    assert list(table["dataset"]) == ["one", "profile/one", "eight"]
    assert list(table["examples"]) == [24, EXAMPLES, EXAMPLES]
    assert table["dup_count"].isna().tolist() == [True, False, False]
    assert table["dup_count"][1:].tolist() == [SETS["one"], SETS["eight"]]
