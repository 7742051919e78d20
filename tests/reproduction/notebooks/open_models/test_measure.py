"""The audit of many models on many sets: its rows, what it survives, and what it never repeats."""

import json
import math
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from contamination.audit import Request, audit
from contamination.audit.compressor import compressor_test
from contamination.errors import InputError
from contamination.scoring.models import ModelEntry
from contamination.scoring.store import open_store
from contamination.tables import POOLED
from contamination.testsets.example_set import load_test_set
from fakes.data_fixtures import EXAMPLES, ROOT, SETS, MadeUpRun
from fakes.made_up_scorer import Breakdown, MadeUpScorer
from fakes.remembering_scorer import RemembersText
from reproduction.notebooks.open_models import measure
from reproduction.notebooks.open_models.measure import score_models
from reproduction.notebooks.open_models.tables import COLUMNS, audit_models
from reproduction.run import grid
from reproduction.run.experiment import Experiment
from reproduction.run.grid import Access

TESTS = ("successor", "sharded_t")
PUBLISHED = ROOT / "data" / "published"
CONTROL = ModelEntry("old", "org/old", role="negative_control")


class Bench(Access):
    """Sets as files in a folder, and models that are scorers; `opened` keeps the order."""

    def __init__(self, root: Path, tokenizer, prose: list[str]) -> None:
        self.root = root
        self.tokenizer = tokenizer
        self.texts = [text.replace("\n", " ")[:40] for text in prose]
        self.scorers: dict[str, MadeUpScorer] = {}
        self.opened: list[str] = []
        self.broken: dict[str, BaseException] = {}

    def write(self, name: str, start: int = 0, count: int = 24) -> Path:
        path = self.root / f"{name}.jsonl"
        texts = self.texts[start : start + count]
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        return path

    def open_model(self, entry: ModelEntry) -> MadeUpScorer:
        self.opened.append(entry.name)
        if entry.name in self.broken:
            raise self.broken[entry.name]
        if entry.name not in self.scorers:
            self.scorers[entry.name] = MadeUpScorer(self.tokenizer, revision=entry.name)
        return self.scorers[entry.name]

    def run(self, models, sets, *, published=None, pooled=False, **arguments) -> pd.DataFrame:
        sets = [str(one) for one in sets]
        where = {"directory": self.root / "stores", "permutations": 5, "access": self}
        settings = {"tests": TESTS} | where | arguments
        cells = score_models(models, sets, **settings)
        kept = ("directory", "max_records", "experiment")
        known = {name: settings[name] for name in kept if name in settings}
        table = audit_models(cells, models, sets, published=published, **known)
        return table[(table["dataset"] == POOLED) == pooled]

    def scored(self) -> int:
        return sum(len(scorer.sequences) for scorer in self.scorers.values())


@pytest.fixture
def bench(tmp_path, tokenizer, prose) -> Bench:
    return Bench(tmp_path, tokenizer, prose)


@pytest.fixture
def two(bench) -> list[Path]:
    return [bench.write("first"), bench.write("second", start=24)]


def cell(table: pd.DataFrame, model: str, dataset: str, test: str = "successor") -> pd.Series:
    chosen = table[
        (table["model"] == model) & (table["dataset"] == dataset) & (table["test"] == test)
    ]
    (row,) = [row for _, row in chosen.iterrows()]
    return row


# --- rows -----------------------------------------------------------------------------------------


def test_a_row_for_every_model_set_and_test_whatever_cannot_be_had(bench, two):
    missing = bench.root / "missing.jsonl"
    bench.broken["gone"] = InputError("gone: check the name")
    table = bench.run(["a", "gone", CONTROL, "a"], [missing, *two, two[0]])
    assert tuple(table.columns) == COLUMNS
    found = zip(table["model"], table["dataset"], table["test"], strict=True)
    sets = (str(missing), "first", "second")
    assert list(found) == list(product(("a", "gone", "old"), sets, TESTS))
    assert bench.opened == ["a", "gone", "old"]
    gone, lost = table["model"] == "gone", table["dataset"] == str(missing)
    assert (table.loc[gone, "status"] == "failed: gone: check the name").all()
    assert table.loc[gone & ~lost, "examples"].eq(24).all()
    assert table.loc[lost & ~gone, "status"].str.startswith(f"failed: {missing}: no such ").all()
    assert table.loc[gone | lost, ["p", "holm_p", "control_p"]].isna().all(axis=None)
    assert (table.loc[~gone & ~lost, "status"] == "ok").all()


