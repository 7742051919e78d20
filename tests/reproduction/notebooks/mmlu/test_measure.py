"""MMLU on made-up subsets: their names, their lines, and an audit of them by record and by line."""

import csv
import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from contamination.errors import InputError
from contamination.testsets.example_set import ExampleSet
from fakes.data_fixtures import ROOT, write_profile
from fakes.made_up_scorer import MadeUpScorer
from fakes.opening import Opening
from fakes.remembering_scorer import RemembersText
from reproduction.notebooks.mmlu import measure as passes
from reproduction.notebooks.mmlu.measure import (
    by_line,
    measure,
    model_free,
    physical_lines,
    segmented,
    subset_names,
    subsets_at_hand,
)
from reproduction.notebooks.mmlu.settings import Settings
from reproduction.notebooks.mmlu.tables import (
    fisher_layout,
    fisher_table,
    judge_stores,
    measured_subsets,
    published_subsets,
    table4_layout,
)
from reproduction.output.published import load_published
from reproduction.run.experiment import Experiment
from reproduction.run.grid import Access

PUBLISHED = ROOT / "data" / "published"
RECORDS = 20
PERMUTATIONS = 6
SEED = 5  # of the made-up profile
SETTINGS = Settings(
    models=("contaminated",),
    controls=("clean",),
    tests=("sharded_t", "successor"),
    permutations=PERMUTATIONS,
    max_records=RECORDS,
    shards=None,
    start_each=False,
)
ENDINGS = ("ark", "olim", "une", "ibar", "esto", "awn")
WORDS = ["".join(parts) for parts in itertools.product("bdfgklmnprst", ENDINGS)]


def make_record(question: str, answer: str = "A") -> dict[str, object]:
    return {"question": question, "choices": ["one", "t,wo", 'th"ree', "four"], "answer": answer}


def make_set(questions: list[str], name: str = "made_up") -> ExampleSet:
    answers = np.random.default_rng(5).choice(list("ABCD"), len(questions)).tolist()
    records = tuple(make_record(q, a) for q, a in zip(questions, answers, strict=True))
    examples = tuple(f"{r['question']}\nAnswer: {r['answer']}\n" for r in records)
    return ExampleSet(name, examples, "mmlu/2", f"revision of {name}", records)


def passages(count: int) -> ExampleSet:
    """Records of four lines, each on a theme of few words of its own."""
    rng = np.random.default_rng(3)
    themes = [rng.choice(WORDS, 4, replace=False) for _ in range(count)]
    questions = []
    for theme in themes:
        lines = [" ".join(rng.choice(theme, 9)) for _ in range(4)]
        questions.append("\n".join(lines))
    return make_set(questions, "passages")


def single_lines(count: int) -> ExampleSet:
    rng = np.random.default_rng(4)
    return make_set([" ".join(rng.choice(WORDS, 8)) for _ in range(count)], "single")


class Registry(Access):
    """Sets made of their names; one is out of reach."""

    def open_set(self, name, *, max_records, lines=False) -> ExampleSet:
        if name == "mmlu/anatomy":
            raise InputError(f"{name}: fetch it") from ConnectionError("no way out")
        return ExampleSet(name, (f"{name}\n",) * max_records, "text/1", f"revision of {name}")


def test_subsets_are_opened_under_their_own_names_or_say_why_not(monkeypatch) -> None:
    monkeypatch.setattr(passes, "available", lambda name: name != "mmlu/astronomy")
    subsets = subsets_at_hand(7, Registry())
    assert list(subsets) == subset_names()
    lost = {name: subset for name, subset in subsets.items() if isinstance(subset, str)}
    assert lost == dict.fromkeys(("anatomy", "astronomy"), "not run here: mmlu/anatomy: fetch it")
    assert subsets["nutrition"].name == "nutrition"
    assert len(subsets["nutrition"].examples) == 7


def test_lines_are_those_of_a_csv_file(tmp_path: Path) -> None:
    questions = ['He said "yes",\nthen\n\nno.', "plain", " \n starts late"]
    questions += ["ends so\n", "é\u2028x", "a\n  \nb"]
    records = [make_record(q) for q in questions]
    path = tmp_path / "records.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["question", "choice0", "choice1", "choice2", "choice3", "answer"])
        writer.writerows([r["question"], *r["choices"], r["answer"]] for r in records)
    text = path.read_text(encoding="utf-8")
    wanted = [line for line in text.split("\n")[1:] if line.strip()]
    lines = [physical_lines(record) for record in records]
    assert list(itertools.chain.from_iterable(lines)) == wanted
    assert [len(lines_of_record) for lines_of_record in lines] == [3, 1, 2, 2, 1, 2]


