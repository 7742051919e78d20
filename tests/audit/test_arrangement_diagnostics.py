"""Habits that are planted in the order of options are found, and options in any order are quiet."""

import numpy as np
import pytest

from contamination.audit.arrangement_diagnostics import (
    PERMUTATIONS,
    _Moving,
    _rows,
    diagnose_arrangements,
    number_in,
)
from contamination.audit.diagnosis import TESTS
from contamination.testsets.alternatives import Keep, option_orders
from contamination.testsets.example_set import make_test_set
from contamination.testsets.options import items_of
from fakes.diagnosed import rejected, row
from fakes.items import rearranged
from fakes.level import check_level

WORDS = [f"{start}{end}" for start in "bdfgklmnprst" for end in ("anter", "olise", "uvid", "ecin")]
NAMES = "gold_letters longest length_trend length_sorted alphabetical numbers similarity builds"
TESTED = NAMES.split()


def record(question, options, answer=0):
    return {"question": f"{question}?", "choices": list(options), "answer": int(answer)}


def phrases(rng, k):
    """Phrases of one to five words, none of which has a word of another."""
    words = iter(rng.permutation(WORDS))
    return [" ".join(next(words) for _ in range(rng.integers(1, 6))) for _ in range(k)]


def make_records(rng, n, options=phrases, sizes=(4,)):
    return [
        record(f"What of {i}", options(rng, k), rng.integers(k))
        for i, k in enumerate(rng.choice(sizes, size=n).tolist())
    ]


def set_of(records):
    return make_test_set("quiz", [("", each) for each in records], "{question}\n", "quiz.jsonl")


def diagnosis(records, **options):
    return diagnose_arrangements(set_of(records), **{"seed": 0, **options})


def ordered(records, key):
    """Every record with its options sorted by a key of the text, the answer moved along."""
    sort = lambda options: sorted(range(len(options)), key=lambda i: key(options[i]))  # noqa: E731
    return [rearranged(each, sort(each["choices"])) for each in records]


@pytest.fixture(scope="module")
def records():
    return make_records(np.random.default_rng(1), 80)


def test_options_in_any_order_are_quiet(records):
    found = diagnosis(records)
    assert (found.verdict, rejected(found)) == ("quiet", set())
    assert found.table["diagnostic"].tolist()[:TESTS] == TESTED
    columns = "diagnostic observed expected z p log10_p holm_p alternative reading"
    assert list(found.table) == columns.split()
    assert found.what == "order of the options of 80 of 80 items, which may move"
    least = found.table.loc[found.table["p"].idxmin()]
    assert found.as_dict() == {
        "items": 80,
        "moving": 80,
        "verdict": "quiet",
        "reasons": [f"the smallest p is {least['p']:.3g} ({least['diagnostic']})"],
    }


# --- planted --------------------------------------------------------------------------------------


def test_a_letter_that_is_right_too_often(records):
    rng = np.random.default_rng(2)
    skewed = [{**each, "answer": int(rng.choice(4, p=(0.1, 0.1, 0.7, 0.1)))} for each in records]
    found = diagnosis(skewed)
    assert rejected(found) == {"gold_letters"}
    assert found.verdict == "order carries information"
    share = np.mean([each["answer"] == 2 for each in skewed])
    assert row(found, "gold_letters")["observed"] == pytest.approx(share)
    assert row(found, "gold_letters")["reading"] == (
        f"right answers that stand at C: {share:.1%}, 25.0% expected"
    )
    assert row(found, "gold_letters")["expected"] == pytest.approx(0.25)
    kept = diagnosis(skewed, keep=Keep(answer=True))
    assert kept.verdict == "quiet" and np.isnan(row(kept, "gold_letters")["p"])


def test_sorted_by_length_up_or_down(records):
    up, down = ordered(records, len), ordered(records, lambda text: -len(text))
    found = diagnosis(up)
    assert {"length_trend", "length_sorted", "longest"} <= rejected(found)
    assert row(found, "length_trend")["observed"] == 1
    assert row(diagnosis(down), "length_trend")["z"] < -5 < 5 < row(found, "length_trend")["z"]
    turns = diagnosis([pair[i % 2] for i, pair in enumerate(zip(up, down, strict=True))])
    assert "length_sorted" in rejected(turns) and "length_trend" not in rejected(turns)


@pytest.mark.parametrize("place", [0, 1, 3])
def test_the_longest_at_one_place(records, place):
    def moved(each):
        lengths = [len(option) for option in each["choices"]]
        order = list(range(4))
        order.insert(place, order.pop(lengths.index(max(lengths))))
        return rearranged(each, order)

    found = diagnosis([moved(each) for each in records])
    assert "longest" in rejected(found)
    assert f"stand at {'ABCD'[place]}" in row(found, "longest")["reading"]


