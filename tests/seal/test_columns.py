"""Which column of a table a model wrote, prompts and offers that tell the answer, and blanks."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from contamination.seal import files
from contamination.seal.files import SealedSet, seal_file, verify
from contamination.seal.logs import ModelAnswers, audit_logs
from contamination.testsets.logs.read import read_log
from contamination.testsets.logs.record import LogRecord
from fakes.answer_logs import (
    Gold,
    chosen_sample,
    generated,
    generated_sample,
    inspect,
    inspect_sample,
    lm_eval_samples,
    write_details,
    write_eval,
)
from fakes.made_up_registry import jsonl, refusal
from seal.test_logs import (
    DIVISORS,
    ITEMS,
    QUIZ,
    gold_log,
    log_of,
    open_set,
    rows_of,
    said,
)

TREES = [
    {
        "id": f"q{i}",
        "question": f"Which of {i}: elm, ash or fir?",
        "answers": ["elm", "ash", "fir"],
    }
    for i in range(40)
]


OFFERED = ["granite", "elm", "ash", "fir"]


@pytest.fixture(scope="module")
def divisors() -> SealedSet:
    return open_set(DIVISORS, bytes(32))


@pytest.fixture(scope="module")
def trees() -> SealedSet:
    """Return a set whose questions name all right answers."""
    return open_set(TREES, bytes(32))


@pytest.fixture(scope="module")
def quiz(tmp_path_factory) -> SealedSet:
    folder = tmp_path_factory.mktemp("quiz")
    (folder / "quiz.jsonl").write_bytes(jsonl(ITEMS))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files.secrets, "token_bytes", bytes)  # a key that never changes
        made = seal_file(folder / "quiz.jsonl", folder / "out", **QUIZ)
    return verify(None, made.seal, made.key)


def only(results: list[ModelAnswers]) -> ModelAnswers:
    (result,) = results
    return result


def question(record: dict) -> str:
    return record["question"]


def gold(record: dict) -> str:
    return record["answer"]


def reply(record: dict) -> str:
    """Return what a model answers that has not read the set."""
    return f"I say {'236'[int(record['id'][1:]) % 3]}"


def chat(record: dict) -> list[dict]:
    asked = {"role": "user", "content": question(record)}
    return [asked, {"role": "assistant", "content": reply(record)}]


# --- the right answers in the column `answer` -----------------------------------------------------


@pytest.mark.parametrize(
    "columns",
    [
        {},
        {"correct": False},
        {"model": None},
        {"model": "m", "raw": "I say 2"},
        {"model": "m", "Answer": "2"},
        {"model": "m", "gpt4": "no idea"},
        {"model": "m", "gpt4": 2},
        {"model": "m", "hypothesis": lambda record: f"{record['id']} has 2"},
        {"model": "m", "target": gold, "gpt4": lambda record: f"{record['id']} has 2"},
        {"model": "m", "context": lambda record: f"{record['question']} {record['answer']}"},
        {"question": None, "llama": "2 or 3"},
        # What a model wrote may be a number, a judgement, or nothing.
        {"model": "m", "pred": lambda record: int(record["id"][1:]) % 4},
        {"model": "m", "pred": 1},
        {"model": "m", "correct": lambda record: int(record["id"][1:]) % 3 == 0},
        {"model": "m", "correct": False},
        {"model": "m", "acc": lambda record: float(int(record["id"][1:]) % 3 == 0)},
        {"model": "m", "seconds": 0.25},
        {"model": "m", "response": ""},
        # Or the end of what it was shown.
        {
            "model": "m",
            "prompt": lambda record: f"User: {record['question']}\nModel: {reply(record)}",
        },
        {"model": "m", "prompt": lambda record: f"{record['question']} {reply(record)}"},
        {"model": "m", "prompt": lambda record: f"{record['question']}\nReply: 2"},
        {"model": "m", "prompt": lambda record: f"{record['question']}\nAssistant: no idea"},
        {"model": "m", "messages": lambda record: {"messages": chat(record)}},
        {"model": "m", "messages": lambda record: [*chat(record), {"role": "user", "content": ""}]},
    ],
)
def test_right_answers_beside_what_a_model_may_have_written_are_refused(
    divisors, tmp_path, columns
) -> None:
    """The published set itself is of that kind, where no model is named."""
    message = refusal(audit_logs, divisors, [rows_of(divisors, tmp_path, columns)])
    assert "answers.jsonl" in message
    assert "(the published answer in 40 of 40 rows)" in message
    assert "`model`" in message


@pytest.mark.parametrize("name", ["raw", "response", "gpt4"])
def test_two_columns_that_a_model_may_have_written_are_refused(divisors, tmp_path, name) -> None:
    """Though neither is the key: a scorer may have found the target in the longer one."""
    columns = {"model": "m", "answer": "2", name: lambda record: f"{record['id']}: 2, 3 and 6"}
    message = refusal(audit_logs, divisors, [rows_of(divisors, tmp_path, columns)])
    assert f"`{name}`" in message


@pytest.mark.parametrize(
    "columns",
    [
        {"question": None},
        {"model": "m"},
        {"model": "m", "correct": True},
        {"model": "m", "target": gold},
        {"model": "m", "prompt": question},
        {"model": "m", "prompt": lambda record: f"Sky?\nblue\n\n{record['question']}\nAnswer:"},
        {
            "model": "m",
            "prompt": lambda record: f"{record['question']}<|im_end|>\nassistant\n<think>",
        },
        {"model": "m", "messages": lambda record: chat(record)[:1]},
        {"model": "m", "answer": lambda record: f"It is {record['answer']}."},
    ],
)
def test_who_knows_every_answer_is_found_in_a_table_that_is_clear(
    divisors, tmp_path, columns
) -> None:
    found = only(audit_logs(divisors, [rows_of(divisors, tmp_path, columns)]))
    assert found.hits == len(DIVISORS)
    assert found.conclusion(0.05) == "proven"


@pytest.mark.parametrize(
    "columns",
    [{}, {"target": gold}, {"split": "test", "seconds": 0.25}, {"subject": None, "correct": True}],
)
def test_what_no_model_writes_may_stand_beside_answers(divisors, tmp_path, columns) -> None:
    columns = {"answer": "It is 2.", **columns}
    found = only(audit_logs(divisors, [rows_of(divisors, tmp_path, columns)]))
    assert found.admissible == len(DIVISORS)
    assert found.conclusion(0.05) == "no evidence"


@pytest.mark.parametrize("column", ["prompt", "messages"])
@pytest.mark.parametrize(
    "last",
    [
        {"role": "assistant", "content": "2"},
        {"role": "model", "content": "2"},
        {"from": "gpt", "value": "2"},
        {"type": "ai", "data": {"content": "2"}},
    ],
)
def test_messages_that_end_with_an_answer_are_refused(divisors, tmp_path, column, last) -> None:
    messages = [{"role": "user", "content": "?"}, last]
    for value in (messages, json.dumps(messages)):
        message = refusal(rows_of, divisors, tmp_path, {"model": "m", column: value})
        assert f"answers.jsonl, line 1: `{column}`" in message


@pytest.mark.parametrize(("end", "is_reply"), [("", False), ("\n{}", True)])
def test_options_may_end_a_prompt_but_no_reply_that_is_one_of_them(
    quiz, tmp_path, end, is_reply
) -> None:
    """The options of each record stand in another order than the published one."""
    rows = []
    for number, record in enumerate(quiz.test_set.records, start=1):
        options = record["choices"][::-1]
        listed = "\n".join(f"{'ABCD'[place]}. {text}" for place, text in enumerate(options))
        prompt = f"{record['question']}\n{listed}{end.format(options[number % 4])}"
        letter = "DCBA"["ABCD".index(record["answer"])]
        rows.append({"id": number, "model": "m", "answer": letter, "prompt": prompt})
    path = tmp_path / "quiz.jsonl"
    path.write_bytes(jsonl(rows))
    if is_reply:
        assert "`prompt`" in refusal(audit_logs, quiz, [read_log(path)])
    else:
        assert only(audit_logs(quiz, [read_log(path)])).hits == len(ITEMS)


@pytest.mark.parametrize("write", [generated, inspect])
def test_who_knows_every_answer_is_found_in_the_log_of_any_harness(trees, tmp_path, write) -> None:
    rows = [(record, record["answer"]) for record in trees.test_set.records]
    found = only(audit_logs(trees, [read_log(write(tmp_path, rows))]))
    assert found.hits == len(TREES)
    assert found.conclusion(0.05) == "proven"


# --- the published answer in the prompt of its own record -----------------------------------------

HINTED = [
    "{question} {answer}",
    "{question} The correct answer is {answer}. Repeat it.",
    "Elm, ash or fir, or rather {answer}? {question}",
]


@pytest.mark.parametrize("hint", HINTED)
@pytest.mark.parametrize("in_question", [False, True])
def test_prompts_that_give_the_answer_away_prove_nothing(
    divisors, trees, hint, in_question
) -> None:
    """Whether or not the question names the right answers, too."""
    sealed = trees if in_question else divisors
    records = []
    for one in sealed.test_set.records:
        records.append(said(one["id"], one["answer"], prompt=hint.format(**one)))
    found = only(audit_logs(sealed, [log_of(*records)]))
    assert found.hits == 40
    assert "40 of its prompts" in found.reason
    assert found.conclusion(0.05) == "cannot say"


@pytest.mark.parametrize(
    "prompt",
    [
        "{question}",
        "{question} elm, ash, fir",
        "{question}\n\n{question}",
        "Answer in this form: elm. {question}",
    ],
)
def test_prompts_that_do_not_know_the_answer_change_nothing(trees, prompt) -> None:
    """An answer that an example names is the published one as often as chance has it."""
    records = []
    for one in trees.test_set.records:
        records.append(said(one["id"], one["answer"], prompt=prompt.format(**one)))
    assert only(audit_logs(trees, [log_of(*records)])).conclusion(0.05) == "proven"


def test_a_few_prompts_that_give_the_answer_away_are_enough(divisors) -> None:
    records = gold_log(divisors)
    for place in range(5):
        one = divisors.test_set.records[place]
        hint = HINTED[0].format(**one)
        records[place] = said(one["id"], one["answer"], prompt=hint)
    assert "5 of its prompts" in only(audit_logs(divisors, [log_of(*records)])).reason


@pytest.mark.parametrize(
    ("prompt", "conclusion"),
    [
        ("{question}\n{options}\nAnswer:", "proven"),
        ("{question}\n{options}\nAnswer with A, B, C or D, such as ANSWER: A.", "proven"),
        ("Sky?\nA. red\nB. blue\nAnswer: B\n\n{question}\n{options}\nAnswer:", "proven"),
        ("{question}", "proven"),
        ("{question}\n{options}\nHint: {answer}", "cannot say"),
        ("{question}\n{options}\nHint: {text}", "cannot say"),
        ("{question}\nHint: {text}", "cannot say"),
    ],
)
def test_options_in_a_prompt_give_nothing_away_but_a_hint_does(quiz, prompt, conclusion) -> None:
    """By its letter or its text, and whether or not the options stand beside it."""
    records = []
    for place, one in enumerate(quiz.test_set.records):
        by_letter = dict(zip("ABCD", one["choices"], strict=True))
        options = "\n".join(f"{letter}. {text}" for letter, text in by_letter.items())
        shown = prompt.format(**one, options=options, text=by_letter[one["answer"]])
        records.append(LogRecord("", "m", "", place, prompt=shown, completion=one["answer"]))
    assert only(audit_logs(quiz, [log_of(*records)])).conclusion(0.05) == conclusion


# --- the published answer as the only right one that is offered -----------------------------------


def offered_by_lm_eval(folder, records) -> Path:
    samples = []
    for number, record in enumerate(records):
        values = {record["answer"]: "-1.0", "granite": "-9.0", "copper": "-9.5"}
        samples.append(chosen_sample(number, record, values))
    return lm_eval_samples(folder, samples)


def guided_by_lm_eval(folder, records) -> Path:
    samples = []
    for number, record in enumerate(records):
        sample = generated_sample(number, record, record["answer"])
        guide = {"until": ["\n"], "guided_choice": ["granite", record["answer"], "copper"]}
        sample["arguments"]["gen_args_0"]["arg_1"] = guide
        samples.append(sample)
    return lm_eval_samples(folder, samples)


def offered_by_lighteval(folder, records) -> Path:
    docs = []
    responses = []
    for number, record in enumerate(records):
        options = ["granite", record["answer"]]
        docs.append({"id": str(number), "query": record["question"], "choices": options})
        responses.append({"input": record["question"], "text": [], "logprobs": [-9.0, -1.0]})
    return write_details(folder, docs, responses, Gold())


def offered_by_inspect(folder, records) -> Path:
    samples = []
    for record in records:
        sample = inspect_sample(record["id"], record, record["answer"])
        samples.append(sample | {"messages": [], "choices": ["granite", record["answer"]]})
    return write_eval(folder / "a.eval", samples)


OFFERS = [offered_by_lm_eval, guided_by_lm_eval, offered_by_lighteval, offered_by_inspect]


@pytest.mark.parametrize("write", OFFERS)
def test_who_is_offered_no_other_right_answer_proves_nothing(trees, tmp_path, write) -> None:
    """Every model that tells trees from stones takes the published answer."""
    log = read_log(write(tmp_path, trees.test_set.records))
    found = only(audit_logs(trees, [log]))
    assert found.hits == len(TREES)
    assert f"{len(TREES)} of its records offer the published answer" in found.reason
    assert found.conclusion(0.05) == "cannot say"


def test_an_offer_is_seen_though_another_answer_was_given_freely(trees, tmp_path) -> None:
    free = [said(one["id"], one["answer"], offered="elm ash fir") for one in trees.test_set.records]
    partial = [replace(answer, offered=answer.completion) for answer in free]
    found = only(audit_logs(trees, [log_of(*partial), log_of(*free)], epochs="first"))
    assert found.conclusion(0.05) == "cannot say"


def test_who_knows_the_published_of_all_right_answers_that_are_offered_is_found(
    trees, tmp_path
) -> None:
    samples = []
    for number, record in enumerate(trees.test_set.records):
        values = {name: "-1.0" if name == record["answer"] else "-2.0" for name in OFFERED}
        samples.append(chosen_sample(number, record, values))
    found = only(audit_logs(trees, [read_log(lm_eval_samples(tmp_path, samples))]))
    assert found.conclusion(0.05) == "proven"


# --- answers that somebody may have blanked -------------------------------------------------------


@pytest.mark.parametrize("blank", ["", "2 (expected: {answer})"])
def test_hits_alone_prove_nothing_where_misses_may_be_blank(divisors, blank) -> None:
    """A model that always says 2: the log has its hits, or a scorer has added the target."""
    records = []
    for one in divisors.test_set.records:
        text = "2" if one["answer"] == "2" else blank.format(**one)
        records.append(said(one["id"], text))
    found = only(audit_logs(divisors, [log_of(*records)]))
    assert found.admissible == found.hits > 10
    assert found.p < 1e-3
    assert f"{40 - found.hits} name none" in found.reason
    assert found.conclusion(0.05) == "cannot say"


def test_a_few_blanks_do_not_hide_what_a_model_knows(divisors) -> None:
    """Had these been misses, the hits would still be a proof."""
    records = gold_log(divisors)
    for place in range(8):
        records[place] = said(records[place].id, "no idea")
    assert only(audit_logs(divisors, [log_of(*records)])).conclusion(0.05) == "proven"


def test_misses_show_that_nobody_blanked_them(divisors) -> None:
    """The same hits with a few misses among them, and as many blanks as can be."""
    records = gold_log(divisors, 18)
    for one in divisors.test_set.records[18:22]:
        other = "2" if one["answer"] != "2" else "3"
        records.append(said(one["id"], other))
    records += [said(one["id"], "no idea") for one in divisors.test_set.records[22:]]
    assert only(audit_logs(divisors, [log_of(*records)])).conclusion(0.05) == "proven"
