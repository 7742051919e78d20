"""Before a p-value is called contamination: does the order of the options carry information?

The test on options (`contamination test --axis options`) assumes that, to a model that never saw
the set, every permitted arrangement of an item is as likely as the published one. Authors who sort
their options, put the longest last or like one letter for the right answer break that without any
contamination. Each diagnostic looks for one such habit, exactly, over the arrangements that the
test permits, and without a model.
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from contamination.audit.diagnostics import Diagnosis, Row, judge, tested, tf_idf
from contamination.statistics import exchangeability as order
from contamination.statistics import successor_scores
from contamination.statistics.exchangeability import Arrangements
from contamination.testsets.alternatives import Keep, option_orders, permitted_places, shown_items
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.options import LETTERS, Item

PERMUTATIONS = 23  # all arrangements of up to four options, beside the published one
PERCENT = 100  # cosines are compared in whole hundredths

_NUMBER = re.compile(r"((?<!\w)[-−–])?\s?\$?(\d[\d,]*(?:\.\d+)?|\.\d+)")  # "−3.5", "$1,200"
_DENIAL = re.compile(
    r"(?i)\b(no|not|never|neither|nor|none|nothing|without|except|cannot)\b|n['’]t\b"
)

# Items whose options may move, with their arrangements (N, k), the published one first.
Moving = Sequence[tuple[Item, Arrangements]]
Tau = Callable[[Item], Sequence[float] | None]  # a value for each option; None if it has none


def diagnose_arrangements(
    test_set: ExampleSet,
    *,
    seed: int,
    keep: Keep = Keep(),  # noqa: B008 - frozen
) -> Diagnosis:
    """Test without a model whether the order of the options is exchangeable.

    All p-values are exact and two-sided, given the arrangements that may be drawn: all that are
    permitted of items with up to four options that move, a choice of 24 by the seed of others.
    `keep` is what does not move, as in the test. Raises InputError as `items_of`.
    """
    _, items = shown_items(test_set)
    free = permitted_places(items, keep)
    orders = option_orders(items, free, permutations=PERMUTATIONS, seed=seed)
    pairs = zip(items, orders, strict=True)
    moving = [(item, np.array(rows)) for item, rows in pairs if len({*rows}) > 1]
    what = f"order of the options of {len(moving)} of {len(items)} items, which may move"
    counts = {"items": len(items), "moving": len(moving)}
    return judge(_rows(moving), sum(math.log(len({*rows})) for rows in orders), what, counts)


def _rows(moving: Moving) -> Iterator[Row]:
    """Rows with a p, as far as they apply to any item that moves."""
    gold = [item.answer for item, _ in moving]
    yield _place("gold_letters", "right answers", moving, gold)
    lengths: Tau = lambda item: [len(option) for option in item.options]  # noqa: E731
    sizes = [[*map(len, item.options)] for item, _ in moving]
    longest = [s.index(max(s)) if s.count(max(s)) == 1 else None for s in sizes]
    yield _place("longest", "longest options", moving, longest)
    yield _sorted("length_trend", "length and place", moving, lengths)
    yield _sorted("length_sorted", "length and place, either way", moving, lengths, either_way=True)
    yield _sorted("alphabetical", "alphabet and place", moving, alphabet)
    yield _sorted("numbers", "number and place, either way", moving, numbers, either_way=True)
    yield _sorted("denials", "denials and place", moving, denials)
    yield _similarity(moving)
    yield _builds(moving)


def _tested(
    diagnostic: str, values: Sequence[ArrayLike], scale: float, what: str, form: str, nothing: str
) -> Row:
    """Test sums of `values`, n times (N,); what is shown of them is divided by `scale`."""
    array = np.array(values)
    if not len(values) or not np.ptp(array, axis=1).any():
        return Row(diagnostic, reading=nothing)
    shown = float(array[:, 0].sum() / scale), float(array.mean(axis=1).sum() / scale)
    return tested(diagnostic, (what, form), *shown, order.sum_test(array))


def _place(diagnostic: str, what: str, moving: Moving, options: Sequence[int | None]) -> Row:
    """Whether one option of each item, where there is one, stands at some letter too often."""
    chosen = [(a, i) for (_, a), i in zip(moving, options, strict=True) if i is not None]
    most = max((arrangements.shape[1] for arrangements, _ in chosen), default=0)
    places = np.arange(most)[:, None]
    values = np.array([places == (a == i).argmax(axis=1) for a, i in chosen], dtype=int)
    if not len(values) or not np.ptp(values, axis=2).any():
        return Row(diagnostic, reading=f"no {what} that move")
    which, result = order.largest_test(values.transpose(1, 0, 2))
    at, where = values[:, which], f"{what} that stand at {LETTERS[which]}"
    return tested(diagnostic, (where, ".1%"), float(at[:, 0].mean()), float(at.mean()), result)


def _sorted(
    diagnostic: str, what: str, moving: Moving, key: Tau, *, either_way: bool = False
) -> Row:
    """Kendall's rank correlation of place and a value of each option; its size for either way."""
    values, pairs = [], 0
    for item, arrangements in moving:
        if (ranks := key(item)) is not None:
            found = order.ascents(ranks, arrangements)
            values.append(np.abs(found) if either_way else found)
            pairs += sum(a != b for a, b in combinations(ranks, 2))
    nothing = f"no items whose options could be sorted by {what.split()[0]}"
    return _tested(diagnostic, values, pairs, f"rank correlation of {what}", "+.3f", nothing)


