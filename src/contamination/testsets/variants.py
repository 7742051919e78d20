"""Variants of each record, of which one was published: the arrangements of its options.

The null hypothesis of every test on them: the published arrangement of an item was
drawn uniformly from those that are *permitted*, independently over items. What may move
is decided by the options as a set, never by the order in which they stand, and what may
not stays where it was published. So every permitted arrangement of an item permits the
same ones, and the null is exact given what stays. `permitted_places` has the rules.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from contamination.errors import InputError
from contamination.files import PartsDigest
from contamination.testsets.arrangements import (
    ArrangedTexts,
    distinct_orders,
    drawn_orders,
)
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.item_sets import shown_items
from contamination.testsets.option_texts import (
    ABOUT_OTHERS,
    NAMES_OTHERS,
    are_numbers,
    begin_with_labels,
)
from contamination.testsets.options import Item

FEWEST = 2  # items that must be able to move
MOST_VARIANTS = 10_000_000  # different texts of a set: they are drawn in two minutes


@dataclass(frozen=True)
class FixedOptions:
    """The options that stay in place, in addition to those that an item fixes.

    Attributes
    ----------
    answer
        The right option stays at its letter, which takes out a skewed share of gold
        letters and a model's liking for one; items whose answer is not known do not
        move.
    habits
        An item does not move whose options are all numbers, amounts or dates, which
        authors sort, or if another one has the same options in whatever order ("True,
        True", "True, False" ...), as one habit set both. Not where a seed or a key has
        arranged them.
    """

    answer: bool = False
    habits: bool = True


@dataclass(frozen=True)
class VariantSet:
    """The variants of every record of a set, the published one first.

    Attributes
    ----------
    name
        Name of the set.
    texts
        N of each of n records, separator included; where fewer are distinct, all
        equally often.
    template
        Name/version of the rendering, or the template itself.
    what
        "options" (arrangements) or "wordings" (an author's own).
    """

    name: str
    texts: Sequence[tuple[str, ...]]
    template: str
    what: Literal["options", "wordings"]

    @property
    def revision(self) -> str:
        """SHA-256 of the template and all texts."""
        return self._digest.revision

    @property
    def distinct(self) -> tuple[int, ...]:
        """Number of different texts of each record; 1 where nothing may move."""
        return self._digest.distinct

    @cached_property
    def _digest(self) -> "_Digest":
        """Read every text once: not all rows need to fit in memory."""
        revision = PartsDigest()
        revision.add(self.template)
        distinct = list[int]()
        for row in self.texts:
            distinct.append(len(set(row)))
            for text in row:
                revision.add(text)
        return _Digest(revision.hexdigest(), tuple(distinct))


class _Digest(NamedTuple):
    """The revision of a set of variants, and how many texts of each record differ."""

    revision: str
    distinct: tuple[int, ...]


def option_variants(
    test_set: ExampleSet,
    *,
    permutations: int = 23,
    seed: int,
    keep: FixedOptions | Sequence[Sequence[int]] = FixedOptions(),
    template: str | None = None,
) -> VariantSet:
    """Return the published arrangement of every item and others, N in a row.

    N is permutations + 1. Rows are as `option_orders` draws them. Their texts are
    rendered when they are read.

    Parameters
    ----------
    test_set
        A set with records; see `contamination.testsets.options.items_of`.
    permutations
        Arrangements other than the published one. 23 are all others of four options.
    seed
        Seed of the choice, where there are more than N.
    keep
        Which options stay in place; see `FixedOptions` and `permitted_places`.
        Alternatively the places of each item among which a key has moved the options
        (`contamination.seal`).
    template
        How an arrangement becomes text. None takes the set's own if that shows every
        option, else OPTIONS_TEMPLATE.

    Raises
    ------
    InputError
        For what `shown_items` refuses; if fewer than two items can move; and if there
        are more than MOST_VARIANTS different texts.

    Examples
    --------
    >>> records = (
    ...     {"question": "What runs?", "choices": ["A stone", "A river"], "answer": 1},
    ...     {"question": "What barks?", "choices": ["A dog", "A lake"], "answer": 0},
    ... )
    >>> items = ExampleSet("toy", (), "options/1", "", records)
    >>> variants = option_variants(items, permutations=1, seed=0)
    >>> variants.distinct
    (2, 2)
    >>> print(variants.texts[0][1], end="")
    What runs?
    A. A river
    B. A stone
    Answer: A
    """
    own, items = shown_items(test_set, template)
    free = permitted_places(items, keep) if isinstance(keep, FixedOptions) else keep
    require_arrangements(test_set, free, permutations)
    _require_few(test_set, free, permutations)
    drawn = drawn_orders(items, free, permutations=permutations, seed=seed)
    orders = [np.array(rows, dtype=np.uint8) for rows in drawn]
    texts = ArrangedTexts(items, orders, columns=permutations + 1, template=own)
    return VariantSet(test_set.name, texts, own, "options")


def require_arrangements(
    test_set: ExampleSet, free: Sequence[Sequence[int]], permutations: int
) -> None:
    """Raise InputError if fewer than two items can move, each among its `free` places."""
    able = sum(distinct_orders(places, permutations + 1) > 1 for places in free)
    if able < FEWEST:
        raise InputError(
            f"{test_set.name}: the options of {able} of {len(free)} items may move, "
            f"and the test needs {FEWEST}: the others are numbers, name each other, "
            "stand in another item too, are named by letters in a text beside them, "
            f"are too few, or have arrangements that cannot fill {permutations + 1} "
            "columns equally often (give arrangements=24)",
            parameter="arrangements",
        )


def _require_few(
    test_set: ExampleSet,
    free: Sequence[Sequence[int]],
    permutations: int,
) -> None:
    """Raise InputError for more texts than can be drawn, before any is."""
    count = sum(distinct_orders(places, permutations + 1) for places in free)
    if count > MOST_VARIANTS:
        raise InputError(
            f"{test_set.name}: {permutations + 1:,} arrangements of {len(free):,} "
            f"items are {count:,} different texts; give fewer (24 are all arrangements "
            f"of four options), for at most {MOST_VARIANTS:,} texts"
        )


def option_orders(
    items: Sequence[Item], free: Sequence[Sequence[int]], *, permutations: int, seed: int
) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """Draw arrangements: N = permutations + 1 orders of each item, the published one first.

    Entry i of an order is the index of the option that stands in place i. Let g be the
    number of permitted arrangements of an item, and d the largest divisor of N that is
    at most g. The published arrangement and d - 1 others, drawn without replacement,
    stand N / d times each. Given this set of d, the published one is uniform over it if
    it was uniform over all g, so a row is uniform over its N columns, and tests that
    are exact for N exchangeable columns stay so.

    Parameters
    ----------
    items
        n of them.
    free
        Places of each item that may change, as `permitted_places` returns them.
    permutations
        N - 1.
    seed
        Seed of the draws.

    Returns
    -------
    tuple
        For each item N orders.

    Raises
    ------
    InputError
        For no permutations.
    """
    rows = list[tuple[tuple[int, ...], ...]]()
    for orders in drawn_orders(items, free, permutations=permutations, seed=seed):
        copies = (permutations + 1) // len(orders)
        rows.append(orders * copies)
    return tuple(rows)


def permitted_places(items: Sequence[Item], keep: FixedOptions) -> list[tuple[int, ...]]:
    """Return the places among which the options of each item may be permuted.

    None of an item that `reason_to_stay` names a reason for. Otherwise all but those of
    options about the others ("none of these") or that custom puts last ("cannot be
    determined"), and that of the right answer under `FixedOptions.answer`.
    """
    shared = _sharing(items)
    places = list[tuple[int, ...]]()
    for item, is_shared in zip(items, shared, strict=True):
        stays = reason_to_stay(item, keep, shared=is_shared) != ""
        places.append(() if stays else _free_places(item, keep))
    return places


def items_that_stay(items: Sequence[Item], keep: FixedOptions) -> str:
    """Return how many items do not move and why, as a line for people.

    It is "" if all move.
    """
    counts = Counter[str]()
    for item, is_shared in zip(items, _sharing(items), strict=True):
        reason = reason_to_stay(item, keep, shared=is_shared)
        if reason:
            counts[reason] += 1
    if not counts:
        return ""
    reasons = "; ".join(f"{reason} ({count})" for reason, count in counts.most_common())
    return f"{counts.total()} of {len(items)} items do not move: they {reasons}"


def reason_to_stay(item: Item, keep: FixedOptions, *, shared: bool) -> str:
    """Return why the options of an item do not move, as what such items do; "" if they do.

    Their order does not count. `shared` says whether another item of the set has the
    same.
    """
    are_all_numbers = are_numbers(item.options)
    name_others = any(map(NAMES_OTHERS.search, item.options))
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
    if name_others and not are_all_numbers:
        return "have options that name each other"
    if keep.answer and item.answer is None:
        return "do not say which option is right"
    if len(_free_places(item, keep)) < FEWEST:
        return "have fewer than two options that may move"
    return ""


def _sharing(items: Sequence[Item]) -> list[bool]:
    """Return whether the options of each item are those of another one, in any order."""
    compared = [tuple(sorted(_compared_texts(item))) for item in items]
    counts = Counter(compared)
    return [counts[texts] > 1 for texts in compared]


def _compared_texts(item: Item) -> list[str]:
    """Return the options without case, surplus blanks and a full stop at the end."""
    texts: list[str] = []
    for option in item.options:
        words = option.casefold().split()
        texts.append(" ".join(words).rstrip("."))
    return texts


def _free_places(item: Item, keep: FixedOptions) -> tuple[int, ...]:
    """Return the places of options that are not about the others, nor the kept answer."""
    pinned = set[int]()
    if not are_numbers(item.options):
        for place, option in enumerate(item.options):
            if ABOUT_OTHERS.search(option):
                pinned.add(place)
    if keep.answer and item.answer is not None:
        pinned.add(item.answer)
    return tuple(place for place in range(len(item.options)) if place not in pinned)
