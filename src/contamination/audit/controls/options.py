"""Before a p-value is called contamination: does the order of options carry information by itself?

The test on options assumes that every permitted arrangement of an item is as likely as the
published one. Authors who sort their options, put the longest last or like one letter for the right
answer break it. Each diagnostic looks for one such habit, by a test over the permitted arrangements
that needs no model.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from contamination.audit.controls.diagnosis import Diagnosis, Row, judge, tested_row, tf_idf
from contamination.statistics import option_order, successor_scores
from contamination.testsets.example_set import ExampleSet

if TYPE_CHECKING:  # the axis of options is loaded where it is asked for
    from contamination.testsets.options import Item
    from contamination.testsets.variants import FixedOptions

# Items whose options may move, with their arrangements (N, k), the published one first.
Moving = Sequence[tuple["Item", option_order.Arrangements]]

ARRANGEMENTS = 24  # of an item: all arrangements of up to four options
PERCENT = 100  # cosines of options are compared in whole hundredths
_NUMBER = re.compile(r"((?<!\w)[-−–])?\s?\$?(\d[\d,]*(?:\.\d+)?|\.\d+)")  # "−3.5", "$1,200"
_DENIAL = re.compile(
    r"(?i)\b(no|not|never|neither|nor|none|nothing|without|except|cannot)\b|n['’]t\b"
)


def diagnose_arrangements(test_set: ExampleSet, *, seed: int, keep: "FixedOptions") -> Diagnosis:
    """Test without a model whether the order of the options is exchangeable.

    All p-values are exact and two-sided, given the arrangements that may be drawn: all that are
    permitted of items with up to four options that move, a choice of 24 by the seed of others.
    `keep` is what does not move, as in the test. Raises InputError as `items_of`.
    """
    from contamination.testsets import variants

    _, items = variants.shown_items(test_set)
    free = variants.permitted_places(items, keep)
    orders = variants.option_orders(items, free, permutations=ARRANGEMENTS - 1, seed=seed)
    pairs = zip(items, orders, strict=True)
    moving = [(item, np.array(rows)) for item, rows in pairs if len({*rows}) > 1]
    what = f"order of the options of {len(moving)} of {len(items)} items, which may move"
    counts = {"items": len(items), "moving": len(moving)}
    orderings = sum(math.log(len({*rows})) for rows in orders)
    diagnosis = judge(option_rows(moving), orderings, what, counts)
    return replace(diagnosis, remark=variants.items_that_stay(items, keep))


def option_rows(moving: Moving) -> Iterator[Row]:
    """Rows of the table of a `Diagnosis` of options; a p where any item that moves has one."""
    items = [item for item, _ in moving]
    yield _place("gold_letters", "right answers", moving, [item.answer for item in items])
    sizes = [[*map(len, item.options)] for item in items]
    longest = [s.index(max(s)) if s.count(max(s)) == 1 else None for s in sizes]
    yield _place("longest", "longest options", moving, longest)
    yield _sorted("length_trend", "length and place", moving, sizes)
    yield _sorted("length_sorted", "length and place, either way", moving, sizes, either_way=True)
    texts = [[option.casefold().strip() for option in item.options] for item in items]
    yield _sorted("alphabetical", "alphabet and place", moving, texts)
    known = map(numbers, items)
    yield _sorted("numbers", "number and place, either way", moving, known, either_way=True)
    yield _sorted("denials", "denials and place", moving, map(denials, items))
    # Whether options that share words stand side by side, or apart; words of the set weigh.
    features = tf_idf([option for item in items for option in item.options])
    alike, longer, start = [], [], 0
    for item, arrangements in moving:
        own = features[start : start + len(item.options)]
        hundredths = np.rint(PERCENT * (own @ own.T).toarray()).astype(np.int64)
        alike.append(successor_scores(hundredths, arrangements))
        start += len(item.options)
    scale = PERCENT * sum(len(item.options) - 1 for item in items)
    what, nothing = "mean cosine of options side by side", "no options that are alike"
    yield _summed("similarity", what, ".3f", alike, scale, nothing)
    # Whether an option comes before those that say the same and more.
    pairs = 0
    for item, arrangements in moving:
        words = [set(re.findall(r"\w+", option.casefold())) for option in item.options]
        parts = np.array([[bool(a) and a < b for b in words] for a in words])
        longer.append(option_order.in_turn(parts, arrangements))
        pairs += int(parts.sum())
    what = f"of {pairs} pairs in which one option has all words of the other, the shorter one first"
    yield _summed("builds", what, ".1%", longer, pairs, "no option has all words of another")


def _summed(
    diagnostic: str, what: str, form: str, values: Sequence[ArrayLike], scale: float, nothing: str
) -> Row:
    """Test sums of `values`, n times (N,); what is shown of them is divided by `scale`."""
    array = np.array(values)
    if not len(values) or not np.ptp(array, axis=1).any():
        return Row(diagnostic, reading=nothing)
    return tested_row(
        diagnostic, what, form, array.sum(axis=0) / scale, option_order.sum_test(array)
    )


def _place(diagnostic: str, what: str, moving: Moving, options: Sequence[int | None]) -> Row:
    """Whether one option of each item, where there is one, stands at some letter too often."""
    chosen = [(a, i) for (_, a), i in zip(moving, options, strict=True) if i is not None]
    most = max((arrangements.shape[1] for arrangements, _ in chosen), default=0)
    places = np.arange(most)[:, None]
    values = np.array([places == (a == i).argmax(axis=1) for a, i in chosen], dtype=int)
    if not len(values) or not np.ptp(values, axis=2).any():
        return Row(diagnostic, reading=f"no {what} that move")
    which, result = option_order.largest_test(values.transpose(1, 0, 2))
    where = f"{what} that stand at {chr(ord('A') + which)}"
    return tested_row(diagnostic, where, ".1%", values[:, which].mean(axis=0), result)


def _sorted(
    diagnostic: str,
    what: str,
    moving: Moving,
    values: Iterable[Sequence[Any] | None],
    *,
    either_way: bool = False,
) -> Row:
    """Kendall's rank correlation of place and a value of each option; its size for either way."""
    sums, pairs = [], 0
    for (_, arrangements), each in zip(moving, values, strict=True):
        if each is not None:
            found = option_order.ascents(each, arrangements)
            sums.append(np.abs(found) if either_way else found)
            pairs += sum(a != b for a, b in combinations(each, 2))
    nothing = f"no items whose options could be sorted by {what.split()[0]}"
    return _summed(diagnostic, f"rank correlation of {what}", "+z.3f", sums, pairs, nothing)


def numbers(item: "Item") -> list[float] | None:
    """The first number of each option, (k,); None if one has none, or all are equal."""
    found = [number_in(option) for option in item.options]
    known = [number for number in found if number is not None]
    return known if len(known) == len(found) and len(set(known)) > 1 else None


def number_in(option: str) -> float | None:
    """The first number in a text, in digits."""
    if match := _NUMBER.search(option):
        return float(match[2].replace(",", "")) * (-1 if match[1] else 1)
    return None


def denials(item: "Item") -> list[int] | None:
    """How many words of each option deny, (k,); None if all options have as many."""
    found = [len(_DENIAL.findall(option)) for option in item.options]
    return found if len(set(found)) > 1 else None
