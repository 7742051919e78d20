"""Neighbours of a text: small changes that a model which has not seen it should mind little.

Mattern et al. (2023) compare the loss of a text with that of its neighbours, which a masked
language model makes (`masked_lm`). Here words are swapped and left out at random, without weights.
"""

import re
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from contamination.errors import InputError

SHARE = 0.1  # of the words or tokens that a neighbour changes


class Perturbation(Protocol):
    """How neighbours are made."""

    def __call__(self, text: str, count: int, *, rng: np.random.Generator) -> list[str]:
        """Return `count` neighbours of a text; raise `InputError` where it has none."""


def word_neighbours(text: str, count: int, *, rng: np.random.Generator) -> list[str]:
    """Swap or leave out words: a tenth of them, one at least, with a fair coin for each.

    A swap is with the next word. Spaces and line ends stay where they are.

    Raises
    ------
    InputError
        A text of one word: it can neither be swapped nor left out.
    """
    parts = re.split(r"(\s+)", text)  # even: words, of which the outer ones may be empty
    places = [i for i in range(0, len(parts), 2) if parts[i]]
    if len(places) < 2:
        raise InputError(f"{text[:40]!r} has one word and so no neighbour; leave it out")
    changes = max(1, round(SHARE * len(places)))
    return [_changed(parts, places, changes, rng) for _ in range(count)]


def _changed(
    parts: Sequence[str], places: Sequence[int], changes: int, rng: np.random.Generator
) -> str:
    new = list(parts)
    for k in sorted(rng.choice(len(places) - 1, size=min(changes, len(places) - 1), replace=False)):
        here, following = places[k], places[k + 1]
        if rng.random() < 0.5:
            new[here], new[following] = new[following], new[here]
        else:
            new[here] = ""
            new[here + 1] = ""
    return "".join(new)
