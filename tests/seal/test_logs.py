"""Logs of evaluations as tests: the law over keys, what logs must cover, and who has read."""

import hashlib
import itertools
import json
import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contamination.seal import files
from contamination.seal.draws import Statement
from contamination.seal.files import SealedSet, seal_file, verify
from contamination.seal.logs import ModelAnswers, audit_logs
from contamination.seal.prepare import prepare
from contamination.statistics import known_at_least
from contamination.testsets.logs.read import read_log
from contamination.testsets.logs.record import Log, LogRecord
from fakes.answer_logs import (
    OF_LETTERS,
    OF_TEXT,
    Gold,
    generated,
    generated_sample,
    inspect_sample,
    lm_eval_samples,
    write_eval,
)
from fakes.level import check_every_level, check_level
from fakes.made_up_registry import jsonl, refusal
from seal.test_audit import sealed_by

OPEN = {"name": "open", "template": "{question} {answer}\n", "answers_of": "answer"}
RECORDS = [
    {
        "id": f"r{i}",
        "question": f"Name one of group {i}!",
        "answers": [f"ash {i}", f"elm {i}", f"fir {i}", f"oak {i}"][: 2 + i % 3],
    }
    for i in range(24)
]
ITEMS = [
    {
        "question": f"Which of {i}?",
        "choices": [f"ash {i}", f"elm {i}", f"fir {i}", f"oak {i}"],
        "answer": "C",
        "answers": ["C", "A"] if i % 2 else ["B", "C", "D"],
    }
    for i in range(24)
]
QUIZ = {"template": "{question}\n{choices:\n}\n{answer}\n", "answers_of": "answer"}
DIVISORS = [
    {"id": f"q{i}", "question": f"Name a divisor of {6 * i}!", "answers": ["2", "3", "6"]}
    for i in range(1, 41)
]
ALL_OF_THEM = "The divisors include 2 and 3 and 6."


def log_of(*records: LogRecord, claimed: int | None = None) -> Log:
    return Log(Path("log"), records, claimed)


def said(name: str, text: str, model: str = "m", **more) -> LogRecord:
    return LogRecord("", model, name, None, completion=text, **more)


def open_set(records, seed: bytes) -> SealedSet:
    rows = [(str(i), each) for i, each in enumerate(records)]
    stated = (
        {"options": False, **OPEN} if "answers" in records[0] else {"options": False, "name": "t"}
    )
    return sealed_by(seed, prepare(rows, Statement(**stated), "open"), stated)


def answered(sealed: SealedSet, reads=()) -> list[LogRecord]:
    """Answer as a model that likes some of the right answers, and knows those of `reads`."""
    logs = []
    for place, record in enumerate(sealed.test_set.records):
        several = sealed.drawn[place].variants.choices("answers")
        liked = [*several, "neither"][
            hashlib.sha256(record["id"].encode()).digest()[0] % (len(several) + 1)
        ]
        text = record["answer"] if record["id"] in reads else liked
        logs.append(said(record["id"], f"It is {text}."))
    return logs


def test_many_keys_keep_the_level():
    found = []
    for i in range(400):
        sealed = open_set(RECORDS[:12], hashlib.sha256(b"%d" % i).digest())
        found += audit_logs(sealed, [log_of(*answered(sealed))])
    assert {one.admissible for one in found} == {found[0].admissible}
    assert 0 < found[0].admissible < found[0].records == 12
    check_level([one.p for one in found], 0.05, 0.2, reached=False)


def test_p_is_exact_over_all_that_a_key_may_draw(monkeypatch):
    sealed = open_set(RECORDS[:12], bytes(32))
    p = []
    logs = answered(sealed)
    three = sorted(range(12), key=lambda i: sealed.drawn[i].number)[:3]
    for picks in itertools.product(*(range(2 + i) for i in range(3))):
        for place, pick in zip(three, picks, strict=True):
            monkeypatch.setitem(sealed.drawn[place].picks, "answers", pick)
        told = [said(logs[i].id, RECORDS[sealed.drawn[i].number]["answers"][0]) for i in three]
        p.append(audit_logs(sealed, [log_of(*told)])[0].p)
    check_every_level(p)
    assert min(p) == pytest.approx(1 / 24)


def test_a_reader_is_found_and_the_bound_counts_no_more_than_it_knows():
    sealed = open_set(RECORDS, bytes(32))
    reads = {f"r{i}" for i in range(18)}
    (reader,) = audit_logs(sealed, [log_of(*answered(sealed, reads))])
    (clean,) = audit_logs(sealed, [log_of(*answered(sealed))])
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


