"""The right answer to which a text commits: by the text alone, and alike for all answers."""

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contamination.seal.answers import MOST_CHARACTERS, committed, named, said

NUMBERS = [{"2"}, {"3"}, {"6"}]
TREES = [{"ash 5", "b"}, {"elm 5", "d"}, {"silver fir"}]
LONG = "Let me see. " * 30


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2", "2"),
        (" **3**.\n", "3"),
        ("It is 2.", "2"),
        ("A divisor is\n6", "6"),
        ("Answer: 3", "3"),
        ("Let us divide by 2, and 3, and 6.\nANSWER: 3", "3"),
        (f"{LONG}The answer is 3.", "3"),
        (f"{LONG}\n#### 6", "6"),
        (f"{LONG} so \\boxed{{2}}", "2"),
        ("The answer is 2. So the final answer is: 2", "2"),
        ("<think>2 or 3? The answer is 2.</think>3", "3"),
        ("2 or 3? The answer is 2.</think>\n\n3", "3"),
        # Below what declares it.
        ("The correct answer is:\n\n**3**", "3"),
        (f"{LONG}\n\nThe correct answer is:\n\n**3**\n\nFor 12 is 3 times 4.", "3"),
        (f"{LONG}The final answer is:\n\\[\n\\boxed{{3}}\n\\]", "3"),
        (f"{LONG}\n\nAnswer:\n3", "3"),
        (f"{LONG}\n\n## Final Answer\n\n3\n", "3"),
        ("Answer:\nLet me divide by 2.\nThe answer is 3.", "3"),
        (f"{LONG}**Answer**\n3", None),  # no heading
        ("The answer is:\n2\n3\n6", None),
        ("Answer:\n2\n3\n6", None),
        # In marks.
        (f"{LONG}so $\\boxed{{\\text{{3}}}}$.", "3"),
        (f"{LONG}<answer>\n3\n</answer>", "3"),
        ("[THINK]2, or the answer is 6[/THINK]3", "3"),
        ("<|channel|>analysis<|message|>2 or 6<|end|><|channel|>final<|message|>3", "3"),
        ("<|channel|>analysis<|message|>The answer is 2", None),
        ("答案是3。", "3"),
        ("答案是3和2", None),
        # None, or more than one.
        ("", None),
        ("3. The answer is:", "3"),
        ("7", None),
        ("The divisors include 2 and 3 and 6.", None),
        ("2\n3\n6", None),
        ("2, 4 and 8", None),
        ("It is 2 or 5.", None),
        ("not 2", None),
        ("It isn't 3.", None),
        ("20", None),
        ("2.5", None),
        ("2,000", None),
        ("The answer is 2. No: the answer is 3.", None),
        ("ANSWER: 2\nANSWER: 3", None),
        ("ANSWER: 2\nANSWER: 7", None),
        ("The answer is not 2.", None),
        ("<think>The answer is 2.", None),
        (f"{LONG}2", None),
    ],
)
def test_numbers(text, wanted) -> None:
    pick = named(text, NUMBERS)
    assert wanted == (None if pick is None else "236"[pick])


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("ash 5", 0),
        ("I think it is the Ash 5", 0),
        ("B", 0),
        ("(B) ash 5", 0),
        ("ANSWER: D", 1),
        ("I say D.", 1),
        ("A tree: D", 1),
        ("**Answer:** B", 0),
        ("a silver fir, which is green", 2),
        ("SILVER FIR", 2),
        ("a silver\nfir", 2),
        ("ash 5 or elm 5", None),
        ("silver fir and oak", None),
        ("oak or silver fir", None),
        ("oak, silver fir, yew", None),
        ("B or C", None),
        ("D. ash 5", None),
        ("a b c d", None),
        ("neither B nor D", None),
        ("silver firs", None),
    ],
)
def test_words_and_letters(text, wanted) -> None:
    assert named(text, TREES) == wanted


FIRS = [{"冷杉"}, {"榆树"}, {"b"}]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("是冷杉。", 0),
        ("「冷杉」", 0),
        ("答案是B。", 2),
        ("冷杉和榆树", None),
        ("石或冷杉", None),
        ("不是冷杉", None),
    ],
)
def test_a_writing_without_blanks(text, wanted) -> None:
    """Of "It is a fir.", '"fir"', "The answer is B.", "fir and elm", "stone or fir", "no fir"."""
    assert named(text, FIRS) == wanted


LINES = ["- - - \n", "***\n", "\n", "| | |\n", "the\n", "answer\n", "the answer is\n***\n"]
OPENED = ["\\boxed{", "\\boxed{a{b}", "<answer>", "<think>", "<|channel|>final", "answer::", ". "]


@pytest.mark.parametrize("loop", LINES + OPENED)
def test_a_model_that_repeats_itself_is_read_in_no_time(loop) -> None:
    """Twice as long takes twice as long; if it took four times, these would take minutes."""
    started = time.process_time()
    assert named(loop * (60_000 // len(loop)), NUMBERS) is None
    assert time.process_time() - started < 5


def test_a_whole_text_counts_however_long_it_is() -> None:
    long = "a word " * MOST_CHARACTERS  # plain: a count
    assert named(long, [{said(long)}, {"2"}]) == 0


WORDS = "2|3|6|12|and|or|,|.|\n|not|B|(D)|I|A|ash 5|elm 5|silver fir"
MARKS = "Answer:|the answer is|####|<think>|</think>|\\boxed{2}"
PARTS = st.sampled_from(f"{WORDS}|{MARKS}".split("|"))
TEXTS = st.lists(PARTS, max_size=8).map(" ".join) | st.text(max_size=20)


@given(text=TEXTS, seed=st.integers(0, 5), names=st.sampled_from([NUMBERS, TREES]))
def test_all_right_answers_are_treated_alike(text, seed, names) -> None:
    """So where the list is given, a text alone decides: the law of hits needs nothing else."""
    order = random.Random(seed).sample(range(3), 3)
    moved = named(text, [names[pick] for pick in order])
    pick = named(text, names)
    assert pick == (None if moved is None else order[moved])


FILLERS = st.lists(st.sampled_from(["The", "divisors", "include", "I", "A", "are", ":"]))


@given(filler=FILLERS.map(" ".join), joint=st.sampled_from([" and ", ", ", " or ", "\n", " / "]))
def test_who_names_all_right_answers_names_none(filler, joint) -> None:
    assert named(f"{filler} {joint.join('236')}", NUMBERS) is None
    assert named(f"{filler} {joint.join(['ash 5', 'elm 5', 'silver fir'])}", TREES) is None


@given(st.text(max_size=300))
def test_any_text_is_read(text) -> None:
    assert all("\n" not in each for each in committed(text))
