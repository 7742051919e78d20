"""The tests that an audit chooses from: what each reads of a store, and its statistic.

A test turns every shard into scores, the canonical ordering first, and the scores of all shards
into a p-value. All but `sharded_t` and `permutation` share the exact recombination test, since any
scores that treat the orderings alike keep it exact. Its p-value is never below (n + 1)^-shards for
n shuffled orderings of a shard, and that low where each canonical ordering beats them all.

`min_p` and `min_p_orderings` try several such scores, of the same orderings, and give the p-value
of the best of them under their joint law: trying more is paid for, as far as they differ.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from contamination.scoring.plan import SUCCESSOR_TOKENS, StoreNeed
from contamination.scoring.store import ShardTokens, Store
from contamination.scoring.store_format import Kind
from contamination.statistics import (
    TestResult,
    boundary_scores,
    centred_successors,
    permutation_test,
    sampled_successor_scores,
    sharded_exact_test,
    sharded_t_test,
    successor_scores,
    token_standardised_scores,
    westfall_young_test,
)
from contamination.statistics.exchangeability import random_orderings

SAMPLED_ORDERINGS = 10_000  # of each shard, from its successor matrix
CLIP_NATS = 1.0  # about one token in a hundred moves more than that in small models
COUNTED = {"8": 8, "16": 16, "32": 32, "all": None}  # first tokens of each example, for min-p
JOINT_CELLS = 200_000  # sampled orderings of all shards: where many shards are, fewer of each do
FEWEST_JOINT = 1_000  # of each shard
JOINT_DRAWS = 20_000  # from the joint law of several statistics

ShardScores = Callable[[ShardTokens], np.ndarray]  # tokens of one shard -> (m + 1,)
Scores = Callable[[Store, int], np.ndarray]  # (store, permutations) -> (r, n + 1) or (q, r, n + 1)


@dataclass(frozen=True)
class Test(StoreNeed):
    """A test by name: the store that it needs, and the way from there to a p-value.

    Attributes
    ----------
    scores : from the store and the number of permutations; (r, n+1), or (q, r, n+1) of q statistics
        on the same orderings.
    statistic : from the scores to the result.
    shard_scores : (n+1,) from the store, a shard and the number of permutations, for stopping as
        soon as the evidence suffices; None for tests that need all shards.
    """

    __test__ = False  # not a pytest class

    scores: Scores
    statistic: Callable[[np.ndarray], TestResult]
    shard_scores: Callable[[Store, int, int], np.ndarray] | None = None

    def result(self, name: str, store: Store, permutations: int) -> TestResult:
        """Result of the test, under the name by which it was asked for."""
        return replace(self.statistic(self.scores(store, permutations)), test=name)


def summed(tokens: ShardTokens) -> np.ndarray:
    """Log-probability of every ordering (nats), as in Oren's tests."""
    return np.asarray(tokens.logprobs.sum(axis=1, dtype=np.float64))


def standardised(tokens: ShardTokens) -> np.ndarray:
    """Sum of tokens, each centred and divided by its spread over the orderings."""
    return token_standardised_scores(tokens.logprobs, tokens.leading)


def clipped(tokens: ShardTokens) -> np.ndarray:
    """Sum of tokens, each centred and held within +-CLIP_NATS (nats)."""
    return token_standardised_scores(tokens.logprobs, tokens.leading, floor=None, clip=CLIP_NATS)


def boundary(tokens_per_example: int | None) -> ShardScores:
    """Sum of the first tokens of every example but the leading one, centred (nats)."""

    def score(tokens: ShardTokens) -> np.ndarray:
        return boundary_scores(
            tokens.logprobs, tokens.leading, tokens.position, tokens_per_example=tokens_per_example
        )

    return score


def sampled_successors(
    store: Store, shard: int, tokens_per_example: int, *, orderings: int, rng: np.random.Generator
) -> np.ndarray:
    """Scores of the canonical and of sampled orderings from centred successors, (n + 1,)."""
    centred = centred_successors(store.successors(shard, tokens_per_example))
    return sampled_successor_scores(centred, resamples=orderings, rng=rng)


