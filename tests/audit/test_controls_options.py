"""Habits that are planted in the order of options are found, and options in any order are quiet."""

import numpy as np
import pytest

from contamination.audit.controls.diagnosis import MOST_DIAGNOSTICS
from contamination.audit.controls.options import (
    ARRANGEMENTS,
    diagnose_arrangements,
    number_in,
    option_rows,
)
from contamination.testsets.options import items_of
from contamination.testsets.variants import FixedOptions, option_orders, permitted_places
from fakes.diagnosed import rejected, row
from fakes.items import items_set, rearranged
from fakes.level import check_level

WORDS = []
for start in "bdfgklmnprst":
    WORDS += [f"{start}anter", f"{start}olise", f"{start}uvid", f"{start}ecin"]
NAMES = "gold_letters longest length_trend length_sorted alphabetical numbers denials similarity"
TESTED = [*NAMES.split(), "builds"]


def record(question, options, answer=0):
    return {"question": f"{question}?", "choices": list(options), "answer": int(answer)}


def phrases(rng, k):
    """Phrases of one to five words, none of which has a word of another."""
    words = rng.permutation(WORDS)
    texts = []
    start = 0
    for _ in range(k):
        stop = start + rng.integers(1, 6)
        texts.append(" ".join(words[start:stop]))
        start = stop
    return texts


def make_records(rng, n, options=phrases, sizes=(4,)):
    return [
        record(f"What of {i}", options(rng, k), rng.integers(k))
        for i, k in enumerate(rng.choice(sizes, size=n).tolist())
    ]


def diagnosis(records, keep=FixedOptions()):  # noqa: B008 - frozen
    return diagnose_arrangements(items_set(records), seed=0, keep=keep)


def ordered(records, key):
    """Every record with its options sorted by a key of the text, the answer moved along."""

    def places(options):
        return sorted(range(len(options)), key=lambda i: key(options[i]))

    return [rearranged(each, places(each["choices"])) for each in records]


@pytest.fixture(scope="module")
def records():
    return make_records(np.random.default_rng(1), 80)


def test_options_in_any_order_are_quiet(records):
    found = diagnosis(records)
    assert found.verdict == "quiet"
    assert rejected(found) == set()
    assert found.table["diagnostic"].tolist()[:MOST_DIAGNOSTICS] == TESTED
    assert found.counts == {"items": 80, "moving": 80}


def amounts(rng, k):
    """Options of a number and words of their own, so that they may move."""
    return [
        f"{n} {text}" for n, text in zip(rng.choice(90, k, False), phrases(rng, k), strict=True)
    ]


def pairs_of_words(rng, k):
    """Options that share a word two by two."""
    a, b, *others = rng.permutation(WORDS)
    return [f"{word} {other}" for word, other in zip([a, a, b, b], others[:k], strict=True)]


def denying(rng, k):
    """Options of one length, of which some deny."""
    return ["".join(rng.permutation(list("abdfgk"))) + [" now", " not"][i % 2] for i in range(k)]


def growing(rng, k):
    """Options each of which says what the one before says, and more, of one length."""
    words = rng.permutation(WORDS)[:k]
    return [" ".join(words[: i + 1]) + "." * int(60 - 7 * i) for i in range(k)]


def in_turns(records, key):
    """Sorted up and down in turns."""
    both = (ordered(records, key), ordered(records, lambda text: -key(text)))
    return [pair[i % 2] for i, pair in enumerate(zip(*both, strict=True))]


def longest_at_b(records):
    def moved(each):
        order = list(range(4))
        order.insert(1, order.pop(int(np.argmax([len(option) for option in each["choices"]]))))
        return rearranged(each, order)

    return [moved(each) for each in records]


def made(options, order=range(4)):
    found = make_records(np.random.default_rng(6), 60, options)
    return [rearranged(each, order) for each in found]


def all_at_c(records):
    return [{**each, "answer": 2} for each in records]


PLANTED = {  # what the author did; the diagnostics that reject, alone or not; what one observes
    "up": (lambda r: ordered(r, len), {"length_trend", "length_sorted", "longest"}, 1),
    "in turns": (lambda r: in_turns(r, len), {"length_sorted"}, 1),
    "the longest at B": (longest_at_b, {"longest"}, 1),
    "answers at C": (all_at_c, {"gold_letters"}, 1),
    "by the alphabet": (lambda r: ordered(r, str.casefold), {"alphabetical"}, 1),
    "numbers up and down": (lambda r: in_turns(made(amounts), number_in), {"numbers"}, 1),
    "denials last": (lambda r: ordered(made(denying), lambda t: "not" in t), {"denials"}, 1),
    "alike side by side": (lambda r: made(pairs_of_words), {"similarity"}, None),
    "growing": (lambda r: made(growing), {"builds"}, 1),
    "shrinking": (lambda r: made(growing, (3, 2, 1, 0)), {"builds"}, 0),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_each_habit_is_found_by_its_diagnostic(records, planted):
    arrange, expected, observed = PLANTED[planted]
    found = diagnosis(arrange(records))
    assert expected <= rejected(found)
    assert found.verdict == "order carries information"
    if observed is not None:
        assert row(found, sorted(expected)[-1])["observed"] == pytest.approx(observed)


def test_a_letter_that_is_right_too_often_does_not_count_where_answers_stay(records):
    found = diagnosis(all_at_c(records), keep=FixedOptions(answer=True))
    assert found.verdict == "quiet" and np.isnan(row(found, "gold_letters")["p"])


def test_what_goes_either_way_has_a_sign(records):
    for name, planted, other in (
        ("length_trend", ordered(records, len), ordered(records, lambda text: -len(text))),
        ("similarity", made(pairs_of_words), made(pairs_of_words, (0, 2, 1, 3))),
    ):
        assert row(diagnosis(other), name)["z"] < -4 < 5 < row(diagnosis(planted), name)["z"]
    assert "length_trend" not in rejected(diagnosis(in_turns(records, len)))


def test_calibrated_on_options_in_any_order():
    """Every diagnostic alone, and the smallest of them times their number."""
    rng = np.random.default_rng(7)
    makers = (phrases, amounts, growing, denying)
    several = [make_records(rng, 3, make, sizes=(2, 3, 4)) for make in makers]
    records = sum(several, make_records(rng, 2, pairs_of_words))
    alone = {name: [] for name in TESTED}
    together = []
    for _ in range(80):
        items = items_of(
            items_set([rearranged(each, rng.permutation(len(each["choices"]))) for each in records])
        )
        free = permitted_places(items, FixedOptions(habits=False))
        orders = option_orders(items, free, permutations=ARRANGEMENTS - 1, seed=0)
        moving = [(i, np.array(o)) for i, o in zip(items, orders, strict=True)]
        p = {each.diagnostic: each.p for each in option_rows(moving)}
        for name, value in p.items():
            alone[name].append(value)
        together.append(min(p.values()) * MOST_DIAGNOSTICS)
    for name, p in alone.items():
        check_level(p, 0.05, 0.2, reached=False)
        assert len(set(p)) > 1, name  # it applied
    check_level(together, 0.05, 0.1, reached=False)


def test_the_first_number_of_a_text():
    texts = ("1,200 m", "−3.5", "about $4", "May 1918", "A-3", ".5", "no number")
    assert [*map(number_in, texts)] == [1200, -3.5, 4, 1918, 3, 0.5, None]
