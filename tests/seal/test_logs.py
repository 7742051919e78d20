"""Logs of evaluations as tests: the law over keys, every format, and who has read the answers."""

import hashlib
import itertools
import json
import re
import zipfile
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from contamination.seal import files
from contamination.seal.files import SealedSet, seal_file, verify
from contamination.seal.logs import audit_logs
from contamination.seal.variants import Statement, prepare
from contamination.testsets.harness import LogRecord, read_log
from contamination.testsets.option_texts import LETTERS
from fakes.level import check_every_level, check_level
from fakes.made_up_registry import jsonl, refusal
from seal.test_audit import sealed_by

OPEN = {"name": "open", "template": "{question} {answer}\n", "answers_of": "answer"}
RECORDS = [
    {"id": f"r{i}", "question": f"Name one of group {i}!"}
    | {"answers": [f"{w} {i}" for w in ("ash", "elm", "fir", "oak")[: 2 + i % 3]]}
    for i in range(24)
]
ITEMS = [
    {"question": f"Which of {i}?", "choices": [f"{w} {i}" for w in ("ash", "elm", "fir", "oak")]}
    | {"answer": "C", "answers": ["C", "A"] if i % 2 else ["B", "C", "D"]}
    for i in range(24)
]
QUIZ = {"template": "{question}\n{choices:\n}\n{answer}\n", "answers_of": "answer"}


def open_set(records, seed: bytes) -> SealedSet:
    rows = [(str(i), each) for i, each in enumerate(records)]
    stated = (
        {"options": False, **OPEN} if "answers" in records[0] else {"options": False, "name": "t"}
    )
    return sealed_by(seed, prepare(rows, Statement(**stated), "open"), stated)


def answered(sealed: SealedSet, reads=()) -> list[LogRecord]:
    """Answer as a model that likes some of the right answers, and knows those of `reads`."""
    logs = []
    for i, record in enumerate(sealed.test_set.records):
        given = sealed.drawn[i].variants.given("answers")
        liked = [*given, "neither"][
            hashlib.sha256(record["id"].encode()).digest()[0] % (len(given) + 1)
        ]
        said = record["answer"] if record["id"] in reads else liked
        logs.append(LogRecord(str(i), "m", record["id"], None, answers=(f"It is {said}.",)))
    return logs


def test_a_thousand_keys_keep_the_level():
    found = []
    for i in range(1000):
        sealed = open_set(RECORDS[:12], hashlib.sha256(b"%d" % i).digest())
        found += audit_logs(sealed, answered(sealed))
    assert {one.admissible for one in found} == {found[0].admissible}
    assert 0 < found[0].admissible < found[0].records == 12
    check_level([one.p for one in found], 0.05, 0.2, reached=False)


def test_p_is_exact_over_all_that_a_key_may_draw(monkeypatch):
    sealed, p = open_set(RECORDS[:12], bytes(32)), []
    logs = answered(sealed)
    three = sorted(range(12), key=lambda i: sealed.drawn[i].number)[:3]
    for picks in itertools.product(*(range(2 + i) for i in range(3))):
        for place, pick in zip(three, picks, strict=True):
            monkeypatch.setitem(sealed.drawn[place].picks, "answers", pick)
        told = [
            LogRecord(
                "", "m", logs[i].id, None, answers=(RECORDS[sealed.drawn[i].number]["answers"][0],)
            )
            for i in three
        ]
        p.append(audit_logs(sealed, told)[0].p)
    check_every_level(p)
    assert min(p) == pytest.approx(1 / 24)


def test_a_reader_is_found_and_the_bound_counts_no_more_than_it_knows():
    sealed = open_set(RECORDS, bytes(32))
    reads = {f"r{i}" for i in range(18)}
    (reader,) = audit_logs(sealed, answered(sealed, reads))
    (clean,) = audit_logs(sealed, answered(sealed))
    assert reader.p < 1e-5
    assert clean.p > 0.05
    assert clean.known_at_least == 0 < reader.known_at_least <= len(reads)


