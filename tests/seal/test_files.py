"""Sealing a file, and verifying it: what is written, what is refused, and who may see what."""

import datetime
import hashlib
import itertools
import json
import math
import os
import re
import stat
import subprocess
from pathlib import Path

import pytest

from contamination.errors import InputError
from contamination.seal import beacon, files
from contamination.seal.audit import wording_variants
from contamination.seal.draws import commitment
from contamination.seal.files import SealFiles, draw_committed, seal_file, verify
from contamination.testsets.example_set import Declared
from contamination.testsets.variants import option_variants
from fakes.made_up_registry import jsonl, refusal
from seal.test_beacon import ROUND, SIGNATURE

RECORDS = 12


def record(i: int) -> dict[str, object]:
    """An item with a number of its own in every field."""
    return {
        "id": i,
        "question": f"Which is the {i}th?",
        "choices": [f"first {i}", f"sécond {i}", f"third {i}", "none of the above"],
        "answer": "ABCD"[i % 4],
        "wordings": [f"Which is the {i}th?", f"Name the {i}th!", f"The {i}th is ..."],
    }


ITEMS = [record(i) for i in range(RECORDS)]
SETTINGS = {"template": "mmlu/2", "wordings_of": "question"}


def write(path: Path, records) -> Path:
    path.write_bytes(jsonl(records))
    return path


@pytest.fixture
def quiz(tmp_path) -> Path:
    return write(tmp_path / "quiz.jsonl", ITEMS)


@pytest.fixture
def sealed(quiz, tmp_path) -> SealFiles:
    return seal_file(quiz, tmp_path / "out", date=datetime.date(2026, 1, 31), **SETTINGS)


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def verified(made: SealFiles):
    return verify(made.published, made.seal, made.key)


def refused(made: SealFiles) -> str:
    return refusal(verified, made).replace(f"{made.directory}/", "")


def test_the_published_set_has_every_record_with_one_wording_and_all_options(sealed):
    found = {each["id"]: each for each in read(sealed.published)}
    assert len(found) == RECORDS
    for original in ITEMS:
        one = found[original["id"]]
        assert list(one) == ["id", "question", "choices", "answer"]
        assert one["question"] in original["wordings"]
        assert sorted(one["choices"]) == sorted(original["choices"])
        assert one["choices"][3] == "none of the above"
        gold = original["choices"]["ABCD".index(original["answer"])]
        assert one["choices"]["ABCD".index(one["answer"])] == gold


def test_the_seal_states_what_is_tested_and_holds_no_secret(quiz, tmp_path):
    made = seal_file(
        quiz,
        tmp_path / "out",
        level=0.01,
        tests=("permutation",),
        shards=2,
        permutations=99,
        arrangements=8,
        **SETTINGS,
    )
    seal = json.loads(made.seal.read_bytes())
    key = json.loads(made.key.read_bytes())
    stated = {"tests": ["permutation"], "shards": 2, "permutations": 99, "arrangements": 8}
    stated |= {"level": 0.01, "name": "quiz"}
    assert {name: seal[name] for name in stated} == stated
    assert seal["sha256"] == hashlib.sha256(made.published.read_bytes()).hexdigest()
    assert key["records"] == ITEMS
    assert seal["commitment"] == commitment(bytes.fromhex(key["secret"]), ITEMS, key["statement"])
    public = made.published.read_text() + made.seal.read_text()
    asked = {one["question"] for one in read(made.published)}
    wordings = itertools.chain.from_iterable(each["wordings"] for each in ITEMS)
    unpublished = set(wordings) - asked
    assert len(unpublished) == 2 * RECORDS
    assert not [text for text in {key["secret"], *unpublished} if text in public]


def test_nobody_else_may_read_the_key_whatever_the_umask_and_git_leaves_it_out(quiz, tmp_path):
    before = os.umask(0)
    try:
        made = seal_file(quiz, tmp_path / "out", **SETTINGS)
    finally:
        os.umask(before)
    assert stat.S_IMODE(made.key.stat().st_mode) == 0o600
    assert stat.S_IMODE(made.key.parent.stat().st_mode) == 0o700
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    subprocess.run(["git", "-C", tmp_path, "add", "-A"], check=True)
    kept = subprocess.run(
        ["git", "-C", tmp_path, "ls-files"], check=True, capture_output=True, text=True
    ).stdout.split()
    assert sorted(kept) == ["out/public/quiz.jsonl", "out/public/seal.json", "quiz.jsonl"]


def test_wordings_may_stand_alone_and_in_some_records_only(tmp_path):
    """Then the picked one takes the place of the list."""
    records = [{"a": i, "wordings": [f"A {i}", f"B {i}"], "z": i} for i in range(10)]
    records += [{"a": i, "question": f"C {i}", "z": i} for i in range(10, 15)]
    file = write(tmp_path / "texts.jsonl", records)
    made = seal_file(
        file, tmp_path / "out", template="question", options=False, wordings_of="question"
    )
    assert all(list(each) == ["a", "question", "z"] for each in read(made.published))
    found = wording_variants(verified(made))
    assert sorted(found.distinct) == [1] * 5 + [2] * 10
    assert all(len(row) == 2 for row in found.texts)


