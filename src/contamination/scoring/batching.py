"""Batches: longest first, within a budget of tokens, smaller when memory runs out.

Sorted by length, a batch holds hardly any padding, and the first one is the hungriest: if it fits,
so do the others. The order of the results is the caller's to restore.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from contamination.errors import InputError
from contamination.scoring.windows import Window

PADDING = 0.03  # of a batch at most, once it holds half of the tokens that it may


class Job(NamedTuple):
    """One window of one sequence."""

    sequence: int
    window: Window


class Batches:
    """Iterator over batches of jobs; a batch that did not fit is handed back with `split`.

    Parameters
    ----------
    jobs : in any order.
    batch_tokens : most tokens of a batch, padding included (one job may have more).

    Attributes
    ----------
    batch_tokens : the budget in force, smaller after a `split`.
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

        Raises
        ------
        InputError
            The batch is a single sequence: smaller there is not.
        """
        if len(batch) == 1:
            raise InputError(
                f"one window of {batch[0].window.width} tokens does not fit into memory; use a "
                "shorter context, a lower precision, or spread the model over several devices"
            )
        width = batch[0].window.width
        self.batch_tokens = width * (len(batch) // 2)
        self._jobs.extend(reversed(batch))
