"""The audit of MMLU on made-up subsets: scored once, filtered by controls, combined by Fisher."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from contamination.errors import InputError
from contamination.experiments.mmlu import audit as mmlu_audit
from contamination.experiments.mmlu.audit import ROWS, WORK, MmluAudit
from contamination.experiments.mmlu.segmentation import MODEL_FREE, both_readings, model_free
from contamination.pretraining.experiment import Experiment
from contamination.results.published import FISHER_COLUMNS, SUBSET_COLUMNS, load_published
from contamination.scoring.models import ModelEntry
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.orderings import ordering, shard_bounds
from contamination.testsets.tokens import tokenize
from fakes.data_fixtures import ROOT, write_profile
from fakes.made_up_scorer import Breakdown, MadeUpScorer, log_probs_of

PUBLISHED = ROOT / "data" / "published"
RECORDS = 20
PERMUTATIONS = 6
SEED = 5  # of the made-up profile


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


SETS = {
    "anatomy": made_up_subset("anatomy", 1),
    "nutrition": made_up_subset("nutrition", 2),
    "professional_law": made_up_subset("professional_law", 1),
}


class Remembers(MadeUpScorer):
    """A model that has read the subsets in canonical order, and knows every six tokens of them."""

    GRAM, GAIN = 6, 12.0

    def __init__(self, tokenizer, **settings) -> None:
        super().__init__(tokenizer, **settings)
        self.grams = set()
        for test_set in SETS.values():
            self.grams |= set(self._grams(np.concatenate(tokenize(tokenizer, test_set.examples))))

    def _grams(self, ids: np.ndarray) -> list[bytes]:
        ids = np.ascontiguousarray(ids, dtype=np.int32)
        return [ids[i : i + self.GRAM].tobytes() for i in range(len(ids) - self.GRAM + 1)]

    def token_logprobs(self, sequences: Sequence[np.ndarray], wanted=None) -> Iterator:
        for index, values in super().token_logprobs(sequences, wanted):
            known = [gram in self.grams for gram in self._grams(sequences[index])]
            gain = np.zeros(len(values), dtype=np.float32)
            gain[self.GRAM - 1 :] = self.GAIN * np.array(known)
            yield index, values + gain


class World:
    """A profile without models, and made-up scorers in the place of the models that are named."""

    def __init__(self, root: Path, tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tokenizer = tokenizer
        self.experiment = Experiment(write_profile(root / "tiny.yaml"), root / "build")
        self.scorers: dict[str, MadeUpScorer] = {}
        monkeypatch.setattr(mmlu_audit, "open_scorer", self.open)

    def open(self, entry: ModelEntry) -> MadeUpScorer:
        if entry.name not in self.scorers:
            kind = Remembers if entry.name == "contaminated" else MadeUpScorer
            self.scorers[entry.name] = kind(self.tokenizer, revision=f"weights of {entry.name}")
        return self.scorers[entry.name]

    def audit(self, **settings) -> MmluAudit:
        given = {
            "models": ["contaminated"],
            "controls": ["clean"],
            "tests": ["sharded_t", "successor"],
            "permutations": PERMUTATIONS,
            "published": PUBLISHED,
        }
        return MmluAudit(self.experiment, **given | settings)

    @property
    def stores(self) -> Path:
        return self.experiment.build / "stores" / "mmlu"


@pytest.fixture
def world(tmp_path: Path, tokenizer, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, tokenizer, monkeypatch)


READINGS = both_readings(SETS)


# --- rows -----------------------------------------------------------------------------------------


def test_models_by_record_and_controls_by_both(world: World) -> None:
    rows = world.audit().rows(READINGS)
    assert tuple(rows) == ROWS
    read = rows.groupby(["model", "reading"]).size().to_dict()
    assert read == {
        ("contaminated", "record"): 6,
        ("clean", "record"): 6,
        ("clean", "line"): 6,
    }
    counted = rows[rows["subset"] == "nutrition"].groupby("reading")["examples"].unique()
    assert counted["record"].tolist() == [RECORDS]
    assert counted["line"].tolist() == [2 * RECORDS]
    assert rows["p"].between(0, 1).all()
    np.testing.assert_allclose(rows["log10_p"], np.log10(rows["p"]), rtol=1e-6, atol=1e-9)
    assert rows["published_p"].isna().all()  # neither model is in the paper
    folders = sorted(p.parent.relative_to(world.stores) for p in world.stores.rglob("store.json"))
    assert Path("clean/nutrition/orderings-005") in folders
    assert Path("clean/nutrition-by-line/orderings-010") in folders
    assert Path("contaminated/anatomy/successors-002") in folders
    assert len(folders) == len(rows)


def test_the_sharded_t_test_by_hand(world: World) -> None:
    rows = world.audit().rows(READINGS)
    found = rows.set_index(["model", "reading", "subset", "test"])
    for reading, subset in [("record", "anatomy"), ("line", "nutrition")]:
        test_set = READINGS[reading][subset]
        ids = tokenize(world.tokenizer, test_set.examples)
        differences = []
        for shard, bounds in enumerate(shard_bounds(len(ids), len(ids) // 4)):
            sums = [
                log_probs_of(
                    np.concatenate(
                        [
                            ids[example]
                            for example in ordering(
                                bounds, j, seed=SEED, dataset=test_set.revision, shard=shard
                            )
                        ]
                    )
                ).sum(dtype=np.float64)
                for j in range(PERMUTATIONS + 1)
            ]
            differences.append(sums[0] - np.mean(sums[1:]))
        expected = stats.ttest_1samp(differences, 0, alternative="greater")
        row = found.loc["clean", reading, subset, "sharded_t"]
        assert row["p"] == pytest.approx(expected.pvalue)
        assert (row["shards"], row["permutations"]) == (len(ids) // 4, PERMUTATIONS)


def test_memory_is_found_and_the_control_stays_silent(world: World) -> None:
    audit = world.audit()
    rows = audit.rows(READINGS)
    by_record = rows[rows["reading"] == "record"].set_index(["model", "test"])["p"]
    assert (by_record["contaminated"] < 0.05).all()
    assert (by_record["clean"] > 0.01).all()
    subsets = audit.subsets(rows, model_free(READINGS, seed=SEED), 0.01)
    assert not subsets["excluded"].any()
    combined = audit.fisher(subsets)
    assert combined["model"].tolist() == ["contaminated"] * 2
    assert (combined["p"] < 1e-3).all()
    assert (combined["subsets_kept"] == 3).all()


def test_work_counts_what_the_rows_read(world: World) -> None:
    audit = world.audit()
    work = audit.work(READINGS)
    assert tuple(work) == WORK
    assert not world.stores.exists()
    assert all(scorer.scored == 0 for scorer in world.scorers.values())
    rows = audit.rows(READINGS)
    keys = ["model", "reading", "test"]
    read = rows.groupby(keys)["tokens_scored"].sum()
    pd.testing.assert_series_equal(
        work.set_index(keys)["tokens_read"].sort_index(), read, check_names=False
    )
    examples = rows.groupby(keys)["examples"].sum()
    pd.testing.assert_series_equal(
        work.set_index(keys)["examples"].sort_index(), examples, check_names=False
    )


# --- once, interrupted, anew ----------------------------------------------------------------------


def test_a_second_audit_scores_nothing_and_says_the_same(world: World) -> None:
    first = world.audit().rows(READINGS)
    world.scorers.clear()
    pd.testing.assert_frame_equal(world.audit().rows(READINGS), first)
    assert [scorer.scored for scorer in world.scorers.values()] == [0, 0]


def test_an_interrupted_audit_goes_on(world: World, tmp_path: Path, monkeypatch) -> None:
    world.open(ModelEntry("contaminated", "x")).survives = 40
    with pytest.raises(Breakdown):
        world.audit().rows(READINGS)
    done = len(list(world.stores.rglob("part-*.parquet")))
    assert done > 0
    world.scorers.clear()
    found = world.audit().rows(READINGS)
    assert world.scorers["contaminated"].scored > 0
    (tmp_path / "other").mkdir()
    fresh = World(tmp_path / "other", world.tokenizer, monkeypatch)
    pd.testing.assert_frame_equal(fresh.audit().rows(READINGS), found)
    assert world.scorers["contaminated"].scored < fresh.scorers["contaminated"].scored


def test_a_model_trained_anew_replaces_its_stores(world: World) -> None:
    first = world.audit().rows(READINGS)
    world.scorers["contaminated"] = MadeUpScorer(world.tokenizer, revision="other weights")
    second = world.audit().rows(READINGS)
    assert world.scorers["contaminated"].scored > 0
    changed = first["p"] != second["p"]
    assert set(first.loc[changed, "model"]) == {"contaminated"}


# --- filter and Fisher ----------------------------------------------------------------------------


def made_up_rows() -> pd.DataFrame:
    values = {
        ("contaminated", "sharded_t"): [0.2, 0.3, 0.004],
        ("contaminated", "successor"): [0.5, 0.6, 0.7],
        ("clean", "sharded_t"): [0.04, 0.5, 0.9],
        ("clean", "successor"): [0.05, 0.5, 0.02],
        ("other", "sharded_t"): [0.03, 0.5, 0.9],
        ("other", "successor"): [0.9, 0.5, 0.9],
    }
    rows = [
        (model, subset, "record", 20, test, 5, 6, 1.0, p, np.log10(p), np.nan, 100)
        for (model, test), row in values.items()
        for subset, p in zip(SETS, row, strict=True)
    ]
    by_line = [("clean", "nutrition", "line", 40, "sharded_t", 5, 6, 1.0, 1e-9, -9.0, np.nan, 1)]
    return pd.DataFrame(rows + by_line, columns=list(ROWS))


def made_up_free(compressor: Sequence[float]) -> pd.DataFrame:
    rows = [
        (subset, reading, 20, 1.0, 0.0, 0.0, "quiet", value if reading == "record" else -20.0)
        for subset, value in zip(SETS, compressor, strict=True)
        for reading in ("record", "line")
    ]
    return pd.DataFrame(rows, columns=list(MODEL_FREE))


def test_a_control_that_rejects_excludes_in_its_own_test(world: World) -> None:
    audit = world.audit(controls=["clean", "other"])
    subsets = audit.subsets(made_up_rows(), made_up_free([-0.1, -1.5, -0.1]), 0.05)
    assert tuple(subsets) == SUBSET_COLUMNS
    assert len(subsets) == 18  # what was read by line is no part of it
    assert (subsets["source"] == "measured").all()
    reasons = subsets.pivot(index="subset", columns=["model", "test"], values="reason")
    for model in ("contaminated", "clean", "other"):
        assert reasons[model, "sharded_t"].to_dict() == {
            "anatomy": "p < 0.05 under clean, other",
            "nutrition": "p < 0.05 under compressor",
            "professional_law": "",  # the small p of an audited model excludes nothing
        }
        assert reasons[model, "successor"].to_dict() == {
            "anatomy": "",  # 0.05 itself is not below it
            "nutrition": "p < 0.05 under compressor",
            "professional_law": "p < 0.05 under clean",
        }
    assert (subsets["excluded"] == (subsets["reason"] != "")).all()


def test_fisher_over_what_is_kept(world: World) -> None:
    audit = world.audit(controls=["clean", "other"])
    subsets = audit.subsets(made_up_rows(), made_up_free([-0.1, -0.1, -0.1]), 0.05)
    combined = audit.fisher(subsets)
    assert tuple(combined) == FISHER_COLUMNS
    assert combined["model"].tolist() == ["contaminated"] * 2
    rows = combined.set_index("test")
    expected = stats.combine_pvalues([0.3, 0.004])
    assert rows.loc["sharded_t", "subsets_kept"] == 2
    assert rows.loc["sharded_t", "statistic"] == pytest.approx(expected.statistic)
    assert rows.loc["sharded_t", "p"] == pytest.approx(expected.pvalue)
    assert rows.loc["sharded_t", "log10_p"] == pytest.approx(np.log10(expected.pvalue))
    assert rows.loc["successor", "p"] == pytest.approx(stats.combine_pvalues([0.5, 0.6]).pvalue)


def test_where_nothing_is_kept_nothing_is_combined(world: World) -> None:
    audit = world.audit()
    rows = made_up_rows()
    rows = rows[rows["model"] != "other"]
    combined = audit.fisher(audit.subsets(rows, made_up_free([-5.0, -5.0, -5.0]), 0.05))
    assert (combined["subsets_kept"] == 0).all()
    assert combined[["statistic", "p", "log10_p"]].isna().all(axis=None)


def test_a_model_of_the_paper_stands_beside_its_published_values(world: World) -> None:
    audit = world.audit(models=["llama2-7b"], tests=["sharded_t"])
    rows = audit.rows(READINGS)
    table4 = load_published(PUBLISHED, "oren2024_table4_mmlu").set_index("subset")["llama2_7b"]
    ours = rows[rows["model"] == "llama2-7b"].set_index("subset")["published_p"]
    assert ours["anatomy"] == table4["anatomy"]
    assert ours["nutrition"] == table4["nutrition"]
    assert np.isnan(ours["professional_law"])
    combined = audit.fisher(audit.subsets(rows, made_up_free([-0.1] * 3), 1e-9))
    table2 = load_published(PUBLISHED, "oren2024_table2_open_models").set_index("dataset")
    assert combined["published_p"].tolist() == [table2.loc["MMLU (Fisher)", "llama2_7b"]]


# --- nothing to measure, and mistakes -------------------------------------------------------------


def test_without_subsets_no_model_is_opened(world: World) -> None:
    audit = world.audit()
    readings = both_readings({})
    rows = audit.rows(readings)
    assert (tuple(rows), len(rows)) == (ROWS, 0)
    assert audit.work(readings).empty
    subsets = audit.subsets(rows, model_free(readings, seed=SEED), 0.05)
    assert (tuple(subsets), len(subsets)) == (SUBSET_COLUMNS, 0)
    assert subsets["excluded"].dtype == bool
    assert audit.fisher(subsets).empty
    assert world.scorers == {}
    assert not world.stores.exists()


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"controls": ["contaminated"]}, "name a model twice; name it once"),
        ({"tests": ["sharded"]}, "unknown test 'sharded': choose from"),
        ({"permutations": 0}, "permutations is 0: give at least 1"),
    ],
)
def test_mistakes_are_told_before_anything_is_scored(
    settings: dict[str, object], told: str, world: World
) -> None:
    with pytest.raises(InputError, match=told):
        world.audit(**settings)
