"""The audit of MMLU on made-up subsets: what it reads, scores once, and finds."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from contamination.errors import InputError
from contamination.scoring.models import ModelEntry
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.orderings import ordering, shard_bounds
from contamination.testsets.tokens import tokenize
from fakes.data_fixtures import ROOT, write_profile
from fakes.made_up_scorer import Breakdown, MadeUpScorer, log_probs_of
from fakes.remembering_scorer import RemembersText
from reproduction.notebooks.mmlu import measure as passes
from reproduction.notebooks.mmlu.measure import CELLS, MmluAudit, measure
from reproduction.notebooks.mmlu.subsets import model_free, segmented
from reproduction.notebooks.mmlu.tables import (
    ROWS,
    SUBSET_COLUMNS,
    failed_subsets,
    fisher_layout,
    fisher_table,
    judge_stores,
    measured_subsets,
    table4_layout,
)
from reproduction.output.published import load_published
from reproduction.run.experiment import Experiment
from reproduction.run.grid import Access

PUBLISHED = ROOT / "data" / "published"
RECORDS = 20
PERMUTATIONS = 6
SEED = 5  # of the made-up profile
SETTINGS = {
    "models": ["contaminated"],
    "controls": ["clean"],
    "tests": ["sharded_t", "successor"],
    "permutations": PERMUTATIONS,
}


def made_up_subset(name: str, lines: int) -> ExampleSet:
    rng = np.random.default_rng([7, len(name)])
    words = ["stone", "river", "lamp", "north", "seven", "glass", "quiet", "under"]
    records = tuple(
        {
            "question": "\n".join(" ".join(rng.choice(words, 5)) for _ in range(lines)),
            "choices": ["one", "two", "three", "four"],
            "answer": str(rng.choice(list("ABCD"))),
        }
        for _ in range(RECORDS)
    )
    examples = tuple(f"{r['question']}\nAnswer: {r['answer']}\n" for r in records)
    return ExampleSet(name, examples, "mmlu/2", f"revision of {name}", records)


LINES = {"anatomy": 1, "nutrition": 2, "professional_law": 1}  # of a question
SETS = {name: made_up_subset(name, lines) for name, lines in LINES.items()}


class World(Access):
    """A profile without models, and made-up scorers in the place of the models that are named."""

    def __init__(self, root: Path, tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tokenizer = tokenizer
        self.experiment = Experiment(write_profile(root / "tiny.yaml"), root / "build")
        self.scorers: dict[str, MadeUpScorer] = {}
        self.lost: dict[str, str] = {}  # subsets and models that cannot be had, with the reason
        monkeypatch.setattr(passes, "subsets_at_hand", self.subsets)

    def subsets(self, *_, **__) -> dict:
        return SETS | {name: why for name, why in self.lost.items() if why.startswith("failed")}

    def open_model(self, entry: ModelEntry) -> MadeUpScorer:
        if entry.name in self.lost:
            raise InputError(self.lost[entry.name])
        if entry.name not in self.scorers:
            read = SETS.values() if entry.name == "contaminated" else ()
            revision = f"weights of {entry.name}"
            made = RemembersText(self.tokenizer, *read, revision=revision)
            self.scorers[entry.name] = made
        return self.scorers[entry.name]

    def audit(self, **settings) -> MmluAudit:
        return MmluAudit(self.experiment, **SETTINGS | settings)

    def cells(self, **settings) -> pd.DataFrame:
        given = SETTINGS | {"measured": True, "max_records": RECORDS} | settings
        return measure(self.experiment, **given, access=self)["cells"]

    def rows(self, **settings) -> pd.DataFrame:
        audit, cells = self.audit(**settings), self.cells(**settings)
        return judge_stores(audit, cells, BOTH, PUBLISHED)

    @property
    def stores(self) -> Path:
        return self.experiment.build / "stores" / "mmlu"


@pytest.fixture
def world(tmp_path: Path, tokenizer, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, tokenizer, monkeypatch)


BOTH = segmented(SETS)


def test_models_by_record_and_controls_by_both_whatever_cannot_be_had(world: World) -> None:
    world.lost = {"virology": "failed: mmlu/virology: another checksum", "gone": "gone: no such"}
    cells = world.cells(models=["contaminated", "gone"])
    assert tuple(cells) == CELLS
    counts = cells.groupby(["model", "segmentation"]).size().to_dict()
    both = [("clean", "line"), ("clean", "record"), ("contaminated", "record"), ("gone", "record")]
    assert counts == dict.fromkeys(both, 2 * 4)
    status = {name: set(found) for name, found in cells.groupby("model")["status"]}
    lost, gone = world.lost["virology"], "failed: gone: no such"
    assert status == {"clean": {"ok", lost}, "contaminated": {"ok", lost}, "gone": {gone}}
    assert (cells.loc[cells["subset"] == "virology", "status"] != "ok").all()
    audit = world.audit(models=["contaminated", "gone"])
    rows = judge_stores(audit, cells, BOTH, PUBLISHED)
    assert tuple(rows) == ROWS
    assert len(rows) == 2 * 3 * 3
    counted = rows[rows["subset"] == "nutrition"].groupby("segmentation")["examples"].unique()
    assert (counted["record"], counted["line"]) == ([RECORDS], [2 * RECORDS])
    assert rows["published_p"].isna().all()  # neither model is in the paper
    failed = failed_subsets(cells)
    assert list(failed) == list(SUBSET_COLUMNS)
    assert failed["p"].isna().all() and not failed["excluded"].any()
    measured = measured_subsets(rows, model_free(BOTH, seed=SEED), ["clean"], 0.01)
    table2 = load_published(PUBLISHED, "oren2024_table2_open_models")
    together = pd.concat([measured, failed], ignore_index=True)
    counts = table4_layout(together).set_index("Subset")["Examples"].to_dict()
    assert counts == dict.fromkeys(LINES, str(RECORDS)) | {"virology": "—"}
    combined = fisher_table(together, table2, {"contaminated": None}, ["clean"])
    alone = fisher_table(measured, table2, {"contaminated": None}, ["clean"])
    pd.testing.assert_frame_equal(combined, alone)
    assert (combined["subsets_kept"] == 3).all() and (combined["status"] == "ok").all()


def test_the_sharded_t_test_by_hand(world: World) -> None:
    rows = world.rows()
    found = rows.set_index(["model", "segmentation", "subset", "test"])
    for segmentation, subset in [("record", "anatomy"), ("line", "nutrition")]:
        test_set = BOTH[segmentation][subset]
        ids = tokenize(world.tokenizer, test_set.examples)
        differences = []
        for shard, bounds in enumerate(shard_bounds(len(ids), len(ids) // 4)):
            where = {"seed": SEED, "dataset": test_set.revision, "shard": shard}
            orders = [ordering(bounds, j, **where) for j in range(PERMUTATIONS + 1)]
            texts = [np.concatenate([ids[example] for example in order]) for order in orders]
            sums = [log_probs_of(text).sum(dtype=np.float64) for text in texts]
            differences.append(sums[0] - np.mean(sums[1:]))
        expected = stats.ttest_1samp(differences, 0, alternative="greater")
        row = found.loc["clean", segmentation, subset, "sharded_t"]
        assert row["p"] == pytest.approx(expected.pvalue)
        assert (row["shards"], row["permutations"]) == (len(ids) // 4, PERMUTATIONS)


def test_memory_is_found_and_the_control_stays_silent(world: World) -> None:
    rows = world.rows()
    by_record = rows[rows["segmentation"] == "record"].set_index(["model", "test"])["p"]
    assert (by_record["contaminated"] < 0.05).all()
    assert (by_record["clean"] > 0.01).all()
    subsets = measured_subsets(rows, model_free(BOTH, seed=SEED), ["clean"], 0.01)
    assert not subsets["excluded"].any()
    table2 = load_published(PUBLISHED, "oren2024_table2_open_models")
    combined = fisher_table(subsets, table2, {"contaminated": None})
    assert combined["model"].tolist() == ["contaminated"] * 2
    assert (combined["p"] < 1e-3).all()
    assert (combined["subsets_kept"] == 3).all()


def test_an_interrupted_audit_goes_on(world: World, tmp_path: Path, monkeypatch) -> None:
    world.open_model(ModelEntry("contaminated", "x")).survives = 40
    with pytest.raises(Breakdown):
        world.rows()
    done = len(list(world.stores.rglob("part-*.parquet")))
    assert done > 0
    world.scorers.clear()
    found = world.rows()
    assert world.scorers["contaminated"].scored > 0
    (tmp_path / "other").mkdir()
    fresh = World(tmp_path / "other", world.tokenizer, monkeypatch)
    pd.testing.assert_frame_equal(fresh.rows(), found)
    assert world.scorers["contaminated"].scored < fresh.scorers["contaminated"].scored


def test_a_model_trained_anew_replaces_its_stores(world: World) -> None:
    first = world.rows()
    world.scorers["contaminated"] = MadeUpScorer(world.tokenizer, revision="other weights")
    second = world.rows()
    assert world.scorers["contaminated"].scored > 0
    changed = first["p"] != second["p"]
    assert set(first.loc[changed, "model"]) == {"contaminated"}


def test_a_model_of_the_paper_stands_beside_its_published_values(world: World) -> None:
    settings = {"models": ["llama2-7b"], "tests": ["sharded_t"]}
    audit, rows = world.audit(**settings), world.rows(**settings)
    table4 = load_published(PUBLISHED, "oren2024_table4_mmlu").set_index("subset")["llama2_7b"]
    ours = rows[rows["model"] == "llama2-7b"].set_index("subset")["published_p"]
    assert ours["anatomy"] == table4["anatomy"]
    assert ours["nutrition"] == table4["nutrition"]
    assert np.isnan(ours["professional_law"])
    assert audit.models["llama2-7b"].published == "llama2_7b"  # its column of Table 2


def test_without_a_model_or_a_control_nothing_is_combined(world: World) -> None:
    """Without a control, order that means something would be taken for contamination."""
    audit, cells = world.audit(), world.cells()
    table2 = load_published(PUBLISHED, "oren2024_table2_open_models")
    for lost, status in [
        ("contaminated", "not run here: no way out"),
        ("clean", "failed: no control was measured, and controls choose the subsets"),
    ]:
        one = cells.copy()
        one.loc[one["model"] == lost, "status"] = "not run here: no way out"
        rows = judge_stores(audit, one, BOTH, PUBLISHED)
        measured = measured_subsets(rows, model_free(BOTH, seed=SEED), ["clean"], 0.01)
        subsets = pd.concat([measured, failed_subsets(one)], ignore_index=True)
        combined = fisher_table(subsets, table2, {"contaminated": None}, ["clean"])
        assert set(combined["status"]) == {status}
        assert combined["p"].isna().all() and (combined["subsets_kept"] == 0).all()
        shown = table4_layout(subsets)
        assert set(shown[f"{lost}, sharded t, here"]) == {"not run here"}
        assert set(fisher_layout(combined)["p"]) == {status.partition(":")[0]}


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"controls": ["contaminated"]}, "name a model twice; name it once"),
        ({"tests": ["sharded"]}, "unknown test 'sharded': choose from"),
        ({"permutations": 0}, "permutations is 0: give"),
    ],
)
def test_mistakes_are_told_before_anything_is_scored(settings, told, world) -> None:
    with pytest.raises(InputError, match=told):
        world.audit(**settings)
