"""Tests of a sealed set: their level over many keys, and a model that has read it alone."""

import hashlib
import itertools
import json
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from contamination.audit import registry
from contamination.audit.generation import audit_generation
from contamination.audit.recompute import recompute
from contamination.audit.registry import TESTS
from contamination.audit.request import Request
from contamination.audit.result import Audit
from contamination.audit.wordings import wordings_test
from contamination.seal import files
from contamination.seal.audit import (
    NOT_CLAIMED,
    NOT_SENT,
    POWER,
    audit_sealed,
    audit_sealed_texts,
    combine_parts,
    known_records,
    not_claimed,
    records_needed,
    sealed_generations,
    sealed_work,
    wording_variants,
)
from contamination.seal.documents import Seal
from contamination.seal.draws import Drawn, Statement, draw
from contamination.seal.files import SealedSet, seal_file, verify
from contamination.seal.prepare import prepare
from contamination.statistics import TestResult, fisher
from contamination.testsets.example_set import ExampleSet, make_test_set
from contamination.testsets.orderings import shard_bounds
from contamination.testsets.variants import option_variants
from fakes.level import check_level
from fakes.made_up_registry import jsonl
from fakes.made_up_scorer import MadeUpScorer
from fakes.remembering_scorer import WORDS, RemembersText

KEYS = 150
ITEMS = 10
TEMPLATE = "{question}\n{choices:\n}\nAnswer: {answer}\n"
STATED = {
    "name": "liked",
    "template": TEMPLATE,
    "wordings_of": "question",
    "tests": ("successor",),
    "arrangements": 6,
}
AUTHORS = [
    {
        "choices": [f"a{i:02d}", f"b{i:02d}", f"c{i:02d}"],
        "answer": "ABC"[i % 3],
        "wordings": [f"{i:02d} what?", f"{i:02d} which?", f"{i:02d} who, or whom?"],
    }
    for i in range(ITEMS)
]
VARIANTS = prepare([(str(i), each) for i, each in enumerate(AUTHORS)], Statement(**STATED), "liked")


@cache
def noise(*texts: str) -> float:
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
    """A stand-in for a store under this model, with what the tests read."""

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
            example_tokens=[len(text) for text in itertools.chain(*self.texts)],
        )

    def resolution(self, tokens: int) -> float:
        return 0.0

    def shards_in_turn(self) -> nullcontext:
        return nullcontext()

    def successors(self, shard: int, tokens: int) -> np.ndarray:
        examples = self.test_set.examples[slice(*self.header.bounds[shard])]
        scores = np.array([[likes_after(a, b) for b in examples] for a in examples])
        np.fill_diagonal(scores, np.nan)
        return scores

    def variants(self) -> np.ndarray:
        return np.array([[likes_text(text) for text in row] for row in self.texts])


def sealed_by(seed: bytes | None, variants=VARIANTS, stated=STATED) -> SealedSet:
    """Seal the records by a key; without one, as an author would leave them."""
    authors = [Drawn(i, one, {}) for i, one in enumerate(variants)]
    drawn = authors if seed is None else draw(variants, seed)
    placed = [(f"line {i}", one.record) for i, one in enumerate(drawn, 1)]
    seal = Seal(**stated, commitment="0" * 64, signature=None, sha256="0" * 64)
    test_set = make_test_set(seal.name, placed, seal.template, "liked")
    return SealedSet(seal, test_set, b"", tuple(drawn))


def results_of(sealed: SealedSet) -> dict[str, TestResult]:
    free = [one.variants.choices("options") for one in sealed.drawn]
    found = option_variants(sealed.test_set, permutations=5, seed=0, keep=free)
    return {
        "order": TESTS["successor"].result(LikedStore(sealed.test_set), 0),
        "options": TESTS["options"].result(LikedStore(sealed.test_set, found.texts), 5),
        "wordings": wordings_test(LikedStore(sealed.test_set, wording_variants(sealed).texts)),
    }


@pytest.fixture(scope="module")
def p_values() -> dict[str, np.ndarray]:
    """p-values of each part and of all, under many keys of one content and one model."""
    rows = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "SAMPLED_ORDERINGS", 199)
        for i in range(KEYS):
            results = results_of(sealed_by(hashlib.sha256(f"key {i}".encode()).digest()))
            row = {name: result.p for name, result in results.items()}
            order, *others = results.values()
            row["together"] = combine_parts([order], others).p
            rows.append(row)
    frame = pd.DataFrame(rows)
    return {name: frame[name].to_numpy() for name in frame}


