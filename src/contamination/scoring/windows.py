"""Long sequences in overlapping windows with stride context / 2 (Oren, appendix A), in batches.

Every token is scored exactly once, with at least half a context before it where there
is that much. Windows are batched longest first, within a budget of tokens: a batch then
holds hardly any padding, and if the first one fits into memory, the others do, too.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np


class Window(NamedTuple):
    """Positions in a sequence: tokens first..stop-1 are scored, those from `start` on are read.

    Token t is predicted by the token before it, so the inputs are tokens
    start-1..stop-2, with the start token in the place of token -1. `sequence` is the
    index of the sequence among others.
    """

    sequence: int
    start: int
    first: int
    stop: int

    @property
    def width(self) -> int:
        """Number of inputs."""
        return self.stop - self.start

    def inputs(self, ids: np.ndarray, start_token: int) -> np.ndarray:
        """Input ids, (width,)."""
        return np.append(start_token, ids[: self.stop - 1])[self.start :]

    @property
    def scored(self) -> slice:
        """Positions of the tokens that are scored."""
        return slice(self.first, self.stop)


def windows(
    lengths: Iterable[int], context: int, firsts: Sequence[int] | None = None
) -> Iterator[Window]:
    """Yield the windows of sequences of these lengths, with `context` inputs at most.

    The tokens before `firsts` of each sequence are not scored, and windows that hold no
    other are left out.
    """
    stride = context // 2
    for sequence, length in enumerate(lengths):
        least = 0 if firsts is None else firsts[sequence]
        for start in (0, *range(stride, length - context + stride, stride)):
            first = least
            if start > 0:  # the window before has scored the tokens up to here
                first = max(least, start + context - stride)
            stop = min(start + context, length)
            if first < stop:
                yield Window(sequence, start, first, stop)


PADDING = 0.03  # of a batch at most, once it holds half of the tokens that it may


def assemble(
    wholes: Sequence[Any],
    owners: Iterable[int],
    parts: Iterable[tuple[int, Any, np.ndarray]],
) -> Iterator[tuple[int, Any]]:
    """Put parts in place, and yield (index, whole) when one is complete.

    `owners` has the index of the whole of each part to come; a whole that waits for no
    part is yielded first. A part is (index of the whole, place in it, values).
    """
    missing = Counter(owners)
    for index, whole in enumerate(wholes):
        if not missing[index]:
            yield index, whole
    for index, place, values in parts:
        wholes[index][place] = values
        missing[index] -= 1
        if not missing[index]:
            yield index, wholes[index]


def padded(rows: Sequence[Sequence[int] | np.ndarray], value: int) -> np.ndarray:
    """Return the rows, padded on the right with that value, int64[rows, longest]."""
    filled = np.full((len(rows), max(map(len, rows))), value, dtype=np.int64)
    for i, row in enumerate(rows):
        filled[i, : len(row)] = row
    return filled


def take_batch(left: list[Window], batch_tokens: int) -> list[Window]:
    """Take the longest windows from the end of a list that is sorted by their width.

    They have at most `batch_tokens` tokens, padding included; one window may have more.
    """
    width = left[-1].width
    size = max(1, batch_tokens // width)
    batch = left[: -size - 1 : -1]
    full = sum(window.width >= (1 - PADDING) * width for window in batch)
    batch = batch[: max(full, size // 2, 1)]
    del left[-len(batch) :]
    return batch


def positions(lengths: np.ndarray) -> np.ndarray:
    """Return 0..n-1 for each of the lengths, one after the other, int32.

    >>> positions(np.array([2, 3])).tolist()
    [0, 1, 0, 1, 2]
    """
    ends = np.cumsum(lengths)
    starts = np.repeat(ends - lengths, lengths)
    return np.arange(len(starts), dtype=np.int32) - starts.astype(np.int32)