@pytest.fixture(scope="module")
def divisors() -> SealedSet:
    return open_set(DIVISORS, bytes(32))


@pytest.mark.parametrize("write", OF_LETTERS)
def test_every_format_says_the_same_of_a_model(quiz, tmp_path, write) -> None:
    """It knows the published letters but in every sixth item, where it takes the first option."""
    rows = [(r, "A" if i % 6 == 0 else r["answer"]) for i, r in enumerate(quiz.test_set.records)]
    (found,) = audit_logs(quiz, [read_log(write(tmp_path, rows, Gold()))])
    wanted = [LogRecord("", "m", "", i, completion=x) for i, (_, x) in enumerate(rows)]
    assert found == audit_logs(quiz, [log_of(*wanted)])[0]
    assert found.model == "m"
    assert found.records == 24
    assert found.p < 1e-4


# --- an answer does not depend on what is right ---------------------------------------------------


@pytest.mark.parametrize("write", OF_TEXT)
def test_who_lists_all_right_answers_knows_none_whatever_a_harness_scored(divisors, write) -> None:
    """Scorers that look for the target find it each time."""
    records = divisors.test_set.records
    rows = [(record, ALL_OF_THEM) for record in records]
    with tempfile.TemporaryDirectory() as folder:
        log = read_log(write(Path(folder), rows, Gold(text=records[0]["answer"], score=1.0)))
    (found,) = audit_logs(divisors, [log])
    assert found.records == 40
    assert found.admissible == 0
    assert found.p == 1


def test_a_score_of_inspect_that_knows_the_target_accuses_nobody(divisors, tmp_path) -> None:
    records = divisors.test_set.records
    samples = []
    for number, record in enumerate(records, start=1):
        gold = Gold(text=record["answer"], score=1.0)
        samples.append(inspect_sample(record["id"], record, ALL_OF_THEM, gold) | {"number": number})
    (found,) = audit_logs(divisors, [read_log(write_eval(tmp_path / "a.eval", samples))])
    assert found.admissible == 0
    assert found.conclusion(0.05) == "cannot say"


@settings(max_examples=20, deadline=None)
@given(gold=st.sampled_from(["2", "3", "6", "", "none"]), score=st.floats(0, 1))
def test_no_target_changes_what_is_found(divisors, gold, score) -> None:
    rows = [
        (record, f"It is {'236'[i % 3]}.") for i, record in enumerate(divisors.test_set.records)
    ]
    with tempfile.TemporaryDirectory() as folder:
        usual = audit_logs(divisors, [read_log(generated(Path(folder), rows))])
        changed = read_log(generated(Path(folder), rows, Gold(text=gold, score=score)))
        assert audit_logs(divisors, [changed]) == usual


def test_labels_are_those_of_the_prompt(quiz) -> None:
    """A harness that shows the options last first: its letters are not the published ones."""
    published = []
    own = []
    for place, record in enumerate(quiz.test_set.records):
        labels = dict(zip("ABCD", reversed(record["choices"]), strict=True))
        letter = "DCBA"["ABCD".index(record["answer"])]
        published.append(LogRecord("", "m", "", place, completion=record["answer"]))
        own.append(LogRecord("", "m", "", place, completion=letter, labels=labels))
    assert audit_logs(quiz, [log_of(*own)]) == audit_logs(quiz, [log_of(*published)])


# --- what logs have to cover ----------------------------------------------------------------------


def gold_log(sealed: SealedSet, count: int | None = None, **more) -> list[LogRecord]:
    return [said(one["id"], one["answer"], **more) for one in sealed.test_set.records[:count]]


def clean_log(sealed: SealedSet, model: str = "m") -> list[LogRecord]:
    return [said(one["id"], "2", model) for one in sealed.test_set.records]


def only(found: list[ModelAnswers]) -> ModelAnswers:
    (one,) = found
    return one


def test_hits_that_were_picked_from_a_clean_log_prove_nothing(divisors) -> None:
    records = divisors.test_set.records
    hits = [said(one["id"], "2") for one in records if one["answer"] == "2"]
    found = only(audit_logs(divisors, [log_of(*hits)]))
    assert found.p < 1e-3
    assert found.missing == 40 - len(hits)
    assert found.conclusion(0.05) == "cannot say"


def test_a_log_that_claims_more_records_than_it_has_proves_nothing(divisors) -> None:
    log = log_of(*gold_log(divisors, 15), claimed=40)
    found = only(audit_logs(divisors, [log], limit=15))
    assert found.missing == 25
    assert found.conclusion(0.05) == "cannot say"


