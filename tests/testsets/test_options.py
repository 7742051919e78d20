"""Layouts of multiple-choice records: what an item is, its record rearranged, what is refused."""

import copy
import itertools
from typing import Any

import pytest

from contamination.errors import InputError
from contamination.testsets.example_set import Declared, ExampleSet
from contamination.testsets.options import Item, begin_with_labels, items_of, names_letter

TEXTS = ["lamp", "river", "stone"]
KEYED = dict(zip("ABC", TEXTS, strict=True))
LABELLED = [{"text": text, "label": label} for label, text in KEYED.items()]
FLAGGED = [{"text": text, "correct": text == "river"} for text in TEXTS]
COP = Declared(answer=("cop",))

# Layouts of the multiple-choice sets that are used most, and what their authors have to declare.
LAYOUTS: dict[str, tuple[dict[str, Any], Declared]] = {
    "MMLU": ({"question": "Q?", "choices": TEXTS, "answer": 1, "subject": "s"}, Declared()),
    "MMLU of Oren, C-Eval": ({"input": "Q?", **KEYED, "target": "B"}, Declared()),
    "MMLU-Pro": (
        {"question_id": 7, "question": "Q?", "options": TEXTS, "answer": "B", "answer_index": 1},
        Declared(),
    ),
    "ARC": (
        {"question": "Q?", "choices": {"text": TEXTS, "label": ["1", "2", "3"]}, "answerKey": "2"},
        Declared(),
    ),
    "CommonsenseQA": (
        {"question": {"stem": "Q?", "choices": LABELLED, "question_concept": "text"}}
        | {"answerKey": "B"},
        Declared(),
    ),
    "OpenBookQA": (
        {"question_stem": "Q?", "choices": {"text": TEXTS, "label": [*"ABC"]}, "answerKey": "B"},
        Declared(),
    ),
    "HellaSwag": (
        {"ctx": "Q?", "endings": TEXTS, "label": "1", "activity_label": "Swimming"},
        Declared(),
    ),
    "WinoGrande": (
        {"sentence": "Q?", "option1": "lamp", "option2": "river", "answer": "2"},
        Declared(),
    ),
    "PIQA": ({"goal": "Q?", "sol1": "lamp", "sol2": "river", "label": 1}, Declared()),
    "SocialIQA": (
        {"context": "text", "question": "Q?", "answerA": "lamp", "answerB": "river"}
        | {"answerC": "stone", "label": "2"},
        Declared(),
    ),
    "MedQA": (
        {"question": "Q?", "options": KEYED, "answer": "river", "answer_idx": "B"},
        Declared(),
    ),
    "MedMCQA": (
        {"question": "Q?", "opa": "lamp", "opb": "river", "opc": "stone", "cop": 1},
        COP,
    ),
    "TruthfulQA, as published": (
        {"question": "Q?", "mc1_targets": {"choices": TEXTS, "labels": [0, 1, 0]}}
        | {"mc2_targets": {"choices": TEXTS, "labels": [1, 1, 0]}},
        Declared(other=("mc2_targets",)),
    ),
    "flags": (
        {"question": "Q?", "choices": FLAGGED},
        Declared(answer=("choices.correct",)),
    ),
    "lists of reasons": (
        {"question": "Q?", "choices": TEXTS, "answer": "b", "reasons": ["x", "y", "z"]},
        Declared(options=("reasons",)),
    ),
}
UNKNOWN = {
    "PIQA, hidden": {"goal": "Q?", "sol1": "lamp", "sol2": "river", "label": -1},
    "no answer": {"question": "Q?", "choices": TEXTS},
}
NOTHING = Declared()


def set_of(*records: dict, declared: Declared = NOTHING) -> ExampleSet:
    return ExampleSet("quiz", ("",) * len(records), "", "", records, declared)


def read(record: dict, declared: Declared = NOTHING, shown: Any = None) -> Item:
    return items_of(set_of(record, declared=declared), shown)[0]


@pytest.mark.parametrize("name", LAYOUTS)
def test_each_layout_is_the_item_and_all_that_follows_the_options_moves_along(name) -> None:
    record, declared = LAYOUTS[name]
    before, item = copy.deepcopy(record), read(record, declared)
    assert item == Item("Q?", tuple(TEXTS[: len(item.options)]), 1)
    for order in itertools.permutations(range(len(item.options))):
        moved = item.rearranged(order)
        again = read(moved, declared)
        assert again == Item("Q?", tuple(item.options[i] for i in order), order.index(1))
        assert again.rearranged([order.index(i) for i in range(len(order))]) == before
        assert moved.keys() == before.keys()
    assert record == before


@pytest.mark.parametrize("name", LAYOUTS)
def test_what_is_not_declared_is_refused_with_the_declaration_to_give(name) -> None:
    record, declared = LAYOUTS[name]
    if declared == NOTHING:
        return
    with pytest.raises(InputError) as error:
        read(record)
    given = {*declared.answer, *declared.options, *declared.other}
    assert "--" in str(error.value)
    assert any(each.partition(".")[0] in str(error.value) for each in given), error.value


@pytest.mark.parametrize("record", UNKNOWN.values(), ids=UNKNOWN)
def test_an_answer_may_be_unknown(record) -> None:
    item = read(record)
    assert (item.question, item.answer) == ("Q?", None)
    moved = item.rearranged(range(len(item.options))[::-1])
    assert read(moved) == Item("Q?", item.options[::-1], None)


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


def accepted(record: dict) -> tuple[str, str | None] | None:
    """Which option is right, as text; None if the record is refused."""
    try:
        item = read(record)
    except InputError:
        return None
    return "read", None if item.answer is None else item.options[item.answer]


