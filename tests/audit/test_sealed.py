"""Tests of a sealed set: their level over a thousand keys, and a model that has read it alone."""

import hashlib
import itertools
import json
import random
from dataclasses import dataclass, field, replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

from contamination.audit import battery
from contamination.audit.battery import TESTS
from contamination.audit.request import Request
from contamination.audit.sealed import (
    NOT_SENT,
    audit_sealed,
    combine_parts,
    plan_sealed,
    wordings_test,
)
from contamination.statistics import TestResult, fisher
from contamination.testsets import sealing
from contamination.testsets.alternatives import option_alternatives
from contamination.testsets.example_set import ExampleSet, make_test_set
from contamination.testsets.orderings import ordering, shard_bounds
from contamination.testsets.seal import arrange, content_of, entry_of
from contamination.testsets.sealed import Seal, SealedSet, verify, wording_alternatives
from contamination.testsets.sealing import seal_file
from fakes.level import check_level
from fakes.made_up_scorer import MadeUpScorer
from fakes.remembering_scorer import WORDS, RemembersText

# --- a clean model that likes everything that an author does --------------------------------------

KEYS = 1_000
ITEMS = 10
PERMUTATIONS = 19  # of the whole set: p <= 0.05 is the smallest p
TEMPLATE = "{question}\n{choices:\n}\nAnswer: {answer}\n"
CONTENT = content_of(
    [
        entry_of(
            {"question": "", "choices": [f"{w}{i:02d}" for w in "abc"], "answer": "ABC"[i % 3]},
            free=(0, 1, 2),
            field="question",
            wordings=[f"{i:02d} what?", f"{i:02d} which?", f"{i:02d} who, or whom?"],
        )
        for i in range(ITEMS)
    ]
)


