"""How alike two texts or token sequences are: edit distance, longest common subsequence, ROUGE-L.

The rows of the dynamic programmes are arrays: what a cell takes from its left neighbour is a
running minimum or maximum.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class RougeL:
    """ROUGE-L of a text against the one that was expected (Lin 2004), all in [0, 1]."""

    recall: float
    precision: float

    @property
    def f1(self) -> float:
        """Harmonic mean of recall and precision; 0 if both are."""
        total = self.recall + self.precision
        return 2 * self.recall * self.precision / total if total else 0.0


def rouge_l(found: str, expected: str) -> RougeL:
    """Longest common subsequence of words, by the words expected and by those found.

    Words are runs of letters, digits and underscores in lower case, without stemming. A text
    without a word has nothing in common with any other.
    """
    ours, theirs = words(found), words(expected)
    ids = {word: i for i, word in enumerate({*ours, *theirs})}
    common = lcs_length(*(np.array([ids[w] for w in side], dtype=int) for side in (ours, theirs)))
    return RougeL(common / max(1, len(theirs)), common / max(1, len(ours)))


def words(text: str) -> list[str]:
    """Return the words of a text, in lower case."""
    return WORD.findall(text.lower())


def lcs_length(a: NDArray[np.integer], b: NDArray[np.integer]) -> int:
    """Length of the longest common subsequence of (n,) and (m,)."""
    row = np.zeros(len(b) + 1, dtype=np.int64)
    for symbol in a:
        row[1:] = np.maximum(row[1:], row[:-1] + (b == symbol))
        np.maximum.accumulate(row, out=row)
    return int(row[-1])


def edit_distances(
    a: NDArray[np.integer], others: Sequence[NDArray[np.integer]]
) -> NDArray[np.int64]:
    """Levenshtein distance of (n,) to each of k sequences, (k,): insert, delete, substitute."""
    lengths = np.array([len(other) for other in others], dtype=np.int64)
    width = int(lengths.max(initial=0))
    padded = np.full((len(lengths), width), -1, dtype=np.int64)
    for line, other in zip(padded, others, strict=True):
        line[: len(other)] = other
    steps = np.arange(width + 1)
    rows = np.tile(steps, (len(lengths), 1))
    for count, symbol in enumerate(a, start=1):
        substituted = rows[:, :-1] + (padded != symbol)
        rows[:, 1:] = np.minimum(rows[:, 1:] + 1, substituted)
        rows[:, 0] = count
        # An insertion costs 1 for each step to the right.
        rows = np.minimum.accumulate(rows - steps, axis=1) + steps
    distances: NDArray[np.int64] = rows[np.arange(len(lengths)), lengths]
    return distances
