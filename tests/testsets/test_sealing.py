"""Sealing a file, and verifying it: what is written, what is refused, and who may see what."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from contamination.errors import InputError
from contamination.testsets import sealing
from contamination.testsets.seal import arrange, commitment, content_of, entry_of
from contamination.testsets.sealed import sha256, to_json, verify, wording_alternatives
from contamination.testsets.sealing import SealFiles, seal_file

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


RECORDS_OF_ITEMS = [record(i) for i in range(RECORDS)]
SETTINGS = {"template": "mmlu/2", "wordings_of": "question"}


def write(path: Path, records) -> Path:
    lines = (json.dumps(each, ensure_ascii=False) + "\n" for each in records)
    path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.fixture
def sealed(tmp_path) -> SealFiles:
    file = write(tmp_path / "quiz.jsonl", RECORDS_OF_ITEMS)
    return seal_file(file, tmp_path / "out", date="2026-01-31", **SETTINGS)[1]


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def verified(files: SealFiles):
    return verify(files.published, files.seal, files.key)


# --- what is written ------------------------------------------------------------------------------


def test_the_published_set_has_every_record_with_one_wording_and_all_options(sealed):
    found = {each["id"]: each for each in read(sealed.published)}
    assert len(found) == RECORDS
    for original in RECORDS_OF_ITEMS:
        one = found[original["id"]]
        assert list(one) == ["id", "question", "choices", "answer"]
        assert one["question"] in original["wordings"]
        assert sorted(one["choices"]) == sorted(original["choices"])
        assert one["choices"][3] == "none of the above"
        gold = original["choices"]["ABCD".index(original["answer"])]
        assert one["choices"]["ABCD".index(one["answer"])] == gold


def test_the_seal_says_what_was_done_and_holds_no_secret(sealed):
    seal, key = json.loads(sealed.seal.read_bytes()), json.loads(sealed.key.read_bytes())
    assert seal == {
        "version": 1,
        "algorithm": "contamination-seal/1: draws by HMAC-SHA256, commitment by SHA-256",
        "date": "2026-01-31",
        "template": "mmlu/2",
        "records": RECORDS,
        "options": True,
        "moving": RECORDS,
        "fixed": {str(line): [3] for line in range(1, RECORDS + 1)},
        "wordings_of": "question",
        "wordings": 3,
        "sha256": sha256(sealed.published.read_bytes()),
        "sorted_sha256": seal["sorted_sha256"],
        "commitment": seal["commitment"],
    }
    public = sealed.published.read_text() + sealed.seal.read_text()
    assert key["seed"] not in public
    unpublished = [text for texts in key["wordings"].values() for text in texts]
    assert len(unpublished) == 2 * RECORDS
    assert not [text for text in unpublished if text in public]
    lines = read(sealed.published)
    for number, texts in key["wordings"].items():
        one = lines[int(number) - 1]
        everything = {*texts, one["question"]}
        assert everything == set(RECORDS_OF_ITEMS[one["id"]]["wordings"])


def test_nobody_else_may_read_the_key_whatever_the_umask_and_git_leaves_it_out(tmp_path):
    before = os.umask(0)
    try:
        file = write(tmp_path / "quiz.jsonl", RECORDS_OF_ITEMS)
        _, files = seal_file(file, tmp_path / "out", **SETTINGS)
    finally:
        os.umask(before)
    assert stat.S_IMODE(files.key.stat().st_mode) == 0o600
    assert stat.S_IMODE(files.key.parent.stat().st_mode) == 0o700
    assert {path.name for path in files.seal.parent.iterdir()} == {"quiz.jsonl", "seal.json"}
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    subprocess.run(["git", "-C", tmp_path, "add", "-A"], check=True)
    kept = subprocess.run(
        ["git", "-C", tmp_path, "ls-files"], check=True, capture_output=True, text=True
    ).stdout.split()
    assert sorted(kept) == ["out/public/quiz.jsonl", "out/public/seal.json", "quiz.jsonl"]


def test_two_seals_of_one_file_have_seeds_of_their_own(tmp_path):
    file = write(tmp_path / "quiz.jsonl", RECORDS_OF_ITEMS)
    files = [seal_file(file, tmp_path / name, **SETTINGS)[1] for name in "ab"]
    seeds = {json.loads(each.key.read_bytes())["seed"] for each in files}
    assert len(seeds) == 2
    assert all(len(bytes.fromhex(seed)) == 32 for seed in seeds)


def test_the_seed_is_what_the_operating_system_draws(tmp_path, monkeypatch):
    monkeypatch.setattr(sealing.secrets, "token_bytes", lambda count: bytes([7]) * count)
    file = write(tmp_path / "quiz.jsonl", RECORDS_OF_ITEMS)
    sets = []
    for name, records in (("a", RECORDS_OF_ITEMS), ("b", RECORDS_OF_ITEMS[::-1])):
        _, files = seal_file(write(file, records), tmp_path / name, **SETTINGS)
        assert json.loads(files.key.read_bytes())["seed"] == "07" * 32
        sets.append(files.published.read_bytes())
    assert sets[0] == sets[1], "the order of the author's file is in the sealed set"


def test_a_set_without_options_is_sealed_by_its_order(tmp_path):
    file = write(tmp_path / "texts.jsonl", [{"text": f"Text {i}."} for i in range(10)])
    seal, files = seal_file(file, tmp_path / "out", options=False)
    assert (seal.options, seal.moving, seal.fixed, seal.wordings) == (False, 0, {}, 1)
    found = verified(files)
    assert sorted(found.test_set.examples) == [f"Text {i}.\n" for i in range(10)]
    assert found.free == ((),) * 10


TEXTS_WITH_OPTIONS = [
    {"text": f"{i}? a{i} b{i}", "question": f"{i}?", "choices": [f"a{i}", f"b{i}"], "answer": 0}
    for i in range(10)
]
LETTERED = [{"input": f"{i}?", "A": f"a{i}", "B": f"b{i}", "target": "B"} for i in range(10)]


@pytest.mark.parametrize(
    ("records", "template"),
    [
        (TEXTS_WITH_OPTIONS, r"{question}\n{choices:\n}\n{answer}\n"),
        (LETTERED, r"{input}\n{A}\n{B}\n{target}\n"),
    ],
)
def test_items_are_not_sealed_under_a_template_that_nobody_chose(tmp_path, records, template):
    """Its `text` would show the options as they stood before the key permuted them, or none."""
    file = write(tmp_path / "quiz.jsonl", records)
    with pytest.raises(InputError) as caught:
        seal_file(file, tmp_path / "out")
    assert str(caught.value) == (
        f"{file}, line 1: a record with options; name a template that shows them, such as "
        f"--template '{template}'"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["quiz.jsonl"]
    seal, files = seal_file(file, tmp_path / "out", template=template.replace(r"\n", "\n"))
    assert (seal.options, seal.moving) == (True, 10)
    for example, one in zip(verified(files).test_set.examples, read(files.published), strict=True):
        options = one.get("choices") or [one["A"], one["B"]]
        assert example.split("\n")[1:3] == options


def test_items_whose_options_stay_may_be_texts(tmp_path):
    file = write(tmp_path / "quiz.jsonl", TEXTS_WITH_OPTIONS)
    seal, files = seal_file(file, tmp_path / "out", options=False)
    assert seal.template == "text/1"
    assert sorted(verified(files).test_set.examples)[0] == "0? a0 b0\n"
    with pytest.raises(InputError, match="line 1: a record with options; name a template"):
        seal_file(write(file, LETTERED), tmp_path / "other", options=False)


def test_numbers_are_shuffled_as_well(tmp_path):
    items = [{"question": f"{i}?", "choices": [1, 2, 3, 4], "answer": 0} for i in range(40)]
    file = write(tmp_path / "sums.jsonl", items)
    seal, files = seal_file(file, tmp_path / "out", template="mmlu/2")
    assert seal.moving == 40
    assert len({tuple(each["choices"]) for each in read(files.published)}) > 8
    assert all(each["choices"][each["answer"]] == 1 for each in read(files.published))


def test_options_that_name_each_other_stay(tmp_path):
    items = [*RECORDS_OF_ITEMS[:11], record(11) | {"choices": ["a", "b", "A and B", "neither"]}]
    file = write(tmp_path / "quiz.jsonl", items)
    seal, files = seal_file(file, tmp_path / "out", **SETTINGS)
    (line,) = [number for number, each in enumerate(read(files.published), 1) if each["id"] == 11]
    assert seal.moving == 11
    assert seal.fixed[str(line)] == [0, 1, 2, 3]
    assert read(files.published)[line - 1]["choices"] == ["a", "b", "A and B", "neither"]
    assert verified(files).free[line - 1] == ()


def test_wordings_may_stand_alone_and_in_some_records_only(tmp_path):
    """Then the picked one takes the place of the list."""
    records = [{"a": i, "wordings": [f"A {i}", f"B {i}"], "z": i} for i in range(10)]
    records += [{"a": i, "question": f"C {i}", "z": i} for i in range(10, 15)]
    file = write(tmp_path / "texts.jsonl", records)
    _, files = seal_file(
        file, tmp_path / "out", template="question", options=False, wordings_of="question"
    )
    assert all(list(each) == ["a", "question", "z"] for each in read(files.published))
    found = wording_alternatives(verified(files))
    assert sorted(found.distinct) == [1] * 5 + [2] * 10
    assert all(len(row) == 2 for row in found.texts)


# --- verifying ------------------------------------------------------------------------------------


def test_a_sealed_set_is_verified_and_says_what_was_free(sealed):
    found = verified(sealed)
    assert list(found.test_set.records) == read(sealed.published)
    assert found.test_set.template == "mmlu/2"
    assert found.free == ((0, 1, 2),) * RECORDS
    assert found.worded == RECORDS
    assert sorted(found.published) == sorted(each["question"] for each in read(sealed.published))


def test_alternatives_are_all_wordings_with_the_published_one_first(sealed):
    found = wording_alternatives(verified(sealed))
    asked = {each["id"]: each["question"] for each in read(sealed.published)}
    numbers = [int(re.search(r"(\d+)th", row[0])[1]) for row in found.texts]
    assert sorted(numbers) == list(range(RECORDS))
    for i, row in zip(numbers, found.texts, strict=True):
        assert row[0].split("\n")[0] == asked[i]
        assert {text.split("\n")[0] for text in row} == set(RECORDS_OF_ITEMS[i]["wordings"])
        assert len({text.split("\n", 1)[1] for text in row}) == 1
    assert found.distinct == (3,) * RECORDS


def test_texts_of_wordings_depend_on_the_key_by_its_choice_of_wordings_alone(tmp_path, monkeypatch):
    """What makes a test on them independent of those on the order and on the options."""
    file, found = write(tmp_path / "quiz.jsonl", RECORDS_OF_ITEMS), []
    for i in range(3):
        monkeypatch.setattr(sealing.secrets, "token_bytes", lambda n, i=i: bytes([i]) * n)
        _, files = seal_file(file, tmp_path / str(i), **SETTINGS)
        found.append(wording_alternatives(verified(files)).texts)
    assert len({tuple(frozenset(row) for row in texts) for texts in found}) == 1
    assert len(set(found)) == 3


@pytest.mark.parametrize("which", ["published", "seal", "key"])
def test_any_changed_byte_is_refused_in_one_line(sealed, which):
    path = getattr(sealed, which)
    data = path.read_bytes()
    assert verified(sealed)
    for position in range(len(data)):
        changed = bytearray(data)
        changed[position] ^= 1 if position % 2 else 32  # another digit, or another case
        path.write_bytes(bytes(changed))
        with pytest.raises(InputError) as caught:
            verified(sealed)
        assert "\n" not in str(caught.value)
        assert str(path) in str(caught.value), position
    for other in (data[:-1], data + b"\n", b"", data * 2, b"\n" + data):
        path.write_bytes(other)
        with pytest.raises(InputError):
            verified(sealed)


def change(path: Path, **fields) -> None:
    path.write_bytes(to_json(json.loads(path.read_bytes()) | fields))


def test_each_fault_has_a_line_of_its_own(sealed, tmp_path):
    file = write(tmp_path / "quiz.jsonl", RECORDS_OF_ITEMS)
    _, other = seal_file(file, tmp_path / "other", **SETTINGS)
    kept = {path: path.read_bytes() for path in vars(sealed).values()}

    def line() -> str:
        with pytest.raises(InputError) as caught:
            verified(sealed)
        for path, data in kept.items():
            path.write_bytes(data)
        assert verified(sealed)
        return str(caught.value).replace(f"{tmp_path}/out/", "")

    sealed.key.write_bytes(other.key.read_bytes())
    assert line() == (
        "private/key.json: the key of another seal than public/seal.json; give the one of this set"
    )
    lines = kept[sealed.published].splitlines(keepends=True)
    sealed.published.write_bytes(b"".join([*lines[1:], lines[0]]))
    assert line() == (
        "public/quiz.jsonl: its records were re-ordered since they were sealed; take the "
        "published file"
    )
    sealed.published.write_bytes(b"".join(lines[:-1]))
    assert line().startswith("public/quiz.jsonl: not the set that public/seal.json seals (its SHA")
    change(sealed.seal, date="2025-01-31")
    assert line() == (
        "public/seal.json: it or private/key.json was changed since sealing; take the originals"
    )
    change(sealed.seal, version=2)
    assert line() == (
        "public/seal.json: sealed by version '2' of the algorithm, and this program has version 1; "
        "use one that has it"
    )
    change(sealed.key, seed="0" * 64)
    assert line() == "private/key.json: changed since sealing; take the author's copy"
    change(sealed.key, wordings={})
    assert line() == "private/key.json: changed since sealing; take the author's copy"
    change(sealed.key, more=1)
    assert line() == "private/key.json: changed since sealing; take the author's copy"
    sealed.seal.unlink()
    assert line() == "public/seal.json: cannot be read (No such file or directory); give the seal"
    sealed.key.write_text("[]")
    assert line() == ("private/key.json: no key of a sealed set; give the one that sealing wrote")


def test_an_order_that_somebody_chose_is_refused_although_all_hashes_agree(sealed):
    """An author who sorts the records and then writes seal and key by hand."""
    seal, key = json.loads(sealed.seal.read_bytes()), json.loads(sealed.key.read_bytes())
    found = verified(sealed)
    lines = sorted(
        enumerate(sealed.published.read_text(encoding="utf-8").splitlines(keepends=True), 1),
        key=lambda line: line[1],
    )
    data = "".join(line for _, line in lines).encode()
    sealed.published.write_bytes(data)
    facts = {name: value for name, value in seal.items() if name != "commitment"}
    facts |= {"sha256": sha256(data)}
    seal = facts | {"commitment": commitment(bytes.fromhex(key["seed"]), found.content, facts)}
    sealed.seal.write_bytes(to_json(seal))
    wordings = {str(i): key["wordings"][str(old)] for i, (old, _) in enumerate(lines, 1)}
    change(
        sealed.key,
        commitment=seal["commitment"],
        seal_sha256=sha256(to_json(seal)),
        wordings=wordings,
    )
    with pytest.raises(InputError, match=r"quiz\.jsonl: not the arrangement that the key draws"):
        verified(sealed)


def test_what_is_verified_is_what_the_seed_draws(sealed):
    """By hand from the files, with the algorithm alone."""
    key, published = json.loads(sealed.key.read_bytes()), read(sealed.published)
    content = content_of(
        [
            entry_of(
                each,
                free=(0, 1, 2),
                field="question",
                wordings=[each["question"], *key["wordings"][str(number)]],
            )
            for number, each in enumerate(published, 1)
        ]
    )
    drawn = arrange(content, bytes.fromhex(key["seed"]), "question")
    assert [one.record for one in drawn] == published


# --- what is refused, and what a failure leaves ---------------------------------------------------


def _with(**fields):
    return [*RECORDS_OF_ITEMS[:4], record(4) | fields, *RECORDS_OF_ITEMS[5:]]


def _without(name: str):
    return [{k: v for k, v in each.items() if k != name} for each in RECORDS_OF_ITEMS]


@pytest.mark.parametrize(
    ("records", "settings", "message"),
    [
        (RECORDS_OF_ITEMS[:9], {}, r"quiz.jsonl: too few records \(9\); seal at least 10"),
        (_with(id=0), {}, "quiz.jsonl, line 5: id 0 stands at line 1 already"),
        (
            [*RECORDS_OF_ITEMS, record(3) | {"id": 99}],
            {},
            "quiz.jsonl, line 13: the record of line 4 again; remove it",
        ),
        (_with(choices=["one"]), {"template": "question"}, "quiz.jsonl, record 5: .*--axis order"),
        (_without("choices"), {"template": "question"}, "record 1: no options found.*--axis order"),
        (
            [{"text": f"{i}"} for i in range(10)],
            {"wordings_of": None, "template": "text"},
            "record 1: no options found",
        ),
        (
            [record(i) | {"choices": ["A and B", "x", f"{i}z", "y"]} for i in range(12)],
            {},
            "the options of 0 items may move, a test needs 2; seal .*--axis order",
        ),
        (RECORDS_OF_ITEMS, {"template": "text/1"}, "quiz.jsonl, line 1: field 'text' is missing"),
        (RECORDS_OF_ITEMS, {"template": "answer"}, "'{answer}.n' does not show 'question'"),
        (RECORDS_OF_ITEMS, {"wordings_of": None}, r"line 1: there are wordings.*\(--wordings-of\)"),
        (RECORDS_OF_ITEMS, {"wordings_of": "answer"}, "line 1: 'answer' is none of its wordings"),
        (_without("wordings"), {}, "no record has wordings; leave out --wordings-of"),
        (_with(wordings=["one"]), {}, "line 5: wordings is no list of 2 or more different texts"),
        (_with(wordings=["a", "a"]), {}, "line 5: wordings is no list of 2 or more different"),
        (_with(wordings=["a", 1]), {}, "line 5: wordings is no list of 2 or more different texts"),
        (_with(wordings=["a", "b"], question="a"), {}, "records have 2 to 3 wordings; give each"),
        (
            [{k: v for k, v in record(i).items() if k != "question"} for i in range(12)],
            {"wordings_of": "choices"},
            "line 1: 'choices' is none of its wordings",
        ),
        (RECORDS_OF_ITEMS, {"date": "31.1.2026"}, "date is '31.1.2026': write YYYY-MM-DD"),
        (RECORDS_OF_ITEMS, {"date": "2026-02-30"}, "date is '2026-02-30': write YYYY-MM-DD"),
    ],
)
def test_what_cannot_be_sealed_is_refused_and_leaves_nothing(tmp_path, records, settings, message):
    file = write(tmp_path / "quiz.jsonl", records)
    with pytest.raises(InputError, match=message) as caught:
        seal_file(file, tmp_path / "out", **(SETTINGS | settings))
    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["quiz.jsonl"]


def test_wordings_of_an_option_are_refused(tmp_path):
    records = [
        {"question": f"{i}?", "choice0": f"a{i}", "choice1": f"b{i}", "answer": 0}
        | {"wordings": [f"a{i}", f"A{i}"]}
        for i in range(10)
    ]
    file = write(tmp_path / "quiz.jsonl", records)
    with pytest.raises(InputError, match="record 1: 'choice0' is an option; word another"):
        seal_file(file, tmp_path / "out", template="{choice0}\n", wordings_of="choice0")


def test_a_value_that_json_cannot_keep_is_refused(tmp_path):
    import datetime

    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table(
        {"text": [f"{i}" for i in range(10)], "day": [datetime.date(2026, 1, 1)] * 10}
    )
    pyarrow.parquet.write_table(table, tmp_path / "days.parquet")
    with pytest.raises(InputError, match=r"days.parquet, record 1: a value that JSON cannot keep"):
        seal_file(tmp_path / "days.parquet", tmp_path / "out", options=False)


def test_a_key_is_never_written_over(sealed, tmp_path):
    kept = {path: path.read_bytes() for path in vars(sealed).values()}
    with pytest.raises(InputError, match=r"out: there is something already, and it stays"):
        seal_file(tmp_path / "quiz.jsonl", tmp_path / "out", **SETTINGS)
    for path in (sealed.published, sealed.seal):
        path.unlink()
    with pytest.raises(InputError, match=r"out: there is something already, and it stays"):
        seal_file(tmp_path / "quiz.jsonl", tmp_path / "out", **SETTINGS)
    assert sealed.key.read_bytes() == kept[sealed.key]


@pytest.mark.parametrize("moment", ["write_bytes", "key", "verify"])
def test_an_interrupt_leaves_nothing(tmp_path, monkeypatch, moment):
    def interrupted(*_, **__) -> None:
        raise KeyboardInterrupt

    if moment == "write_bytes":
        monkeypatch.setattr(Path, "write_bytes", interrupted)
    else:
        monkeypatch.setattr(sealing, {"key": "_write_private"}.get(moment, moment), interrupted)
    file = write(tmp_path / "quiz.jsonl", RECORDS_OF_ITEMS)
    with pytest.raises(KeyboardInterrupt):
        seal_file(file, tmp_path / "out", **SETTINGS)
    assert [path.name for path in tmp_path.iterdir()] == ["quiz.jsonl"]


KILLED = """
import os, signal, sys
from pathlib import Path
from contamination.testsets import sealing
def killed(*_): os.kill(os.getpid(), signal.SIGKILL)
sealing.verify = killed  # all three files are written, under another name
sealing.seal_file(Path(sys.argv[1]), Path(sys.argv[2]), template="mmlu/2", wordings_of="question")
"""


def test_a_kill_leaves_no_file_under_its_name_and_the_next_seal_tidies_up(tmp_path):
    file = write(tmp_path / "quiz.jsonl", RECORDS_OF_ITEMS)
    child = subprocess.run([sys.executable, "-c", KILLED, file, tmp_path / "out"], check=False)
    assert child.returncode == -signal.SIGKILL
    (left,) = [path for path in tmp_path.iterdir() if path != file]
    assert left.name.startswith(".")
    assert stat.S_IMODE((left / "private").stat().st_mode) == 0o700
    _, files = seal_file(file, tmp_path / "out", **SETTINGS)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "quiz.jsonl"]
    assert verified(files)
