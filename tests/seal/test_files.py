"""Sealing a file, and verifying it: what is written, what is refused, and who may see what."""

import datetime
import hashlib
import itertools
import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contamination.errors import InputError
from contamination.seal import beacon, files
from contamination.seal.audit import wording_alternatives
from contamination.seal.draws import commitment
from contamination.seal.files import SealFiles, draw_committed, seal_file, verify
from contamination.testsets.example_set import Declared
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
TEMPLATE = "{question}\n{choices:\n}\n{answer}\n"


def write(path: Path, records) -> Path:
    lines = (json.dumps(each, ensure_ascii=False) + "\n" for each in records)
    path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.fixture
def quiz(tmp_path) -> Path:
    return write(tmp_path / "quiz.jsonl", ITEMS)


@pytest.fixture
def sealed(quiz, tmp_path) -> SealFiles:
    return seal_file(quiz, tmp_path / "out", date=datetime.date(2026, 1, 31), **SETTINGS)[1]


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def verified(made: SealFiles):
    return verify(made.published, made.seal, made.key)


def refused(made: SealFiles) -> str:
    """Return the one line that refuses these files."""
    with pytest.raises(InputError) as caught:
        verified(made)
    assert "\n" not in str(caught.value)
    return str(caught.value).replace(f"{made.directory}/", "")


# --- what is written ------------------------------------------------------------------------------


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
    asked = {"tests": ("permutation",), "shards": 2, "permutations": 99, "arrangements": 8}
    _, made = seal_file(quiz, tmp_path / "out", level=0.01, **asked, **SETTINGS)
    seal, key = json.loads(made.seal.read_bytes()), json.loads(made.key.read_bytes())
    stated = {"tests": ["permutation"], "shards": 2, "permutations": 99, "arrangements": 8}
    stated |= {"level": 0.01, "name": "quiz"}
    assert {name: seal[name] for name in stated} == stated
    assert seal["sha256"] == hashlib.sha256(made.published.read_bytes()).hexdigest()
    assert key["records"] == ITEMS
    assert seal["commitment"] == commitment(bytes.fromhex(key["secret"]), ITEMS, key["statement"])
    public = made.published.read_text() + made.seal.read_text()
    asked = {one["question"] for one in read(made.published)}
    unpublished = {text for each in ITEMS for text in each["wordings"]} - asked
    assert len(unpublished) == 2 * RECORDS
    assert not [text for text in {key["secret"], *unpublished} if text in public]


def test_nobody_else_may_read_the_key_whatever_the_umask_and_git_leaves_it_out(quiz, tmp_path):
    before = os.umask(0)
    try:
        made = seal_file(quiz, tmp_path / "out", **SETTINGS)[1]
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


def test_a_set_without_options_is_sealed_by_its_order(tmp_path):
    file = write(tmp_path / "texts.jsonl", [{"text": f"Text {i}."} for i in range(10)])
    sealed, made = seal_file(file, tmp_path / "out", options=False)
    assert (sealed.seal.options, sealed.moving, sealed.worded) == (False, 0, 0)
    assert sorted(each["text"] for each in read(made.published)) == [
        f"Text {i}." for i in range(10)
    ]
    assert verified(made).free == ((),) * 10


def test_wordings_may_stand_alone_and_in_some_records_only(tmp_path):
    """Then the picked one takes the place of the list."""
    records = [{"a": i, "wordings": [f"A {i}", f"B {i}"], "z": i} for i in range(10)]
    records += [{"a": i, "question": f"C {i}", "z": i} for i in range(10, 15)]
    file = write(tmp_path / "texts.jsonl", records)
    made = seal_file(
        file, tmp_path / "out", template="question", options=False, wordings_of="question"
    )[1]
    assert all(list(each) == ["a", "question", "z"] for each in read(made.published))
    found = wording_alternatives(verified(made))
    assert sorted(found.distinct) == [1] * 5 + [2] * 10
    assert all(len(row) == 2 for row in found.texts)


