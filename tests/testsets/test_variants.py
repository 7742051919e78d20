"""The permitted arrangements, how they are drawn, and that the null is then exact."""

import itertools
import tracemalloc
from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare

from contamination.files import sha256_of
from contamination.statistics import sharded_exact_test
from contamination.testsets import arrangements
from contamination.testsets.arrangements import OPTIONS_TEMPLATE
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.options import Item, items_of
from contamination.testsets.variants import (
    FixedOptions,
    items_that_stay,
    option_orders,
    option_variants,
    permitted_places,
)
from fakes.items import items_set, rearranged
from fakes.level import check_every_level
from fakes.made_up_registry import refusal

WORDS = ["lamp", "river", "stone", "cloud", "tower", "orbit", "maple"]
MMLU = "mmlu/2"


def item(*options: str, answer: int | None = 0) -> Item:
    return Item("Which?", options, answer)


DEFAULT = FixedOptions()


def places(*options: str, keep: FixedOptions = DEFAULT, answer: int | None = 0) -> tuple[int, ...]:
    return permitted_places([item(*options, answer=answer)], keep)[0]


def record(number: int, *options: str, answer: int = 0) -> dict:
    return {"question": f"Question {number}?", "choices": list(options), "answer": answer}


def set_of(*records: dict, template: str | None = None) -> ExampleSet:
    return items_set(records, template)


QUIZ = (
    record(1, "lamp", "river", "stone", answer=2),
    record(2, "apple", "none of these", "maple", answer=1),
    record(3, "3", "4", "5", "6"),
    record(4, "tower", "orbit"),
)


@pytest.mark.parametrize(
    ("options", "free", "of_shuffled"),  # places by default, and where the author shuffled numbers
    [
        (("lamp", "river", "stone"), (0, 1, 2), (0, 1, 2)),
        (("lamp", "river", "stone", "All of the above"), (0, 1, 2), (0, 1, 2)),
        (("Both of these options", "river", "stone"), (1, 2), (1, 2)),
        (("lamp", "It cannot be determined from the information given"), (), ()),
        (("lamp", "I have no comment", "stone"), (0, 2), (0, 2)),
        (("lamp", "river", "both A and B", "stone"), (), ()),
        (("I only", "II only", "I and II", "stone"), (), ()),
        (("(i) and (iii)", "lamp", "river"), (), ()),
        (("lamp", "Statement 2 follows", "river"), (), ()),
        (("1", "2", "3"), (), (0, 1, 2)),
        (("5 cm", "7 cm", "12.5 cm"), (), (0, 1, 2)),
        (("1 apple", "2 apples"), (), (0, 1)),
        (("two", "Three", "twenty"), (), (0, 1, 2)),
        (("-1/4", "0"), (), (0, 1)),
        (("World War 1", "the Peace of 1648", "the plague"), (0, 1, 2), (0, 1, 2)),
        (("Vitamin A", "Vitamin B"), (0, 1), (0, 1)),
    ],
)
def test_what_options_say_of_each_other_decides_in_any_order_which_move(
    options, free, of_shuffled
) -> None:
    for order in itertools.permutations(range(len(options))):
        moved = [options[i] for i in order]
        for keep, expected in ((FixedOptions(), free), (FixedOptions(habits=False), of_shuffled)):
            assert [order[place] in expected for place in range(len(options))] == [
                place in places(*moved, keep=keep) for place in range(len(options))
            ]


def test_options_that_two_items_share_stay_and_the_answer_may_keep_its_letter() -> None:
    shared = [item("True", "False"), item("lamp", "river"), item("false", "true", answer=1)]
    assert permitted_places(shared, FixedOptions()) == [(), (0, 1), ()]
    assert permitted_places(shared, FixedOptions(habits=False)) == [(0, 1)] * 3