def test_a_limit_is_a_stated_rule(divisors) -> None:
    records = gold_log(divisors, 15)
    found = only(audit_logs(divisors, [log_of(*records, claimed=15)], limit=15))
    assert found.missing == 0
    assert found.records == 15
    assert found.conclusion(0.05) == "proven"
    short = only(audit_logs(divisors, [log_of(*records[:3], *records[4:])], limit=15))
    assert short.missing == 1
    assert short.conclusion(0.05) == "cannot say"
    assert "give the limit" in refusal(audit_logs, divisors, [log_of(*records)], limit=14)


@pytest.mark.parametrize(
    ("texts", "rule", "named", "differing"),
    [
        (["2", "2"], None, 40, 0),
        (["2", "It is 2."], None, 40, 0),
        (["2", "3"], None, 0, 40),
        (["2", "who knows"], None, 0, 40),
        (["2", "3"], "first", 40, 40),
        (["who knows", "2"], "first", 0, 40),
        (["2", "3"], "majority", 0, 40),
        (["3", "2", "2"], "majority", 40, 40),
        (["who knows", "2"], "majority", 40, 40),
    ],
)
def test_answers_that_differ_need_a_rule(divisors, texts, rule, named, differing) -> None:
    records = []
    for one in divisors.test_set.records:
        for epoch, text in enumerate(texts, start=1):
            records.append(said(one["id"], text, epoch=epoch))
    random.Random(0).shuffle(records)  # the order of a file decides nothing
    found = only(audit_logs(divisors, [log_of(*records)], epochs=rule))
    assert found.admissible == named
    assert found.repeated == 40
    assert found.differing == differing
    assert bool(found.reason) == (named == 0 or (differing > 0 and rule is None))


def test_the_first_epoch_is_that_of_the_first_log(divisors) -> None:
    clean = log_of(*clean_log(divisors))
    reader = log_of(*gold_log(divisors, epoch=2))
    alone = only(audit_logs(divisors, [clean]))
    first = only(audit_logs(divisors, [clean, reader], epochs="first"))
    assert first.hits == alone.hits
    assert first.p == alone.p
    assert only(audit_logs(divisors, [reader, clean], epochs="first")).hits == 40


def test_the_majority_of_epochs_keeps_the_level() -> None:
    """Five answers of a model that guesses, under each of three hundred keys."""
    rng = random.Random(1)
    p = []
    for i in range(300):
        sealed = open_set(RECORDS[:12], hashlib.sha256(b"%d" % i).digest())
        records = []
        for place, one in enumerate(sealed.test_set.records):
            several = sealed.drawn[place].variants.choices("answers")
            for epoch in range(5):
                records.append(said(one["id"], rng.choice(several), epoch=epoch))
        p.append(only(audit_logs(sealed, [log_of(*records)], epochs="majority")).p)
    check_level(p, 0.05, 0.2, reached=False)


def test_holm_is_over_all_models_and_nothing_can_be_said_of_one_without_answers(divisors) -> None:
    silent = [said(one["id"], "no idea", "silent") for one in divisors.test_set.records]
    brief = gold_log(divisors, 2, model="brief")
    logs = [log_of(*gold_log(divisors, model="reader")), log_of(*silent, *brief)]
    reader, quiet, short = audit_logs(divisors, logs)
    assert reader.holm_p == pytest.approx(3 * reader.p, rel=1e-9, abs=0)
    conclusions = [each.conclusion(0.05) for each in (reader, quiet, short)]
    assert conclusions == ["proven", "cannot say", "cannot say"]
    assert quiet.records == 40
    assert quiet.admissible == 0
    assert quiet.p == 1


def test_the_bounds_of_several_models_hold_together(divisors) -> None:
    """Each bound is made at the level over the number of models."""
    records = len(divisors.test_set.records)

    def bounds(models: int) -> set[int]:
        logs = [log_of(*gold_log(divisors, model=f"m{number}")) for number in range(models)]
        return {found.known_at_least for found in audit_logs(divisors, logs)}

    for models in (1, 50):
        bound = known_at_least(records, [1 / 3] * records, level=0.05 / models)
        assert bounds(models) == {bound}


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("write", [one for one in OF_LETTERS if one.__name__ != "table"])
def test_a_log_of_other_records_is_refused(quiz, tmp_path, write) -> None:
    records = quiz.test_set.records
    other = [({**record, "question": f"Or {i}?"}, "A") for i, record in enumerate(records)]
    told = refusal(audit_logs, quiz, [read_log(write(tmp_path, other, Gold()))])
    assert "is not one of quiz as it was published" in told


