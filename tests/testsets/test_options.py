"""Every scheme of multiple-choice records: what the item is, and the record rearranged."""

import copy
import itertools

import pytest

from contamination.errors import InputError
from contamination.testsets.example_set import ExampleSet, make_test_set, render
from contamination.testsets.options import (
    Item,
    begin_with_labels,
    items_of,
    rearranged,
    template_of_item,
)
from contamination.testsets.sources import available, open_test_set

TEXTS = ["lamp", "river", "stone"]
RECORDS = {
    "choices, index": {"question": "Q?", "choices": TEXTS, "answer": 1, "subject": "s"},
    "choices, letter": {"question": "Q?", "choices": TEXTS, "answer": "B"},
    "choices, text": {"question": "Q?", "choices": TEXTS, "answer": "river"},
    "a file of MMLU": {
        "question": "Q?",
        "choice0": "lamp",
        "choice1": "river",
        "choice2": "stone",
        "answer": "1",
    },
    "ARC": {
        "question": "Q?",
        "choices": {"text": TEXTS, "label": ["1", "2", "3"]},
        "answerKey": "2",
    },
    "OpenBookQA of the hub": {
        "question_stem": "Q?",
        "choices": {"text": TEXTS, "label": ["A", "B", "C"]},
        "answerKey": "B",
    },
    "OpenBookQA": {
        "question": {
            "stem": "Q?",
            "choices": [{"text": t, "label": x} for t, x in zip(TEXTS, "ABC", strict=True)],
        },
        "answerKey": "B",
    },
    "letters": {"input": "Q?", "A": "lamp", "B": "river", "C": "stone", "target": "B"},
    "HellaSwag": {"ctx": "Q?", "endings": TEXTS, "label": "1"},
    "TruthfulQA": {
        "question": "Q?",
        "mc1_targets": {"choices": TEXTS, "labels": [0, 1, 0]},
        "mc2_targets": {"choices": TEXTS, "labels": [1, 1, 0]},
    },
    "MMLU-Pro": {"question": "Q?", "options": TEXTS, "answer": "B", "answer_index": 1},
}
WITHOUT_ANSWER = {
    "PIQA": {"goal": "Q?", "sol1": "lamp", "sol2": "river"},
    "PIQA, hidden": {"goal": "Q?", "sol1": "lamp", "sol2": "river", "label": -1},
    "HellaSwag, hidden": {"ctx": "Q?", "endings": TEXTS, "label": ""},
    "no answer": {"question": "Q?", "choices": TEXTS},
}


def set_of(*records: dict) -> ExampleSet:
    return make_test_set("quiz", [("", record) for record in records], "{{}}", "quiz.jsonl")


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_each_scheme_is_the_same_item(record) -> None:
    assert items_of(set_of(record)) == (Item("Q?", ("lamp", "river", "stone"), 1),)


@pytest.mark.parametrize("record", WITHOUT_ANSWER.values(), ids=WITHOUT_ANSWER)
def test_an_answer_may_be_unknown(record) -> None:
    (item,) = items_of(set_of(record))
    assert item.question == "Q?"
    assert item.answer is None
    moved = rearranged(record, range(len(item.options))[::-1])
    assert items_of(set_of(moved)) == (Item("Q?", item.options[::-1], None),)


@pytest.mark.parametrize("record", [*RECORDS.values(), {**WITHOUT_ANSWER["PIQA"], "label": 0}])
def test_contents_move_labels_stay_and_the_answer_moves_along(record) -> None:
    before = copy.deepcopy(record)
    (item,) = items_of(set_of(record))
    for order in itertools.permutations(range(len(item.options))):
        moved = rearranged(record, order)
        assert items_of(set_of(moved)) == (
            Item("Q?", tuple(item.options[i] for i in order), order.index(item.answer)),
        )
        back = [order.index(i) for i in range(len(order))]
        assert rearranged(moved, back) == before
        assert moved.keys() == before.keys()
    assert record == before


ALL_SCHEMES = RECORDS | WITHOUT_ANSWER


@pytest.mark.parametrize("record", ALL_SCHEMES.values(), ids=ALL_SCHEMES)
def test_each_scheme_has_a_template_that_shows_the_item_as_it_stands(record) -> None:
    (item,) = items_of(set_of(record))
    for order in itertools.permutations(range(len(item.options))):
        moved = rearranged(record, order)
        (text,) = render([("", moved)], template_of_item(record), "quiz")
        assert text.splitlines()[: 1 + len(order)] == ["Q?", *(item.options[i] for i in order)]
        told = item.answer is not None and "mc1_targets" not in record
        assert len(text.splitlines()) == 1 + len(order) + told