@pytest.fixture
def committed(quiz, tmp_path, monkeypatch) -> SealFiles:
    """A commitment that was made before the beacon's first round."""
    monkeypatch.setattr(beacon, "GENESIS", beacon.GENESIS + 10**10)
    return seal_file(quiz, tmp_path / "out", beacon_round=ROUND, **SETTINGS)


def test_a_commitment_comes_before_the_draw_and_the_beacon_decides_it(committed, monkeypatch):
    assert not committed.seal.parent.exists()
    told, key = (json.loads(p.read_bytes()) for p in (committed.commitment, committed.key))
    assert told.pop("commitment") == commitment(bytes.fromhex(key["secret"]), ITEMS, told)
    assert told["beacon_round"] == ROUND
    sealed = verified(draw_committed(committed.directory, SIGNATURE))
    commits = json.loads(committed.commitment.read_bytes())["commitment"]
    assert sealed.seal.commitment == commits
    monkeypatch.setattr(beacon, "check_signature", lambda *_: None)
    other = files.draw_again(files.Key.model_validate(key, strict=False), SIGNATURE[::-1], "")
    assert other.text != sealed.text


def test_steps_in_the_wrong_order_and_other_signatures_are_refused(
    committed, quiz, tmp_path, monkeypatch
):
    def draw():
        return refusal(draw_committed, committed.directory, SIGNATURE)

    other = refusal(draw_committed, committed.directory, SIGNATURE[:-1] + "8")
    assert "is not the beacon's of round 1,000" in other
    assert not committed.seal.parent.exists()
    draw_committed(committed.directory, SIGNATURE)
    before = committed.published.read_bytes()
    assert "there is something already, and it stays" in draw()
    assert committed.published.read_bytes() == before
    committed.seal.write_bytes(dump(json.loads(committed.seal.read_bytes()) | {"signature": None}))
    assert "is not the beacon's of round 1,000" in refused(committed)
    committed.commitment.write_text("{}")
    assert "commitment.json: not what" in draw()
    for gone in (committed.commitment, committed.key):
        gone.unlink()
        assert draw().startswith(f"{gone}: cannot be read")
    monkeypatch.setattr(beacon, "GENESIS", 0)
    late = tmp_path / "late"
    assert "round 5 is over" in refusal(seal_file, quiz, late, beacon_round=5, **SETTINGS)


def dump(value: dict) -> bytes:
    """Write a seal or a key as sealing does, with an escape for what UTF-8 cannot say."""
    lines = (f'  "{name}": {json.dumps(value[name], ensure_ascii=False)}' for name in sorted(value))
    return "{{\n{}\n}}\n".format(",\n".join(lines)).encode(errors="surrogatepass")


@pytest.mark.parametrize("which", ["published", "seal", "key"])
def test_any_changed_byte_is_refused_in_one_line(sealed, which):
    path = getattr(sealed, which)
    data = path.read_bytes()
    assert verified(sealed)
    for position in range(0, len(data), 17):
        changed = bytearray(data)
        changed[position] ^= 1 if position % 2 else 32  # another digit, or another case
        path.write_bytes(bytes(changed))
        refused(sealed)
    for other in (data[:-1], data + b"\n", b"", data * 2, b"\n" + data):
        path.write_bytes(other)
        refused(sealed)


def test_each_fault_is_named(sealed, quiz, tmp_path):
    others = [seal_file(quiz, tmp_path / name, name=name, **SETTINGS) for name in ("quiz", "exam")]
    seal = json.loads(sealed.seal.read_bytes())
    key = json.loads(sealed.key.read_bytes())
    lines = sealed.published.read_bytes().splitlines(keepends=True)
    faults = [
        (sealed.key, other.key.read_bytes(), "seal.json: not what private") for other in others
    ]
    faults += [
        (sealed.published, b"".join([*lines[1:], lines[0]]), "public/quiz.jsonl: not what private"),
        (sealed.published, b"\r\n".join(sealed.published.read_bytes().split(b"\n")), "Windows"),
        (sealed.seal, dump(seal | {"algorithm": "contamination-seal/1"}), "of another version"),
        (sealed.seal, dump(seal | {"level": "\ud800" * 9}), "of another version"),
        (sealed.key, dump(key | {"records": key["records"][1:]}), "seal.json: not what"),
        (sealed.key, json.dumps(key).encode(), "no key as sealing wrote it"),
    ]
    for name, value in (("date", "2025-01-31"), ("level", 0.5), ("template", "{choices:, }")):
        faults.append((sealed.seal, dump(seal | {name: value}), "seal.json: not what"))
    for path, data, named in faults:
        kept = path.read_bytes()
        path.write_bytes(data)
        assert named in refused(sealed), named
        path.write_bytes(kept)


