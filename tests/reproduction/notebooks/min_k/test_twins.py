"""Sets and their held-out twins: disjoint draws, a planted set that is found, and level."""

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from contamination.errors import InputError
from contamination.statistics.held_out import held_out_test
from contamination.testsets.example_set import ExampleSet
from fakes.remembering_scorer import RemembersText
from reproduction.notebooks.min_k import held_out as module
from reproduction.notebooks.min_k.held_out import measure_held_out
from reproduction.notebooks.min_k.held_out_tables import (
    FURTHER,
    found_by_planting,
    held_out_layout,
    with_order_tests,
)
from reproduction.notebooks.min_k.settings import Settings
from reproduction.notebooks.min_k.twins import TwinSets, draw_twins
from reproduction.run import canaries
from reproduction.run.canaries import LEFT
from reproduction.run.corpus import Docstring
from reproduction.run.injection import PLANTINGS
from reproduction.run.profile import CanarySpec

EXAMPLES = 12
PARAMETERS = {
    "length": 16,
    "k": 20,
    "other_k": [],
    "validation_spans": 20,
    "validation_files": {},
    "alpha": 0.05,
    "divisions": 999,
    "kinds": ["question"],
    "plantings": ["shuffled", "single"],
    "dup_counts": [4],
    "examples": EXAMPLES,
    "background_tokens": 100,
    "learning_rate": 1e-3,
    "batch_size": 4,
}


def _settings(**changes: object) -> Settings:
    return Settings.model_validate(PARAMETERS | changes)


def _records(count: int) -> list[dict[str, str]]:
    rng = np.random.default_rng(7)
    records = []
    for number in range(count):
        answer = " ".join(str(word) for word in rng.integers(10_000, 99_999, 6))
        records.append({"question": f"What is {number}?", "answer": answer})
    return records


def _left(count: int) -> list[dict[str, str]]:
    """Records that are none of the three sets'."""
    return _records(3 * EXAMPLES + count)[3 * EXAMPLES :]


def _set(name: str, records: Sequence[dict[str, str]]) -> ExampleSet:
    examples = [f"Question: {one['question']}\nAnswer: {one['answer']}\n" for one in records]
    return ExampleSet(name, tuple(examples), "question/1", name, tuple(records))


class MadeUpProfile(SimpleNamespace):
    """A run with one set of each planting, a set from a file, and records that are left."""

    def __init__(
        self,
        folder: Path,
        *,
        seed: int = 5,
        left: Sequence[dict[str, str]] | None = None,
    ) -> None:
        records = _records(3 * EXAMPLES + 150)
        specs = []
        sets = {}
        for number, planting in enumerate(PLANTINGS):
            own = records[number * EXAMPLES : (number + 1) * EXAMPLES]
            sets[planting] = _set(planting, own)
            spec = {"name": planting, "kind": "question", "planting": planting}
            specs.append(SimpleNamespace(examples=EXAMPLES, dup_count=2, **spec))
        specs.append(SimpleNamespace(name="of a file", kind=None, examples=3, dup_count=2))
        path = folder / LEFT / "question.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        rest = records[3 * EXAMPLES :] if left is None else left
        path.write_text("".join(f"{json.dumps(record)}\n" for record in rest))
        super().__init__(
            profile=SimpleNamespace(seed=seed, canaries=specs),
            corpus=folder,
            build=folder / "build",
            test_set=sets.__getitem__,
        )


def test_every_made_set_has_a_twin_of_its_size_and_no_record_is_in_two_sets(tmp_path) -> None:
    run = MadeUpProfile(tmp_path)
    of_profile, further = draw_twins(run, _settings())
    assert [twins.name for twins in of_profile] == list(PLANTINGS)
    assert [twins.planted.planting for twins in further] == ["shuffled", "single"]
    seen: list[str] = []
    for twins in of_profile + further:
        assert len(twins.held_out.examples) == len(twins.planted.test_set.examples) == EXAMPLES
        seen += twins.planted.test_set.examples
        seen += twins.held_out.examples
    assert len(set(seen)) == len(seen)


def test_twins_are_drawn_from_all_that_is_left(tmp_path) -> None:
    """Over seeds, every record that is left is as often in the first twin."""
    left = _left(90)
    places: dict[str, int] = {}
    for seed in range(150):
        run = MadeUpProfile(tmp_path, left=left, seed=seed)
        twins = draw_twins(run, _settings(kinds=[]))[0][0]
        for example in twins.held_out.examples:
            places[example] = places.get(example, 0) + 1
    assert len(places) == len(left)
    assert stats.chisquare(list(places.values())).pvalue > 1e-4


