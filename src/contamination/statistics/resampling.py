"""Other experiments from the scores at hand: null ones, and ones with fewer permutations.

Under H0 any ordering of a shard may have been the canonical one. Calling one so that is drawn at
random, independently over shards, is an exact draw from the null given the scores, and costs no
scoring. How often a test rejects then is its level on these scores, whatever made them.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contamination.errors import InputError
from contamination.statistics.validation import as_log_probs


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


def fewer_permutations(
    log_probs: ArrayLike, permutations: int, *, replicates: int, rng: np.random.Generator
) -> Iterator[NDArray[np.float64]]:
    """Yield the canonical ordering with random subsets of so many of the shuffled ones, (r, m'+1).

    Oren, Figure 3b. Orderings 1..m of a shard are independent, so any subset of them drawn without
    looking at their scores is as good as having scored no others. All shards keep the same columns;
    of all m there is only one subset.

    Parameters
    ----------
    log_probs : array_like, shape (r, m+1)
        Log-probability (nats) of each shard in each ordering; column 0 is canonical.
    permutations : m', at most m.
    replicates : subsets to draw, with replacement among all subsets.

    Raises
    ------
    InputError
        Fewer than 1 permutation or more than there are.
    """
    values = as_log_probs(log_probs, ndim=2)
    most = values.shape[1] - 1
    if not 1 <= permutations <= most:
        raise InputError(f"permutations {permutations}: {most} are scored; ask for 1 to {most}")
    for _ in range(1 if permutations == most else replicates):
        yield values[:, [0, *(1 + rng.permutation(most)[:permutations])]]
