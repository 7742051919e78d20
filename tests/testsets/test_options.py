"""Layouts of multiple-choice records: what an item is, its record rearranged, what is refused."""

import copy
import itertools
import re
from typing import Any

import pytest

from contamination.errors import InputError
from contamination.testsets.example_set import Declared, ExampleSet
from contamination.testsets.option_texts import begin_with_labels, names_letter
from contamination.testsets.options import Item, items_of
from fakes.made_up_registry import refusal

TEXTS = ["lamp", "river", "stone"]
KEYED = dict(zip("ABC", TEXTS, strict=True))
LABELLED = [{"text": text, "label": label} for label, text in KEYED.items()]
FLAGGED = [{"text": text, "correct": text == "river"} for text in TEXTS]
COP = Declared(answer=("cop",))

QUESTION = {"question": "Q?"}
# Layouts of the multiple-choice sets that are used most, and what their authors have to declare.
PLAIN: dict[str, dict[str, Any]] = {
    "MMLU": {**QUESTION, "choices": TEXTS, "answer": 1, "subject": "s"},
    "MMLU of Oren, C-Eval": {"input": "Q?", **KEYED, "target": "B"},
    "MMLU-Pro": {"question_id": 7, **QUESTION, "options": TEXTS, "answer": "B", "answer_index": 1},
    "ARC": {**QUESTION, "choices": {"text": TEXTS, "label": [*"123"]}, "answerKey": "2"},
    "CommonsenseQA": {
        "question": {"stem": "Q?", "choices": LABELLED, "question_concept": "text"},
        "answerKey": "B",
    },
    "OpenBookQA": {
        "question_stem": "Q?",
        "choices": {"text": TEXTS, "label": [*"ABC"]},
        "answerKey": "B",
    },
    "HellaSwag": {"ctx": "Q?", "endings": TEXTS, "label": "1", "activity_label": "Swimming"},
    "WinoGrande": {"sentence": "Q?", "option1": "lamp", "option2": "river", "answer": "2"},
    "PIQA": {"goal": "Q?", "sol1": "lamp", "sol2": "river", "label": 1},
    "SocialIQA": {"context": "text", **QUESTION, "label": "2"}
    | {"answerA": "lamp", "answerB": "river", "answerC": "stone"},
    "MedQA": {**QUESTION, "options": KEYED, "answer": "river", "answer_idx": "B"},
    "SWAG": {"startphrase": "Q?", "ending0": "lamp", "ending1": "river", "label": 1},
    "COPA": {**QUESTION, "choice1": "lamp", "choice2": "river", "label": 1},
    "CosmosQA": {**QUESTION, "answer0": "lamp", "answer1": "river", "label": "1"},
    "RACE": {"article": "text", **QUESTION, "options": TEXTS, "answer": "B"},
    "no answer": {**QUESTION, "choices": TEXTS},
    "an answer that is not known": {"goal": "Q?", "sol1": "lamp", "sol2": "river", "label": -1},
}
LAYOUTS: dict[str, tuple[dict[str, Any], Declared]] = {
    **{name: (record, Declared()) for name, record in PLAIN.items()},
    "LogiQA": ({"query": "Q?", "options": TEXTS, "cop": 1}, COP),
    "MedMCQA": ({**QUESTION, "opa": "lamp", "opb": "river", "opc": "stone", "cop": 1}, COP),
    "TruthfulQA, as published": (
        {**QUESTION, "mc1_targets": {"choices": TEXTS, "labels": [0, 1, 0]}}
        | {"mc2_targets": {"choices": TEXTS, "labels": [1, 1, 0]}},
        Declared(other=("mc2_targets",)),
    ),
    "flags": ({**QUESTION, "choices": FLAGGED}, Declared(answer=("choices.correct",))),
    "lists of reasons": (
        {**QUESTION, "choices": TEXTS, "answer": "b", "reasons": ["x", "y", "z"]},
        Declared(options=("reasons",)),
    ),
}
NOTHING = Declared()


def set_of(*records: dict, declared: Declared = NOTHING) -> ExampleSet:
    return ExampleSet("quiz", ("",) * len(records), "", "", records, declared)


def read(record: dict, declared: Declared = NOTHING, shown: Any = None) -> Item:
    return items_of(set_of(record, declared=declared), shown)[0]