def test_the_values_are_those_of_a_single_audit(bench, two):
    table = bench.run(["a"], two, seed=3)
    for path in two:
        request = Request(TESTS, permutations=5, seed=3, directory=bench.root / "other", name="a")
        one = audit(MadeUpScorer(bench.tokenizer, revision="a"), path, request)
        for test, result in zip(TESTS, one.results, strict=True):
            row = cell(table, "a", path.stem, test)
            assert (row["p"], row["log10_p"]) == (result.p, result.log10_p)
            assert (row["shards"], row["permutations"]) == (result.shards, result.permutations)
            assert row["dataset_revision"] == one.header.dataset_revision
            assert row["model_revision"] == "a"
        total = table.loc[table["dataset"] == path.stem, "tokens_scored"].sum()
        assert total == sum(open_store(d).header.tokens_of(5) for d in one.stores)


def test_the_last_rows_pool_the_sets_of_a_model_and_test(bench, two):
    """From the same stores, and beside them the compressor on the same sets."""
    table = bench.run(["a", CONTROL], two, pooled=True)
    assert list(zip(table["model"], table["test"], strict=True)) == list(
        product(("a", "old"), TESTS)
    )
    alone = bench.run(["a", CONTROL], two)
    for _, row in table.iterrows():
        cells = alone[(alone["model"] == row["model"]) & (alone["test"] == row["test"])]
        assert row["status"] == "ok"
        assert row["pooled"] == 2
        for column in ("shards", "examples", "tokens_scored"):
            assert row[column] == cells[column].sum()
        assert row["control"] == ("old" if row["model"] == "a" else "compressor")
        # A sum of two: between the smaller p and what both being so small would give.
        assert 0 < row["p"] <= 1
        assert 0 < row["control_p"] <= 1


def test_a_set_that_was_planted_is_found_and_the_control_stays_quiet(bench, two):
    bench.scorers["bad"] = RemembersText(
        bench.tokenizer, load_test_set(two[0]), revision="contaminated"
    )
    table = bench.run([ModelEntry("bad", "x/bad", role="contaminated"), CONTROL], two)
    for test in TESTS:
        hit, miss = cell(table, "bad", "first", test), cell(table, "bad", "second", test)
        assert hit["holm_p"] < 1e-3
        assert miss["p"] > 0.01
        assert hit["control_p"] > 0.01
        assert hit["verdict"] == "quiet"


def test_published_values_and_duplication_counts_stand_beside_ours(bench, monkeypatch):
    by_name = {"gsm8k": bench.write("x"), "canaries/piqa": bench.write("y", start=24)}
    monkeypatch.setattr(
        grid,
        "open_test_set",
        lambda what, max_records: load_test_set(by_name[what], name=what),
    )
    models = ["llama2-7b", "contam-1.4b-dupcount-higher", "org/unknown"]
    table = bench.run(models, by_name, tests=["sharded_t"], published=PUBLISHED)
    assert list(table["dataset"]) == [*by_name] * 3
    shown = table[["published_p", "dup_count"]].astype(float).to_numpy()
    nan = math.nan
    expected = [[0.594, nan], [nan, nan], [nan, nan], [1e-38, 50], [nan, nan], [nan, nan]]
    np.testing.assert_array_equal(shown, expected)


# --- controls and corrections ---------------------------------------------------------------------


def test_without_a_negative_control_a_compressor_takes_its_place(bench, two):
    table = bench.run(["a", "b"], two, seed=2)
    assert (table["control"] == "compressor").all()
    for path in two:
        examples = load_test_set(path)
        for test, kind, shards in zip(TESTS, ("successors", "orderings"), (2, 6), strict=True):
            expected = compressor_test(examples, kind=kind, shards=shards, permutations=5, seed=2).p
            for model in ("a", "b"):
                assert cell(table, model, path.stem, test)["control_p"] == expected


def test_a_negative_control_is_the_control_of_the_others_where_it_ran(bench, two):
    short = bench.write("short", count=3)  # too few for the shards of the t-test
    second = ModelEntry("older", "org/older", role="negative_control")
    table = bench.run(["a", CONTROL, second], [*two, short])
    for name in ("first", "second"):
        for test in TESTS:
            old, found = cell(table, "old", name, test), cell(table, "a", name, test)
            assert (found["control"], found["control_p"]) == ("old", old["p"])
            assert old["control"] == "compressor"
            assert cell(table, "older", name, test)["control"] == "old"
    failed = cell(table, "a", "short", "sharded_t")  # and no other cell of the model
    assert failed["status"].startswith("failed: ")
    assert pd.isna(failed["control"])