@cache
def noise(*texts: str) -> float:
    """Return a number that looks random and depends on the texts alone."""
    digest = hashlib.sha256("\0".join(texts).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


@cache
def likes_text(text: str) -> float:
    """Options in their alphabetical order, the answer C, the first wording."""
    question, *options, answer = text.splitlines()
    liked = 5 * (options == sorted(options)) + (answer[-1] == "C") + 20 * ("what" in question)
    return 2 * noise(text) + liked - len(text)


def likes_after(before: str, text: str) -> float:
    """Records that are numbered in their order."""
    return noise(before[:6], text[:6]) + 5 * (int(text[:2]) == int(before[:2]) + 1)


@dataclass
class LikedStore:
    """What the tests read of a store, under this model, without one."""

    test_set: ExampleSet
    texts: tuple[tuple[str, ...], ...] = ()
    shards: int = 1
    header: SimpleNamespace = field(init=False)

    def __post_init__(self) -> None:
        self.header = SimpleNamespace(
            seed=0,
            dataset_revision=self.test_set.revision,
            shards=self.shards,
            bounds=shard_bounds(ITEMS, self.shards),
            example_tokens=[len(text) for row in self.texts for text in row],
        )

    def resolution(self, tokens: int) -> float:
        return 0.0

    def successors(self, shard: int, tokens: int) -> np.ndarray:
        examples = self.test_set.examples[slice(*self.header.bounds[shard])]
        scores = np.array([[likes_after(a, b) for b in examples] for a in examples])
        np.fill_diagonal(scores, np.nan)
        return scores

    def log_probs(self, permutations: int) -> np.ndarray:
        examples = self.test_set.examples
        pairs = np.array([[likes_after(a, b) for b in examples] for a in examples])
        orders = [
            ordering((0, ITEMS), i, seed=0, dataset=self.test_set.revision, shard=0)
            for i in range(permutations + 1)
        ]
        return np.array([[pairs[order[:-1], order[1:]].sum() for order in orders]])

    def alternatives(self) -> np.ndarray:
        return np.array([[likes_text(text) for text in row] for row in self.texts])


def sealed_by(seed: bytes | None) -> SealedSet:
    """Seal the content by a key; without one, as an author would leave it."""
    if seed is None:
        in_order = sorted(CONTENT, key=lambda entry: entry.wordings)
        records = [entry.worded("question", entry.wordings[0]) for entry in in_order]
        published = [entry.wordings[0] for entry in CONTENT]
    else:
        drawn = arrange(CONTENT, seed, "question")
        records = [one.record for one in drawn]
        published = [one.wording for one in sorted(drawn, key=lambda one: one.entry)]
    placed = [(f"line {i}", record) for i, record in enumerate(records, 1)]
    seal = Seal(1, "", "2026-01-31", TEMPLATE, ITEMS, True, ITEMS, {}, "question", 3, "", "")
    test_set = make_test_set("liked", placed, TEMPLATE, "liked")
    return SealedSet(seal, test_set, ((0, 1, 2),) * ITEMS, CONTENT, tuple(published))


def results_of(sealed: SealedSet) -> dict[str, TestResult]:
    found = option_alternatives(sealed.test_set, permutations=5, seed=0, keep=sealed.free)
    return {
        "order": TESTS["successor"].result(LikedStore(sealed.test_set), 0),
        "whole set": TESTS["permutation"].result(LikedStore(sealed.test_set), PERMUTATIONS),
        "options": TESTS["options"].result(LikedStore(sealed.test_set, found.texts), 5),
        "wordings": wordings_test(LikedStore(sealed.test_set, wording_alternatives(sealed).texts)),
    }


@pytest.fixture(scope="module")
def p_values() -> dict[str, np.ndarray]:
    """p-values of each part and of all, under a thousand keys of one content and one model."""
    orderings, battery.SAMPLED_ORDERINGS = battery.SAMPLED_ORDERINGS, 199
    rows = []
    for i in range(KEYS):
        results = results_of(sealed_by(hashlib.sha256(f"key {i}".encode()).digest()))
        row = {name: result.p for name, result in results.items()}
        order, whole, *others = results.values()
        row["together"] = combine_parts([order], others).p
        row["two tests of the order"] = combine_parts([order, whole], others).p
        rows.append(row)
    battery.SAMPLED_ORDERINGS = orderings
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


@pytest.mark.parametrize(
    ("part", "reached"),
    [
        ("order", True),
        ("whole set", True),
        ("options", True),
        ("wordings", True),
        ("together", True),
        ("two tests of the order", False),  # Bonferroni: below its level
    ],
)
def test_a_thousand_keys_keep_the_level_of_each_part_and_of_all(p_values, part, reached):
    check_level(p_values[part], 0.05, 0.2, reached=reached)


def test_parts_are_independent_over_keys(p_values):
    """Rank correlations of a thousand draws: four standard deviations are 0.13."""
    parts = [p_values[name] for name in ("order", "options", "wordings")]
    found = np.corrcoef([np.argsort(np.argsort(p)) for p in parts])
    assert np.abs(found[np.triu_indices(3, 1)]).max() < 0.13


def test_the_same_model_is_accused_where_the_author_chose_the_arrangement():
    """What the thousand keys would show if they were not drawn: this model sees all of it."""
    found = {name: result.p for name, result in results_of(sealed_by(None)).items()}
    assert max(found.values()) <= 0.05, found


# --- how parts are put together -------------------------------------------------------------------


def result(p: float) -> TestResult:
    return TestResult(
        test="t", statistic=0.0, p=p, log10_p=float(np.log10(p)), shards=1, permutations=1
    )


def test_several_tests_of_the_order_count_as_one():
    others = [result(0.5), result(0.25)]
    one = combine_parts([result(0.01)], others)
    assert one.p == pytest.approx(fisher([0.01, 0.5, 0.25]).p)
    three = combine_parts([result(0.3), result(0.01), result(1.0)], others)
    assert three.p == pytest.approx(fisher([0.03, 0.5, 0.25]).p)
    assert combine_parts([result(0.9), result(0.8)], []).p == 1
    assert combine_parts([result(0.02)], []).p == pytest.approx(0.02)


def test_wordings_are_compared_token_for_token():
    """A short wording is likelier as a whole, whatever was read."""
    rng = np.random.default_rng(0)
    tokens = np.tile([30, 10], (40, 1))
    nats = rng.normal(-3, 0.2, tokens.shape)
    nats[:, 0] += 0.5
    store = SimpleNamespace(
        alternatives=lambda: nats * tokens, header=SimpleNamespace(example_tokens=tokens.ravel())
    )
    found = wordings_test(store)
    assert (found.test, found.shards) == ("wordings", 40)
    assert found.p < 1e-8


# --- from a file to a verdict ---------------------------------------------------------------------


def quiz(count: int, *, seed: int = 0) -> list[dict[str, object]]:
    """Items of random words."""
    rng = np.random.default_rng(seed)

    def words(number: int) -> str:
        return " ".join(rng.choice(WORDS, number))

    return [
        {
            "question": "",
            "choices": [f"{words(2)} {letter}{i}" for letter in "pqrs"],
            "answer": "ABCD"[i % 4],
            "wordings": [f"{words(4)} {i}?", f"{words(4)} {i}?"],
        }
        for i in range(count)
    ]


@pytest.fixture(scope="module")
def sealed(tmp_path_factory) -> SealedSet:
    directory = tmp_path_factory.mktemp("sealed")
    file, rows = directory / "quiz.jsonl", quiz(24)
    for row in rows:
        del row["question"]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sealing.secrets, "token_bytes", bytes)  # zeros: the same key at each run
        _, files = seal_file(file, directory / "out", template=TEMPLATE, wordings_of="question")
    return verify(files.published, files.seal, files.key)