@pytest.mark.parametrize("name", LAYOUTS)
def test_each_layout_is_the_item_and_all_that_follows_the_options_moves_along(name) -> None:
    record, declared = LAYOUTS[name]
    before = copy.deepcopy(record)
    item = read(record, declared)
    known = "answer" not in name
    assert item == Item("Q?", tuple(TEXTS[: len(item.options)]), 1 if known else None)
    for order in itertools.permutations(range(len(item.options))):
        moved = item.rearranged(order)
        again = read(moved, declared)
        right = order.index(1) if known else None
        assert again == Item("Q?", tuple(item.options[i] for i in order), right)
        assert again.rearranged([order.index(i) for i in range(len(order))]) == before
        assert moved.keys() == before.keys()
    assert record == before
    if declared != NOTHING:
        given = "|".join((*declared.answer, *declared.options, *declared.other))
        with pytest.raises(InputError, match=rf"({given.replace('.correct', '')})"):
            read(record)


OPTIONS = [  # what looks like a label, an index, a number or a text
    TEXTS,
    ["0", "1", "2"],
    ["1", "2", "3"],
    ["A", "B", "AB"],
    ["a", "x", "y"],
    [0, 1, 2],
    [7, 8, 9],
    ["-1", "10", "C"],
    ["lamp", "B", "2"],
]
ANSWERS = ["A", "B", "c", "AB", "lamp", "0", "1", "2", "3", "7", "-1", "10", 0, 1, 2, 3, 7, -1]
ANSWERS += [None, "", 1.0, True, "x", "D", "2.0", " B "]
LABELS = [None, ["A", "B", "C"], ["1", "2", "3"], ["a", "b", "c"], [1, 2, 3], ["x", "y", "z"]]


@pytest.mark.parametrize("labels", LABELS)
def test_every_shape_of_answer_is_read_alike_or_refused_in_all_arrangements(labels) -> None:
    """Otherwise a key is drawn again until it is accepted, and its draws are uniform no more."""
    read_ones = 0
    for options, answer in itertools.product(OPTIONS, ANSWERS):
        choices = options if labels is None else {"text": options, "label": labels}
        record = {"question": "Q?", "choices": choices, "answer": answer}
        try:
            item = read(record)
        except InputError:
            continue
        read_ones += 1
        for order in itertools.permutations(range(3)):
            moved = read(item.rearranged(order))  # refused in none of them
            right = None if item.answer is None else order.index(item.answer)
            assert moved.options == tuple(item.options[i] for i in order)
            assert moved.answer == right
    assert read_ones > 50


@pytest.mark.parametrize(("usual", "right"), [("B", "D"), ("stone", "B"), (1, None), ("1", None)])
def test_an_answer_that_could_be_read_in_two_ways_is_read_as_all_others_are(usual, right) -> None:
    """MMLU has options that are letters, and every answer of it is a letter."""
    plain = {"question": "Q?", "choices": ["lamp", "stone", "river"], "answer": usual}
    for order in itertools.permutations(["B", "D", "x"]):
        records = [plain, {**plain, "choices": list(order), "answer": "B"}, plain]
        if right is None:
            with pytest.raises(InputError, match="record 2: answer 'B' could be"):
                items_of(set_of(*records))
            continue
        found = items_of(set_of(*records))[1]
        assert found.options[found.answer] == (order[1] if right == "D" else "B")
        with pytest.raises(InputError, match="record 2: answer 'B' could be"):
            items_of(set_of(*records), None)  # as sealing reads them


GOLD = {
    "label": 1,
    "cop": 2,
    "correct_option": "(B)",
    "key": "AC",
    "mark": "010",
    "gold": "option_2",
    "nth": "the second",
    "given": "B. river",
    "golds": [0, 2],
    "joined": "x|y|z",
    "by_index": {"0": "no", "1": "yes", "2": "no"},
    "correct": [False, True, False],
    "reasons": ["x", "y", "z"],
    "why": {"A": "no", "B": "yes", "C": "no"},
    "id": "B",
    "idx": 1,  # different numbers would be those of records
}


@pytest.mark.parametrize("field", GOLD)
def test_whatever_looks_as_if_it_followed_the_options_has_to_be_declared(field) -> None:
    records = [{"question": f"Q{i}?", "choices": TEXTS, field: GOLD[field]} for i in range(12)]
    told = refusal(items_of, set_of(*records), None)
    assert re.search(rf"{field}.*; give (answer|options)={field}", told)
    declared = Declared(other=(field,))
    assert items_of(set_of(*records, declared=declared), None)[0].answer is None
    assert items_of(set_of(*records), ("question", "choices"))[0].answer is None  # it is not shown


