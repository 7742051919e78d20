"""Records that a key holds back: the division, its files, its test, and one p for all draws."""

import hashlib
import itertools
import json
import math
import stat
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from contamination.audit.evidence import CombinedP
from contamination.audit.request import Request
from contamination.seal import beacon, files
from contamination.seal.audit import (
    NOT_CLAIMED,
    NOT_COMPARED,
    audit_sealed,
    combine_parts,
    not_claimed,
    sealed_work,
)
from contamination.seal.division import divide
from contamination.seal.draws import Variants, draw
from contamination.seal.files import SealedSet, SealFiles, draw_committed, seal_file, verify
from contamination.seal.held_out import combine_with_sides, plan_sides
from contamination.statistics import fisher
from contamination.statistics.held_out import held_out_test
from fakes.level import check_level
from fakes.made_up_registry import jsonl, refusal
from fakes.made_up_scorer import MadeUpScorer
from fakes.remembering_scorer import RemembersText
from seal.test_beacon import ROUND, SIGNATURE

KEYS = 1_000


def keys(count: int):
    return (hashlib.sha256(f"held out {number}".encode()).digest() for number in range(count))


# --- the division ---------------------------------------------------------------------


def test_every_division_is_as_likely_as_any_other_whatever_the_orders_are():
    """6 choices of two of four records, 2 orders of each side: 24 cells."""
    records = [Variants({"text": letter}) for letter in "abcd"]
    cells = Counter()
    for key in keys(24 * 100):
        sides = divide(draw(records, key), key, hold_out=2)
        cells[tuple(record.number for record in itertools.chain(*sides))] += 1
    assert len(cells) == 24
    assert scipy.stats.chisquare(list(cells.values())).pvalue > 1e-4


def test_the_variants_of_a_record_do_not_depend_on_its_side():
    several = {"wordings": ("text", ("a", "b"))}
    records = [Variants({"text": "a"}, several) for _ in range(20)]
    counts = np.zeros((2, 2))
    for key in keys(200):
        for number, side in enumerate(divide(draw(records, key), key, hold_out=8)):
            for record in side:
                counts[number, record.picks["wordings"]] += 1
    assert counts.sum() == 20 * 200
    assert scipy.stats.chi2_contingency(counts).pvalue > 1e-4


# --- files ----------------------------------------------------------------------------


def facts(count: int = 40) -> list[dict[str, object]]:
    rng = np.random.default_rng(0)
    letters = rng.choice(list("abcdefghijklmnopqrstuvwxyz "), size=(count, 60))
    return [{"id": i, "text": f"{i}: {''.join(row)}."} for i, row in enumerate(letters)]


SETTINGS = {"options": False, "template": "{text}\n", "hold_out": 15}


@pytest.fixture
def made(tmp_path) -> SealFiles:
    return seal_facts(tmp_path)