@pytest.fixture(scope="module")
def quiz(tmp_path_factory) -> SealedSet:
    folder = tmp_path_factory.mktemp("quiz")
    (folder / "quiz.jsonl").write_bytes(jsonl(ITEMS))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files.secrets, "token_bytes", bytes)
        made = seal_file(folder / "quiz.jsonl", folder / "out", **QUIZ)
    return verify(None, made.seal, made.key)


def harness(folder: Path, rows) -> Path:
    """Options of which the likeliest counts, and the model in a file beside it."""
    (folder / "results_T.json").write_text('{"model_name": "m"}')
    told = []
    for i, (record, letter) in enumerate(rows):
        asked = {
            f"gen_args_{j}": {"arg_0": record["question"], "arg_1": f" {x}"}
            for j, x in enumerate("ABCD")
        }
        said = [["-1.5" if x == letter else "-11.0", "False"] for x in "ABCD"]
        told.append({"doc_id": i, "doc": record, "arguments": asked, "filtered_resps": said})
    (folder / "samples_quiz_T.jsonl").write_bytes(jsonl(told))
    return folder / "samples_quiz_T.jsonl"


def generated(folder: Path, rows) -> Path:
    (folder / "m").mkdir()
    told = [
        {"doc_id": i, "doc": record, "arguments": {"gen_args_0": {"arg_0": "", "arg_1": {}}}}
        | {"filtered_resps": [f" {letter}"]}
        for i, (record, letter) in enumerate(rows)
    ]
    (folder / "m" / "samples_quiz_T.jsonl").write_bytes(jsonl(told))
    return folder / "m" / "samples_quiz_T.jsonl"


def inspect(folder: Path, rows) -> Path:
    """Text beside the answer, which the score has; samples are in the order of their names."""
    with zipfile.ZipFile(folder / "a.eval", "w") as archive:
        archive.writestr("header.json", json.dumps({"eval": {"model": "m"}}))
        for i, (record, letter) in enumerate(rows, start=1):
            sample = {"id": i, "input": record["question"], "choices": record["choices"]}
            sample |= {"target": record["answer"]}
            messages = [{"role": "user", "content": [{"type": "text", "text": record["question"]}]}]
            said = {
                "output": {"completion": "A or B or C"},
                "scores": {"choice": {"answer": letter}},
            }
            archive.writestr(
                f"samples/{i}_epoch_1.json", json.dumps(sample | said | {"messages": messages})
            )
    return folder / "a.eval"


def packed(folder: Path, rows) -> Path:
    """The same as Inspect packs it, by Zstandard, which zipfile cannot write before Python 3.14."""
    stored = inspect(folder, rows).rename(folder / "stored.eval")
    with zipfile.ZipFile(stored) as source, zipfile.ZipFile(folder / "a.eval", "w") as archive:
        for one in source.infolist():
            data = pyarrow.compress(source.read(one), "zstd", asbytes=True)
            archive.writestr(one.filename, data)
            archive.getinfo(one.filename).compress_type = 93
    return folder / "a.eval"


def lighteval(folder: Path, rows) -> Path:
    path = folder / "details" / "m" / "T" / "details_quiz_T.parquet"
    path.parent.mkdir(parents=True)
    docs = [
        {"id": str(i), "query": r["question"], "choices": [*"ABCD"], "gold_index": 0}
        for i, (r, _) in enumerate(rows)
    ]
    said = [
        {"input": r["question"], "text": [], "logprobs": [-1.0 * (x != letter) for x in "ABCD"]}
        for r, letter in rows
    ]
    pyarrow.parquet.write_table(pyarrow.table({"__doc__": docs, "__model_response__": said}), path)
    return path


def helm(folder: Path, rows) -> Path:
    """Letters of an order of its own, and perturbed questions, whose answers come too late."""
    states = []
    for i, (record, letter) in enumerate(rows):
        text = record["choices"][LETTERS.index(letter)]
        said = {"result": {"completions": [{"text": " Z"}]}, "output_mapping": {"Z": text}}
        instance = {"id": f"id{i}", "input": {"text": record["question"]}, "references": []}
        states.append({"instance": instance, "request": {"prompt": record["question"]}} | said)
    late = [each | {"output_mapping": {"Z": "ash 0"}} for each in states]
    told = {"adapter_spec": {"model": "m"}, "request_states": states + late}
    (folder / "scenario_state.json").write_text(json.dumps(told, indent=2))
    return folder / "scenario_state.json"


