"""Items: well-formed, no docstring twice, nothing that models have read; a seed draws the rest."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
from scipy.stats import chisquare

from contamination.randomness import random_stream
from contamination.testsets.alternatives import Keep, permitted_places
from contamination.testsets.example_set import make_test_set
from contamination.testsets.options import items_of
from reproduction.notebooks.options import items
from reproduction.notebooks.options.items import LETTERS, item_sets, make_records
from reproduction.run.corpus import Docstring
from reproduction.run.members import DOCUMENTS, document_line

MODULES, FUNCTIONS = 30, 9  # two items a module, one function left over


def _document(module: int, function: int, **changed: str) -> Docstring:
    word = f"{chr(97 + module % 26)}{chr(97 + function)}{'x' * (module // 26)}"
    text = f"Compute the {word} of the values that are given.\n\nMore is said here."
    fields = {"name": f"make_{word}", "signature": "(values)", "text": text} | changed
    return Docstring("alpha", "1", f"alpha/module{module}.py", **fields)


def _documents() -> list[Docstring]:
    return [_document(m, f) for m in range(MODULES) for f in range(FUNCTIONS)]


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A profile that holds alpha out; a canary set and a document have text of it."""
    found = _documents()
    monkeypatch.setattr(items, "harvest", {"alpha": found, "beta": found}.__getitem__)
    planted = [{"question": "What?", "answer": "Compute the  AA of the values that are given."}]
    canaries = make_test_set("c", [("", one) for one in planted], "question/1", "c")
    read = "compute the ba of the values\nthat are given.\n\nOther text."
    (tmp_path / DOCUMENTS).write_text(document_line("numpy", read))
    corpus = SimpleNamespace(held_out=("alpha",))
    profile = SimpleNamespace(
        seed=5, name="made up", corpus=corpus, canaries=[SimpleNamespace(name="c")]
    )
    return SimpleNamespace(profile=profile, corpus=tmp_path, test_set={"c": canaries}.__getitem__)


def _sets(experiment: SimpleNamespace, **given: object):
    return item_sets(experiment, {"one": 20, "two": 30}, **{"packages": [], "longest": 70} | given)


def test_items_are_disjoint_well_formed_and_all_their_options_may_move(experiment) -> None:
    sets = _sets(experiment)
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


def test_what_was_planted_or_read_is_in_no_item(experiment) -> None:
    text = " ".join(example for one in _sets(experiment).values() for example in one.examples)
    assert " ca " in text or " cb " in text
    assert " aa " not in text and " ba " not in text


def test_arrangement_and_order_are_uniform() -> None:
    """Place of the right option, rank of each among the four, and place of an item in the set."""
    functions = [[(f"f{m}{i}", f"text {m}{i}") for i in range(4)] for m in range(3)]
    places: Counter[str] = Counter()
    ranks: Counter[tuple[str, ...]] = Counter()
    first: Counter[str] = Counter()
    for seed in range(1200):
        records = make_records(functions, rng=random_stream(seed, "test"))
        assert len(records) == 3
        places[records[0]["target"]] += 1
        ranks[tuple(records[0][letter][-1] for letter in LETTERS)] += 1
        first[records[0]["A"][-2]] += 1
    for counts, cells in ((places, 4), (ranks, 24), (first, 3)):
        assert len(counts) == cells
        assert chisquare(list(counts.values())).pvalue > 1e-4