def test_many_keys_keep_the_level_of_each_part_and_of_all(p_values):
    assert len(p_values) == 4
    for p in p_values.values():
        check_level(p, 0.05, 0.2)


def test_the_texts_of_wordings_depend_on_the_key_by_its_choice_of_them_alone():
    """The same texts of each record under every key: only which stands first is drawn."""
    found = [wording_variants(sealed_by(bytes([i]) * 32)).texts for i in range(40)]
    assert {tuple(frozenset(row) for row in texts) for texts in found} == {
        tuple(map(frozenset, found[0]))
    }
    for rows in zip(*found, strict=True):
        assert len({row[0] for row in rows}) == 3  # each wording is published by some key


def test_parts_are_independent_over_keys(p_values):
    """Rank correlations of independent draws: none is four standard deviations from 0."""
    parts = [p_values[name] for name in ("order", "options", "wordings")]
    found = np.corrcoef([np.argsort(np.argsort(p)) for p in parts])
    assert np.abs(found[np.triu_indices(3, 1)]).max() < 4 / KEYS**0.5


def test_the_same_model_is_accused_where_the_author_chose_the_arrangement():
    """If the keys were not drawn, this model would know every arrangement."""
    found = {name: result.p for name, result in results_of(sealed_by(None)).items()}
    assert max(found.values()) <= 0.05, found


def result(p: float) -> TestResult:
    log10_p = float(np.log10(p))
    return TestResult(test="t", statistic=0.0, p=p, log10_p=log10_p, shards=1, permutations=1)


def test_several_tests_of_the_order_count_as_one():
    others = [result(0.5), result(0.25)]
    one = combine_parts([result(0.01)], others)
    assert one.p == pytest.approx(fisher(np.log10([0.01, 0.5, 0.25])).p)
    three = combine_parts([result(0.3), result(0.01), result(1.0)], others)
    assert three.p == pytest.approx(fisher(np.log10([0.03, 0.5, 0.25])).p)
    assert combine_parts([result(0.9), result(0.8)], []).p == 1
    assert combine_parts([result(0.02)], []).p == pytest.approx(0.02)


def store_of(scores, tokens=None) -> SimpleNamespace:
    tokens = np.ones_like(scores) if tokens is None else tokens
    header = SimpleNamespace(example_tokens=tokens.ravel())
    return SimpleNamespace(variants=lambda: scores, header=header)


@pytest.mark.parametrize("variants", [2, 3])
def test_wordings_are_compared_token_for_token(variants):
    """A short wording is likelier as a whole, whatever was read."""
    rng = np.random.default_rng(0)
    tokens = np.tile([30, 10, 20][:variants], (40, 1))
    nats = rng.normal(-3, 0.2, tokens.shape)
    nats[:, 0] += 0.5
    found = wordings_test(store_of(nats * tokens, tokens))
    assert found.test == "wordings"
    assert found.shards == 40
    assert found.p < 1e-8


def test_two_wordings_are_the_sign_test_with_its_exact_law():
    """Over all 2^6 falls of the coins, with two records of equal scores that say nothing."""
    gaps = np.array([1e-9, 0.1, 0.3, 5.0, 8.0, 1e9, 0.0, 0.0])
    found = []
    for signs in itertools.product((1, -1), repeat=6):
        scores = np.stack([gaps * (*signs, 1, 1), np.zeros(8)], axis=1)
        found.append((signs.count(1), wordings_test(store_of(scores)).p))
    for wins, p in found:
        assert p == pytest.approx(np.mean([other >= wins for other, _ in found]))
    assert wordings_test(store_of(np.zeros((3, 2)))).p == 1


def test_every_level_of_a_seal_needs_a_number_of_records():
    assert 10_000 < records_needed(0.1, 2, level=1e-12) < 20_000
    assert records_needed(0.1, 24, level=0.9) == 1  # chance alone has the power


@pytest.mark.parametrize(("effect", "variants"), [(0.5, 2), (1.0, 2), (0.5, 3), (0.3, 24)])
def test_so_many_records_find_the_effect_as_often_as_said(effect, variants) -> None:
    rng = np.random.default_rng(0)
    found = []
    count = records_needed(effect, variants, level=0.05)
    for _ in range(1500):
        scores = rng.normal(size=(count, variants))
        scores[:, 0] += effect
        if variants == 2:
            wins = (scores[:, 0] > scores[:, 1]).sum()
            found.append(binom.sf(wins - 1, count, 0.5) <= 0.05)
        else:
            z = (scores[:, 0] - scores.mean(axis=1)).sum() / np.sqrt(count * (1 - 1 / variants))
            found.append(z >= 1.645)
    assert POWER - 0.03 < np.mean(found) < POWER + 0.06  # of few records the law has large steps


