"""Long sequences in overlapping windows with stride context / 2 (Oren, appendix A).

Every token is scored exactly once, with at least half a context before it where there is that much;
nothing is cut off.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np


class Window(NamedTuple):
    """Positions in a sequence: tokens first..stop-1 are scored, those from `start` on are read.

    Token t is predicted by the token before it, so the inputs are tokens start-1..stop-2, with the
    start token in the place of token -1.
    """

    start: int
    first: int
    stop: int

    @property
    def width(self) -> int:
        """Number of inputs."""
        return self.stop - self.start

    def inputs(self, ids: np.ndarray, start_token: int) -> np.ndarray:
        """Input ids, (width,)."""
        if self.start == 0:
            return np.concatenate([[start_token], ids[: self.stop - 1]])
        return ids[self.start - 1 : self.stop - 1]


def windows(length: int, context: int) -> Iterator[Window]:
    """Yield the windows of a sequence of `length` tokens, each at most `context` inputs wide."""
    stride = context // 2
    yield Window(0, 0, min(context, length))
    for start in range(stride, length - context + stride, stride):
        yield Window(start, start + context - stride, min(start + context, length))


def windows_of(wanted: np.ndarray, context: int) -> Iterator[Window]:
    """Yield the windows that hold wanted tokens, each cut behind the last of them.

    `wanted` is a boolean mask over the tokens of a sequence.
    """
    for start, first, stop in windows(len(wanted), context):
        hits = np.flatnonzero(wanted[first:stop])
        if len(hits):
            yield Window(start, first, first + int(hits[-1]) + 1)