def _with(**fields):
    return [*ITEMS[:4], record(4) | fields, *ITEMS[5:]]


def _without(name: str):
    records = [dict(item) for item in ITEMS]
    for record in records:
        del record[name]
    return records


def _each(**fields):
    return [each | fields for each in ITEMS]


@pytest.mark.parametrize(
    ("records", "changes", "message"),
    [
        (ITEMS[:9], {}, r"quiz.jsonl: too few records \(9\); seal at least 10"),
        ([*ITEMS, record(3) | {"id": 99}], {}, "line 13: the record of line 4 again; remove it"),
        (
            _without("choices"),
            {"template": "question"},
            "record 1: no options found.*or seal the order",
        ),
        (
            [record(i) | {"choices": ["A and B", "x", f"{i}z", "y"]} for i in range(12)],
            {},
            "the options of 0 of 12 items may move, .*; or seal the order",
        ),
        (ITEMS, {"template": "{choices:, }"}, "does not show 'question'"),
        (ITEMS, {"template": "{question}"}, "does not show every option"),
        (ITEMS, {"wordings_of": None}, r"line 1: there are wordings.*\(wordings_of\)"),
        (ITEMS, {"wordings_of": "answer"}, "line 1: 'answer' is none of its wordings"),
        (_with(wordings=["a", 1]), {}, "line 5: wordings is no list of 2 or more different texts"),
        (
            _each(answer="A", wordings=[*"ABC"]),
            {"wordings_of": "answer"},
            "record 1: 'answer' is, or names",
        ),
        (_with(wordings=["a", "b"], question="a"), {}, "records have 2 to 3 wordings; give each"),
        (_each(label=1), {}, "'label' looks like .*; give answer=label, or declare label as other"),
        (_with(explanation="Option B is it."), {}, "record 5: a text names an option by its lett"),
        (_with(wordings=["Not B!", "Is (B) it?", "x"], question="x"), {}, "record 5: a text names"),
        (_with(score=math.nan), {}, "line 5: a value that JSON cannot keep"),
        (ITEMS, {"level": 0.0}, "level: .*; give another"),
    ],
)
def test_what_cannot_be_sealed_is_refused_and_leaves_nothing(tmp_path, records, changes, message):
    file = write(tmp_path / "quiz.jsonl", records)
    told = refusal(seal_file, file, tmp_path / "out", **(SETTINGS | changes))
    assert re.search(message, told)
    assert [path.name for path in tmp_path.iterdir()] == ["quiz.jsonl"]


def test_what_a_later_rule_refuses_of_new_seals_is_verified_and_tested(tmp_path, monkeypatch):
    """A field that repeats an option, and one that names one, sealed before there were rules."""
    records = [each | {"why": each["choices"][1], "note": "Option B."} for each in ITEMS]
    file = write(tmp_path / "quiz.jsonl", records)
    stated = SETTINGS | {"template": "{question}{choices:, }{why}"}
    with monkeypatch.context() as before:
        for rule in ("to_declare", "names_letter"):
            before.setattr(f"contamination.testsets.options.{rule}", lambda *_, **__: None)
        made = seal_file(file, tmp_path / "out", **stated)
    assert "'why' looks like" in refusal(seal_file, file, tmp_path / "again", **stated)
    found = verified(made)
    free = [one.variants.choices("options") for one in found.drawn]
    assert option_variants(found.test_set, seed=0, keep=free).distinct == (6,) * RECORDS


def test_what_is_declared_moves_along(tmp_path):
    records = [
        {"question": f"{i}?", "gold": i % 2, "choices": [f"a{i}", f"b{i}"]}
        | {"why": [f"A{i}", f"B{i}"]}
        for i in range(10)
    ]
    file = write(tmp_path / "quiz.jsonl", records)
    declared = Declared(("gold",), ("choices", "why"))
    template = "{question}{choices:, }"
    made = seal_file(file, tmp_path / "out", declared=declared, template=template)
    for one in read(made.published):
        i = int(one["question"][:-1])
        assert one["choices"][one["gold"]] == records[i]["choices"][i % 2]
        assert [text.lower() for text in one["why"]] == one["choices"]


def test_a_key_is_never_written_over(sealed, quiz, tmp_path):
    kept = sealed.key.read_bytes()
    sealed.published.unlink()
    with pytest.raises(InputError, match=r"out: there is something already, and it stays"):
        seal_file(quiz, tmp_path / "out", **SETTINGS)
    assert sealed.key.read_bytes() == kept


@pytest.mark.parametrize("moment", ["write_text", "draw_again", "to_json"])
def test_an_interrupt_leaves_nothing(quiz, tmp_path, monkeypatch, moment):
    def interrupted(*_, **__) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(files, moment, interrupted)
    with pytest.raises(KeyboardInterrupt):
        seal_file(quiz, tmp_path / "out", **SETTINGS)
    assert [path.name for path in tmp_path.iterdir()] == ["quiz.jsonl"]