def plain(folder: Path, rows) -> Path:
    told = [f"{i},{record['choices'][LETTERS.index(x)]}" for i, (record, x) in enumerate(rows, 1)]
    (folder / "m.csv").write_text("\n".join(["id,answer", *told]))
    return folder / "m.csv"


FORMATS = [harness, generated, inspect, packed, lighteval, helm, plain]


@pytest.mark.parametrize("write", FORMATS)
def test_every_format_says_the_same_of_a_model(quiz, tmp_path, write):
    """It knows the published letters but in every sixth item, where it takes the first option."""
    rows = [(r, "A" if i % 6 == 0 else r["answer"]) for i, r in enumerate(quiz.test_set.records)]
    (found,) = audit_logs(quiz, read_log(write(tmp_path, rows)))
    wanted = [LogRecord("", "m", "", i, answers=(x,)) for i, (_, x) in enumerate(rows)]
    assert found == audit_logs(quiz, wanted)[0]
    assert (found.model, found.records, found.p < 1e-4) == ("m", 24, True)


def test_holm_is_over_all_models_and_nothing_can_be_said_of_one_without_answers(quiz):
    def said(model: str, answers) -> list[LogRecord]:
        return [LogRecord("", model, "", i, answers=(x,)) for i, x in enumerate(answers)]

    gold = [record["answer"] for record in quiz.test_set.records]
    logs = said("reader", gold) + said("silent", ["no idea"] * 24) + said("brief", gold[:2])
    reader, silent, brief = audit_logs(quiz, logs)
    assert reader.holm_p == pytest.approx(3 * reader.p)
    assert [each.conclusion(0.05) for each in (reader, silent, brief)] == ["proven"] + [
        "cannot say"
    ] * 2
    assert (silent.records, silent.admissible, silent.p) == (24, 0, 1)


@pytest.mark.parametrize("write", [harness, generated, inspect, lighteval, helm])
def test_a_log_of_other_records_is_refused(quiz, tmp_path, write):
    records = quiz.test_set.records
    other = [({**record, "question": f"Or {i}?"}, "A") for i, record in enumerate(records)]
    told = refusal(audit_logs, quiz, read_log(write(tmp_path, other)))
    assert "is not one of quiz as it was published" in told


def test_what_says_nothing_of_the_set_is_refused(quiz):
    several = " ".join(record["question"] for record in quiz.test_set.records[:2])
    nothing = open_set([{"text": str(i)} for i in range(12)], bytes(32))
    for sealed, log, named in [
        (quiz, LogRecord("line 1", "m", "", 0, prompt=several), "line 1: the prompt shows other"),
        (quiz, LogRecord("line 1", "m", "99", 98), "line 1: record '99' is not one of quiz"),
        (open_set(RECORDS, bytes(32)), LogRecord("", "m", "5", 4), "record '5' is not one of open"),
        (nothing, LogRecord("", "m", "5", 4), "no record has several answers"),
    ]:
        assert named in refusal(audit_logs, sealed, [log])


@pytest.mark.parametrize(
    ("name", "data", "named"),
    [
        ("a.jsonl", b'{"arguments": {}, "doc": {}}\n', "line 1: not as lm-evaluation-harness"),
        ("a.jsonl", b'{"id": "r9"}\n', "a.jsonl, line 1: .*no 'answer'"),
        ("a.jsonl", b'{"answer": "ash 9"}\n', "a.jsonl, line 1: .*no 'id'"),
        ("a.eval", b"PK", "a.eval: no log of Inspect"),
        ("scenario_state.json", b"{}", "scenario_state.json, .*no 'id'"),
        ("a.log", b"", "a.log: unknown kind"),
    ],
)
def test_what_is_no_log_is_refused(tmp_path, name, data, named):
    (tmp_path / name).write_bytes(data)
    assert re.search(named, refusal(read_log, tmp_path / name))
