"""Shards and their orderings (Oren 3.2, Algorithm 1).

A set of n examples is cut into r contiguous shards whose sizes differ by at most one,
the extra examples going to the first n mod r shards. In every shard, ordering 0 is
canonical and orderings 1..m are independent uniform permutations. Each is drawn from a
seed that depends on
(seed, dataset revision, shard, ordering) alone, so orderings can be added later, in any
order of work, on any number of machines.
"""

from functools import lru_cache

import numpy as np

from contamination.errors import InputError
from contamination.randomness import random_stream


@lru_cache(maxsize=32)
def shard_bounds(examples: int, shards: int) -> tuple[tuple[int, int], ...]:
    """Return the bounds [start, stop) of each shard.

    Raises InputError if a shard gets fewer than two examples: its order would carry no
    information.

    Examples
    --------
    >>> shard_bounds(7, shards=3)
    ((0, 3), (3, 5), (5, 7))
    """
    if shards < 1:
        raise InputError(f"shards is {shards}: give at least 1")
    if examples < 2:
        raise InputError(f"the set has too few examples ({examples}): give at least 2")
    if examples < 2 * shards:
        raise InputError(
            f"{examples} examples are fewer than two per shard for {shards} shards; use "
            f"at most {examples // 2} shards"
        )
    sizes = [examples // shards + (shard < examples % shards) for shard in range(shards)]
    stops = np.cumsum(sizes).tolist()
    return tuple(zip([0, *stops[:-1]], stops, strict=True))


def ordering(
    bounds: tuple[int, int], index: int, *, seed: int, dataset: str, shard: int
) -> np.ndarray:
    """Return the examples of a shard in one ordering.

    Parameters
    ----------
    bounds
        (start, stop) of the shard.
    index
        Number of the ordering; 0 is the canonical one.
    seed
        Seed of all orderings.
    dataset
        Revision of the set.
    shard
        Number of the shard.

    Returns
    -------
    array
        int32 (stop - start,), a permutation of start ... stop - 1.

    Examples
    --------
    >>> ordering((3, 7), 0, seed=0, dataset="a revision", shard=1).tolist()
    [3, 4, 5, 6]
    >>> ordering((3, 7), 1, seed=0, dataset="a revision", shard=1).tolist()
    [3, 5, 6, 4]
    """
    examples = np.arange(*bounds, dtype=np.int32)
    if index == 0:
        return examples
    return random_stream(seed, "ordering", dataset, shard, index).permutation(examples)