def test_torn_records_are_another_set_and_found_and_whole_ones_are_quiet() -> None:
    records = passages(40)
    single = single_lines(80)
    both = segmented({"passages": records, "single": single, "lost": "failed: gone"})
    assert both["record"] == {"passages": records, "single": single}
    lines = both["line"]["passages"]
    assert lines.name == "passages-by-line"
    assert lines.template == "csv-line/1"
    assert lines.records == ()
    assert len({examples.revision for examples in (lines, records, by_line(single))}) == 3
    rows = model_free(both, seed=1).set_index(["subset", "segmentation"])
    counts = rows["examples"].unstack()[["record", "line"]]
    assert counts.to_dict("list") == {"record": [40, 80], "line": [160, 80]}
    torn = rows.loc["passages", "line"]
    assert torn["verdict"] == "order carries information"
    assert torn["compressor_log10_p"] < -3
    whole = rows.drop(index=[("passages", "line")])
    assert (whole["verdict"] == "quiet").all()
    assert (whole["compressor_log10_p"] > -2).all()


@pytest.mark.parametrize(
    ("shared", "expected"),
    [("From this:", 0), ("From this, and which is the longest line of each", 2 / 12)],
)
def test_facts_about_lines(shared: str, expected: float) -> None:
    """The longest line counts: where that has the choices, it differs in the question."""
    refrain = "a line that its own record says twice"
    questions = [f"{shared}\nA?", "B?", f"{shared}\nC?", f"?\n{refrain}\n{refrain}", *"defghijk"]
    free = model_free(segmented({"set": make_set(questions)}), seed=1)
    assert (free["lines_per_record"] == (2 + 1 + 2 + 3 + 8) / 12).all()
    assert (free["spanning"] == 3 / 12).all()
    assert (free["shared_passages"] == expected).all()


def made_up_subset(name: str, lines: int) -> ExampleSet:
    rng = np.random.default_rng([7, len(name)])
    words = ["stone", "river", "lamp", "north", "seven", "glass", "quiet", "under"]
    questions = []
    for _ in range(RECORDS):
        texts = [" ".join(rng.choice(words, 5)) for _ in range(lines)]
        questions.append("\n".join(texts))
    return make_set(questions, name)


LINES = {"anatomy": 1, "nutrition": 2, "professional_law": 1}  # of a question
TITLES = ["Anatomy", "Nutrition", "Professional Law"]
SETS = {name: made_up_subset(name, lines) for name, lines in LINES.items()}
BOTH = segmented(SETS)
FREE = model_free(BOTH, seed=SEED)
TABLE2 = load_published(PUBLISHED, "oren2024_table2_open_models")
PRINTED = published_subsets(load_published(PUBLISHED, "oren2024_table4_mmlu"), 0.01)


