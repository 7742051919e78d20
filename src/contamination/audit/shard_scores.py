"""The scores of one shard under each test, the canonical ordering first.

Tests of whole orderings score the tokens of each ordering (`TOKEN_SCORES`). Tests of
pairs sample orderings, and add up what follows what in each.

The help of the command reads the registry, which reads this module, so functions import
numpy when they compute.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from contamination import statistics
from contamination.scoring.plan import SUCCESSOR_TOKENS

if TYPE_CHECKING:
    import numpy as np

    from contamination.scoring.store import ShardTokens, Store

SAMPLED_ORDERINGS = 10_000  # of each shard, from its successor matrix
# choices of b, the first tokens that count
COUNTED = {"8": 8, "16": 16, "32": 32, "all": None}
# sampled orderings of all shards: where many shards are, fewer of each do
MIN_P_CELLS = 200_000
FEWEST_MIN_P = 1_000  # of each shard
ORDER_STREAM = "sampled orderings"  # of a shard of successors, the same in every test

ALL_EQUAL = (
    "the model gives all orders the same probability, so nothing can stand out; if all "
    "records begin with the same words, take these out of the template, or choose the "
    "test sharded_exact, which reads whole records"
)

TokenScores = Callable[["ShardTokens"], "np.ndarray"]  # tokens of one shard -> (m+1,)
# store, shard, permutations -> (n+1,)
StoreScores = Callable[["Store", int, int], "np.ndarray"]


# --- of whole orderings ---------------------------------------------------------------


def ordering_log_probs(tokens: "ShardTokens") -> "np.ndarray":
    """Return the log-probability of every ordering (nats), (m+1,), as in Oren."""
    return tokens.sums()


def standardised(tokens: "ShardTokens") -> "np.ndarray":
    """Return sums of tokens, (m+1,), each standardised over the orderings."""
    return statistics.token_standardised_scores(
        tokens.logprobs, tokens.leading, resolution=tokens.resolution
    )


def boundary(tokens_per_example: int) -> TokenScores:
    """Return a function that sums the first tokens of every example but the leading one.

    Its scores (nats), (m+1,), are of tokens centred over the orderings.
    """

    def boundary_scores(tokens: "ShardTokens") -> "np.ndarray":
        return statistics.boundary_scores(
            tokens.logprobs,
            tokens.leading,
            tokens.position,
            tokens_per_example=tokens_per_example,
            resolution=tokens.resolution,
        )

    return boundary_scores


# Scores (m+1,) of a shard from its tokens in whole orderings, by test and choice of b
# in `COUNTED`.
TOKEN_SCORES: dict[tuple[str, str | None], TokenScores] = {
    ("permutation", None): ordering_log_probs,
    ("sharded_t", None): ordering_log_probs,
    ("sharded_exact", None): ordering_log_probs,
    ("token_standardised", None): standardised,
}
for _name, _tokens in COUNTED.items():
    if _tokens is not None:
        TOKEN_SCORES["boundary", _name] = boundary(_tokens)


# --- of pairs -------------------------------------------------------------------------


def successors(store: "Store", shard: int, permutations: int) -> "np.ndarray":
    """Return the scores of sampled orderings by first tokens of successors, (n+1,)."""
    centred = statistics.centred_successors(
        store.successors(shard, SUCCESSOR_TOKENS),
        resolution=store.resolution(SUCCESSOR_TOKENS),
    )
    rng = store_stream(store, ORDER_STREAM, shard)
    return statistics.sampled_successor_scores(
        centred,
        resamples=SAMPLED_ORDERINGS,
        rng=rng,
    )


def min_p_successors(store: "Store", shard: int, permutations: int = 0) -> "np.ndarray":
    """Return scores of sampled orderings by each count of tokens, (q, n+1).

    The counts are those in COUNTED; "all" is as many tokens of an example as the store
    keeps. Permutations are not used: pairs give any ordering.
    """
    import numpy as np

    examples = slice(*store.header.bounds[shard])
    most = int(store.header.stored[examples].max())
    tokens = store.successor_tokens(shard, most)
    orderings = min_p_orderings(store.header.shards)
    rng = store_stream(store, ORDER_STREAM, shard)
    orders = statistics.random_orderings([(0, len(tokens))], orderings, rng=rng)
    scores = []
    for b in COUNTED.values():
        counted = tokens[:, :, :b].sum(axis=2, dtype=np.float64)
        centred = statistics.centred_successors(
            counted,
            resolution=store.resolution(b or most),
        )
        scores.append(statistics.successor_scores(centred, orders))
    return np.stack(scores)


def min_p_orderings(shards: int) -> int:
    """Return the number of sampled orderings of each shard: fewer where many shards are."""
    orderings = MIN_P_CELLS // shards
    return min(SAMPLED_ORDERINGS, max(FEWEST_MIN_P, orderings))


def store_stream(store: "Store", name: str, *keys: int | str) -> "np.random.Generator":
    """Return a random stream of a store's own: different sets share no draws.

    `name` and `keys`, such as a shard, are the name of the draws.
    """
    from contamination.randomness import random_stream

    header = store.header
    return random_stream(
        header.seed,
        name,
        header.dataset_revision,
        header.shards,
        *keys,
    )


def answers_problem(scores: "np.ndarray") -> str:
    """Return why a large p of scores, (..., n+1), says nothing; "" if it does."""
    import numpy as np

    return "" if np.ptp(scores, axis=-1).any() else ALL_EQUAL