# --- acceptance does not depend on the key --------------------------------------------------------

SHAPES = {  # options, and what names the second of them
    "letter": (["w{}", "x{}", "y{}"], "B"),
    "index": (["w{}", "x{}", "y{}"], 1),
    "index as text": (["w{}", "x{}", "y{}"], "1"),
    "text": (["w{}", "x{}", "y{}"], "x{}"),
    "index among numbers as text": (["0", "1", "2{}"], 1),
}
AMBIGUOUS = {
    "an index or a text": (["0", "1", "2{}"], "1"),
    "a text that another index would be": (["0", "2", "9{}"], "1"),
    "a letter or a text": (["A", "B", "O{}"], "B"),
    "a letter that other options are": (["A", "O{}", "C"], "B"),
    "a number or an index": ([0, 1, 2], 1),
}


def made_of(options, answer, i: int) -> dict[str, object]:
    shaped = [text.format(i) if isinstance(text, str) else text for text in options]
    answer = answer.format(i) if isinstance(answer, str) else answer
    return {"id": i, "question": f"{i}?", "choices": shaped, "answer": answer}


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_accepted_is_right_under_every_key(tmp_path, monkeypatch, shape):
    """Each of 12 records is an item of that shape, under 25 keys."""
    options, answer = SHAPES[shape]
    items = [made_of(options, answer, i) for i in range(RECORDS)]
    file, places = write(tmp_path / "quiz.jsonl", items), set()
    for i in range(25):
        monkeypatch.setattr(files.secrets, "token_bytes", lambda n, i=i: bytes([i]) * n)
        made = seal_file(file, tmp_path / str(i), template=TEMPLATE)[1]
        verified(made)
        for one in read(made.published):
            gold, texts = one["answer"], one["choices"]
            place = (
                "ABC".index(gold)
                if gold in [*"ABC"]
                else texts.index(gold)
                if gold in texts
                else int(gold)
            )
            assert texts[place] == items[one["id"]]["choices"][1]
            places.add(place)
    assert places == {0, 1, 2}


@pytest.mark.parametrize("shape", AMBIGUOUS)
def test_what_is_ambiguous_is_refused_in_every_arrangement_before_a_key_is_drawn(
    tmp_path, monkeypatch, shape
):
    monkeypatch.setattr(files.secrets, "token_bytes", None)
    options, answer = AMBIGUOUS[shape]
    for order in itertools.permutations(options):
        items = [*ITEMS_WITHOUT_WORDINGS[:11], made_of(order, answer, 11)]
        file = write(tmp_path / "quiz.jsonl", items)
        with pytest.raises(InputError, match=r"record 12: answer .*; write the answer as a letter"):
            seal_file(file, tmp_path / "out", template=TEMPLATE)


ITEMS_WITHOUT_WORDINGS = [
    {name: value for name, value in each.items() if name != "wordings"} for each in ITEMS
]


# --- two steps ------------------------------------------------------------------------------------


@pytest.fixture
def committed(quiz, tmp_path, monkeypatch) -> SealFiles:
    """A commitment that was made before the beacon's first round."""
    monkeypatch.setattr(beacon, "GENESIS", beacon.GENESIS + 10**10)
    nothing, made = seal_file(quiz, tmp_path / "out", beacon_round=ROUND, **SETTINGS)
    assert nothing is None
    return made


def test_a_commitment_comes_before_the_draw_and_the_beacon_decides_it(committed, monkeypatch):
    assert not committed.seal.parent.exists()
    told, key = (json.loads(p.read_bytes()) for p in (committed.commitment, committed.key))
    assert told.pop("commitment") == commitment(bytes.fromhex(key["secret"]), ITEMS, told)
    assert told["beacon_round"] == ROUND
    sealed, made = draw_committed(committed.directory, SIGNATURE)
    assert verified(made).seal == sealed.seal
    commits = json.loads(committed.commitment.read_bytes())["commitment"]
    assert sealed.seal.commitment == commits
    monkeypatch.setattr(beacon, "check_signature", lambda *_: None)
    other = files.draw_again(files.Key.model_validate(key, strict=False), SIGNATURE[::-1], "")
    assert other.text != sealed.text


