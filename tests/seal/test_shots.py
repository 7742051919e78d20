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
SHOTS = Shots(TEXTS, IDS, ANSWERS)


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
        ("7: fir", None),  # a number may mean anything
        ("", None),
    ],
)
def test_another_record_in_the_prompt_of_the_first(prompt, shown) -> None:
    assert SHOTS.shown(prompt, 0) == shown


def test_a_text_within_the_own_text_is_not_another_record() -> None:
    assert SHOTS.shown(f"{TEXTS[2]} {TEXTS[4]}", 2) is None
