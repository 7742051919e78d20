"""Does the order of options carry information by itself, without a model?

The test on options assumes that every permitted arrangement of an item is as likely as
the published one. Authors who sort their options, put the longest last or like one
letter for the right answer break it. Each diagnostic looks for one such habit, by a
test over the permitted arrangements that needs no model.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from contamination.audit.controls.diagnosis import (
    Diagnosis,
    DiagnosticRow,
    judge,
    tested_row,
    tf_idf,
)
from contamination.statistics import option_order, successor_scores
from contamination.testsets.example_set import ExampleSet

if TYPE_CHECKING:  # the axis of options is loaded where it is asked for
    from contamination.testsets.options import Item
    from contamination.testsets.variants import FixedOptions

# Items whose options may move, with their arrangements (N, k), the published one first.
Moving = Sequence[tuple["Item", option_order.Arrangements]]

ARRANGEMENTS = 24  # of an item: all arrangements of up to four options
PERCENT = 100  # cosines of options are compared in whole hundredths
# "−3.5", "$1,200"
_NUMBER = re.compile(r"((?<!\w)[-−–])?\s?\$?(\d[\d,]*(?:\.\d+)?|\.\d+)")
_DENIAL = re.compile(
    r"(?i)\b(no|not|never|neither|nor|none|nothing|without|except|cannot)\b|n['’]t\b"
)


def diagnose_arrangements(
    test_set: ExampleSet,
    *,
    seed: int,
    keep: "FixedOptions",
) -> Diagnosis:
    """Test without a model whether the order of the options is exchangeable.

    All p-values are exact and two-sided, given the arrangements that may be drawn: all
    that are permitted of items with up to four options that move, a choice of 24 by the
    seed of others. `keep` names the options that do not move, as in the test. Raises
    InputError if the set has no items.
    """
    from contamination.testsets import variants
    from contamination.testsets.item_sets import shown_items

    _, items = shown_items(test_set)
    free = variants.permitted_places(items, keep)
    orders = variants.option_orders(
        items,
        free,
        permutations=ARRANGEMENTS - 1,
        seed=seed,
    )
    moving = []
    log_orderings = 0.0
    for item, arrangements in zip(items, orders, strict=True):
        distinct = len(set(arrangements))
        log_orderings += math.log(distinct)
        if distinct > 1:
            moving.append((item, np.array(arrangements)))
    what = f"order of the options of {len(moving)} of {len(items)} items, which may move"
    counts = {"items": len(items), "moving": len(moving)}
    diagnosis = judge(option_rows(moving), log_orderings, what, counts)
    return replace(diagnosis, remark=variants.items_that_stay(items, keep))


def option_rows(moving: Moving) -> Iterator[DiagnosticRow]:
    """Yield the rows of the table of a `Diagnosis` of options.

    A row has a p-value if it applies to any item that moves.
    """
    items = [item for item, _ in moving]
    yield _place(
        "gold_letters",
        "right answers",
        moving,
        [item.answer for item in items],
    )
    sizes = [option_sizes(item) for item in items]
    yield _place("longest", "longest options", moving, [_longest(row) for row in sizes])
    yield _sorted("length_trend", "length and place", moving, sizes)
    yield _sorted(
        "length_sorted",
        "length and place, either way",
        moving,
        sizes,
        either_way=True,
    )
    texts = [casefolded(item) for item in items]
    yield _sorted("alphabetical", "alphabet and place", moving, texts)
    values = [numbers(item) for item in items]
    yield _sorted(
        "numbers",
        "number and place, either way",
        moving,
        values,
        either_way=True,
    )
    yield _sorted(
        "denials",
        "denials and place",
        moving,
        [denials(item) for item in items],
    )
    yield _likeness(moving)
    yield _builds(moving)


def option_sizes(item: "Item") -> list[int]:
    """Return the number of characters of each option, (k,)."""
    return [len(option) for option in item.options]


def casefolded(item: "Item") -> list[str]:
    """Return each option without regard to case, (k,), for the alphabet."""
    return [option.casefold().strip() for option in item.options]


def _longest(sizes: Sequence[int]) -> int | None:
    """Return which option is longer than all others, if one is."""
    most = max(sizes)
    if sizes.count(most) > 1:
        return None
    return sizes.index(most)


def _likeness(moving: Moving) -> DiagnosticRow:
    """Return a row on options that share words, which stand side by side or apart."""
    texts: list[str] = []
    for item, _ in moving:
        texts += item.options
    features = tf_idf(texts)
    values = []
    pairs = 0
    start = 0
    for item, arrangements in moving:
        stop = start + len(item.options)
        own = features[start:stop]
        hundredths = np.rint(PERCENT * (own @ own.T).toarray()).astype(np.int64)
        values.append(successor_scores(hundredths, arrangements))
        pairs += len(item.options) - 1
        start = stop
    what = "mean cosine of options side by side"
    nothing = "no options that are alike"
    return _summed("similarity", what, ".3f", values, PERCENT * pairs, nothing)


def _builds(moving: Moving) -> DiagnosticRow:
    """Return a row on options that come before those that say the same and more."""
    values = []
    pairs = 0
    for item, arrangements in moving:
        words = [set(re.findall(r"\w+", option.casefold())) for option in item.options]
        contained = np.zeros((len(words), len(words)), dtype=bool)
        for row, shorter in enumerate(words):
            for column, longer in enumerate(words):
                contained[row, column] = bool(shorter) and shorter < longer
        values.append(option_order.in_turn(contained, arrangements))
        pairs += int(contained.sum())
    what = f"of {pairs} pairs in which one option has all words of the other, the shorter one first"
    return _summed(
        "builds",
        what,
        ".1%",
        values,
        pairs,
        "no option has all words of another",
    )


def _summed(
    diagnostic: str,
    what: str,
    form: str,
    values: Sequence[ArrayLike],
    scale: float,
    nothing: str,
) -> DiagnosticRow:
    """Return a row that tests the sums of values over items.

    `values` are the N values of each of n items, (n, N), the published arrangement
    first. Their sums are divided by `scale` where they are shown. If no item has values
    that differ, `nothing` is shown.
    """
    array = np.array(values)
    if not len(values) or not np.ptp(array, axis=1).any():
        return DiagnosticRow(diagnostic, reading=nothing)
    shown = array.sum(axis=0) / scale
    return tested_row(diagnostic, what, form, shown, option_order.sum_test(array))


def _place(
    diagnostic: str,
    what: str,
    moving: Moving,
    options: Sequence[int | None],
) -> DiagnosticRow:
    """Return a row on whether one option of each item stands at some letter too often.

    `options` are the indices of these options, None where an item has none; `what`
    describes them for people.
    """
    chosen = []
    for (_, arrangements), option in zip(moving, options, strict=True):
        if option is not None:
            chosen.append((arrangements, option))
    most = max((arrangements.shape[1] for arrangements, _ in chosen), default=0)
    places = np.arange(most)[:, None]
    stands = [places == (rows == option).argmax(axis=1) for rows, option in chosen]
    values = np.array(stands, dtype=int)
    if not len(values) or not np.ptp(values, axis=2).any():
        return DiagnosticRow(diagnostic, reading=f"no {what} that move")
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
) -> DiagnosticRow:
    """Return a row on Kendall's rank correlation of place and a value of each option.

    `values` are those of the options of each item, None where an item has none. With
    `either_way` the size of the correlation in each item is tested, whatever its sign.
    """
    sums = []
    pairs = 0
    for (_, arrangements), of_options in zip(moving, values, strict=True):
        if of_options is None:
            continue
        ascents = option_order.ascents(of_options, arrangements)
        sums.append(np.abs(ascents) if either_way else ascents)
        for first, second in combinations(of_options, 2):
            pairs += first != second
    nothing = f"no items whose options could be sorted by {what.split()[0]}"
    return _summed(
        diagnostic,
        f"rank correlation of {what}",
        "+z.3f",
        sums,
        pairs,
        nothing,
    )


def numbers(item: "Item") -> list[float] | None:
    """Return the first number of each option, (k,); None if any has none or all agree."""
    firsts = []
    for option in item.options:
        number = number_in(option)
        if number is None:
            return None
        firsts.append(number)
    return firsts if len(set(firsts)) > 1 else None


def number_in(option: str) -> float | None:
    """Return the first number in a text, in digits; None if it has none.

    >>> number_in("about −1,200 of them")
    -1200.0
    """
    match = _NUMBER.search(option)
    if match is None:
        return None
    size = float(match[2].replace(",", ""))
    return -size if match[1] else size


def denials(item: "Item") -> list[int] | None:
    """Return the number of denials in each option, (k,); None if all numbers agree."""
    counts = [len(_DENIAL.findall(option)) for option in item.options]
    return counts if len(set(counts)) > 1 else None