def single(test_set: ExampleSet) -> list[ExampleSet]:
    """Each record of a set for itself: whoever has read these knows no order of records."""
    return [replace(test_set, examples=(text,)) for text in test_set.examples]


def test_a_model_that_has_read_single_records_is_found_by_options_and_wordings(
    sealed, tokenizer, tmp_path
):
    reader = RemembersText(tokenizer, *single(sealed.test_set))
    request = Request(directory=tmp_path, name="reader")
    found = {each.test: each.p for each in audit_sealed(reader, sealed, request).results}
    assert list(found) == ["successor", "options", "wordings"]
    assert found["successor"] > 1e-3
    assert found["options"] < 1e-6
    assert found["wordings"] < 1e-4


def test_a_model_that_has_not_read_it_is_not_accused(sealed, tokenizer, tmp_path):
    request = Request(directory=tmp_path, name="clean")
    found = audit_sealed(MadeUpScorer(tokenizer), sealed, request)
    assert found.combined.p > 1e-3
    assert min(result.p for result in found.results) > 1e-3


def test_the_whole_set_is_redrawn_where_it_is_asked_for(sealed, tokenizer, tmp_path):
    reader = RemembersText(tokenizer, sealed.test_set)
    request = Request(
        tests=["permutation", "successor"], permutations=39, directory=tmp_path, name="reader"
    )
    found = audit_sealed(reader, sealed, request)
    whole, successor, *others = found.results
    assert (whole.test, whole.shards, whole.permutations, whole.p) == ("permutation", 1, 39, 1 / 40)
    assert found.combined.p == pytest.approx(combine_parts([whole, successor], others).p)


def test_what_was_scored_is_not_scored_again_and_a_plan_says_how_much(sealed, tokenizer, tmp_path):
    scorer, request = MadeUpScorer(tokenizer), Request(directory=tmp_path, name="m")
    plan = plan_sealed(scorer, sealed, request)
    assert plan.total.missing == plan.total.work.scored > 0
    assert scorer.scored == 0
    first = audit_sealed(scorer, sealed, request, plan=plan)
    assert first.tokens_scored == plan.total.missing
    scored = scorer.scored
    again = audit_sealed(scorer, sealed, request)
    assert (again.tokens_scored, scorer.scored) == (0, scored)
    assert again.combined.p == first.combined.p
    assert len(set(again.stores)) == 3


def test_stores_and_results_hold_no_secret(sealed, tokenizer, tmp_path):
    """An unpublished wording is scored, and nothing of it but numbers is kept."""
    found = audit_sealed(MadeUpScorer(tokenizer), sealed, Request(directory=tmp_path, name="clean"))
    unpublished = [
        text
        for entry, published in zip(sealed.content, sealed.published, strict=True)
        for text in entry.wordings
        if text != published
    ]
    assert len(unpublished) == 24
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    told = json.dumps(found.as_dict()) + repr(sealed) + repr(found)
    assert not [text for text in unpublished if text.encode() in kept or text in told]