def test_half_of_the_records_decide_what_has_to_be_declared() -> None:
    """A slip of an author does not hide a field, and what says nothing needs no declaration."""
    other = {"year": 1999, "tags": ["x", "y"], "source": "A level"}
    golds = ["?"] * 5 + [*"CABCABC"]
    records = [
        {"question": f"{i}?", "choices": TEXTS, "gold": g, "id": i} | other
        for i, g in enumerate(golds)
    ]
    with pytest.raises(InputError, match="record 6: 'gold' looks like names of options"):
        items_of(set_of(*records), None)
    items_of(set_of(*records, declared=Declared(other=("gold",))), None)


def test_a_text_that_names_a_letter_is_found() -> None:
    for text, named in {
        "Option B is right, as rivers flow.": True,
        "Answer: 2, since rivers flow": True,
        "So the answer: b).": True,
        "Hence **B**, as (b) says.": True,
        "The second option is right.": True,
        "Rivers flow. A lamp does not.": False,
        "Vitamin C and option Z": False,
    }.items():
        assert names_letter(text, 3) == named, text
        record = {"question": "Q?", "choices": TEXTS, "answer": "B", "explanation": text}
        assert read(record).lettered == named
        assert not read(record, shown=("question", "choices")).lettered


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"text": "Once upon a time"}, "no options found; it has text"),
    ({"question": "Q?", "choices": ["one", " "], "answer": 0}, "option B has no text"),
    ({"question": "Q?", "choices": TEXTS, "answer": "D"}, "answer 'D' is none of its 3 options"),
    ({"question": "Q?", "choices": TEXTS, "answer": True}, "answer 'True' is none of its 3"),
    (
        {"question": "Q?", "options": TEXTS, "answer": "A", "answer_index": 1},
        "fields 'answer' and 'answer_index' name different answers",
    ),
    (
        {"question": "Q?", "mc1_targets": {"choices": TEXTS, "labels": [1, 1, 0]}},
        "does not mark one of its 3 options as right",
    ),
    ({"question": {"choices": LABELLED}, "answerKey": "A"}, "but no question"),
    ({"question": "Q?", "choices": {"text": TEXTS, "label": ["A", "A", "B"]}}, "have the labels"),
    ({"question": "Q?", "choices": [{"text": "x"}, {"label": "B"}]}, "an option is "),
    ({"question": "Q?", "choices": ["x", None]}, "an option is 'None'"),
]


@pytest.mark.parametrize(("record", "message"), WRONG)
def test_what_is_no_item_is_one_line_that_names_the_record(record, message) -> None:
    told = refusal(items_of, set_of(LAYOUTS["MMLU"][0], record))
    assert told.startswith("quiz, record 2: ") and message in told


SPELLINGS = ["({}) x", "{}. x", "{}) x", "{}: x", "[{}] x", "**{}** x", "{} - x", "{}.x"]
SPELLINGS += ["<{}> x", "{}\tash", "{} ash", "{}、x", "Option {}: x"]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_labels_in_texts_are_found_in_any_spelling_and_order(spelling) -> None:
    for order in itertools.permutations("ABCD"):
        texts = [spelling.format(letter) + str(i) for i, letter in enumerate(order)]
        assert begin_with_labels(texts)
    assert begin_with_labels([spelling.format(letter) + letter for letter in "ABC"] + ["none"])
    assert begin_with_labels([spelling.format(x) for x in ("I", "II", "III", "IV")])
    labelled = {"question": "Q?", "choices": [spelling.format(x) for x in "AB"], "answer": 0}
    with pytest.raises(InputError, match="options begin with their labels"):
        items_of(set_of(labelled))
    slip = items_of(set_of(LAYOUTS["MMLU"][0], LAYOUTS["MMLU"][0], labelled))
    assert [begin_with_labels(item.options) for item in slip] == [False, False, True]


def test_what_has_no_options_that_can_move() -> None:
    with pytest.raises(InputError, match=r"^lines: a set of texts has no options to move"):
        items_of(ExampleSet("lines", ("one\n", "two\n"), "line/1", "r"))
    for order in ([0, 0, 1], [0, 1], [1, 2, 3]):
        with pytest.raises(InputError, match="is no order of 3 options"):
            read(LAYOUTS["ARC"][0]).rearranged(order)
    sciq = {"question": "Q?", "correct_answer": "river", "distractor1": "lamp", "support": "text"}
    with pytest.raises(InputError, match="nothing says which option is right but the name of its"):
        read(sciq, Declared(options=("correct_answer", "distractor1")))