def test_one_prompt_with_shots_is_found_in_any_file_and_place(divisors, tmp_path) -> None:
    """The first log has no shots, and of the second only the last prompt has some."""
    records = divisors.test_set.records
    clean = generated(tmp_path, [(record, "2") for record in records]).rename(tmp_path / "a.jsonl")
    rows = [generated_sample(i, record, "2") for i, record in enumerate(records)]
    chat = [
        {"role": "user", "content": records[0]["question"]},
        {"role": "assistant", "content": records[0]["answer"]},
        {"role": "user", "content": records[39]["question"]},
    ]
    rows[39]["arguments"]["gen_args_0"]["arg_0"] = json.dumps(chat)
    shots = lm_eval_samples(tmp_path, rows)
    told = refusal(audit_logs, divisors, [read_log(clean), read_log(shots)])
    assert f"{shots.name}, line 40" in told


@pytest.mark.parametrize("role", ["user", "assistant", "system"])
@pytest.mark.parametrize("shown", ["{question}\n{answer}", "{id}: {answer}"])
def test_shots_in_a_chat_of_inspect_are_found(divisors, tmp_path, role, shown) -> None:
    records = divisors.test_set.records
    samples = [inspect_sample(one["id"], one, "2") for one in records]
    turn = {"role": role, "content": shown.format(**records[7]), "source": "input"}
    samples[3]["messages"].insert(0, turn)
    log = read_log(write_eval(tmp_path / "a.eval", samples))
    assert samples[3]["id"] in refusal(audit_logs, divisors, [log])


def test_what_says_nothing_of_the_set_is_refused(quiz) -> None:
    several = " ".join(record["question"] for record in quiz.test_set.records[:2])
    nothing = open_set([{"text": str(i)} for i in range(12)], bytes(32))
    for sealed, record, named in [
        (quiz, LogRecord("line 1", "m", "", 0, prompt=several), "line 1: the prompt shows another"),
        (quiz, LogRecord("line 1", "m", "99", 98), "line 1: record '99' is not one of quiz"),
        (open_set(RECORDS, bytes(32)), LogRecord("", "m", "5", 4), "record '5' is not one of open"),
        (nothing, LogRecord("", "m", "5", 4), "no record has several answers"),
    ]:
        assert named in refusal(audit_logs, sealed, [log_of(record)])


def rows_of(sealed: SealedSet, folder: Path, columns: dict[str, Any]) -> Log:
    """Write the published records as a table, each with further columns or without some.

    A column may depend on the record.
    """
    rows = []
    for record in sealed.test_set.records:
        fields = {**record, **columns}
        row = {}
        for name, value in fields.items():
            if value is not None:
                row[name] = value(record) if callable(value) else value
        rows.append(row)
    path = folder / "answers.jsonl"
    path.write_bytes(jsonl(rows))
    return read_log(path)


@pytest.mark.parametrize("column", ["prompt", "messages"])
def test_the_prompts_of_a_table_are_searched(divisors, tmp_path, column: str) -> None:
    other = divisors.test_set.records[1]
    shot = f"{other['question']} {other['answer']}"
    for shown, found in ((shot, True), ([{"role": "user", "content": shot}], True), ("v2", False)):
        log = rows_of(divisors, tmp_path, {"model": "m", column: shown})
        if found:
            assert "answers.jsonl, line 1" in refusal(audit_logs, divisors, [log])
        else:
            assert audit_logs(divisors, [log])[0].hits == len(DIVISORS)


def test_whole_numbers_are_the_same_with_a_point(divisors, tmp_path) -> None:
    """As pandas writes them where a cell of the column is empty."""
    records = divisors.test_set.records
    (plain,) = audit_logs(divisors, [log_of(*(said(r["id"], r["answer"]) for r in records))])
    for text in ("{}.0", "The answer is {}.00"):
        with_point = [said(record["id"], text.format(record["answer"])) for record in records]
        assert audit_logs(divisors, [log_of(*with_point)]) == [plain]
    other = [said(record["id"], f"{record['answer']}.5") for record in records]
    assert audit_logs(divisors, [log_of(*other)])[0].admissible == 0


def test_the_first_answer_that_names_none_is_quoted(divisors) -> None:
    records = divisors.test_set.records
    texts = ["2", "two", *["three"] * (len(records) - 2)]
    logs = [said(record["id"], text) for record, text in zip(records, texts, strict=True)]
    (one,) = audit_logs(divisors, [log_of(*logs)])
    assert one.unnamed == "two"
    assert one.conclusion(0.05) == "cannot say"


