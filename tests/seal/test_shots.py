"""Prompts that show other records of a set are found, whoever shows them and how."""

import pytest

from contamination.seal.shots import Shots

TEXTS = [
    "Which tree of group 1 is tall?",
    "Which tree of group 12 is tall?",
    "Which tree of group 12 is tall? And which is small?",
    "问题:最高的树?",
    "Which tree?",
]
IDS = ["r1", "r2", "7", "10004", ""]
ANSWERS = [["ash", "elm"], ["oak", "b"], ["fir"], ["yew"], ["2"]]
SHOTS = Shots([[text] for text in TEXTS], IDS, ANSWERS)


@pytest.mark.parametrize(
    ("prompt", "shown"),
    [
        (TEXTS[0], None),
        ("Which tree of group 1\n  IS tall?", None),
        (f"{TEXTS[1]} ash\n{TEXTS[0]}", 1),
        (f"Q:{TEXTS[1]}\\nA: ash\\nQ:{TEXTS[0]}\\nA:", 1),
        (f"前{TEXTS[3]}后", 3),
        ("r2: oak. r1:", 1),
        ("r2 (answer: oak), r1", 1),
        ("r2 B", 1),
        ("10004 = yew", 3),
        ("r1: ash", None),
        ("r2: which one?", None),
        ("r2 has no answer that we know of, oak", None),
        ("7: fir", None),  # a number may mean anything, but here:
        ("id 7: fir", 2),
        ('{"id": 7, "answer": "fir"}', 2),
        ("Question 7: fir", None),  # a prompt may count what it asks
        ("id 7: which one?", None),
        ("question 1 of 7: fir", None),
        ("", None),
    ],
)
def test_another_record_in_the_prompt_of_the_first(prompt, shown) -> None:
    assert SHOTS.shown(prompt, 0) == shown


def test_a_text_within_the_own_text_is_not_another_record() -> None:
    assert SHOTS.shown(f"{TEXTS[2]} {TEXTS[4]}", 2) is None


NUMBERED = Shots(
    [[f"Which tree of group {number} is tall?"] for number in range(60)],
    [str(number) for number in range(60)],
    [["ash", "elm"][number % 2 :] for number in range(60)],
)


@pytest.mark.parametrize(
    ("prompt", "shown"),
    [
        ("17: elm\n18: ash\n", 17),
        ("17\telm\\n18\tash", 17),
        ("17: elm", None),  # one line may be chance
        ("17: elm\n17: elm", None),
        ("17: elm grows\n18: ash grows", None),
        ("17: oak\n18: oak", None),
        ("Question 17\nAnswer: elm", 17),
        ("1. elm\n2. ash\n3. elm\n4. ash", None),  # options
        ("0: ash\n17: elm", None),  # of which one is its own
        ("There are 17 elms and 18 ashes.", None),
    ],
)
def test_short_numbers_count_in_lines_of_number_and_answer(prompt, shown) -> None:
    assert NUMBERED.shown(prompt, 0) == shown


LONG = "Think of the number that follows, and write down one divisor of it, " * 3
PASSAGE = "The farm lies on a hill, and many ashes and elms and firs grow on it. " * 3
LATE = [[f"{LONG}{number}."] for number in range(12)]
GROVES = [[PASSAGE, f"Name a tree of row {number}."] for number in range(12)]
ALIKE = [["Is it a tree?", f"It has {number} leaves"] for number in range(12)]


@pytest.mark.parametrize(
    ("texts", "prompt", "shown"),
    [
        (LATE, f"{LONG}7. {LONG}5.", 7),
        (LATE, f"{LONG}5.", None),
        (GROVES, f"{PASSAGE} Name a tree of row 7. Name a tree of row 5.", 7),
        (GROVES, f"{PASSAGE} Name a tree of row 5.", None),
        (ALIKE, "Is it a tree? It has 7 leaves. Is it a tree? It has 5 leaves.", 7),
        (ALIKE, "It has 7 leaves.", None),  # without its question
        ([["Is it a tree?"]] * 12, "Is it a tree? Is it a tree?", None),  # nothing tells them apart
    ],
)
def test_a_record_is_shown_where_all_is_that_tells_it_from_others(texts, prompt, shown) -> None:
    shots = Shots(texts, [""] * 12, [[]] * 12)
    assert shots.shown(prompt, 5) == shown


@pytest.mark.parametrize("texts", [LATE, GROVES, ALIKE])
def test_a_record_is_in_its_own_text_and_in_no_other(texts) -> None:
    shots = Shots(texts, [""] * 12, [[]] * 12)
    for place in (0, 5, 11):
        within = [other for other in range(12) if shots.is_in(" ".join(texts[other]), place)]
        assert within == [place]