def test_a_drawn_set_stays_and_any_other_signature_is_refused(committed, tmp_path):
    with pytest.raises(InputError, match="is not the beacon's of round 1,000"):
        draw_committed(committed.directory, SIGNATURE[:-1] + "8")
    assert not committed.seal.parent.exists()
    draw_committed(committed.directory, SIGNATURE)
    before = committed.published.read_bytes()
    with pytest.raises(InputError, match="there is something already, and it stays"):
        draw_committed(committed.directory, SIGNATURE)
    assert committed.published.read_bytes() == before
    seal = json.loads(committed.seal.read_bytes())
    committed.seal.write_bytes(dump(seal | {"signature": None}))
    assert "the signature of round 1,000 is missing" in refused(committed)


def test_steps_in_the_wrong_order_are_refused(committed, quiz, tmp_path, monkeypatch):
    with pytest.raises(InputError, match="cannot be read"):
        draw_committed(tmp_path / "none", SIGNATURE)
    committed.commitment.write_text("{}")
    with pytest.raises(InputError, match=r"commitment.json: not what .* commits to"):
        draw_committed(committed.directory, SIGNATURE)
    monkeypatch.setattr(beacon, "GENESIS", 0)
    with pytest.raises(InputError, match="round 5 is over"):
        seal_file(quiz, tmp_path / "late", beacon_round=5, **SETTINGS)


# --- verifying ------------------------------------------------------------------------------------


def dump(value: dict) -> bytes:
    """Write a seal or a key as sealing does."""
    lines = (f'  "{name}": {json.dumps(value[name], ensure_ascii=False)}' for name in sorted(value))
    return "{{\n{}\n}}\n".format(",\n".join(lines)).encode()


def test_alternatives_are_all_wordings_with_the_published_one_first(sealed):
    found = wording_alternatives(verified(sealed))
    asked = {each["id"]: each["question"] for each in read(sealed.published)}
    for i, row in enumerate(found.texts):
        assert row[0].split("\n")[0] == asked[i]
        assert {text.split("\n")[0] for text in row} == set(ITEMS[i]["wordings"])
        assert len({text.split("\n", 1)[1] for text in row}) == 1
    assert found.distinct == (3,) * RECORDS


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


