"""Null experiments from scores at hand: another ordering is called canonical.

Under H0 any ordering of a shard may have been the canonical one. Calling one so that is drawn at
random, independently over shards, is an exact draw from the null given the scores, and costs no
scoring. How often a test rejects then is its level on these scores, whatever made them.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def called_canonical(scores: NDArray[np.float64], canonical: ArrayLike) -> NDArray[np.float64]:
    """Scores (..., r, m+1) in which column `canonical[i]` of shard i trades places with column 0.

    `canonical` holds r whole numbers, 0 to m.
    """
    chosen = np.asarray(canonical)
    swapped, shards = scores.copy(), np.arange(len(chosen))
    swapped[..., shards, 0] = scores[..., shards, chosen]
    swapped[..., shards, chosen] = scores[..., shards, 0]
    return swapped


def null_scores(
    pool: NDArray[np.float64], shards: int, *, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Scores of `shards` random shards of the pool, a random ordering of each called canonical."""
    rows = pool[rng.choice(len(pool), size=shards, replace=False)]
    return called_canonical(rows, rng.integers(pool.shape[1], size=shards))
