"""Items are well-formed and drawn by a seed; plantings are, token by token, what they say."""

from collections import Counter
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import chisquare

from contamination.randomness import random_stream
from contamination.testsets.alternatives import Keep, permitted_places
from contamination.testsets.example_set import make_test_set
from contamination.testsets.options import items_of
from reproduction.notebooks.options import measure
from reproduction.notebooks.options.measure import LETTERS, item_sets, make_records, plant
from reproduction.notebooks.options.tables import Cell
from reproduction.run.corpus import DOCUMENTS, Docstring, document_line
from reproduction.run.injection import PLANTINGS

MODULES, FUNCTIONS = 30, 9  # two items a module, one function left over


def _document(module: int, function: int) -> Docstring:
    word = f"{chr(97 + module % 26)}{chr(97 + function)}{'x' * (module // 26)}"
    text = f"Compute the {word} of the values that are given.\n\nMore is said here."
    path = f"alpha/module{module}.py"
    return Docstring("alpha", "1", path, name=f"make_{word}", signature="(values)", text=text)


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A profile that holds alpha out; a canary set and a document have text of it."""
    found = [_document(m, f) for m in range(MODULES) for f in range(FUNCTIONS)]
    monkeypatch.setattr(measure, "harvest", {"alpha": found}.__getitem__)
    planted = [{"question": "What?", "answer": "Compute the  AA of the values that are given."}]
    canaries = make_test_set("c", [("", one) for one in planted], "question/1", "c")
    read = "compute the ba of the values\nthat are given.\n\nOther text."
    (tmp_path / DOCUMENTS).write_text(document_line("numpy", read))
    corpus = SimpleNamespace(held_out=("alpha",))
    profile = SimpleNamespace(
        seed=5, name="made up", corpus=corpus, canaries=[SimpleNamespace(name="c")]
    )
    return SimpleNamespace(profile=profile, corpus=tmp_path, test_set={"c": canaries}.__getitem__)


def test_items_are_disjoint_well_formed_and_hold_nothing_that_was_planted_or_read(
    experiment,
) -> None:
    sets = item_sets(experiment, {"one": 20, "two": 30}, packages=[], longest=70)
    assert {name: len(one.examples) for name, one in sets.items()} == {"one": 20, "two": 30}
    records = [record for one in sets.values() for record in one.records]
    options = [record[letter] for record in records for letter in LETTERS]
    assert len(set(options)) == len(options) == 200
    assert len({record["input"] for record in records}) == 50
    for one in sets.values():
        found = items_of(one)
        assert permitted_places(found, Keep()) == [(0, 1, 2, 3)] * len(found)
        for record, item in zip(one.records, found, strict=True):
            word = record["input"].removeprefix("What does make_").removesuffix(" do?")
            assert f" {word} " in item.options[item.answer]
            modules = {option.split()[2][0] for option in item.options}
            assert len(modules) == 1, "the options are of one module"
    text = " ".join(options)
    assert " ca " in text or " cb " in text
    assert " aa " not in text and " ba " not in text


def test_arrangement_and_order_are_uniform() -> None:
    functions = [[(f"f{m}{i}", f"text {m}{i}") for i in range(4)] for m in range(3)]
    places: Counter[str] = Counter()
    ranks: Counter[tuple[str, ...]] = Counter()
    first: Counter[str] = Counter()
    for seed in range(1200):
        records = make_records(functions, rng=random_stream(seed, "test"))
        places[records[0]["target"]] += 1
        ranks[tuple(records[0][letter][-1] for letter in LETTERS)] += 1
        first[records[0]["A"][-2]] += 1
    for counts, cells in ((places, 4), (ranks, 24), (first, 3)):
        assert len(counts) == cells
        assert chisquare(list(counts.values())).pvalue > 1e-4


END = 9_999
CONTEXT = 16
RECORDS = 8
COPIES = 6


def _ids(cell: int) -> list[np.ndarray]:
    """Return records of 3 to 5 tokens: each id is 1000 * cell + 10 * record + its place."""
    return [
        1000 * cell + 10 * record + np.arange(3 + record % 3, dtype=np.int32)
        for record in range(RECORDS)
    ]


CELLS = {Cell(planting, COPIES): _ids(i) for i, planting in enumerate(PLANTINGS, start=1)}
TEXTS = [np.append(np.full(5, 500 + i), END) for i in range(60)]
BACKGROUND = np.concatenate(TEXTS).astype(np.uint16)
ENDS = np.cumsum([len(one) for one in TEXTS])


def _plant(seed: int = 0):
    given = {"context": CONTEXT, "end_of_text": END, "rng": random_stream(seed, "test")}
    return plant(CELLS, BACKGROUND, ENDS, **given)


def _orders(stream: np.ndarray, cell: int) -> list[list[int]]:
    """Numbers of the records of a set in every stretch of the stream that has nothing else."""
    runs: list[list[int]] = [[]]
    for token in stream:
        if token // 1000 != cell or token == END:
            runs.append([])
        elif token % 10 == 0:
            runs[-1].append(int(token % 1000 // 10))
    return [run for run in runs if run]


def test_each_planting_is_what_it_says() -> None:
    stream = _plant()[0].reshape(-1)
    whole, shuffled, single = (_orders(stream, cell) for cell in (1, 2, 3))
    assert whole == [list(range(RECORDS))] * COPIES
    assert [sorted(run) for run in shuffled] == whole
    assert len({tuple(run) for run in shuffled}) == COPIES
    assert list(range(RECORDS)) not in shuffled
    assert sorted(single) == sorted([record] for record in range(RECORDS) for _ in range(COPIES))


def test_single_records_have_no_order_left() -> None:
    hits = pairs = 0
    for seed in range(60):
        flat = [run[0] for run in _orders(_plant(seed)[0].reshape(-1), 3)]
        hits += sum(b == a + 1 for a, b in pairwise(flat))
        pairs += len(flat) - 1
    expected = pairs * (RECORDS - 1) / RECORDS**2
    assert abs(hits - expected) < 4 * np.sqrt(expected)
