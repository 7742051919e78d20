"""A negative control that has seen no test set: a compressor in the place of the model.

Oren (section 4.3) drop the subsets where a model that cannot be contaminated rejects. A compressor
knows nothing but the text in its window, so an order that it prefers is one that the records
themselves give away. Its window here is the example before: a neighbour that shares words with the
next example makes it shorter, and nothing further away counts.
"""

import math
import zlib

import numpy as np
from numpy.typing import NDArray

from contamination.orderings import ordering, shard_bounds
from contamination.test_set import TestSet


def compressor_log_probs(
    test_set: TestSet, *, shards: int, permutations: int, seed: int
) -> NDArray[np.float64]:
    """Log-probability (nats) of every shard in every ordering under a compressor.

    A code of c bytes has probability 256^-c. Example b after example a costs
    size(a + b) - size(a) bytes, the first example of an ordering size(b), with the sizes of zlib
    (deflate at level 9, without header).

    Parameters
    ----------
    test_set : TestSet
        The examples, and the revision that their orderings are drawn from.
    shards, permutations, seed
        As scored under the model: the orderings are the same.

    Returns
    -------
    ndarray, shape (shards, permutations + 1)
        Column 0 is canonical; give it to `contamination.statistics.recombination_test`.

    Raises
    ------
    InputError
        Fewer than two examples per shard.

    Notes
    -----
    Some 25 microseconds for each pair of short examples that are neighbours in some ordering, at
    most k^2 pairs in a shard of k; scores lie on whole bytes, and the test counts ties as such.
    """
    examples = [text.encode() for text in test_set.examples]
    alone = np.array([_size(example) for example in examples])
    scores = []
    for shard, bounds in enumerate(shard_bounds(len(examples), shards)):
        orders = np.array(
            [
                ordering(bounds, index, seed=seed, dataset=test_set.revision, shard=shard)
                for index in range(permutations + 1)
            ]
        )
        pairs = np.stack([orders[:, :-1], orders[:, 1:]], axis=-1).reshape(-1, 2)
        distinct, which = np.unique(pairs, axis=0, return_inverse=True)
        sizes = np.array([_size(examples[a] + examples[b]) - alone[a] for a, b in distinct])
        scores.append(alone[orders[:, 0]] + sizes[which].reshape(len(orders), -1).sum(axis=1))
    return -8 * math.log(2) * np.array(scores)


def _size(data: bytes) -> int:
    return len(zlib.compress(data, level=9, wbits=-15))