def test_what_is_no_part_of_the_item_stays() -> None:
    moved = rearranged(RECORDS["ARC"], [2, 0, 1])
    assert moved["choices"] == {"text": ["stone", "lamp", "river"], "label": ["1", "2", "3"]}
    assert moved["answerKey"] == "3"
    assert rearranged(RECORDS["choices, index"], [1, 0, 2])["subject"] == "s"
    assert rearranged(RECORDS["TruthfulQA"], [1, 0, 2])["mc2_targets"]["labels"] == [1, 1, 0]
    assert rearranged(RECORDS["HellaSwag"], [1, 0, 2])["label"] == "0"  # text stays text
    assert rearranged(RECORDS["choices, text"], [1, 0, 2])["answer"] == "river"


def test_number_of_options_may_differ() -> None:
    record = {"input": "Q?", "A": "one", "B": "two", "C": "", "D": None, "target": "B"}
    five = {"question": "Q?", "choices": [1, 2.5, "x", "y", "z"], "answer": 4}
    items = items_of(set_of(record, five))
    assert [item.options for item in items] == [("one", "two"), ("1", "2.5", "x", "y", "z")]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"text": "Once upon a time"}, "no options found; it has text, and items are written as"),
        ({"question": "Q?", "choices": ["one"], "answer": 0}, "has 1 options: give 2 to 26"),
        ({"question": "Q?", "choices": [], "answer": 0}, "has 0 options: give 2 to 26"),
        ({"question": "Q?", "choices": ["one", " "], "answer": 0}, "option B has no text"),
        (
            {"question": "Q?", "choices": TEXTS, "answer": "D"},
            "answer 'D' is none of its 3 options",
        ),
        ({"question": "Q?", "choices": TEXTS, "answer": 3}, "answer '3' is none of its 3 options"),
        ({"question": "Q?", "choices": TEXTS, "answer": "lake"}, "'lake' is none of its 3 options"),
        (
            {"question": "Q?", "choices": ["2", "1", "0"], "answer": "0"},
            "is the text of option C and the index of option A; write the answer as a letter",
        ),
        (
            {"question": "Q?", "options": TEXTS, "answer": "A", "answer_index": 1},
            "fields 'answer' and 'answer_index' tell different answers",
        ),
        (
            {"question": "Q?", "mc1_targets": {"choices": TEXTS, "labels": [1, 1, 0]}},
            "does not mark one of its 3 options as right",
        ),
        (
            {"question": "Q?", "choices": {"text": TEXTS, "label": ["A", "A", "B"]}},
            "3 options have 2 labels",
        ),
        ({"question": "Q?", "choices": {"label": ["A"]}}, "has no list 'text'"),
        ({"question": "Q?", "choices": [{"text": "x"}, {"label": "B"}]}, "has no 'text'"),
        (
            {"question": "Q?", "choices": ["A. one", "B. two", "C. three"], "answer": 0},
            r"options begin with their labels \('A. one'\)",
        ),
        ({"goal": "Q?", "sol1": "(1) one", "sol2": "(2) two"}, "begin with their labels"),
    ],
)
def test_what_is_no_item_is_one_line_that_names_the_record(record, message) -> None:
    good = RECORDS["choices, index"]
    with pytest.raises(InputError, match=message) as error:
        items_of(set_of(good, record))
    assert str(error.value).startswith("quiz, record 2: ")
    assert "\n" not in str(error.value)


def test_one_item_with_labels_in_its_texts_is_a_slip() -> None:
    slip = {"question": "Q?", "choices": ["A. one", "B. two"], "answer": 0}
    items = items_of(set_of(*[RECORDS["choices, index"]] * 2, slip))
    assert [begin_with_labels(item.options) for item in items] == [False, False, True]


def test_a_set_of_lines_has_no_options() -> None:
    lines = ExampleSet("lines", ("one\n", "two\n"), "line/1", "r")
    with pytest.raises(InputError, match=r"^lines: a set of texts has no options to move"):
        items_of(lines)


def test_an_order_names_every_option_once() -> None:
    for order in ([0, 0, 1], [0, 1], [1, 2, 3]):
        with pytest.raises(InputError, match="is no order of 3 options"):
            rearranged(RECORDS["ARC"], order)


@pytest.mark.parametrize(
    ("name", "options", "answers"),
    [
        ("openbookqa", 4, "ABCD"),
        ("piqa", 2, None),
        ("hellaswag", 4, None),
        ("mmlu_professional_law", 4, "ABCD"),
    ],
)
def test_published_sets_are_read(name, options, answers) -> None:
    if not available(f"canaries/{name}"):
        pytest.skip("CONTAMINATION_DATA names no mirror that has the set")
    test_set = open_test_set(f"canaries/{name}", template="{{}}")
    items = items_of(test_set)
    assert {len(item.options) for item in items} == {options}
    for record, item in zip(test_set.records, items, strict=True):
        key = record.get("answerKey", record.get("target"))
        assert item.answer == (None if answers is None else answers.index(key))
