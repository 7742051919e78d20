"""Orders of the options of items, drawn by a seed, and their texts.

Texts are rendered when they are read, since all at once may be gigabytes.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import overload

import numpy as np
from numpy.typing import NDArray

from contamination.errors import InputError
from contamination.files import sha256_of
from contamination.randomness import random_stream
from contamination.testsets.option_texts import LETTERS
from contamination.testsets.options import Item
from contamination.testsets.templates import render

# Question, "A. ..." lines, "Answer: A" where the answer is known.
OPTIONS_TEMPLATE = "options/1"
KEPT_TEXTS = 250_000  # texts of a set that stay in memory once they are rendered


class ArrangedTexts(Sequence[tuple[str, ...]]):
    """The texts of all arrangements of each item, a row for each item.

    Parameters
    ----------
    items
        n of them.
    orders
        The different orders of each item, the published one first, uint8[d, options].
    columns
        N, how many texts a row has: each of the d texts stands in it N / d times.
    template
        The name or text of a template, or OPTIONS_TEMPLATE.
    """

    def __init__(
        self,
        items: Sequence[Item],
        orders: Sequence[NDArray[np.uint8]],
        *,
        columns: int,
        template: str,
    ) -> None:
        self._items = items
        self._orders = orders
        self._columns = columns
        self._template = template
        kept_rows = max(1, KEPT_TEXTS // columns)
        self._row = lru_cache(maxsize=kept_rows)(self._rendered)

    def __len__(self) -> int:
        """Return the number of items."""
        return len(self._items)

    @overload
    def __getitem__(self, index: int) -> tuple[str, ...]: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[tuple[str, ...], ...]: ...

    def __getitem__(
        self,
        index: int | slice,
    ) -> tuple[str, ...] | tuple[tuple[str, ...], ...]:
        """Return the row of an item, or the rows of several."""
        numbers = range(len(self))[index]
        if isinstance(numbers, range):
            return tuple(self._row(number) for number in numbers)
        return self._row(numbers)

    def _rendered(self, number: int) -> tuple[str, ...]:
        """Return the row of an item."""
        item = self._items[number]
        orders = self._orders[number].tolist()
        texts = self._texts(item, orders)
        return texts * (self._columns // len(texts))

    def _texts(self, item: Item, orders: Sequence[Sequence[int]]) -> tuple[str, ...]:
        """Return the text of an item in each of these orders."""
        if self._template == OPTIONS_TEMPLATE:
            return tuple(plain_text(item, order) for order in orders)
        records = [("arrangement", item.rearranged(order)) for order in orders]
        return render(records, self._template, "rearranged")


def plain_text(item: Item, order: Sequence[int]) -> str:
    """Return the text of an arrangement by OPTIONS_TEMPLATE.

    Examples
    --------
    >>> item = Item("What runs?", ("A stone", "A river"), answer=1)
    >>> plain_text(item, [1, 0])
    'What runs?\\nA. A river\\nB. A stone\\nAnswer: A\\n'
    """
    lines = [item.question]
    for letter, option in zip(LETTERS, order, strict=False):
        lines.append(f"{letter}. {item.options[option]}")
    if item.answer is not None:
        place = list(order).index(item.answer)
        lines.append(f"Answer: {LETTERS[place]}")
    return "\n".join(lines) + "\n"


def drawn_orders(
    items: Sequence[Item], free: Sequence[Sequence[int]], *, permutations: int, seed: int
) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Yield the different orders of each item, the published one first.

    `free` are the places of each item that may change. There are at most `permutations`
    orders other than the published one, and the number of all orders of an item divides
    permutations + 1. Raises InputError for no permutations.
    """
    if permutations < 1:
        raise InputError(f"permutations is {permutations}: give at least 1, better 23")
    seen = Counter[str]()
    for item, places in zip(items, free, strict=True):
        # By content, not by place: what is drawn says nothing about the order of the
        # records.
        identity = sha256_of(repr(item))
        seen[identity] += 1
        rng = random_stream(seed, "arrangements", identity, seen[identity])
        count = distinct_orders(places, permutations + 1)
        yield _drawn_from(len(item.options), places, count, rng=rng)


def distinct_orders(places: Sequence[int], columns: int) -> int:
    """Return how many arrangements of some places stand equally often in N columns.

    Examples
    --------
    >>> distinct_orders([0, 1, 2], columns=8)  # at most 3!, and a divisor of 8
    4
    """
    most = min(columns, math.factorial(len(places)))
    return next(count for count in range(most, 0, -1) if columns % count == 0)


def _drawn_from(
    options: int, places: Sequence[int], count: int, *, rng: np.random.Generator
) -> tuple[tuple[int, ...], ...]:
    """Return `count` orders of options that differ at some places, the published one first.

    If these are all orders that there are, nothing is drawn.
    """
    published = tuple(range(options))
    orders = {published: None}
    if count == math.factorial(len(places)):
        for contents in itertools.permutations(places):
            orders[_moved(published, places, contents)] = None
    while len(orders) < count:
        contents = rng.permutation(places).tolist()
        orders[_moved(published, places, contents)] = None
    return tuple(orders)


def _moved(
    published: Sequence[int], places: Sequence[int], contents: Sequence[int]
) -> tuple[int, ...]:
    """Return an order with other contents at some places."""
    order = list(published)
    for place, content in zip(places, contents, strict=True):
        order[place] = content
    return tuple(order)
