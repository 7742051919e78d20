"""Null calibration: p-values of a test where H0 holds by construction.

The shuffled orderings of a store are independent uniform permutations. One of them,
drawn at random in each shard, may therefore be called canonical in the place of the
published one, whatever the model has read: H0 holds by construction. How often a test
then rejects shows whether it keeps its level for this model and this set, given these
scores. It does not show whether the published order was read, or whether the records
are exchangeable (a sorted set passes, too).
"""

import numpy as np

from contamination import statistics
from contamination.audit.registry import Test
from contamination.audit.shard_scores import store_stream
from contamination.scoring.store import Store


def null_calibration_p_values(
    test: Test, store: Store, scores: np.ndarray, *, draws: int
) -> np.ndarray:
    """Return p-values of a test on redrawn canonical orders, (draws,).

    The published order takes no part: each p-value is that of the test with one
    ordering of each shard fewer.

    Parameters
    ----------
    test
        A test of the registry.
    store
        The store that the test reads; its seed names the draws.
    scores
        (r, n+1), of the test on its store, canonical first.
    draws
        Number of p-values.

    Raises
    ------
    InputError
        If there are fewer than 2 shuffled orderings.
    """
    shuffled = scores[:, 1:]
    rng = store_stream(store, "redrawn canonical orders", test.name)
    canonical = rng.integers(shuffled.shape[1], size=(draws, len(shuffled)))
    # These two judge all orders at once.
    if test.stops:
        return statistics.sharded_exact_p_values(shuffled, canonical)
    if test.is_t_test:
        return statistics.sharded_t_p_values(shuffled, canonical)
    p_values = []
    for columns in canonical:
        relabelled = statistics.relabel_canonical(shuffled, columns)
        p_values.append(test.to_result(relabelled, rng).p)
    return np.array(p_values)


def gain_by_position(store: Store, permutations: int) -> np.ndarray:
    """Return the mean gain of tokens in the canonical order (nats), (tokens,).

    By place in the example, and compared with the mean over the orderings: a mean over
    all examples that do not lead their shard; entry 0 is the first token. Places that
    fewer than half of these examples reach are left out.
    """
    longest = int(store.header.stored.max())
    sums = np.zeros(longest)
    counts = np.zeros(longest)
    with store.shards_in_turn():
        for shard in range(store.header.shards):
            tokens = store.shard_tokens(shard, permutations)
            follows = ~tokens.leading[0]
            gains = statistics.centred_tokens(tokens.logprobs, tokens.leading)[0]
            np.add.at(sums, tokens.position[follows], gains[follows])
            np.add.at(counts, tokens.position[follows], 1)
    reached = counts >= counts[0] / 2  # a prefix: every example has a first token
    return np.asarray(sums[reached] / counts[reached])