def test_items_that_do_not_move_are_counted_by_their_reason():
    items = [item("True", "False")] * 3 + [item("3", "4", "5"), item("lamp", "river")]
    told = items_that_stay(items, FixedOptions())
    assert told.startswith("4 of 5 items do not move: they share their options")
    assert "another item (3)" in told and "numbers, amounts or dates as options (1)" in told
    assert items_that_stay(items, FixedOptions(habits=False)) == ""
    counted = [
        item("lamp", "Lamp."),
        item("A. lamp", "B. river"),
        item("lamp", "both A and B"),
        item("lamp", "none of these"),
        item("lamp", "river", answer=None),
    ]
    assert items_that_stay(counted, FixedOptions(answer=True)).startswith("5 of 5 items")
    assert all(not free for free in permitted_places(counted, FixedOptions(answer=True)))
    keep = FixedOptions(answer=True)
    assert places("lamp", "river", "stone", "cloud", keep=keep, answer=2) == (0, 1, 3)
    assert places("lamp", "river", keep=keep) == ()
    assert places("lamp", "river", "stone", keep=keep, answer=None) == ()


@pytest.mark.parametrize(
    ("options", "permutations", "distinct"),
    [(3, 23, 6), (4, 23, 24), (3, 7, 4), (3, 22, 1)],
)
def test_rows_hold_a_divisor_of_their_length_equally_often(options, permutations, distinct) -> None:
    one = item(*WORDS[:options])
    (rows,) = option_orders([one], [range(options)], permutations=permutations, seed=3)
    counts = Counter(rows)
    assert rows[0] == tuple(range(options))
    assert len(rows) == permutations + 1
    assert len(counts) == distinct
    assert set(counts.values()) == {(permutations + 1) // distinct}
    assert all(sorted(order) == list(range(options)) for order in rows)


def test_other_arrangements_are_uniform_without_replacement() -> None:
    """Given the set that was drawn, the published one is uniform if every set is as likely."""
    draws = Counter(
        frozenset(option_orders([item(*WORDS[:3])], [range(3)], permutations=3, seed=seed)[0])
        for seed in range(4000)
    )
    published = (0, 1, 2)
    others = set(itertools.permutations(range(3))) - {published}
    assert set(draws) == {frozenset({published, *s}) for s in itertools.combinations(others, 3)}
    assert chisquare(list(draws.values())).pvalue > 1e-3


def test_draws_depend_on_the_seed_and_the_item_alone() -> None:
    """The orders themselves are pinned: another law of draws changes published results."""
    items = [Item(f"Q{i}", tuple(WORDS[:5]), 0) for i in range(3)]
    free = [range(5)] * 3
    first, other = (option_orders(items, free, permutations=23, seed=seed) for seed in (1, 2))
    assert first != other
    assert len(set(first)) == 3
    assert first[0][1:3] == ((3, 0, 1, 2, 4), (4, 2, 3, 0, 1))
    turned = option_orders(items[::-1], free, permutations=23, seed=1)
    assert turned == first[::-1]


def test_texts_are_the_records_rearranged() -> None:
    made = option_variants(set_of(*QUIZ), seed=0)
    assert made.template == OPTIONS_TEMPLATE
    assert made.what == "options"
    assert made.name == "quiz"
    assert made.distinct == (6, 2, 1, 2)
    assert {len(row) for row in made.texts} == {24}
    first, pinned, numbers, two = made.texts
    assert first[0] == "Question 1?\nA. lamp\nB. river\nC. stone\nAnswer: C\n"
    assert "Question 1?\nA. stone\nB. river\nC. lamp\nAnswer: A\n" in first
    swapped = "Question 2?\nA. maple\nB. none of these\nC. apple\nAnswer: B\n"
    assert Counter(pinned) == {pinned[0]: 12, swapped: 12}
    assert set(numbers) == {"Question 3?\nA. 3\nB. 4\nC. 5\nD. 6\nAnswer: A\n"}
    assert list(Counter(two).values()) == [12, 12]
    assert made.revision == sha256_of(OPTIONS_TEMPLATE, *itertools.chain(*made.texts))
    assert option_variants(set_of(*QUIZ), seed=1, permutations=3).revision != made.revision


def test_the_sets_own_template_is_used_where_it_shows_every_option() -> None:
    four = [record(i, f"a {i}", f"b {i}", f"c {i}", f"d {i}", answer=1) for i in range(2)]
    letters = [{**each, "answer": "B"} for each in four]
    own = set_of(*letters, template=MMLU)
    made = option_variants(own, seed=0)
    assert made.template == MMLU
    assert tuple(row[0] for row in made.texts) == own.examples
    moved = set_of(*(rearranged(each, (3, 2, 1, 0)) for each in letters), template=MMLU)
    for text, row in zip(moved.examples, made.texts, strict=True):
        assert text in row and "Answer: C" in text
    five = set_of(*letters, {**record(9, *WORDS[:5]), "answer": "E"}, template=MMLU)
    assert option_variants(five, seed=0).template == OPTIONS_TEMPLATE


LETTERED = [record(i, "lamp", "river") | {"why": f"Option {x} is it"} for i, x in enumerate("AB")]


@pytest.mark.parametrize(
    ("records", "settings", "message"),
    [
        ((QUIZ[0], QUIZ[2]), {}, "the options of 1 of 2 items may move"),
        ((QUIZ[0], record(5, "oak", "ash", "elm")), {"permutations": 6},
         "cannot fill 7 columns equally often"),
        (LETTERED, {"template": "{choices: } {why}\n"}, "are named by letters in a text beside"),
        (QUIZ, {"template": "{question} {choices[0]}\n"}, "does not show every option"),
    ],
)  # fmt: skip
def test_what_gives_no_variants_is_refused_before_any_is_rendered(
    records, settings, message
) -> None:
    test_set = set_of(*records, template="{question} {choices:, }\n")
    told = refusal(option_variants, test_set, seed=0, **settings)
    assert told.startswith("quiz: ") and message in told


def test_more_variants_than_can_be_drawn_are_counted_before_any_is_drawn(monkeypatch) -> None:
    monkeypatch.setattr(arrangements, "random_stream", None)
    many = [record(i, *(f"{word} {i}" for word in "abcdefghijkl")) for i in range(3)]
    message = refusal(option_variants, set_of(*many), seed=0, permutations=9_999_999)
    assert "30,000,000 different texts" in message


def long_items() -> ExampleSet:
    """Return ten items whose 120 arrangements have 1.5 million characters each."""
    padding = "word " * 500
    return set_of(*(record(i, *(f"{w} {i} {padding}" for w in "abcde")) for i in range(10)))


def test_texts_of_arrangements_do_not_fill_the_memory(monkeypatch) -> None:
    monkeypatch.setattr(arrangements, "KEPT_TEXTS", 1)
    test_set = long_items()
    tracemalloc.start()
    made = option_variants(test_set, seed=0, permutations=119)
    distinct = made.distinct
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert distinct == (120,) * 10
    assert peak < 6_000_000, "all texts are 15 million characters"


def test_a_text_that_names_letters_matters_where_it_is_shown() -> None:
    shown = {**LETTERED[0], "question": "So?", "why": "Lamps shine."}
    records = (*LETTERED, shown, QUIZ[0])
    made = option_variants(set_of(*records), seed=0, keep=FixedOptions(habits=False))
    assert made.distinct == (2, 2, 2, 6)
    keyed = [{"why": "It flows.", **each} for each in records]
    template = "{question} {choices:, } {why}\n"
    made = option_variants(
        set_of(*keyed, template=template), seed=0, keep=FixedOptions(habits=False)
    )
    assert made.distinct == (1, 1, 2, 6)


def score(text: str) -> float:
    """A model that likes some texts for no reason."""
    return int(sha256_of(text)[:8], 16) / 2**32


@pytest.mark.parametrize("keep", [FixedOptions(), FixedOptions(answer=True)])
def test_over_all_products_of_arrangements_no_level_is_exceeded(keep) -> None:
    """Brute force: publish every combination of permitted arrangements in turn."""
    published = [record(0, *WORDS[:3]), record(1, "oak", "ash", "elm", "all of these"), QUIZ[3]]
    items = items_of(set_of(*published))
    free = permitted_places(items, keep)
    orders = [set(rows) for rows in option_orders(items, free, permutations=5, seed=0)]
    assert [len(each) for each in orders] == ([6, 6, 2] if not keep.answer else [2, 2, 1])
    found = []
    for chosen in itertools.product(*orders):
        records = [rearranged(r, order) for r, order in zip(published, chosen, strict=True)]
        made = option_variants(set_of(*records), permutations=5, seed=0, keep=keep)
        scores = np.array([[score(text) for text in row] for row in made.texts])
        found.append(sharded_exact_test(scores).p)
    check_every_level(found)
    assert min(found) == pytest.approx(1 / len(found), rel=1e-3)  # the best is told from all
