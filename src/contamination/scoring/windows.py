"""Long sequences in overlapping windows with stride context / 2 (Oren, appendix A), in batches.

Every token is scored exactly once, with at least half a context before it where there is that much.
Windows are batched longest first, within a budget of tokens: a batch then holds hardly any padding,
and if the first one fits into memory, the others do, too.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from contamination.errors import InputError


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
        return np.append(start_token, ids[: self.stop - 1])[self.start :]

    def scored(self, wanted: np.ndarray) -> np.ndarray:
        """Positions of the tokens scored here that are wanted (boolean mask of the sequence)."""
        return self.first + np.flatnonzero(wanted[self.first : self.stop])


def windows(length: int, context: int) -> Iterator[Window]:
    """Yield the windows of a sequence of `length` tokens, each at most `context` inputs wide."""
    stride = context // 2
    yield Window(0, 0, min(context, length))
    for start in range(stride, length - context + stride, stride):
        yield Window(start, start + context - stride, min(start + context, length))


def windows_of(wanted: np.ndarray, context: int) -> Iterator[Window]:
    """Yield the windows that hold a wanted token (boolean mask), scored from the first to the last.

    Nothing behind the last one is read.
    """
    for window in windows(len(wanted), context):
        scored = window.scored(wanted)
        if len(scored):
            yield window._replace(first=int(scored[0]), stop=int(scored[-1]) + 1)


PADDING = 0.03  # of a batch at most, once it holds half of the tokens that it may


class Job(NamedTuple):
    """One window of one sequence."""

    sequence: int
    window: Window


def assemble(
    wholes: Sequence[Any], owners: Iterable[int], parts: Iterable[tuple[int, Any, np.ndarray]]
) -> Iterator[tuple[int, Any]]:
    """Put parts (index of the whole, place in it, values) in place; yield (index, complete whole).

    `owners` names the whole of each part to come; what waits for no part is yielded first.
    """
    missing = Counter(owners)
    yield from ((index, whole) for index, whole in enumerate(wholes) if not missing[index])
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


class Batches:
    """Iterator over batches of jobs; a batch that did not fit is handed back with `split`.

    `batch_tokens` is the most tokens of a batch, padding included (one job may have more). It
    becomes smaller with every `split`.
    """

    def __init__(self, jobs: Sequence[Job], batch_tokens: int) -> None:
        self.batch_tokens = batch_tokens
        # Reversed, so that the longest are taken from the end of the list.
        self._jobs = sorted(jobs, key=lambda job: (job.window.width, job))

    def __iter__(self) -> Iterator[list[Job]]:
        """Yield batches until no job is left, the longest jobs first."""
        while self._jobs:
            width = self._jobs[-1].window.width
            size = max(1, self.batch_tokens // width)
            batch = self._jobs[: -size - 1 : -1]
            full = sum(job.window.width >= (1 - PADDING) * width for job in batch)
            batch = batch[: max(full, size // 2, 1)]
            del self._jobs[-len(batch) :]
            yield batch

    def split(self, batch: list[Job]) -> None:
        """Take back a batch that ran out of memory, and halve the budget.

        Raises InputError if the batch is a single window, which cannot be made smaller.
        """
        width = batch[0].window.width
        if len(batch) == 1:
            told = f"one window of {width} tokens does not fit into memory"
            raise InputError(f"{told}; use a shorter context")
        self.batch_tokens = width * (len(batch) // 2)
        self._jobs.extend(reversed(batch))