def test_alphabetical(records):
    upper = [
        {**each, "choices": [t.upper() if i % 2 else t for i, t in enumerate(each["choices"])]}
        for each in ordered(records, str.casefold)
    ]
    found = diagnosis(upper)
    assert rejected(found) == {"alphabetical"}
    assert row(found, "alphabetical")["observed"] == 1


def amounts(rng, k):
    """Options of a number and words of their own, so that they may move."""
    return [
        f"{n} {text}" for n, text in zip(rng.choice(90, k, False), phrases(rng, k), strict=True)
    ]


def test_numbers_up_or_down():
    amount = make_records(np.random.default_rng(3), 60, amounts)
    assert diagnosis(amount).verdict == "quiet"
    up, down = (ordered(amount, lambda t, way=way: way * number_in(t)) for way in (1, -1))
    found = diagnosis([pair[i % 2] for i, pair in enumerate(zip(up, down, strict=True))])
    assert rejected(found) == {"numbers"}
    assert row(found, "numbers")["observed"] == 1


def pairs_of_words(rng, k):
    """Options that share a word two by two."""
    a, b, *others = rng.permutation(WORDS)
    return [f"{word} {other}" for word, other in zip([a, a, b, b], others[:k], strict=True)]


def test_options_that_share_words_side_by_side():
    alike = make_records(np.random.default_rng(5), 50, pairs_of_words)
    found = diagnosis(alike)
    assert rejected(found) == {"similarity"}
    assert row(found, "similarity")["z"] > 5
    apart = [rearranged(each, (0, 2, 1, 3)) for each in alike]
    assert row(diagnosis(apart), "similarity")["z"] < -4


def growing(rng, k):
    """Options each of which says what the one before says, and more, of one length."""
    words = rng.permutation(WORDS)[:k]
    return [" ".join(words[: i + 1]) + "." * int(60 - 7 * i) for i in range(k)]


def test_options_that_build_on_each_other():
    found = diagnosis(make_records(np.random.default_rng(6), 40, growing))
    assert "builds" in rejected(found)
    assert row(found, "builds")["observed"] == 1
    assert row(found, "builds")["reading"].startswith("of 240 pairs in which")
    reverse = lambda rng, k: growing(rng, k)[::-1]  # noqa: E731
    assert row(diagnosis(make_records(np.random.default_rng(6), 40, reverse)), "builds")["z"] < -5


# --- exchangeable ---------------------------------------------------------------------------------


def anything(rng, k):
    make = (phrases, amounts, growing, pairs_of_words)[rng.integers(4 if k == 4 else 3)]
    return make(rng, k)


def test_calibrated_on_options_in_any_order():
    """Every diagnostic alone, and the smallest of them times their number."""
    rng = np.random.default_rng(7)
    records = make_records(rng, 12, anything, sizes=(2, 3, 4))
    alone, together = {name: [] for name in TESTED}, []
    for _ in range(120):
        items = items_of(
            set_of([rearranged(each, rng.permutation(len(each["choices"]))) for each in records])
        )
        orders = option_orders(items, permutations=PERMUTATIONS, seed=0, keep=Keep(numbers=False))
        moving = [_Moving(i, np.array(o)) for i, o in zip(items, orders, strict=True)]
        p = {each["diagnostic"]: each["p"] for each in _rows(moving)}
        for name, value in p.items():
            alone[name].append(value)
        together.append(min(p.values()) * TESTS)
    for name, p in alone.items():
        check_level(p, 0.05, 0.2, reached=False)
        assert len(set(p)) > 1, name  # it applied
    check_level(together, 0.05, 0.1, reached=False)


# --- edges ----------------------------------------------------------------------------------------


def test_items_of_several_sizes_and_scripts():
    """More arrangements than are drawn, combining characters, no spaces between words."""
    items = [
        record(0, ["日本語", "中文", "한국어", "ไทย", "العربية"]),
        record(1, ["e\u0301clair", "Éclair two", "ß", "SS sharp", "ﬀ", "👩‍👩‍👧"]),
        record(2, ["√y", "y ∈ ∅", "¬p", "→"]),
    ]
    found = diagnosis(items)
    assert found.counts == {"items": 3, "moving": 3}
    assert found.table["p"].dropna().between(0, 1).all()


@pytest.mark.parametrize(
    "text, number",
    [
        ("1,200 m", 1200),
        ("−3.5", -3.5),
        ("about $4", 4),
        ("May 1918", 1918),
        ("A-3", 3),
        (".5", 0.5),
        ("no number", None),
        ("", None),
    ],
)
def test_the_first_number_of_a_text(text, number):
    assert number_in(text) == number