def _similarity(moving: Moving) -> Row:
    """Whether options that share words stand side by side, or apart; words of the set weigh."""
    features = tf_idf([option for item, _ in moving for option in item.options])
    values, start = [], 0
    for item, arrangements in moving:
        own = features[start : start + len(item.options)]
        hundredths = np.rint(PERCENT * (own @ own.T).toarray()).astype(np.int64)
        values.append(successor_scores(hundredths, arrangements))
        start += len(item.options)
    what, nothing = "mean cosine of options side by side", "no options that are alike"
    return _tested("similarity", values, PERCENT * (start - len(moving)), what, ".3f", nothing)


def _builds(moving: Moving) -> Row:
    """Whether an option comes before those that say the same and more."""
    values, pairs = [], 0
    for item, arrangements in moving:
        words = [set(re.findall(r"\w+", option.casefold())) for option in item.options]
        parts = np.array([[bool(a) and a < b for b in words] for a in words])
        values.append(order.in_turn(parts, arrangements))
        pairs += int(parts.sum())
    what = f"of {pairs} pairs in which one option has all words of the other, the shorter one first"
    nothing = "no option has all words of another"
    return _tested("builds", values, max(pairs, 1), what, ".1%", nothing)


# --- what the order could follow; nothing below knows it ------------------------------------------


def alphabet(item: Item) -> list[int]:
    """Ranks of the options in the alphabet, whatever their case, (k,)."""
    texts = [option.casefold().strip() for option in item.options]
    return [sorted(set(texts)).index(text) for text in texts]


def numbers(item: Item) -> list[float] | None:
    """The first number of each option, (k,); None if one has none, or all are equal."""
    found = [number_in(option) for option in item.options]
    known = [number for number in found if number is not None]
    return known if len(known) == len(found) and len(set(known)) > 1 else None


def number_in(option: str) -> float | None:
    """The first number in a text, in digits."""
    if match := _NUMBER.search(option):
        return float(match[2].replace(",", "")) * (-1 if match[1] else 1)
    return None


def denials(item: Item) -> list[int] | None:
    """How many words of each option deny, (k,); None if all options have as many."""
    found = [len(_DENIAL.findall(option)) for option in item.options]
    return found if len(set(found)) > 1 else None
