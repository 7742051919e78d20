"""The definitions of the scores of Fu's A4, A5 and A6: by hand, and against independent counts."""

from functools import cache
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contamination.errors import InputError
from contamination.membership import choice, cloze, completion, variation
from contamination.testsets.options import Item

WORDS = st.lists(st.sampled_from("abc"), max_size=6)
TEXTS = st.lists(st.sampled_from(["a", "bc", "def", "ghij"]), min_size=2, max_size=9).map(" ".join)


# --- A4: completion -------------------------------------------------------------------------------


@given(text=TEXTS, most=st.integers(1, 9))
def test_prefix_and_suffix_are_the_beginning_of_the_text(text, most):
    halves = completion.cut_in_half(text, most)
    count = len(text.split())
    assert text.startswith(halves.prefix + halves.suffix)
    assert len(halves.prefix.split()) == count // 2
    assert len(halves.suffix.split()) == min(most, count - count // 2)


@pytest.mark.parametrize(
    ("written", "verbatim", "recall"),
    [
        (" the red stone, and more", 1, 1),  # what follows the suffix does not count
        ("the  red\nstone,", 1, 1),
        ("the red stone", 0, 1),  # without the comma: the same words
        ("red the stone,", 0, 2 / 3),
        ("and more, the red stone,", 0, 1 / 3),  # too late
        ("", 0, 0),
    ],
)
def test_a_completion_is_compared_with_the_words_that_follow(written, verbatim, recall):
    suffix = " the red stone,"
    assert completion.is_verbatim(written, suffix) == verbatim
    assert completion.suffix_recall(written, suffix) == pytest.approx(recall)


# --- A6: variation --------------------------------------------------------------------------------


def slow_distance(first: tuple[str, ...], second: tuple[str, ...]) -> int:
    """Return the edit distance by its recursive definition."""

    @cache
    def distance(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        replaced = distance(i - 1, j - 1) + (first[i - 1] != second[j - 1])
        return min(replaced, distance(i - 1, j) + 1, distance(i, j - 1) + 1)

    return distance(len(first), len(second))


@given(first=WORDS, second=WORDS)
def test_the_edit_distance_is_that_of_its_definition(first, second):
    assert variation.edit_distance(first, second) == slow_distance(tuple(first), tuple(second))


def test_the_peak_counts_samples_near_the_greedy_text():
    greedy = " ".join("abcdefghijklmnopqrst")  # 20 words: one of them is 0.05
    one_off = greedy.replace("t", "x")
    two_off = one_off.replace("s", "y")
    assert variation.peak(greedy, [greedy, one_off, two_off, ""]) == 2 / 4
    assert variation.agreement(greedy, [greedy, two_off, ""]) == pytest.approx(-(0.1 + 1) / 3)


def test_empty_texts_agree():
    assert variation.peak("", ["", ""]) == 1


# --- A5: cloze ------------------------------------------------------------------------------------


@given(text=TEXTS)
def test_a_passage_is_the_beginning_of_its_text(text):
    try:
        passage = cloze.hide_key(text, words_after=2)
    except InputError:
        assert "ghij" not in text[len(text) // 2 :].split()
        return
    assert passage.key == "ghij"
    assert text.startswith(passage.before + passage.key + passage.after)
    assert len(passage.after.split()) <= 2
    assert passage.before == "" or not passage.before[-1].isalpha()


def test_other_keys_are_different_ones_that_follow():
    keys = ["a", "b", "b", "c", "a"]
    assert cloze.other_keys(keys, 1, 5) == ["c", "a"]
    assert cloze.other_keys(keys, 4, 1) == ["b"]


@given(values=st.lists(st.integers(-30, -1), min_size=2, max_size=6))
def test_the_rank_of_a_key_counts_fills_as_likely(values):
    log_probs = np.array(values, dtype=float)
    at_least = sum(value >= values[0] for value in values)
    assert cloze.key_rank(log_probs) == at_least
    assert cloze.key_gain(log_probs) == pytest.approx(values[0] - np.mean(values[1:]))


# --- A4 and A5: options ---------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 3, 5])
def test_every_option_stands_once_in_every_place(count):
    orders = choice.rotations(count)
    assert set(map(tuple, orders)) <= set(permutations(range(count)))
    for place in range(count):
        assert {order[place] for order in orders} == set(range(count))


def test_a_liking_for_a_letter_chooses_every_option_as_often():
    likes_b = np.tile([-5.0, -1.0, -5.0], (3, 1))
    places = [order.index(2) for order in choice.rotations(3)]
    assert choice.chosen_share(likes_b, places) == pytest.approx(1 / 3)
    assert choice.chosen_share(np.full((3, 3), -2.0), places) == pytest.approx(1 / 3)


def test_who_knows_the_published_option_chooses_it_in_every_order():
    places = [order.index(1) for order in choice.rotations(3)]
    knows = np.full((3, 3), -4.0)
    knows[range(3), places] = -1.0
    assert choice.chosen_share(knows, places) == 1


def test_the_slot_of_a_wrong_option_is_empty():
    item = Item("Which?", ("red", "green", "blue"), 1)
    drawn = {choice.hidden_option(item, np.random.default_rng(i)) for i in range(20)}
    assert drawn == {0, 2}
    assert choice.slot_prompt(item, 2) == "Which?\nA. red\nB. green\nC."
    assert choice.choice_prompt("Q", ["x", "y"]) == "Q\nA. x\nB. y\nAnswer:"


# --- bad inputs -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: completion.cut_in_half("orbit", 4), "'orbit'"),
        (lambda: completion.cut_in_half("", 4), "two words"),
        (lambda: cloze.hide_key("it was so in 12 or so", 4), "four letters"),
        (lambda: cloze.hide_key("", 4), "four letters"),
        (lambda: cloze.other_keys(["stone", "stone"], 0, 3), "'stone'"),
        (lambda: choice.published_answer(Item("Which one?", ("a", "b"), None)), "'Which one\\?'"),
        (lambda: choice.text_among("a text", []), "1 options"),
        (lambda: choice.text_among("a text", [" "]), "option B"),
    ],
)
def test_bad_input_is_named(call, named):
    with pytest.raises(InputError, match=named):
        call()
