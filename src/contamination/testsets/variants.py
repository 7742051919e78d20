"""The texts of one record of which one was published: the arrangements of its options.

The null hypothesis of every test on them: the published arrangement of an item was drawn uniformly
from those that are *permitted*, independently over items. What may move is decided by the options
as a set, never by the order in which they stand, and what may not stays where it was published. So
every permitted arrangement of an item permits the same ones, and the null is exact given what
stays. `permitted_places` has the rules.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from contamination.errors import InputError
from contamination.files import sha256_of
from contamination.randomness import random_stream
from contamination.testsets.example_set import Declared, ExampleSet, check_texts
from contamination.testsets.option_texts import (
    ABOUT_OTHERS,
    LETTERS,
    NAMES_OTHERS,
    are_numbers,
    begin_with_labels,
)
from contamination.testsets.options import Item, items_of
from contamination.testsets.records import check_ids
from contamination.testsets.registry import entries
from contamination.testsets.sources import open_records, open_test_set
from contamination.testsets.templates import MOST_SHOWN, parse, render

OPTIONS_TEMPLATE = "options/1"  # question, "A. ..." lines, "Answer: A" where the answer is known
FEWEST = 2  # items that must be able to move


@dataclass(frozen=True)
class FixedOptions:
    """What must keep its place besides what the sense of an item keeps there.

    Attributes
    ----------
    answer : the right option stays at its letter, which takes out a skewed share of gold letters
        and a model's liking for one; items whose answer is not known do not move.
    habits : an item does not move whose options are all numbers, amounts or dates, which authors
        sort, or if another one has the same options in whatever order ("True, True", "True, False"
        ...), as one habit set both. Not where a seed or a key has arranged them.
    """

    answer: bool = False
    habits: bool = True


@dataclass(frozen=True)
class VariantSet:
    """The alternatives of every record of a set, the published one first.

    Attributes
    ----------
    texts : N of each of n records, separator included; where fewer are distinct, all equally often.
    template : name/version of the rendering, or the template itself.
    what : "options" (arrangements) or "wordings" (an author's own).
    """

    name: str
    texts: tuple[tuple[str, ...], ...]
    template: str
    what: Literal["options", "wordings"]

    @cached_property
    def revision(self) -> str:
        """SHA-256 of the template and all texts."""
        return sha256_of(self.template, *itertools.chain.from_iterable(self.texts))

    @cached_property
    def distinct(self) -> tuple[int, ...]:
        """How many different alternatives stand in a row; 1 where nothing may move."""
        return tuple(len({*row}) for row in self.texts)


def open_items(
    what: str | Path,
    *,
    template: str | None = None,
    declared: Declared = Declared(),  # noqa: B008 - frozen
    **where: Any,
) -> ExampleSet:
    """Open a set of items as `contamination.testsets.sources.open_test_set` does.

    One that is not registered needs no template: its examples are the items by OPTIONS_TEMPLATE.
    Raises InputError as that and, without a template, as `items_of`.
    """
    if template is not None or str(what) in entries():
        return replace(open_test_set(what, template=template, **where), declared=declared)
    opened = open_records(what, **where)
    chosen = opened.records[: opened.used]
    check_ids(chosen, opened.where)
    records = tuple(record for _, record in chosen)
    found = ExampleSet(opened.name, (), OPTIONS_TEMPLATE, "", records, declared)
    texts = tuple(_plain(item, range(len(item.options))) for item in items_of(found))
    check_texts(texts, opened.where)
    return replace(found, examples=texts, revision=sha256_of(OPTIONS_TEMPLATE, *texts))


def shown_items(test_set: ExampleSet, template: str | None = None) -> tuple[str, tuple[Item, ...]]:
    """Return the template that shows all options of a set, and its items as it shows them.

    `template` as in `option_variants`. Raises InputError as `items_of`, and for a template that
    hides options.
    """
    own, items = template or test_set.template, items_of(test_set)
    if own == OPTIONS_TEMPLATE:
        return own, items
    # Whether every option is shown is found by putting others in.
    marks = [f"<<option {letter}>>" for letter in LETTERS]
    marked = [("", item.with_options(marks[: len(item.options)])) for item in items]
    texts: tuple[str, ...] = ()
    with suppress(InputError):  # it names a field or a list entry that a record has not
        texts = render(marked, own, test_set.name)
    shown = zip(items, texts, strict=False)
    if texts and all(mark in text for one, text in shown for mark in marks[: len(one.options)]):
        fields = parse(own).fields
        return parse(own).name, items_of(test_set, fields | {each.split(".")[0] for each in fields})
    if template is None:
        return OPTIONS_TEMPLATE, items
    raise InputError(
        f"{test_set.name}: template {template[:MOST_SHOWN]!r} does not show every option; write "
        "one that does, or leave it out"
    )


def option_variants(
    test_set: ExampleSet,
    *,
    permutations: int = 23,
    seed: int,
    keep: FixedOptions | Sequence[Sequence[int]] = FixedOptions(),
    template: str | None = None,
) -> VariantSet:
    """Render the published arrangement of every item and others, N = permutations + 1 in a row.

    Rows are as `option_orders` draws them. Raises InputError as `shown_items`, and if fewer than
    two items can move.

    Parameters
    ----------
    test_set : with records; see `contamination.testsets.options.items_of`.
    permutations : other arrangements beside the published one. 23 are all of four options.
    seed : of the choice, where there are more than N.
    keep : what does not move; see `FixedOptions` and `permitted_places`. Or the places of each item
        that options may move among, where a key has moved them (`contamination.seal`).
    template : how an arrangement becomes text. None takes the set's own if that shows every option,
        else OPTIONS_TEMPLATE.
    """
    own, items = shown_items(test_set, template)
    free = permitted_places(items, keep) if isinstance(keep, FixedOptions) else keep
    require_arrangements(test_set, free, permutations)
    orders = option_orders(items, free, permutations=permutations, seed=seed)
    texts = []
    for item, rows in zip(items, orders, strict=True):
        once = dict.fromkeys(rows)
        if own == OPTIONS_TEMPLATE:
            row = tuple(_plain(item, order) for order in once)
        else:
            moved = [("arrangement", item.rearranged(order)) for order in once]
            row = render(moved, own, "rearranged")
        texts.append(row * (len(rows) // len(row)))
    return VariantSet(test_set.name, tuple(texts), own, "options")


def require_arrangements(
    test_set: ExampleSet, free: Sequence[Sequence[int]], permutations: int
) -> None:
    """Refuse items of which too few can move."""
    able = sum(_distinct(places, permutations + 1) > 1 for places in free)
    if able < FEWEST:
        raise InputError(
            f"{test_set.name}: the options of {able} of {len(free)} items may move, and the test "
            f"needs {FEWEST}: the others are numbers, name each other, stand in another item too, "
            "are named by letters in a text beside them, are too few, or have arrangements that "
            f"cannot fill {permutations + 1} columns equally often (give arrangements=24)",
            parameter="arrangements",
        )


def option_orders(
    items: Sequence[Item], free: Sequence[Sequence[int]], *, permutations: int, seed: int
) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """Draw arrangements: N = permutations + 1 orders of each item, the published one first.

    Entry i of an order is the index of the option that stands in place i; `free` are the places
    that may change, as `permitted_places` has them. Let g be the number of such arrangements of an
    item, and d the largest divisor of N that is at most g. The published arrangement and d - 1
    others, drawn without replacement, stand N / d times each. Given this set of d, the published
    one is uniform over it if it was uniform over all g, so a row is uniform over its N columns, and
    tests that are exact for N exchangeable columns stay so. Raises InputError for no permutations.
    """
    if permutations < 1:
        raise InputError(f"permutations is {permutations}: give at least 1, better 23")
    rows, seen, columns = [], Counter[str](), permutations + 1
    for item, places in zip(items, free, strict=True):
        # By content, not by place: what is drawn says nothing about the order of the records.
        identity = sha256_of(repr(item))
        seen[identity] += 1
        rng = random_stream(seed, "arrangements", identity, seen[identity])
        most = _distinct(places, columns)
        rows.append(_distinct_orders(len(item.options), places, most, rng=rng) * (columns // most))
    return tuple(rows)


def _distinct(places: Sequence[int], columns: int) -> int:
    """Return how many arrangements of so many places stand in a row, all equally often."""
    most = min(columns, math.factorial(len(places)))
    return next(count for count in range(most, 0, -1) if columns % count == 0)


def _distinct_orders(
    count: int, places: Sequence[int], most: int, *, rng: np.random.Generator
) -> tuple[tuple[int, ...], ...]:
    """Return so many orders of options that move those at some places, the published one first."""
    moved: Iterator[list[int]] = (rng.permutation(places).tolist() for _ in itertools.count())
    if most == math.factorial(len(places)):  # all of them
        moved = map(list, itertools.permutations(places))
    found = {tuple(range(count)): None}
    while len(found) < most:
        contents = dict(zip(places, next(moved), strict=True))
        found[tuple(contents.get(i, i) for i in range(count))] = None
    return tuple(found)


def permitted_places(items: Sequence[Item], keep: FixedOptions) -> list[tuple[int, ...]]:
    """Return the places among which the options of each item may be permuted.

    None of an item that `reason_to_stay` names a reason for. Otherwise all but those of options
    about the others ("none of these") or that custom puts last ("cannot be determined"), and that
    of the right answer under `FixedOptions.answer`.
    """
    shared = _sharing(items)
    return [
        () if reason_to_stay(item, keep, shared=one) else _free_places(item, keep)
        for item, one in zip(items, shared, strict=True)
    ]


def items_that_stay(items: Sequence[Item], keep: FixedOptions) -> str:
    """Return how many items do not move and why, as a line for people; "" if all move."""
    pairs = zip(items, _sharing(items), strict=True)
    reasons = [reason_to_stay(item, keep, shared=shared) for item, shared in pairs]
    counts = Counter(reason for reason in reasons if reason)
    if not counts:
        return ""
    told = "; ".join(f"{reason} ({count})" for reason, count in counts.most_common())
    return f"{counts.total()} of {len(items)} items do not move: they {told}"


def reason_to_stay(item: Item, keep: FixedOptions, *, shared: bool) -> str:
    """Return why the options of an item do not move, as what such items do; "" if they do.

    Parameters
    ----------
    item : whose options alone decide, never their order.
    keep : what keeps its place by the request.
    shared : whether another item of the set has the same options.
    """
    are_all_numbers = are_numbers(item.options)
    texts = _compared_texts(item)
    if keep.habits and shared:
        return "share their options with another item"
    if keep.habits and are_all_numbers:
        return "have numbers, amounts or dates as options"
    if item.lettered:
        return "are shown beside a text that names options by their letters"
    if len(set(texts)) < len(texts):
        return "have two equal options"
    if begin_with_labels(item.options):
        return "have options that begin with their labels"
    if not are_all_numbers and any(NAMES_OTHERS.search(option) for option in item.options):
        return "have options that name each other"
    if keep.answer and item.answer is None:
        return "do not say which option is right"
    if len(_free_places(item, keep)) < FEWEST:
        return "have fewer than two options that may move"
    return ""


def _sharing(items: Sequence[Item]) -> list[bool]:
    """Return whether the options of each item are those of another one, in whatever order."""
    compared = [tuple(sorted(_compared_texts(item))) for item in items]
    counts = Counter(compared)
    return [counts[texts] > 1 for texts in compared]


def _compared_texts(item: Item) -> list[str]:
    """Return the options without what does not tell them apart: case, blanks, a last full stop."""
    return [" ".join(option.casefold().split()).rstrip(".") for option in item.options]


def _free_places(item: Item, keep: FixedOptions) -> tuple[int, ...]:
    """Return the places of options that are not about the others, nor the kept answer."""
    pinned = set[int]()
    if not are_numbers(item.options):
        pinned = {i for i, option in enumerate(item.options) if ABOUT_OTHERS.search(option)}
    if keep.answer and item.answer is not None:
        pinned.add(item.answer)
    return tuple(place for place in range(len(item.options)) if place not in pinned)


def _plain(item: Item, order: Sequence[int]) -> str:
    """Text of an arrangement by OPTIONS_TEMPLATE."""
    lines = [f"{letter}. {item.options[i]}" for letter, i in zip(LETTERS, order, strict=False)]
    if item.answer is not None:
        lines.append(f"Answer: {LETTERS[list(order).index(item.answer)]}")
    return "\n".join([item.question, *lines]) + "\n"