class World(Opening):
    """A profile without models, and made-up scorers in the place of the models that are named."""

    def __init__(self, root: Path, tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(tokenizer)
        self.experiment = Experiment(write_profile(root / "tiny.yaml"), root / "build")
        self.lost: dict[str, str] = {}  # unavailable subsets, with the reason
        monkeypatch.setattr(passes, "subsets_at_hand", self.subsets)

    def subsets(self, *_, **__) -> dict:
        return SETS | self.lost

    def made(self, name: str) -> MadeUpScorer:
        read = SETS.values() if name == "contaminated" else ()
        return RemembersText(self.tokenizer, *read, revision=f"weights of {name}")

    def cells(self, **settings) -> pd.DataFrame:
        changed = SETTINGS.model_copy(update=settings)
        return measure(self.experiment, changed, access=self)["cells"]

    def rows(self, cells: pd.DataFrame) -> pd.DataFrame:
        return judge_stores(self.experiment, cells, BOTH, PERMUTATIONS, PUBLISHED)


@pytest.fixture
def world(tmp_path: Path, tokenizer, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, tokenizer, monkeypatch)


def test_models_by_record_and_controls_by_both_whatever_cannot_be_had(world: World) -> None:
    world.lost = {"virology": "failed: mmlu/virology: another checksum"}
    world.broken["gone"] = InputError("gone: no such")
    cells = world.cells(models=["contaminated", "gone"])
    counts = cells.groupby(["model", "segmentation"]).size().to_dict()
    both = [("clean", "line"), ("clean", "record"), ("contaminated", "record"), ("gone", "record")]
    assert counts == dict.fromkeys(both, 2 * 4)
    status = {name: set(statuses) for name, statuses in cells.groupby("model")["status"]}
    lost = world.lost["virology"]
    gone = "failed: gone: no such"
    assert status == {"clean": {"ok", lost}, "contaminated": {"ok", lost}, "gone": {gone}}
    rows = world.rows(cells)
    counted = rows[rows["subset"] == "nutrition"].groupby("segmentation")["examples"].unique()
    assert counted["record"] == [RECORDS]
    assert counted["line"] == [2 * RECORDS]
    together = measured_subsets(cells, rows, FREE, ["clean"], 0.01, PRINTED)
    failed = together["status"] != "ok"
    assert together.loc[failed, "p"].isna().all()
    assert not together.loc[failed, "excluded"].any()
    counts = table4_layout(together).set_index("Subset")["Examples"].to_dict()
    assert counts == dict.fromkeys(TITLES, str(RECORDS)) | {"Virology": "—"}
    combined = fisher_table(together, TABLE2, {"contaminated": None}, ["clean"])
    alone = fisher_table(together[~failed], TABLE2, {"contaminated": None}, ["clean"])
    pd.testing.assert_frame_equal(combined, alone)
    assert (combined["subsets_kept"] == 3).all()
    assert (combined["status"] == "ok").all()


def test_memory_is_found_and_the_control_stays_silent_or_nothing_is_combined(world: World) -> None:
    cells = world.cells()
    rows = world.rows(cells)
    by_record = rows[rows["segmentation"] == "record"].set_index(["model", "test"])["p"]
    assert (by_record["contaminated"] < 0.05).all()
    assert (by_record["clean"] > 0.01).all()
    subsets = measured_subsets(cells, rows, FREE, ["clean"], 0.01, PRINTED)
    assert not subsets["excluded"].any()
    combined = fisher_table(subsets, TABLE2, {"contaminated": None})
    assert combined["model"].tolist() == ["contaminated"] * 4  # two filters, two tests
    assert (combined["p"] < 1e-3).all()
    for lost, status in [
        ("contaminated", "not run here: no way out"),
        ("clean", "failed: no control was measured, and controls choose the subsets"),
    ]:
        one = cells.copy()
        one.loc[one["model"] == lost, "status"] = "not run here: no way out"
        subsets = measured_subsets(one, world.rows(one), FREE, ["clean"], 0.01, PRINTED)
        combined = fisher_table(subsets, TABLE2, {"contaminated": None}, ["clean"])
        assert set(combined["status"]) == {status}
        assert combined["p"].isna().all()
        assert (combined["subsets_kept"] == 0).all()
        assert set(table4_layout(subsets)[f"{lost}, sharded t, here"]) == {"not run here"}
        assert set(fisher_layout(combined)["p"]) == {status.partition(":")[0]}


def test_a_model_trained_anew_replaces_its_stores(world: World) -> None:
    before = world.rows(world.cells())
    world.scorers["contaminated"] = MadeUpScorer(world.tokenizer, revision="other weights")
    after = world.rows(world.cells())
    assert world.scorers["contaminated"].scored > 0
    assert set(before.loc[before["p"] != after["p"], "model"]) == {"contaminated"}


def test_a_model_of_the_paper_stands_beside_its_published_values(world: World) -> None:
    rows = world.rows(world.cells(models=["llama2-7b"], shards=10))
    shards = rows.groupby("test")["shards"].unique()
    assert shards["sharded_t"] == [10]
    assert 10 not in shards["successor"]
    rows = rows[rows["test"] == "sharded_t"]
    published = rows.dropna(subset="published_p").set_index(["model", "subset"])["published_p"]
    table4 = load_published(PUBLISHED, "oren2024_table4_mmlu").set_index("subset")["llama2_7b"]
    names = ("anatomy", "nutrition")
    assert published.to_dict() == {("llama2-7b", name): table4[name] for name in names}
