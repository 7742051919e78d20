"""The division of an author's records by a key: what is published, and what stays back.

The key draws which records are held back: uniformly among all choices of that many, by
a stream of its own ("contamination-seal/2/held-out"), from the records in the order of
their author. Orders, options, wordings and answers are drawn for all records in the
same way, whichever side they are on. So under H0 the sides are exchangeable, given all
else that the key has drawn.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from contamination.errors import InputError
from contamination.randomness import KeyedStream
from contamination.seal.draws import ALGORITHM, Drawn, Statement, Variants
from contamination.testsets.arrangements import distinct_orders
from contamination.testsets.templates import render
from contamination.testsets.variants import FEWEST

FEWEST_RECORDS = 10  # published; fewer have hardly an order to be recognised by
RESAMPLES = 99_999  # divisions with which that of the key is compared
PARTS = 2  # p-values that are combined: that of the sides, and that of all other draws


class Division(NamedTuple):
    """The records on both sides, each in the order that the key has drawn."""

    published: tuple[Drawn, ...]
    held_out: tuple[Drawn, ...]


def divide(drawn: Sequence[Drawn], seed: bytes, hold_out: int | None) -> Division:
    """Return the sides of a drawn set, of which `hold_out` records are held back; None is none.

    >>> from contamination.seal.draws import draw
    >>> drawn = draw([Variants({"text": letter}) for letter in "abcd"], seed=bytes(16))
    >>> sides = divide(drawn, bytes(16), hold_out=2)
    >>> [[record.record["text"] for record in side] for side in sides]
    [['b', 'c'], ['d', 'a']]
    """
    if hold_out is None:
        return Division(tuple(drawn), ())
    order = KeyedStream(seed, f"{ALGORITHM}/held-out").permutation(len(drawn))
    chosen = set(order[:hold_out])
    published = [record for record in drawn if record.number not in chosen]
    held_out = [record for record in drawn if record.number in chosen]
    return Division(tuple(published), tuple(held_out))


def least_p(records: int, hold_out: int) -> float:
    """Return the least p that the comparison of the sides can have.

    Of the records on both sides together, `hold_out` are held back.

    >>> least_p(40, 1)
    0.025
    >>> least_p(100, 50)
    1e-05
    """
    return max(1 / math.comb(records, hold_out), 1 / (RESAMPLES + 1))


def check_division(
    prepared: Sequence[Variants],
    stated: Statement,
    where: str,
) -> None:
    """Raise InputError for records that cannot be divided as stated, whatever is drawn.

    `where` names their source.
    """
    if stated.hold_out is None:
        return
    _check_counts(len(prepared), stated.hold_out, stated.level, where)
    _check_items(prepared, stated, where)
    _refuse_same_text(prepared, stated, where)


def _check_counts(records: int, hold_out: int, level: float, where: str) -> None:
    """Raise InputError for too few records on a side."""
    left = records - hold_out
    if left < FEWEST_RECORDS:
        raise InputError(
            f"{where}: {hold_out:,} of {records:,} records held back leave {max(left, 0):,}, "
            f"and at least {FEWEST_RECORDS} have to be published; hold back fewer",
            parameter="hold_out",
        )
    least = least_p(records, hold_out)
    if PARTS * least > level:
        raise InputError(
            f"{where}: with {hold_out:,} of {records:,} records held back their p is never "
            f"below {least:.2g}, and {PARTS * least:.2g} together with the other draws, "
            f"which is above the level of {level:g}; hold back more",
            parameter="hold_out",
        )


def _check_items(prepared: Sequence[Variants], stated: Statement, where: str) -> None:
    """Raise InputError where a draw could leave too few items whose options move."""
    if not stated.options or stated.hold_out is None:
        return
    able = 0
    for variants in prepared:
        able += distinct_orders(variants.choices("options"), stated.arrangements) > 1
    if able - stated.hold_out < FEWEST:
        raise InputError(
            f"{where}: the options of {able:,} items may move, {stated.hold_out:,} records are "
            f"held back, and the test needs {FEWEST} such items among those that are "
            "published; hold back fewer, or seal the order of records alone (axis=order)",
            parameter="hold_out",
        )


def _refuse_same_text(prepared: Sequence[Variants], stated: Statement, where: str) -> None:
    """Raise InputError for two records that a draw could turn into one text.

    One of them could be published and the other held back: the model would have read
    both.
    """
    seen = dict[str, int]()
    for number, variants in enumerate(prepared, start=1):
        for text in _possible_texts(variants, stated, where):
            first = seen.setdefault(text, number)
            if first != number:
                raise InputError(
                    f"{where}, record {number}: it can have the same text as record {first}, "
                    "so that one could be published and the other held back; remove one, "
                    "or give a template that shows how they differ",
                    parameter="hold_out",
                )


def _possible_texts(variants: Variants, stated: Statement, where: str) -> tuple[str, ...]:
    """Return the texts that a record can have, up to blanks and the order of its options."""
    options = _sorted_options(variants)
    placed = []
    for wording in range(len(variants.choices("wordings")) or 1):
        for answer in range(len(variants.choices("answers")) or 1):
            picks = {"wordings": wording, "answers": answer, **options}
            placed.append(("a variant", variants.variant(picks)))
    texts = render(placed, stated.template, where)
    return tuple(" ".join(text.split()) for text in texts)


def _sorted_options(variants: Variants) -> dict[str, list[int]]:
    """Return the pick that sorts the options of a record; empty where none move."""
    places = variants.choices("options")
    if not places:
        return {}
    options = variants.items[0].options

    def text_of(pick: int) -> str:
        return str(options[places[pick]])

    return {"options": sorted(range(len(places)), key=text_of)}