def joint_successors(
    store: Store, shard: int, *, orderings: int, rng: np.random.Generator
) -> np.ndarray:
    """Scores of the same sampled orderings by each number of tokens in COUNTED, (q, n + 1).

    "all" is as many tokens of an example as the store keeps.
    """
    kept = int(store.header.stored[slice(*store.header.bounds[shard])].max())
    tokens = store.successor_tokens(shard, kept)
    orders = random_orderings([(0, len(tokens))], orderings, rng=rng)
    matrices = [tokens[:, :, :b].sum(axis=2, dtype=np.float64) for b in COUNTED.values()]
    return np.stack([successor_scores(centred_successors(each), orders) for each in matrices])


def _successors(store: Store, shard: int, permutations: int) -> np.ndarray:
    """Sampled orderings cost no scoring: their number is not the user's to save on."""
    return sampled_successors(
        store, shard, SUCCESSOR_TOKENS, orderings=SAMPLED_ORDERINGS, rng=_rng(store, shard)
    )


def _joint_successors(store: Store, shard: int, permutations: int) -> np.ndarray:
    orderings = min(SAMPLED_ORDERINGS, max(FEWEST_JOINT, JOINT_CELLS // store.header.shards))
    return joint_successors(store, shard, orderings=orderings, rng=_rng(store, shard))


def _rng(store: Store, shard: int) -> np.random.Generator:
    return np.random.default_rng([store.header.seed, store.header.shards, shard])


def _tokens(score: ShardScores) -> Callable[[Store, int, int], np.ndarray]:
    return lambda store, shard, permutations: score(store.shard_tokens(shard, permutations))


def _each(scores: Mapping[str, ShardScores]) -> ShardScores:
    return lambda tokens: np.stack([score(tokens) for score in scores.values()])


def _by_shard(score: Callable[[Store, int, int], np.ndarray]) -> Scores:
    """All shards: (r, n+1) of scores (n+1,), (q, r, n+1) of scores (q, n+1)."""
    return lambda store, permutations: np.stack(
        [score(store, shard, permutations) for shard in range(store.header.shards)], axis=-2
    )


def _exact(
    kind: Kind,
    tokens_per_example: int | None,
    size: int,
    score: Callable[[Store, int, int], np.ndarray],
) -> Test:
    return Test(kind, tokens_per_example, size, _by_shard(score), sharded_exact_test, score)


def _smallest(names: list[str]) -> Callable[[np.ndarray], TestResult]:
    """min-p of Westfall and Young; the draws are fixed, so the same scores give the same p."""
    return lambda scores: westfall_young_test(
        scores, names=names, resamples=JOINT_DRAWS, rng=np.random.default_rng(0)
    )


def _whole(store: Store, permutations: int) -> np.ndarray:
    return store.log_probs(permutations)


_ON_TOKENS: dict[str, ShardScores] = {
    "token_standardised": standardised,
    "clipped": clipped,
    **{f"boundary_{name}": boundary(b) for name, b in COUNTED.items()},
}
TESTS = {
    "successor": _exact("successors", SUCCESSOR_TOKENS, 10, _successors),
    # Sums are read part by part, whatever shard a part belongs to.
    "sharded_exact": Test("orderings", None, 4, _whole, sharded_exact_test, _tokens(summed)),
    "token_standardised": _exact("orderings", None, 4, _tokens(standardised)),
    "clipped": _exact("orderings", None, 4, _tokens(clipped)),
    "boundary": _exact("orderings", None, 4, _tokens(boundary(16))),
    # The store keeps whole examples, for the statistic that counts all of their tokens.
    "min_p": Test(
        "successors",
        None,
        10,
        _by_shard(_joint_successors),
        _smallest([f"successor_{name}" for name in COUNTED]),
    ),
    "min_p_orderings": Test(
        "orderings", None, 4, _by_shard(_tokens(_each(_ON_TOKENS))), _smallest(list(_ON_TOKENS))
    ),
    "sharded_t": Test("orderings", None, 4, _whole, sharded_t_test),
    "permutation": Test("orderings", None, None, _whole, lambda s: permutation_test(s[0])),
}
DEFAULT_TESTS = ("successor",)  # chosen and confirmed in docs/power.md
