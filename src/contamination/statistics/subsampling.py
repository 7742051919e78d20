"""Fewer permutations than were scored (Oren, Figure 3b): subsets, drawn without their scores."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contamination.errors import InputError
from contamination.statistics.validation import as_log_probs


def fewer_permutations(
    log_probs: ArrayLike, permutations: int, *, replicates: int, rng: np.random.Generator
) -> Iterator[NDArray[np.float64]]:
    """Yield the canonical ordering with random subsets of so many of the shuffled ones, (r, m'+1).

    Orderings 1..m of a shard are independent, so any subset of them drawn without looking at their
    scores is as good as having scored no others. All shards keep the same columns; of all m there
    is only one subset.

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
