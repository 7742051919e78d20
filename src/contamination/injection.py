"""The training mixture: a corpus, and canary sets injected whole at random positions.

Oren (section 4.1): each canary set is duplicated `dup_count` times and every copy is inserted whole
and contiguous, in canonical order, at a random place of the pre-training data. Here a place is a
boundary between two documents, and places are drawn uniformly and independently.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Injection:
    """One copy of a canary set in the mixture: tokens[start:stop] is the set, in order."""

    name: str
    start: int
    stop: int


@dataclass(frozen=True)
class Mixture:
    """A training stream.

    Attributes
    ----------
    tokens : int32[n], documents separated by the end-of-text token.
    injections : where the canaries lie, in order of position.
    """

    tokens: np.ndarray
    injections: tuple[Injection, ...]


def mix(
    documents: Sequence[np.ndarray],
    canaries: Mapping[str, tuple[np.ndarray, int]],
    end_of_text: int,
    *,
    rng: np.random.Generator,
) -> Mixture:
    """Insert every canary set into the sequence of documents as often as it asks.

    Parameters
    ----------
    documents : token ids of each corpus document; all are used, once, in the order given.
    canaries : name -> (token ids of the whole set in canonical order, duplication count).
    end_of_text : id written after every document and after every copy.
    """
    copies = [name for name, (_, dup_count) in canaries.items() for _ in range(dup_count)]
    places = rng.integers(0, len(documents) + 1, size=len(copies))
    # Copies that fall between the same two documents come in random order, not in that of names.
    arrival = rng.permutation(len(copies))
    order = arrival[np.argsort(places[arrival], kind="stable")]

    pieces: list[np.ndarray] = []
    injections: list[Injection] = []
    separator = np.asarray([end_of_text], dtype=np.int32)
    length = 0
    waiting = list(order[::-1])
    for position in range(len(documents) + 1):
        while waiting and places[waiting[-1]] == position:
            name = copies[waiting.pop()]
            ids = canaries[name][0]
            injections.append(Injection(name, length, length + len(ids)))
            pieces += [ids, separator]
            length += len(ids) + 1
        if position < len(documents):
            pieces += [documents[position], separator]
            length += len(documents[position]) + 1
    tokens = np.concatenate(pieces) if pieces else np.empty(0, dtype=np.int32)
    return Mixture(tokens.astype(np.int32, copy=False), tuple(injections))
