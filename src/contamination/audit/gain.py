"""Where in an example the canonical order shows: what its tokens gain over shuffled orders."""

import numpy as np

from contamination.scoring.store import Store
from contamination.statistics import centred_tokens


def gain_by_position(store: Store, permutations: int) -> np.ndarray:
    """How much likelier tokens are in the canonical order than on average, by place in the example.

    (tokens,) in nats, mean over all examples that do not lead their shard; entry 0 is the first
    token. Places that fewer than half of these examples reach are left out.
    """
    longest = int(store.header.stored.max())
    sums, counts = np.zeros(longest), np.zeros(longest)
    for shard in range(store.header.shards):
        tokens = store.shard_tokens(shard, permutations)
        follows = ~tokens.leading[0]
        gains = centred_tokens(tokens.logprobs, tokens.leading)[0]
        np.add.at(sums, tokens.position[follows], gains[follows])
        np.add.at(counts, tokens.position[follows], 1)
    reached = counts >= counts[0] / 2  # a prefix: every example has a first token
    return np.asarray(sums[reached] / counts[reached])