def test_a_text_that_comes_twice_is_compared_nowhere(tmp_path) -> None:
    records = _records(3 * EXAMPLES + 150)
    planted_as_well = records[0]
    twice_left = records[3 * EXAMPLES]
    left = [*records[3 * EXAMPLES :], planted_as_well, twice_left]
    for seed in range(20):
        run = MadeUpProfile(tmp_path, seed=seed, left=left)
        of_profile, further = draw_twins(run, _settings())
        whole = of_profile[0]
        assert len(whole.planted.test_set.examples) == EXAMPLES
        assert len(whole.published.examples) == len(whole.held_out.examples) == EXAMPLES - 1
        compared = []
        for twins in of_profile + further:
            compared += [*twins.published.records, *twins.held_out.records]
        assert planted_as_well not in compared
        assert twice_left not in compared


def test_too_few_records_are_named(tmp_path) -> None:
    run = MadeUpProfile(tmp_path, left=_left(50))
    with pytest.raises(InputError, match=r"question\.jsonl: 2 records are left .* wants 12"):
        draw_twins(run, _settings())


@pytest.fixture(scope="module")
def measured(tokenizer, tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """The table under scorers that know the planted sets of their model and no other text."""
    folder = tmp_path_factory.mktemp("twins")
    run = MadeUpProfile(folder)
    settings = _settings()
    of_profile, further = draw_twins(run, settings)

    def scorer(name: str, sets: Sequence[TwinSets]) -> RemembersText:
        known = [twins.planted.test_set for twins in sets]
        return RemembersText(tokenizer, *known, revision=name, batch_tokens=1 << 14)

    scorers = {"contaminated": scorer("contaminated", of_profile), "clean": scorer("clean", [])}
    trained = scorer("further", further)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "train_further", lambda *_, **__: (folder, 0, []))
        patch.setattr(module, "TransformersScorer", lambda _: trained)
        return measure_held_out(run, settings, scorers)


def _canaries(measured: pd.DataFrame) -> pd.DataFrame:
    """Notebook 01's table: the order test finds the set that was planted whole."""
    own = measured[~measured["dataset"].str.contains("further")]
    is_found = (own["model"] == "contaminated") & (own["planting"] == "whole")
    p_values = np.where(is_found, 1e-6, 0.5)
    rows = own[["model", "dataset"]].assign(test="successor", p=p_values)
    return rows.assign(log10_p=np.log10(p_values))


def test_planted_sets_are_found_in_every_planting_and_clean_ones_are_not(measured) -> None:
    table = with_order_tests(measured, _canaries(measured))
    assert len(table) == 2 * 5
    is_read = table["model"] != "clean"
    assert (table.loc[is_read, "holm_p"] <= 0.05).all()
    assert (table.loc[~is_read, "holm_p"] > 0.05).all()
    assert set(table.loc[is_read, "planting"]) == set(PLANTINGS)
    assert table["order_p"].notna().all()
    counts = found_by_planting(table, alpha=0.05).set_index(["model", "planting"])
    assert counts.loc[("contaminated", "whole"), "order"] == 1
    assert counts.loc[("contaminated", "single"), "order"] == 0
    assert counts.loc[("contaminated", "single"), "held_out"] == 1
    assert counts.loc[(FURTHER, "single"), "held_out"] == 1
    assert (counts.loc["clean", "dup_count"] == 0).all()


def test_a_run_without_twins_has_an_empty_table_with_all_columns(measured) -> None:
    table = with_order_tests(measured.iloc[:0], _canaries(measured))
    assert list(table) == list(measured)
    assert held_out_layout(table, alpha=0.05).empty
    assert found_by_planting(table, alpha=0.05).empty


def _documents(count: int) -> list[Docstring]:
    """Docstrings that grow longer, so that their order means something."""
    documents = []
    for number in range(count):
        text = f"Return number {number} of the values." + " It is long." * (3 + number // 15)
        path = f"alpha/module{number}.py"
        name = f"make_{number}"
        documents.append(Docstring("alpha", "1", path, name=name, signature="(values)", text=text))
    return documents


def test_a_set_and_its_twin_are_a_draw(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over seeds, p-values of a score that knows the place of a record are uniform."""
    monkeypatch.setattr(canaries, "_named_docstrings", lambda _: _documents(150))
    spec = CanarySpec(name="one", examples=EXAMPLES, dup_count=2, kind="question")
    p_values = []
    for seed in range(100):
        sets, left_over = canaries.build_canaries([], [spec], seed=seed)
        run = MadeUpProfile(tmp_path, seed=seed, left=left_over["question"])
        run.profile.canaries = [spec]
        run.test_set = {"one": _set("one", sets["one"])}.__getitem__
        (twins,) = draw_twins(run, _settings(kinds=[]))[0]
        texts = [*twins.planted.test_set.examples, *twins.held_out.examples]
        result = held_out_test(
            [float(len(text)) for text in texts],
            np.arange(len(texts)) < EXAMPLES,
            resamples=99,
            rng=np.random.default_rng(seed),
        )
        p_values.append(result.p)
    for level in (0.05, 0.2, 0.5):
        rejected = sum(p <= level for p in p_values)
        assert stats.binomtest(rejected, len(p_values), level, "greater").pvalue > 1e-3
    assert 0.4 < np.mean(p_values) < 0.65