@pytest.mark.parametrize("labels", LABELS)
def test_every_shape_of_answer_is_read_alike_or_refused_in_all_arrangements(labels) -> None:
    """Otherwise a key is drawn again until it is accepted, and its draws are uniform no more."""
    read_ones = 0
    for options, answer in itertools.product(OPTIONS, ANSWERS):
        choices = options if labels is None else {"text": options, "label": labels}
        record = {"question": "Q?", "choices": choices, "answer": answer}
        found = accepted(record)
        if found is None:
            continue
        read_ones += 1
        item = read(record)
        for order in itertools.permutations(range(3)):
            assert accepted(item.rearranged(order)) == found, record
    assert read_ones > 50


@pytest.mark.parametrize("answer", ["1", "0"])
def test_a_text_that_could_be_an_index_is_refused_quoting_what_was_written(answer) -> None:
    record = {"question": "Q?", "choices": ["0", "1", "2", "3"], "answer": answer}
    with pytest.raises(InputError, match=f"answer '{answer}' could be an option's text, a label"):
        read(record)
    assert read(record | {"answer": int(answer)}).answer == int(answer)
    assert read(record | {"answer": "C"}).answer == 2


GOLD = {
    "label": 1,
    "cop": 2,
    "correct_option": "(B)",
    "correct": [False, True, False],
    "reasons": ["x", "y", "z"],
    "why": {"A": "no", "B": "yes", "C": "no"},
}


@pytest.mark.parametrize("field", GOLD)
def test_whatever_looks_as_if_it_followed_the_options_has_to_be_declared(field) -> None:
    records = [{"question": f"Q{i}?", "choices": TEXTS, field: GOLD[field]} for i in range(12)]
    with pytest.raises(InputError, match=rf"{field}.*; give --(answer|options) {field}") as error:
        items_of(set_of(*records), None)
    assert "\n" not in str(error.value)
    declared = Declared(other=(field,))
    assert items_of(set_of(*records, declared=declared), None)[0].answer is None
    assert items_of(set_of(*records), ("question", "choices"))[0].answer is None  # it is not shown


def test_a_slip_of_an_author_does_not_hide_a_field() -> None:
    records = [
        {"question": f"Q{i}?", "choices": TEXTS, "gold": "ABC"[i % 3] if i > 4 else "?"}
        for i in range(12)
    ]
    with pytest.raises(InputError, match="record 6: 'gold' looks like the letter of an option"):
        items_of(set_of(*records), None)


@pytest.mark.parametrize(
    "fields",
    [
        {"year": 1999},
        {"tags": ["x", "y"]},
        {"source": "A level"},
    ],
)
def test_fields_that_say_nothing_of_options_need_no_declaration(fields) -> None:
    read({"question": "Q?", "choices": TEXTS, "answer": "A", **fields})


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Option B is right, as rivers flow.", True),
        ("The answer is (B).", True),
        ("Answer: 2", True),
        ("Rivers flow. A lamp does not.", False),
        ("Vitamin C and option Z", False),
    ],
)
def test_a_text_that_names_a_letter_is_found(text, named) -> None:
    assert names_letter(text, 3) == named
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
    ({"question": {"choices": LABELLED}, "answerKey": "A"}, "no question found"),
    ({"question": "Q?", "choices": {"text": TEXTS, "label": ["A", "A", "B"]}}, "have 2 labels"),
    ({"question": "Q?", "choices": [{"text": "x"}, {"label": "B"}]}, "has no 'text'"),
]


@pytest.mark.parametrize(("record", "message"), WRONG)
def test_what_is_no_item_is_one_line_that_names_the_record(record, message) -> None:
    with pytest.raises(InputError) as error:
        items_of(set_of(LAYOUTS["MMLU"][0], record))
    assert str(error.value).startswith("quiz, record 2: ")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


SPELLINGS = ["({}) x", "{}. x", "{}) x", "{}: x", "[{}] x", "**{}** x", "{} - x", "{}.x"]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_labels_in_texts_are_found_in_any_spelling_and_order(spelling) -> None:
    for order in itertools.permutations("ABCD"):
        texts = [spelling.format(letter) + str(i) for i, letter in enumerate(order)]
        assert begin_with_labels(texts)
    assert begin_with_labels([spelling.format(letter) + letter for letter in "ABC"] + ["none"])
    labelled = {"question": "Q?", "choices": [spelling.format(x) for x in "AB"], "answer": 0}
    with pytest.raises(InputError, match="options begin with their labels"):
        items_of(set_of(labelled))
    slip = items_of(set_of(LAYOUTS["MMLU"][0], LAYOUTS["MMLU"][0], labelled))
    assert [begin_with_labels(item.options) for item in slip] == [False, False, True]


def test_options_whose_fields_are_named_after_the_answer_cannot_move() -> None:
    sciq = {"question": "Q?", "correct_answer": "river", "distractor1": "lamp", "support": "text"}
    with pytest.raises(InputError, match="nothing says which option is right but the name of its"):
        read(sciq, Declared(options=("correct_answer", "distractor1")))


def test_a_set_of_lines_has_no_options_and_an_order_names_every_option_once() -> None:
    with pytest.raises(InputError, match=r"^lines: a set of texts has no options to move"):
        items_of(ExampleSet("lines", ("one\n", "two\n"), "line/1", "r"))
    for order in ([0, 0, 1], [0, 1], [1, 2, 3]):
        with pytest.raises(InputError, match="is no order of 3 options"):
            read(LAYOUTS["ARC"][0]).rearranged(order)
    with pytest.raises(InputError, match="without its record"):
        Item("Q?", ("x", "y"), 0).rearranged([1, 0])