HOSTILE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 10**12),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(
        [10**9, "\ud800", "\x1b[31mp = 1e-99", "[b]", "0" * 64, "x" * 10**5, SIGNATURE]
    ),
    st.lists(st.text(max_size=3), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
FIELDS = {
    "seal": [*files.Seal.model_fields, "more"],
    "key": [*files.Key.model_fields, "more"],
    "statement": [*files.Statement.model_fields, "more"],
    "record": ["id", "question", "choices", "answer", "wordings"],
}


@pytest.mark.parametrize("where", FIELDS)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_no_field_of_a_seal_or_a_key_can_be_another_one(sealed, where, data):
    """The answer is one line, soon: nothing is allocated by a count in a file."""
    name, value = data.draw(st.sampled_from(FIELDS[where])), data.draw(HOSTILE)
    path = sealed.seal if where == "seal" else sealed.key
    before = path.read_bytes()
    told = json.loads(before)
    changed = told
    if where in ("statement", "record"):
        changed = told["statement"] if where == "statement" else told["records"][-1]
    if repr(changed.get(name, "absent")) == repr(value):
        return
    changed[name] = value
    path.write_bytes(encoded(told))
    try:
        refused(sealed)
    finally:
        path.write_bytes(before)


def encoded(value: dict) -> bytes:
    """Write as sealing does, with an escape for what UTF-8 cannot say."""
    try:
        return dump(value)
    except UnicodeEncodeError:
        return json.dumps(value).encode()


def test_each_fault_is_named(sealed, quiz, tmp_path):
    other = seal_file(quiz, tmp_path / "other", **SETTINGS)[1]
    named = seal_file(quiz, tmp_path / "named", name="exam", **SETTINGS)[1]
    kept = {path: path.read_bytes() for path in (sealed.published, sealed.seal, sealed.key)}
    seal, key = json.loads(kept[sealed.seal]), json.loads(kept[sealed.key])
    lines = kept[sealed.published].splitlines(keepends=True)
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(files.MOST_BYTES + 1)

    def line(path: Path, data: bytes) -> str:
        path.write_bytes(data)
        found = refused(sealed)
        path.write_bytes(kept[path])
        return found

    assert "private/key.json: its secret, records and statement" in line(
        sealed.key, other.key.read_bytes()
    )
    assert "the key of another seal" in line(sealed.key, named.key.read_bytes())
    assert "re-ordered" in line(sealed.published, b"".join([*lines[1:], lines[0]]))
    assert "public/quiz.jsonl: not the set" in line(sealed.published, b"".join(lines[:-1]))
    for name, value in (("date", "2025-01-31"), ("level", 0.5), ("template", "{choices:, }")):
        assert f"seal.json: '{name}' is not what the key draws" in line(
            sealed.seal, dump(seal | {name: value})
        )
    assert "of another version" in line(
        sealed.seal, dump(seal | {"algorithm": "contamination-seal/1"})
    )
    assert "no key as sealing wrote it" in line(sealed.key, dump(key | {"secret": "0"}))
    assert "no key as sealing wrote it" in line(sealed.key, json.dumps(key).encode())
    for path in (Path("/dev/zero"), large, tmp_path / "none", tmp_path):
        for files_ in ((sealed.published, sealed.seal, path), (path, sealed.seal, sealed.key)):
            with pytest.raises(InputError, match=str(path)):
                verify(*files_)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(InputError, match="no regular file; give the seal"):
        verify(sealed.published, tmp_path / "fifo", sealed.key)


# --- what is refused, and what a failure leaves ---------------------------------------------------


def _with(**fields):
    return [*ITEMS[:4], record(4) | fields, *ITEMS[5:]]


def _without(name: str):
    return [{k: v for k, v in each.items() if k != name} for each in ITEMS]


def _each(**fields):
    return [each | fields for each in ITEMS]


@pytest.mark.parametrize(
    ("records", "changes", "message"),
    [
        (ITEMS[:9], {}, r"quiz.jsonl: too few records \(9\); seal at least 10"),
        (_with(id=0), {}, "quiz.jsonl, line 5: id 0 stands at line 1 already"),
        ([*ITEMS, record(3) | {"id": 99}], {}, "line 13: the record of line 4 again; remove it"),
        (_with(choices=["one"]), {"template": TEMPLATE}, "quiz.jsonl, record 5: .*--axis order"),
        (_without("choices"), {"template": "question"}, "record 1: no options found.*--axis order"),
        (
            [record(i) | {"choices": ["A and B", "x", f"{i}z", "y"]} for i in range(12)],
            {},
            "the options of 0 items may move, a test needs 2; or seal .*--axis order",
        ),
        (ITEMS, {"template": "text/1"}, "quiz.jsonl, line 1: field 'text' is missing"),
        (ITEMS, {"template": "{choices:, }"}, "does not show 'question'"),
        (ITEMS, {"template": "{question}"}, "does not show every option"),
        (ITEMS, {"wordings_of": None}, r"line 1: there are wordings.*\(--wordings-of\)"),
        (ITEMS, {"wordings_of": "answer"}, "line 1: 'answer' is none of its wordings"),
        (_without("wordings"), {}, "no record has wordings; leave out --wordings-of"),
        (_with(wordings=["one"]), {}, "line 5: wordings is no list of 2 or more different texts"),
        (_with(wordings=["a", 1]), {}, "line 5: wordings is no list of 2 or more different texts"),
        (_with(wordings=["a", "b"], question="a"), {}, "records have 2 to 3 wordings; give each"),
        (_each(label=1), {}, "'label' looks like .*; give --answer label, or --other label"),
        (_each(notes=[*"wxyz"]), {}, "give --options notes, or --other notes"),
        (_with(explanation="Option B is it."), {}, "record 5: a text names an option by its lett"),
        (_with(wordings=["Not B!", "Is (B) it?", "x"], question="x"), {}, "record 5: a text names"),
        (ITEMS, {"name": "o[/b]"}, "name: .*; give another"),
        (ITEMS, {"level": 0.0}, "level: .*; give another"),
    ],
)
def test_what_cannot_be_sealed_is_refused_and_leaves_nothing(tmp_path, records, changes, message):
    file = write(tmp_path / "quiz.jsonl", records)
    with pytest.raises(InputError, match=message) as caught:
        seal_file(file, tmp_path / "out", **(SETTINGS | changes))
    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["quiz.jsonl"]


def test_what_is_declared_moves_along(tmp_path):
    records = [
        {
            "question": f"{i}?",
            "choices": [f"a{i}", f"b{i}"],
            "gold": i % 2,
            "why": [f"A{i}", f"B{i}"],
        }
        for i in range(10)
    ]
    file = write(tmp_path / "quiz.jsonl", records)
    declared = Declared(answer=("gold",), options=("choices", "why"))
    made = seal_file(file, tmp_path / "out", declared=declared, template="{question}{choices:, }")[
        1
    ]
    for one in read(made.published):
        i = int(one["question"][:-1])
        assert one["choices"][one["gold"]] == records[i]["choices"][i % 2]
        assert [text.lower() for text in one["why"]] == one["choices"]


def test_a_value_that_json_cannot_keep_is_refused(tmp_path):
    table = pyarrow.table(
        {"text": [f"{i}" for i in range(10)], "day": [datetime.date(2026, 1, 1)] * 10}
    )
    pyarrow.parquet.write_table(table, tmp_path / "days.parquet")
    with pytest.raises(InputError, match=r"days.parquet, record 1: a value that JSON cannot keep"):
        seal_file(tmp_path / "days.parquet", tmp_path / "out", options=False)


def test_a_key_is_never_written_over(sealed, quiz, tmp_path):
    kept = sealed.key.read_bytes()
    for path in (None, sealed.published, sealed.seal):
        if path is not None:
            path.unlink()
        with pytest.raises(InputError, match=r"out: there is something already, and it stays"):
            seal_file(quiz, tmp_path / "out", **SETTINGS)
    assert sealed.key.read_bytes() == kept


@pytest.mark.parametrize("moment", ["_write_private", "draw_again", "to_json"])
def test_an_interrupt_leaves_nothing(quiz, tmp_path, monkeypatch, moment):
    def interrupted(*_, **__) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(files, moment, interrupted)
    with pytest.raises(KeyboardInterrupt):
        seal_file(quiz, tmp_path / "out", **SETTINGS)
    assert [path.name for path in tmp_path.iterdir()] == ["quiz.jsonl"]


KILLED = """
import os, signal, sys
from pathlib import Path
from contamination.seal import files
def killed(*_): os.kill(os.getpid(), signal.SIGKILL)
files.draw_again = killed  # the key is written, under another name
files.seal_file(Path(sys.argv[1]), Path(sys.argv[2]), template="mmlu/2", wordings_of="question")
"""


def test_a_kill_leaves_no_file_under_its_name_and_the_next_seal_tidies_up(quiz, tmp_path):
    child = subprocess.run([sys.executable, "-c", KILLED, quiz, tmp_path / "out"], check=False)
    assert child.returncode == -signal.SIGKILL
    (left,) = [path for path in tmp_path.iterdir() if path != quiz]
    assert left.name.startswith(".")
    assert stat.S_IMODE((left / "private").stat().st_mode) == 0o700
    made = seal_file(quiz, tmp_path / "out", **SETTINGS)[1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "quiz.jsonl"]
    assert verified(made)