def table_of(path: Path, sealed: SealedSet, answers: list[str], **more) -> Path:
    """Write a table of several answers to each record."""
    rows = []
    for one in sealed.test_set.records:
        rows += [{"id": one["id"], "answer": text.format(**one)} | more for text in answers]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(jsonl(rows))
    return path


def test_the_order_of_rows_does_not_say_which_answer_came_first(divisors, tmp_path) -> None:
    """Somebody may have sorted three samples of a model that has read nothing by their score."""
    path = table_of(tmp_path / "m.jsonl", divisors, ["{answer}", "2", "3", "6"])
    found = only(audit_logs(divisors, [read_log(path)], epochs="first"))
    assert "40 of its records have several different answers in their first epoch" in found.reason
    assert "the column `epoch`" in found.reason
    assert found.conclusion(0.05) == "cannot say"


def test_two_files_of_one_name_are_no_model(divisors, tmp_path) -> None:
    """Nor are a file and a model that another log names; but one file may be given twice."""
    one = table_of(tmp_path / "a" / "m.jsonl", divisors, ["2"])
    two = table_of(tmp_path / "b" / "m.jsonl", divisors, ["{answer}"])
    named = table_of(tmp_path / "c" / "m.jsonl", divisors, ["{answer}"], model="m")
    for pair in ([one, two], [two, one], [one, named], [named, one]):
        message = refusal(audit_logs, divisors, map(read_log, pair), epochs="first")
        assert "does not say which model answered" in message
    assert only(audit_logs(divisors, map(read_log, [one, one]))).repeated == 40
    assert only(audit_logs(divisors, map(read_log, [named, named]))).hits == 40


def test_two_folders_of_one_name_are_no_model(divisors, tmp_path) -> None:
    """Logs of lm-eval without results are named after their folder."""
    paths = []
    for name in ("a", "b"):
        folder = tmp_path / name / "out"
        folder.mkdir(parents=True)
        paths.append(generated(folder, [(record, "2") for record in divisors.test_set.records]))
        (folder / "results_T.json").unlink()
    assert "does not say which" in refusal(audit_logs, divisors, map(read_log, paths))


NESTED = {"name": "nested", "answers_of": "answer", "options": False}


@pytest.mark.parametrize("template", ["{input.q} {answer}\n", "{input[q]} {answer}\n"])
def test_texts_within_objects_tell_records_apart(tmp_path, template) -> None:
    records = [
        {"input": {"q": f"A tree of row {i}?"}, "answers": ["ash", "elm"]} for i in range(12)
    ]
    rows = [(str(i), record) for i, record in enumerate(records)]
    stated = NESTED | {"template": template}
    sealed = sealed_by(bytes(32), prepare(rows, Statement(**stated), "nested"), stated)
    published = sealed.test_set.records
    asked = [record["input"] | {"question": record["input"]["q"]} for record in published]
    fits = generated(tmp_path, [(q, r["answer"]) for q, r in zip(asked, published, strict=True)])
    assert only(audit_logs(sealed, [read_log(fits)])).hits == 12
    other = generated(tmp_path, [({"question": "The capital of Peru?"}, "ash")] * 12)
    assert "is not one of nested" in refusal(audit_logs, sealed, [read_log(other)])
    shots = generated(tmp_path, [({"question": " ".join(q["q"] for q in asked)}, "ash")] * 12)
    assert "shows another record" in refusal(audit_logs, sealed, [read_log(shots)])


@pytest.mark.parametrize("other", ["m ", " m", "m\t"])
def test_names_of_models_that_look_the_same_are_refused(divisors, other: str) -> None:
    logs = [said("q1", "2", model="m"), said("q2", "2", model=other)]
    assert repr(other) in refusal(audit_logs, divisors, [log_of(*logs)])


def test_few_answers_cannot_say_where_the_correction_leaves_them_no_small_p(divisors) -> None:
    """Three answers out of three right ones: 1/27 is below 0.05, and twice as much is not."""
    records = divisors.test_set.records
    wrong = [said(each["id"], "5", "few") for each in records[3:]]
    for each in records[:3]:
        wrong.append(said(each["id"], "3" if each["answer"] == "2" else "2", "few"))
    alone = only(audit_logs(divisors, [log_of(*wrong)]))
    beside, _ = audit_logs(divisors, [log_of(*wrong, *clean_log(divisors))])
    assert (alone.admissible, alone.hits) == (3, 0)
    assert alone.conclusion(0.05) == "no evidence"
    assert beside.conclusion(0.05) == "cannot say"