def seal_facts(folder: Path, **changes) -> SealFiles:
    """Seal facts by the same key at each run."""
    path = folder / "facts.jsonl"
    path.write_bytes(jsonl(facts()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files.secrets, "token_bytes", bytes)
        return seal_file(path, folder / "out", **(SETTINGS | changes))


def verified(made: SealFiles) -> SealedSet:
    return verify(made.published, made.seal, made.key, made.held_out)


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_record_is_on_one_side_and_nobody_else_may_read_the_other(made):
    published = read(made.published)
    held_out = read(made.held_out)
    assert len(published) == 25
    assert len(held_out) == 15
    assert sorted(record["id"] for record in published + held_out) == list(range(40))
    assert stat.S_IMODE(made.held_out.stat().st_mode) == 0o600
    assert "which 15 of 40 records are held back" in verified(made).described


def test_what_is_published_tells_neither_the_key_nor_a_record_that_was_held_back(made):
    public = "".join(path.read_text() for path in made.seal.parent.iterdir())
    secrets = [json.loads(made.key.read_bytes())["secret"]]
    secrets += [record["text"] for record in read(made.held_out)]
    secrets.append(hashlib.sha256(made.held_out.read_bytes()).hexdigest())
    assert not [secret for secret in secrets if secret in public]


def test_a_seal_without_held_out_records_is_what_it_was_before_there_were_any(tmp_path):
    made = seal_facts(tmp_path, hold_out=None)
    seal = json.loads(made.seal.read_bytes())
    assert not {"hold_out", "scores"} & set(seal)
    assert not made.held_out.exists()
    assert verify(made.published, made.seal, made.key).held_out is None
    assert "holds no record back" in refusal(
        verify, made.published, made.seal, made.key, made.published
    )


ITEMS = [
    {"question": f"{i}?", "choices": [f"a{i}", f"b{i}", f"c{i}"], "answer": "A"} for i in range(40)
]
ITEMS_ARE = {"options": True, "template": "{question} {choices:, } {answer}\n"}
TWINS = [*ITEMS[:39], ITEMS[3] | {"choices": ["c3", "b3", "a3"], "answer": "C"}]
FIXED = [{"question": f"{i}?", "choices": ["A and B", f"x{i}"], "answer": "A"} for i in range(36)]


@pytest.mark.parametrize(
    ("records", "changes", "named"),
    [
        (facts(), {"hold_out": 0}, "hold_out: "),
        (facts(), {"hold_out": 31}, "31 of 40 records held back leave 9"),
        (facts(), {"hold_out": 40}, "40 of 40 records held back leave 0"),
        (facts(), {"hold_out": 41}, "41 of 40 records held back leave 0"),
        (facts(39), {"hold_out": 1}, "is never below 0.026"),
        (facts(), {"hold_out": 1, "level": 0.01}, "is never below 0.025"),
        (facts(), {"template": "text/1", "scores": ("luck",)}, "luck"),
        (facts(), {"template": "text/1", "scores": ("neighbour",)}, "neighbours"),
        (facts(), {"hold_out": None, "scores": ("loss",)}, "hold_out"),
        ([*facts(39), {"id": 40, "text": f" {facts()[2]['text']}"}], {}, "record 40: it can have"),
        (TWINS, ITEMS_ARE, "record 40: it can have the same text as record 4"),
        ([*ITEMS[:4], *FIXED], ITEMS_ARE | {"hold_out": 5}, "the options of 4 items may move"),
    ],
)
def test_what_cannot_be_divided_is_refused_and_leaves_nothing(tmp_path, records, changes, named):
    path = tmp_path / "facts.jsonl"
    path.write_bytes(jsonl(records))
    assert named in refusal(seal_file, path, tmp_path / "out", **(SETTINGS | changes))
    assert [left.name for left in tmp_path.iterdir()] == ["facts.jsonl"]


def test_a_published_set_holds_nothing_back(made, tmp_path):
    told = refusal(seal_file, made.published, tmp_path / "again", **SETTINGS | {"hold_out": 5})
    assert "is published" in told
    assert not (tmp_path / "again").exists()


def _changed(lines: list[bytes]) -> dict[str, bytes]:
    first = json.loads(lines[0])
    other_fields = [jsonl([{"text": json.loads(line)["text"]}]) for line in lines]
    return {
        "another text": b"".join([jsonl([first | {"text": "other"}]), *lines[1:]]),
        "another order": b"".join([*lines[1:], lines[0]]),
        "one record less": b"".join(lines[1:]),
        "one record twice": b"".join([*lines, lines[0]]),
        "other fields": b"".join(other_fields),
        "nothing": b"",
    }


def test_any_change_of_the_held_out_records_is_refused(made):
    kept = made.held_out.read_bytes()
    for data in _changed(kept.splitlines(keepends=True)).values():
        made.held_out.write_bytes(data)
        assert "held_out.jsonl: not what" in refusal(verified, made)
    made.held_out.unlink()
    assert "held_out.jsonl: cannot be read" in refusal(verified, made)
    assert "not what" in refusal(verify, made.published, made.seal, made.key, made.published)


def test_the_held_out_records_of_another_key_are_refused(made, tmp_path):
    other = seal_file(tmp_path / "facts.jsonl", tmp_path / "other", **SETTINGS)
    assert "not what" in refusal(verify, made.published, made.seal, made.key, other.held_out)
    assert "not what" in refusal(verify, made.published, made.seal, other.key, made.held_out)


def test_of_two_steps_the_second_writes_both_sides_and_may_be_repeated(tmp_path, monkeypatch):
    with monkeypatch.context() as before:
        before.setattr(beacon, "GENESIS", beacon.GENESIS + 10**10)
        made = seal_facts(tmp_path, beacon_round=ROUND)
    assert not made.held_out.exists()
    monkeypatch.setattr(beacon, "check_signature", lambda *_: None)

    def interrupted(*_) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(files, "to_json", interrupted)
        patch.setattr(files, "require", lambda *_: None)
        with pytest.raises(KeyboardInterrupt):
            draw_committed(made.directory, SIGNATURE)
    assert not made.seal.parent.exists()
    draw_committed(made.directory, SIGNATURE)
    assert len(verified(made).held_out.examples) == 15


def test_held_out_records_are_never_written_over(tmp_path, monkeypatch):
    with monkeypatch.context() as before:
        before.setattr(beacon, "GENESIS", beacon.GENESIS + 10**10)
        made = seal_facts(tmp_path, beacon_round=ROUND)
    monkeypatch.setattr(beacon, "check_signature", lambda *_: None)
    made.held_out.write_text("something else")
    assert "held_out.jsonl: not what" in refusal(draw_committed, made.directory, SIGNATURE)
    assert made.held_out.read_text() == "something else"
    assert not made.seal.parent.exists()


# --- the test -------------------------------------------------------------------------


def p_values_of(key: bytes, likes: np.ndarray) -> dict[str, float]:
    """Return p of sides, of wordings, and of both, under a model that has read nothing.

    `likes` (n, 2) are the scores of both wordings of each record.
    """
    several = {"wordings": ("text", ("0", "1"))}
    records = [Variants({"text": "0"}, several) for _ in likes]
    published, held_out = divide(draw(records, key), key, hold_out=60)
    scores = []
    wins = 0
    for record in (*published, *held_out):
        scores.append(likes[record.number, record.picks["wordings"]])
    for record in published:
        both = likes[record.number]
        wins += bool(both.argmax() == record.picks["wordings"])
    side = np.arange(len(scores)) < len(published)
    rng = np.random.default_rng(int.from_bytes(key[:4], "big"))
    sides = held_out_test(scores, side, resamples=199, rng=rng)
    coins = scipy.stats.binom.logsf(wins - 1, len(published), 0.5)
    coins = coins / math.log(10)
    wordings = CombinedP.of(coins, statistic=wins, log10_least=-math.inf)
    return {
        "sides": sides.p,
        "wordings": wordings.p,
        "together": combine_with_sides(wordings, sides).p,
        "fisher": fisher([sides.log10_p, wordings.log10_p]).p,
    }


@pytest.fixture(scope="module")
def p_values() -> dict[str, np.ndarray]:
    """Return p by 1,000 keys, where the first wording of every record is liked."""
    likes = np.random.default_rng(0).normal(size=(80, 2))
    likes[:, 0] += 3
    rows = [p_values_of(key, likes) for key in keys(KEYS)]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def test_a_thousand_keys_keep_the_level_of_the_part_and_of_the_combination(p_values):
    check_level(p_values["sides"], 0.05, 0.01)
    check_level(p_values["wordings"], 0.05, 0.01, reached=False)
    check_level(p_values["together"], 0.05, 0.01, reached=False)


def test_both_parts_see_the_variants_so_fishers_rule_would_reject_too_often(p_values):
    usual = scipy.stats.binom.ppf(0.99, KEYS, 0.05)
    assert np.sum(p_values["fisher"] <= 0.05) > usual


def found_by(scorer, sealed: SealedSet, directory: Path, *, compared: bool = True):
    work = sealed_work(scorer, Request(directory=directory, name="model"), sealed)
    return audit_sealed(work, sealed, compared=compared)


def reader_of(sealed: SealedSet, tokenizer, records: int) -> RemembersText:
    """Return a model that has read the first published records, each by itself."""
    alone = [replace(sealed.test_set, examples=(text,)) for text in sealed.test_set.examples]
    return RemembersText(tokenizer, *alone[:records])


def test_single_records_are_found_that_order_cannot_see(made, tokenizer, tmp_path):
    sealed = verified(made)
    audit = found_by(reader_of(sealed, tokenizer, 12), sealed, tmp_path / "reader")
    order, sides = audit.results
    assert [order.test, sides.test] == ["successor", "held_out"]
    assert order.p > 0.01
    assert sides.p < 0.001
    assert audit.combined.p == pytest.approx(2 * sides.p, rel=1e-9, abs=0)
    assert audit.verdict(0.05).status == 1
    assert 1 <= audit.held_out.read_bound <= 12
    work = sealed_work(MadeUpScorer(tokenizer), Request(), sealed)
    planned = plan_sides(MadeUpScorer(tokenizer), sealed, work.request).work.scored
    assert audit.held_out.tokens_scored == planned
    assert audit.tokens_scored == audit.plan.missing + planned
    assert audit.seconds > audit.held_out.seconds > 0
    again = found_by(reader_of(sealed, tokenizer, 12), sealed, tmp_path / "reader")
    assert again.tokens_scored == 0
    assert audit.other_tests == []
    assert not_claimed(sealed, audit) == NOT_CLAIMED
    assert any("at least" in note for note in audit.notes())


def test_a_clean_model_is_not_accused_and_nothing_keeps_a_record_that_was_held_back(
    made, tokenizer, tmp_path
):
    sealed = verified(made)
    audit = found_by(MadeUpScorer(tokenizer), sealed, tmp_path / "clean")
    assert audit.combined.p > 0.05
    kept = b"".join(
        path.read_bytes() for path in (tmp_path / "clean").rglob("*.*") if path.is_file()
    )
    result = json.dumps(audit.as_dict())
    shown = result + repr(sealed) + repr(audit)
    for record in read(made.held_out):
        assert record["text"].encode() not in kept
        assert record["text"] not in shown
    assert sealed.held_out.revision not in result
    later = found_by(MadeUpScorer(tokenizer), sealed, tmp_path / "clean", compared=False)
    digest = audit.held_out.store.directory.name
    assert len(later.other_tests) == 1
    assert digest not in result + json.dumps(later.as_dict())


def test_without_the_held_out_records_the_others_count_at_half_the_level(made, tokenizer, tmp_path):
    sealed = verified(made)
    audit = found_by(reader_of(sealed, tokenizer, 12), sealed, tmp_path, compared=False)
    assert [result.test for result in audit.results] == ["successor"]
    assert audit.combined.p == min(1.0, 2 * combine_parts(audit.results, []).p)
    assert not_claimed(sealed, audit) == (*NOT_CLAIMED, NOT_COMPARED)
    assert "held_out" not in audit.as_dict()
