"""The order of work, which is random, and the parts that it is cut into.

The parts depend on the header, the number of permutations and the scorer's batches
alone. So one process and many, a run that was interrupted and one that was not, write
the same parts.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np

from contamination.randomness import random_stream
from contamination.scoring.store_format import Header
from contamination.testsets.tokens import consecutive

PARTS = 256  # that the work is cut into, unless they become too small or too large
SMALLEST_PART = 1 << 14  # tokens that the model reads, as below
LARGEST_PART = 1 << 20  # the work that an interruption may cost in each process
BATCHES = 4  # of a part at least: between two parts the device waits


def cut_into_parts(
    work: Sequence[int], batch_tokens: int, *, batches: int = BATCHES
) -> Iterator[list[int]]:
    """Group consecutive pieces of work into parts of about equal work, some batches each.

    `work` counts the tokens that the model reads for each piece. How many processes
    there are plays no role.
    """
    size = max(sum(work) // PARTS, SMALLEST_PART, batches * batch_tokens)
    size = min(size, LARGEST_PART)
    yield from map(list, consecutive(work, size))


def keep_wanted(parts: Iterable[list[int]], wanted: Collection[int]) -> list[list[int]]:
    """Return the parts with the wanted pieces alone, without those that then are empty.

    >>> keep_wanted([[0, 1], [2, 3]], wanted={1})
    [[1]]
    """
    reduced: list[list[int]] = []
    for part in parts:
        kept = [index for index in part if index in wanted]
        if kept:
            reduced.append(kept)
    return reduced


def order_of_work(header: Header, count: int, *labels: int | str) -> np.ndarray:
    """Return an order of work, int64[count], which no ordering and no test shares.

    The labels name the stream of random numbers that it is drawn from.
    """
    stream = random_stream(header.seed, "order of work", header.key, *labels)
    return stream.permutation(count)