def test_an_endpoint_is_not_sent_what_is_not_published(sealed, tokenizer, tmp_path, monkeypatch):
    from contamination.audit import sealed as module

    class Remote(MadeUpScorer):
        pass

    monkeypatch.setattr(module, "EndpointScorer", Remote)
    scorer = Remote(tokenizer)
    found = audit_sealed(scorer, sealed, Request(directory=tmp_path, name="remote"))
    assert [result.test for result in found.results] == ["successor", "options"]
    assert found.left_out == (NOT_SENT,)
    asked = [tokenizer.decode(ids) for ids in scorer.sequences]
    for entry, published in zip(sealed.content, sealed.published, strict=True):
        (other,) = (text for text in entry.wordings if text != published)
        assert not [text for text in asked if other in text]


def test_a_set_that_was_sealed_by_its_order_alone_is_tested_by_it_alone(tokenizer, tmp_path):
    file = tmp_path / "texts.jsonl"
    file.write_text("".join(json.dumps({"text": f"{w} {i}"}) + "\n" for i, w in enumerate(WORDS)))
    _, files = seal_file(file, tmp_path / "out", options=False)
    sealed = verify(files.published, files.seal, files.key)
    found = audit_sealed(
        MadeUpScorer(tokenizer), sealed, Request(directory=tmp_path / "stores", name="m")
    )
    (one,) = found.results
    assert (one.test, found.combined.p) == ("successor", pytest.approx(one.p))


# --- a network that has read it -------------------------------------------------------------------


def test_a_network_that_read_single_records_in_any_order_is_found_and_no_other_is(
    tokenizer, tmp_path, monkeypatch
):
    """It reads 80 times what was published, or what the author had: the same records, unsealed."""
    import torch
    from transformers import GPT2LMHeadModel

    from contamination.scoring.local import TransformersScorer
    from reproduction.run.fine_tuning import fine_tune_on_texts
    from reproduction.run.network import gpt2_config
    from reproduction.run.profile import Architecture

    template = "{question}{choices[0]}{choices[1]}{choices[2]} {answer}\n"
    rows = [
        {
            "question": f"{i} {first}",
            "choices": [f" {WORDS[(7 * i + 13 * k) % len(WORDS)]}" for k in range(3)],
            "answer": "ABC"[i % 3],
        }
        for i, (first, _) in enumerate(itertools.permutations(WORDS, 2))
    ][:60]
    (tmp_path / "quiz.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setattr(sealing.secrets, "token_bytes", bytes)  # the same at each run
    _, files = seal_file(tmp_path / "quiz.jsonl", tmp_path / "out", template=template)
    sealed = verify(files.published, files.seal, files.key)
    own = make_test_set("own", [("", row) for row in rows], template, "own")

    torch.manual_seed(0)
    shape = Architecture(n_embd=64, n_layer=2, n_head=2, n_positions=64)
    config = gpt2_config(shape, len(tokenizer), tokenizer.eos_token_id)
    GPT2LMHeadModel(config).save_pretrained(tmp_path / "new")
    tokenizer.save_pretrained(tmp_path / "new")
    found = {}
    for name, read in (("reader", sealed.test_set.examples), ("stranger", own.examples)):
        rng = random.Random(0)
        model = fine_tune_on_texts(
            tmp_path / "new",
            [text for _ in range(80) for text in rng.sample(read, len(read))],
            tmp_path / name,
            learning_rate=3e-3,
            seed=0,
            batch_size=2,
        )
        request = Request(directory=tmp_path / "stores", name=name)
        results = audit_sealed(TransformersScorer(model), sealed, request).results
        found[name] = {each.test: each.p for each in results}
    assert found["reader"]["options"] < 1e-6
    assert found["reader"]["successor"] > 1e-4
    assert min(found["stranger"].values()) > 1e-4
