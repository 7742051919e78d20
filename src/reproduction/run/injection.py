"""The training mixture: a corpus, and canary sets injected whole at random positions.

Oren (section 4.1) duplicate each canary set `dup_count` times, and do not say where
copies stand. Here every copy is inserted whole, in canonical order, at a boundary
between two documents; these places are drawn uniformly and independently. A set may
also be planted *shuffled*, in another order in each copy, or as *single* records, each
at a place of its own: no order of records is left then.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from contamination.errors import InputError

Planting = Literal["whole", "shuffled", "single"]
PLANTINGS: tuple[Planting, ...] = ("whole", "shuffled", "single")


@dataclass(frozen=True)
class Injection:
    """One copy in the mixture: tokens[start:stop] is the set of that name."""

    name: str
    start: int
    stop: int


def planted_copies(
    name: str,
    planting: Planting,
    dup_count: int,
    records: Sequence[np.ndarray],
    *,
    rng: np.random.Generator,
) -> dict[str, tuple[np.ndarray, int]]:
    """Return the pieces to insert, by name: token ids, and number of copies.

    Names begin with that of the set. The name of a shuffled copy ends in the number of
    the copy, that of a single record in the number of the record.

    Parameters
    ----------
    name
        Name of the set.
    planting
        Whole, shuffled or single.
    dup_count
        Number of times that the set is planted.
    records
        Token ids of each record, in canonical order.
    rng
        Draws the orders of shuffled copies.
    """
    if planting == "single":
        return {f"{name} {i}": (ids, dup_count) for i, ids in enumerate(records)}
    if planting == "whole":
        return {name: (np.concatenate(records), dup_count)}
    pieces = {}
    for copy in range(dup_count):
        order = rng.permutation(len(records))
        pieces[f"{name} {copy}"] = (np.concatenate([records[i] for i in order]), 1)
    return pieces


def mix(
    corpus: np.ndarray,
    ends: np.ndarray,
    canaries: Mapping[str, tuple[np.ndarray, int]],
    end_of_text: int,
    *,
    rng: np.random.Generator,
) -> tuple[list[np.ndarray], list[Injection]]:
    """Insert every canary set into the corpus as often as it asks.

    Returns arrays of token ids, which one after the other are the training stream
    (slices of the corpus, since it may be larger than memory), and where the copies lie
    in it, in that order.

    Parameters
    ----------
    corpus
        Token ids of all documents, each closed by `end_of_text`; used once, in this
        order.
    ends
        int[documents], offset in `corpus` after each document.
    canaries
        Name -> (token ids of the whole set in canonical order, duplication count).
    end_of_text
        Id written after every copy.
    rng
        Draws the places.
    """
    copies: list[str] = []
    for name, (_, dup_count) in canaries.items():
        copies += [name] * dup_count
    places = rng.integers(0, len(ends) + 1, size=len(copies))
    # Copies that fall between the same two documents come in random order, not in that
    # of names.
    arrival = rng.permutation(len(copies))
    order = arrival[np.argsort(places[arrival], kind="stable")]

    boundaries = np.concatenate([[0], ends])
    separator = np.asarray([end_of_text], dtype=corpus.dtype)
    pieces: list[np.ndarray] = []
    injections: list[Injection] = []
    taken = 0  # corpus tokens before the present place
    length = 0
    for copy in order:
        name = copies[copy]
        place = int(boundaries[places[copy]])
        ids = canaries[name][0].astype(corpus.dtype)
        length += place - taken
        injections.append(Injection(name, length, length + len(ids)))
        pieces += [corpus[taken:place], ids, separator]
        length += len(ids) + 1
        taken = place
    return [*pieces, corpus[taken:]], injections


def fill_blocks(
    background: np.ndarray,
    ends: np.ndarray,
    copies: Mapping[str, tuple[np.ndarray, int]],
    end_of_text: int,
    *,
    context: int,
    rng: np.random.Generator,
    tokens: int | None = None,
) -> tuple[np.ndarray, list[Injection]]:
    """Insert all copies; return blocks of the context, (n, context), and places.

    The background is cut so that the last block is full.

    Parameters
    ----------
    background, ends, copies, end_of_text, rng
        The arguments of `mix`.
    context
        Tokens of a block.
    tokens
        Approximate number of tokens of the whole text; None takes as many as there are.

    Raises
    ------
    InputError
        If the copies leave no room, or the background is too short.
    """
    planted = sum((len(ids) + 1) * dup_count for ids, dup_count in copies.values())
    total = (tokens or planted + len(background)) // context * context
    room = total - planted
    if not 0 < room <= len(background):
        raise InputError(
            f"{planted} tokens of copies and {len(background)} of background for a text "
            f"of {total} in blocks of {context}: give more background, or fewer "
            "examples or copies"
        )
    pieces, injections = mix(
        background[:room],
        ends[ends <= room],
        copies,
        end_of_text,
        rng=rng,
    )
    return np.concatenate(pieces).astype(np.int64).reshape(-1, context), injections
