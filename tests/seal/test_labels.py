"""The labels of options, as a prompt shows them, and answers that name options by them."""

import random
from pathlib import Path

import pytest

from contamination.seal import files
from contamination.seal.files import SealedSet, seal_file, verify
from contamination.seal.labels import shown_labels
from contamination.seal.logs import audit_logs
from contamination.testsets.logs.read import read_log
from fakes.answer_logs import generated_sample, lm_eval_samples
from fakes.made_up_registry import jsonl
from seal.test_logs import ITEMS, QUIZ

OPTIONS = ["ash", "mountain ash", "elm"]


@pytest.mark.parametrize(
    ("prompt", "labels"),
    [
        ("Which?\nA. ash\nB. mountain ash\nC. elm", {"A": "ash", "B": "mountain ash", "C": "elm"}),
        ("A) elm B) ash C) mountain ash", {"A": "elm", "B": "ash", "C": "mountain ash"}),
        ("(1) elm\n(2) mountain ash\n(3) ash", {"1": "elm", "2": "mountain ash", "3": "ash"}),
        ("**a.** elm\n**b.** ash\n**c.** mountain ash", {"a": "elm", "b": "ash", "c": OPTIONS[1]}),
        # The last list counts, and what follows it does not.
        (
            "A. ash\nB. mountain ash\nC. elm\n\nA. elm\nB. ash\nC. mountain ash\nHint: an elm.",
            {"A": "elm", "B": "ash", "C": "mountain ash"},
        ),
        ("Ash, mountain ash or elm?\nash\nmountain ash\nelm", None),  # as published
        ("Which?\nelm\nash\nmountain ash", {}),
        ("A. ash\nA. mountain ash\nA. elm", None),  # labels that tell nothing
        ("A. ash\nB. elm", None),
        ("ashes, mountain ash, elm", None),
        ("", None),
    ],
)
def test_labels_are_those_before_the_options(prompt, labels) -> None:
    assert shown_labels(prompt, OPTIONS) == labels


def test_options_within_numbers_and_words_do_not_count() -> None:
    assert shown_labels("Which of 12?\n1. 6\n2. 2\n3. 3", ["2", "3", "6"]) == {
        "1": "6",
        "2": "2",
        "3": "3",
    }


@pytest.fixture(scope="module")
def quiz(tmp_path_factory) -> SealedSet:
    folder = tmp_path_factory.mktemp("quiz")
    (folder / "quiz.jsonl").write_bytes(jsonl(ITEMS))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files.secrets, "token_bytes", bytes)  # a key that never changes
        made = seal_file(folder / "quiz.jsonl", folder / "out", **QUIZ)
    return verify(None, made.seal, made.key)


def shuffled(folder: Path, records, said_by) -> Path:
    """Write a log of lm-eval whose task shuffles the options, and shows them in lines."""
    rows = []
    for number, record in enumerate(records):
        options = random.Random(number).sample(record["choices"], 4)
        right = options.index(record["choices"]["ABCD".index(record["answer"])])
        shown, text = said_by(options, right)
        sample = generated_sample(number, record, text)
        sample["arguments"]["gen_args_0"]["arg_0"] = f"{record['question']}\n{shown}\nAnswer:"
        rows.append(sample)
    return lm_eval_samples(folder, rows)


def by_letter(options: list[str], right: int) -> tuple[str, str]:
    lines = [f"{letter}. {option}" for letter, option in zip("ABCD", options, strict=True)]
    return "\n".join(lines), "ABCD"[right]


def by_number(options: list[str], right: int) -> tuple[str, str]:
    lines = [f"{number}) {option}" for number, option in enumerate(options, start=1)]
    return "\n".join(lines), f"The answer is {right + 1}."


def without_labels(options: list[str], right: int) -> tuple[str, str]:
    return "\n".join(options), "ABCD"[right]


@pytest.mark.parametrize(
    ("said_by", "hits", "conclusion"),
    [
        (by_letter, 24, "proven"),
        (by_number, 24, "proven"),
        (without_labels, 2, "cannot say"),  # of the two that the task leaves as they are
    ],
)
def test_a_reader_is_found_where_a_task_shuffles_the_options(
    quiz, tmp_path, said_by, hits, conclusion
) -> None:
    log = read_log(shuffled(tmp_path, quiz.test_set.records, said_by))
    (found,) = audit_logs(quiz, [log])
    assert found.hits == hits
    assert found.conclusion(0.05) == conclusion