@pytest.fixture(scope="module")
def sealed(tmp_path_factory) -> SealedSet:
    rng = np.random.default_rng(0)

    def words(number: int) -> str:
        return " ".join(rng.choice(WORDS, number))

    rows = [
        {"choices": [f"{words(2)} {letter}{i}" for letter in "pqrs"], "answer": "ABCD"[i % 4]}
        | {"wordings": [f"{words(4)} {i}?", f"{words(4)} {i}?"]}
        for i in range(24)
    ]
    directory = tmp_path_factory.mktemp("sealed")
    return seal_quiz(directory, rows, template=TEMPLATE, wordings_of="question")


def found_by(scorer, sealed, directory, name) -> Audit:
    asked = Request(directory=directory, name=name)
    return audit_sealed(sealed_work(scorer, asked, sealed), sealed)


def seal_quiz(directory: Path, rows, **stated) -> SealedSet:
    """Seal rows by the same key at each run."""
    file = directory / "quiz.jsonl"
    file.write_bytes(jsonl(rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files.secrets, "token_bytes", bytes)
        made = seal_file(file, directory / "out", **stated)
    return verify(made.published, made.seal, made.key)


def single(test_set: ExampleSet) -> list[ExampleSet]:
    """Each record of a set for itself: whoever has read these knows no order of records."""
    return [replace(test_set, examples=(text,)) for text in test_set.examples]


def test_a_model_that_has_read_single_records_is_found_and_no_other(sealed, tokenizer, tmp_path):
    reader = RemembersText(tokenizer, *single(sealed.test_set))
    found = {each.test: each.p for each in found_by(reader, sealed, tmp_path, "reader").results}
    assert list(found) == ["successor", "options", "wordings"]
    assert found["successor"] > 1e-3
    assert found["options"] < 1e-6
    assert found["wordings"] < 1e-4
    clean = found_by(MadeUpScorer(tokenizer), sealed, tmp_path, "clean")
    assert min(clean.combined.p, *(result.p for result in clean.results)) > 1e-3


def test_stores_alone_give_every_test_again_by_its_name(sealed, tokenizer, tmp_path):
    reader = RemembersText(tokenizer, *single(sealed.test_set))
    found = found_by(reader, sealed, tmp_path, "reader")
    stores = sorted(path.parent for path in tmp_path.rglob("store.json"))
    computed = {}
    for store in stores:
        for row in recompute(store):
            computed[row["test"]] = row
    axes = {name: row["axis"] for name, row in computed.items()}
    assert axes == {"successor": "order", "options": "options", "wordings": "wordings"}
    for result in found.results:
        assert computed[result.test]["log10 p"] == pytest.approx(result.log10_p)


def test_what_was_stated_is_tested(sealed, tokenizer, tmp_path):
    stated = {"tests": ("permutation", "successor"), "permutations": 39, "arrangements": 4}
    sealed = replace(sealed, seal=sealed.seal.model_copy(update=stated))
    found = found_by(RemembersText(tokenizer, sealed.test_set), sealed, tmp_path, "m")
    whole, successor, *others = found.results
    assert whole.test == "permutation"
    assert whole.shards == 1
    assert whole.permutations == 39
    assert whole.p == 1 / 40
    assert [other.permutations for other in others] == [3, 1]
    together = combine_parts([whole, successor], others)
    assert found.combined.p == pytest.approx(together.p, rel=1e-9, abs=0)


def unpublished(sealed: SealedSet) -> list[str]:
    wordings = set()
    for drawn in sealed.drawn:
        wordings.update(drawn.variants.choices("wordings"))
    return sorted(wordings - {record["question"] for record in sealed.test_set.records})


def test_stores_and_results_hold_no_secret(sealed, tokenizer, tmp_path):
    """An unpublished wording is scored, and nothing of it but numbers is kept."""
    found = found_by(MadeUpScorer(tokenizer), sealed, tmp_path, "clean")
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    shown = json.dumps(found.as_dict()) + repr(sealed) + repr(found)
    assert len(unpublished(sealed)) == 24
    assert not [t for t in unpublished(sealed) if t.encode() in kept or t in shown]


def test_an_endpoint_is_not_sent_what_is_not_published(sealed, tokenizer, tmp_path, monkeypatch):
    class Remote(MadeUpScorer):
        pass

    monkeypatch.setattr("contamination.seal.audit.EndpointScorer", Remote)
    scorer = Remote(tokenizer)
    found = found_by(scorer, sealed, tmp_path, "remote")
    assert [result.test for result in found.results] == ["successor", "options"]
    assert not_claimed(sealed, found) == (*NOT_CLAIMED, NOT_SENT)
    asked = "\0".join(tokenizer.decode(ids) for ids in scorer.sequences)
    assert not [wording for wording in unpublished(sealed) if wording in asked]


def test_a_set_that_was_sealed_by_its_order_alone_is_tested_by_it_alone(tokenizer, tmp_path):
    rows = [{"text": f"{w} {i}"} for i, w in enumerate(WORDS)]
    sealed = seal_quiz(tmp_path, rows, options=False)
    found = found_by(MadeUpScorer(tokenizer), sealed, tmp_path / "stores", "m")
    (one,) = found.results
    assert one.test == "successor"
    assert found.combined.p == pytest.approx(one.p, rel=1e-9, abs=0)


class Writes:
    """Continues a record with the next one, and names the published arrangement, of those it knows.

    Of others it prefers letters and records.
    """

    name = revision = "writes"
    protocol, instruction, served = "local", "continue", ""
    left_out = ()

    def __init__(self, *known: str) -> None:
        self.known = known

    def generate(self, prompts, sampling):
        return [[self.text(prompt)] * sampling.samples for prompt in prompts]

    def text(self, prompt: str) -> str:
        if "Version A" not in prompt:
            after = dict(itertools.pairwise(self.known))
            return after.get(prompt, "a00 b00 00 what")
        assert not self.instruction  # to continue, which goes with no question
        shown = [part.partition("\n")[2] for part in prompt.split("Version ")[1:]]
        found = [any(text.startswith(one.strip()) for one in self.known) for text in shown]
        return "ABCD"[found.index(True)] if any(found) else "B"


def test_a_model_that_writes_what_it_has_read_of_a_sealed_set_is_found(sealed, tmp_path):
    def found_of(known, **asked) -> Audit:
        request = Request(directory=tmp_path / str(len(known)))
        works = sealed_generations(Writes(*known), request, sealed, **asked)
        found = audit_sealed_texts(*works, sealed=sealed)
        alone = [audit_generation(work, drawn=True) for work in works]
        assert found.generation == {**alone[0].generation, "options": alone[1].generation}
        assert found.plan.work.windows == sum(each.plan.work.windows for each in alone)
        return found

    read = sealed.test_set.examples
    for found, status in ((found_of(read), 1), (found_of(()), 3)):  # it always writes the same
        order, options = found.results
        assert order.test == "generated_successor"
        assert options.test == "arrangement_quiz"
        together = combine_parts([order], [options])
        assert found.combined.p == pytest.approx(together.p, rel=1e-9, abs=0)
        assert found.verdict(0.05).status == status
        assert not any(each.diagnosis or each.zlib for each in found.findings)
    order, options = found_of(read).results
    assert order.p == pytest.approx(1 / 20_001)
    assert options.p == pytest.approx(4**-24, rel=1e-6, abs=0)
    assert 20 <= options.known_at_least <= 24


def test_texts_about_a_sealed_set_keep_the_level_over_keys(tmp_path):
    """The same model and content under 60 keys."""
    p = []
    asked = Writes()
    asked.instruction = ""
    for i in range(60):
        sealed = sealed_by(hashlib.sha256(f"texts {i}".encode()).digest())
        request = Request(directory=tmp_path / str(i))
        works = sealed_generations(asked, request, sealed, next_record=True)
        found = audit_sealed_texts(*works, sealed=sealed)
        assert [each.shards for each in found.results] == [2, ITEMS]
        p.append([each.p for each in (*found.results, found.combined)])
    for each in np.array(p).T:
        check_level(each, 0.05, 0.3, reached=False)


@pytest.mark.parametrize("level", [0.05, 0.2, 0.5])
def test_the_bound_on_known_records_covers_over_all_that_a_key_may_draw(level):
    """Two records are known, whatever is drawn; of the others one cannot tell its variants apart.

    A row begins with the score of the drawn variant; the others follow in any order.
    """
    others = np.array([[3.0, 1, 2], [0, 2, 2], [1, 1, 1], [5, 6, 4], [2, 1, 0]])
    known, bounds = [[9.0, 1, 2], [9, 2, 3]], []
    for draws in itertools.product(range(3), repeat=len(others)):
        rows = [np.roll(row, -pick) for row, pick in zip(others, draws, strict=True)]
        bounds.append(known_records(np.array([*known, *rows]), level=level))
    assert np.mean(np.array(bounds) > len(known)) <= level
    assert max(bounds) > 0
