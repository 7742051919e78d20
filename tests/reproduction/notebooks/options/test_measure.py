"""Items are well-formed and drawn by a seed; plantings are, token by token, what they say.

After them a planted run, small: single records are found by the order of options alone.
"""

import itertools
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from transformers import GPT2LMHeadModel

from contamination.audit.registry import OPTION_TEST
from contamination.randomness import random_stream
from contamination.scoring.local import TransformersScorer
from contamination.testsets.example_set import make_test_set
from contamination.testsets.options import items_of
from contamination.testsets.tokens import tokenize
from contamination.testsets.variants import FixedOptions, permitted_places
from reproduction.notebooks.options import measure
from reproduction.notebooks.options.measure import LETTERS, item_sets, make_records, score_axes
from reproduction.notebooks.options.tables import ORDER, axis_outcomes
from reproduction.run.corpus import DOCUMENTS, Docstring, document_line
from reproduction.run.fine_tuning import fine_tune
from reproduction.run.injection import PLANTINGS, fill_blocks, planted_copies
from reproduction.run.network import gpt2_config
from reproduction.run.profile import Architecture
from reproduction.run.tokenizer import train_tokenizer

MODULES, FUNCTIONS = 30, 9  # two items a module, one function left over


def _document(module: int, function: int) -> Docstring:
    word = f"{chr(97 + module % 26)}{chr(97 + function)}{'x' * (module // 26)}"
    text = f"Compute the {word} of the values that are given.\n\nMore is said here."
    path = f"alpha/module{module}.py"
    return Docstring("alpha", "1", path, name=f"make_{word}", signature="(values)", text=text)


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A profile that holds alpha out; a canary set and a document have text of it."""
    places = itertools.product(range(MODULES), range(FUNCTIONS))
    documents = [_document(module, function) for module, function in places]
    monkeypatch.setattr(measure, "harvest", {"alpha": documents}.__getitem__)
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
    records = list(itertools.chain.from_iterable(items.records for items in sets.values()))
    options = [record[letter] for record, letter in itertools.product(records, LETTERS)]
    assert len(set(options)) == len(options) == 200
    assert len({record["input"] for record in records}) == 50
    for one in sets.values():
        found = items_of(one)
        assert permitted_places(found, FixedOptions()) == [(0, 1, 2, 3)] * len(found)
        for record, item in zip(one.records, found, strict=True):
            word = record["input"].removeprefix("What does make_").removesuffix(" do?")
            assert f" {word} " in item.options[item.answer]
            modules = {option.split()[2][0] for option in item.options}
            assert len(modules) == 1, "the options are of one module"
    text = " ".join(options)
    assert " ca " in text or " cb " in text
    assert " aa " not in text
    assert " ba " not in text


def test_arrangement_and_order_are_uniform() -> None:
    functions = []
    for module in range(3):
        functions.append([(f"f{module}{i}", f"text {module}{i}") for i in range(4)])
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


END, RECORDS, COPIES = 9_999, 8, 6


def test_each_planting_is_what_it_says() -> None:
    rng = random_stream(0, "test")
    copies = {}
    for number, planting in enumerate(PLANTINGS, start=1):
        # Records of 3 to 5 tokens: each id is 1000 * set + 10 * record + its place.
        records = [
            1000 * number + 10 * record + np.arange(3 + record % 3, dtype=np.int32)
            for record in range(RECORDS)
        ]
        copies |= planted_copies(planting, planting, COPIES, records, rng=rng)
    texts = [np.append(np.full(5, 500 + i), END) for i in range(60)]
    ends = np.cumsum([len(one) for one in texts])
    background = np.concatenate(texts)
    blocks, _ = fill_blocks(background.astype(np.uint16), ends, copies, END, context=16, rng=rng)

    def orders(number: int) -> list[list[int]]:
        """Records of a set in every stretch of the stream that has nothing else."""
        runs: list[list[int]] = [[]]
        for token in blocks.ravel().tolist():
            if token // 1000 != number or token == END:
                runs.append([])
            elif token % 10 == 0:
                runs[-1].append(token % 1000 // 10)
        return [run for run in runs if run]

    whole, shuffled, single = (orders(number) for number in (1, 2, 3))
    assert whole == [list(range(RECORDS))] * COPIES
    assert [sorted(run) for run in shuffled] == whole
    assert len({tuple(run) for run in shuffled}) == COPIES
    assert list(range(RECORDS)) not in shuffled
    assert Counter(map(tuple, single)) == {(record,): COPIES for record in range(RECORDS)}


ITEMS = 30
# Words of their own for every item: where a word has been read once, what follows is one thing.
WORDS = ["".join(letters) for letters in itertools.product("bdfgklmnprst", "aeiou", "lnrs")]


def test_scattered_copies_are_seen_by_the_options_alone(tmp_path) -> None:
    rng = np.random.default_rng(12)
    lines = [" ".join(rng.choice(WORDS, 12)) + "\nA.\nB.\nC.\nD.\nAnswer: A\n" for _ in range(200)]
    tokenizer = train_tokenizer(lines, 600)
    parts = [np.append(ids, tokenizer.eos_token_id) for ids in tokenize(tokenizer, lines)]
    words = rng.permutation(WORDS)[: 5 * ITEMS].reshape(ITEMS, 5).tolist()
    answers = ["ABCD"[place] for place in rng.integers(4, size=ITEMS)]
    records = [
        ("", {"input": f"{row[0]}?", **dict(zip("ABCD", row[1:], strict=True)), "target": answer})
        for row, answer in zip(words, answers, strict=True)
    ]
    items = make_test_set("items", records, "mmlu/1", "items")
    base = tmp_path / "base"
    torch.manual_seed(0)
    shape = Architecture(n_embd=64, n_layer=2, n_head=4, n_positions=64)
    network = GPT2LMHeadModel(gpt2_config(shape, len(tokenizer), tokenizer.eos_token_id))
    network.save_pretrained(base)
    tokenizer.save_pretrained(base)
    ends = np.cumsum([len(one) for one in parts])
    ids = tokenize(tokenizer, items.examples)
    text = np.concatenate(parts)
    end = tokenizer.eos_token_id
    drawn = random_stream(0, "test")
    copies = planted_copies("single-16", "single", 16, ids, rng=drawn)
    blocks, _ = fill_blocks(text, ends, copies, end, context=64, rng=drawn)
    # A fresh network learns to read first: so it goes through the text more than once.
    planted = fine_tune(
        base, list(blocks), tmp_path / "planted", epochs=3, learning_rate=3e-3, seed=0, batch_size=4
    )
    stores = {}
    for name, directory in (("planted", planted), ("clean", base)):
        scorer = TransformersScorer(directory)
        stores[name] = score_axes(
            items, scorer, tmp_path / "stores", model=name, permutations=3, seed=0
        )
        assert stores[name][OPTION_TEST].variants().shape == (ITEMS, 4)
        assert stores[name][ORDER].header.shards == ITEMS // 10
    outcomes = axis_outcomes(planted=stores["planted"], clean=stores["clean"])
    found = outcomes.set_index("test")
    assert found.loc[OPTION_TEST, "log10_p"] < -4
    assert found.loc[ORDER, "log10_p"] > -2
    assert found.loc[[OPTION_TEST, ORDER], "control_log10_p"].min() > -2