def test_corrections_count_the_audited_cells_of_a_test_alone(bench, two):
    bench.scorers["bad"] = RemembersText(
        bench.tokenizer, load_test_set(two[0]), revision="contaminated"
    )
    bench.broken["none"] = InputError("none: no such model")
    table = bench.run(["a", "bad", CONTROL, "none"], two)
    assert table.loc[table["role"] == "negative_control", ["holm_p", "bh_p"]].isna().all(axis=None)
    for test in TESTS:
        rows = table[(table["test"] == test) & table["model"].isin(["a", "bad"])]
        assert len(rows) == 4
        p = sorted(rows["p"])
        holm = {q: min(1, max((4 - j) * p[j] for j in range(i + 1))) for i, q in enumerate(p)}
        fdr = {q: min(1, *(4 * p[j] / (j + 1) for j in range(i, 4))) for i, q in enumerate(p)}
        assert rows["holm_p"].tolist() == pytest.approx([holm[q] for q in rows["p"]])
        assert rows["bh_p"].tolist() == pytest.approx([fdr[q] for q in rows["p"]])


@pytest.mark.parametrize(
    ("models", "sets", "arguments", "message"),
    [
        ([], ["x"], {}, r"models is \[\]: give a list"),
        ("gpt2", ["x"], {}, "models is 'gpt2': give a list"),
        (["a"], [], {}, r"sets is \[\]: give a list"),
        (["a"], "gsm8k", {}, "sets is 'gsm8k': give a list"),
        (["a"], ["x"], {"tests": ["exakt"]}, "unknown test 'exakt': choose from permutation"),
        (["a"], ["x"], {"tests": []}, "unknown test '': choose from"),
        (["a"], ["x"], {"permutations": 0}, "permutations is 0: give"),
        (["a", ModelEntry("a", "org/a")], ["x"], {}, "2 models are called 'a'"),
    ],
)
def test_bad_requests_are_refused_before_anything_is_opened(models, sets, arguments, message):
    with pytest.raises(InputError, match=message):
        settings = {"tests": TESTS, "permutations": 5, "directory": "stores"} | arguments
        score_models(models, sets, access=None, **settings)


# --- loading and resuming -------------------------------------------------------------------------


def test_an_interrupted_audit_goes_on_where_it_was(bench, two, tmp_path_factory, prose):
    whole = Bench(tmp_path_factory.mktemp("whole"), bench.tokenizer, prose)
    copies = [whole.write("first"), whole.write("second", start=24)]
    expected = whole.run(["a", "b"], copies)

    bench.scorers["b"] = MadeUpScorer(bench.tokenizer, revision="b", survives=60)
    with pytest.raises(Breakdown):
        bench.run(["a", "b"], two)
    lost = bench.scorers["a"].scored
    bench.scorers["b"].survives = np.inf
    found = bench.run(["a", "b"], two)
    pd.testing.assert_frame_equal(found, expected)
    assert bench.scorers["a"].scored == lost  # whole before the interruption
    assert bench.scorers["b"].scored < 2 * whole.scorers["b"].scored


def test_another_revision_or_seed_is_scored_beside_what_is_there(bench, two):
    first = bench.run(["a"], two)
    assert bench.scored() > 0
    bench.scorers["a"] = MadeUpScorer(bench.tokenizer, revision="moved")
    moved = bench.run(["a"], two)
    assert (moved["model_revision"] == "moved").all()
    assert len(bench.scorers["a"].sequences) > 0
    assert (bench.run(["a"], two, seed=1)["status"] == "ok").all()
    bench.write("second", start=24, count=23)
    shorter = bench.run(["a"], two, tests=["successor"])  # as many shards as before
    assert shorter[["examples", "status"]].to_numpy().tolist() == [[24, "ok"], [23, "ok"]]
    bench.write("second", start=24)
    del bench.scorers["a"]
    pd.testing.assert_frame_equal(bench.run(["a"], two), first)
    assert bench.scored() == 0


# --- models and sets of a run ---------------------------------------------------------------------


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


def test_canary_sets_read_what_the_score_stage_has_scored(run, bench):
    names = [f"profile/{name}" for name in SETS]
    table = bench.run(["contaminated", "clean"], names, experiment=run.experiment)
    assert (table["status"] == "ok").all()
    assert list(dict.fromkeys(table["dataset"])) == [*SETS]
    assert bench.scored() == 0
    assert not (bench.root / "stores").exists()
    for name, count in SETS.items():
        for test in TESTS:
            planted, clean = (cell(table, m, name, test) for m in ("contaminated", "clean"))
            assert (planted["dup_count"], clean["dup_count"]) == (count, 0)
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
    monkeypatch.setattr(measure, "registered", lambda: ("one", "gsm8k"))
    monkeypatch.setattr(
        grid, "open_test_set", lambda what, max_records: load_test_set(two[0], name=what)
    )
    sets = ["one", "profile/one", "eight", "profile/eight"]
    table = bench.run(["contaminated"], sets, experiment=run.experiment, tests=["sharded_t"])
    assert list(table["dataset"]) == ["one", "profile/one", "eight"]
    assert list(table["examples"]) == [24, EXAMPLES, EXAMPLES]
    assert table["dup_count"].isna().tolist() == [True, False, False]
    assert table["dup_count"][1:].tolist() == [SETS["one"], SETS["eight"]]
