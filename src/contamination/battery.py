"""The tests that an audit chooses from: what each reads of a store, and its statistic.

A test turns every shard into scores, the canonical ordering first, and the scores of all shards
into a p-value. All but `sharded_t` and `permutation` share the exact recombination test, since any
scores that treat the orderings alike keep it exact.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from contamination.statistics import (
    TestResult,
    boundary_scores,
    centred_successors,
    permutation_test,
    recombination_test,
    sampled_successor_scores,
    sharded_t_test,
    token_standardised_scores,
)
from contamination.store import Store
from contamination.store_layout import Kind
from contamination.store_reader import ShardTokens

SUCCESSOR_TOKENS = 32  # of every example after every other
SAMPLED_ORDERINGS = 10_000  # of each shard, from its successor matrix

ShardScores = Callable[[ShardTokens], np.ndarray]  # tokens of one shard -> (m + 1,)
Scores = Callable[[Store, int], np.ndarray]  # (store, permutations) -> (r, n + 1)


@dataclass(frozen=True)
class Test:
    """A test by name: the store that it needs, and the way from there to a p-value.

    Attributes
    ----------
    kind, first : of the store, as in `contamination.store_layout.Header`.
    shard_size : examples of a shard unless the user says otherwise; None is the whole set.
    scores : (r, n+1) from the store and the number of permutations.
    statistic : from the scores to the result.
    shard_scores : (n+1,) from the store, a shard and the number of permutations, for stopping as
        soon as the evidence suffices; None for tests that need all shards.
    """

    __test__ = False  # not a pytest class

    kind: Kind
    first: int | None
    shard_size: int | None
    scores: Scores
    statistic: Callable[[np.ndarray], TestResult]
    shard_scores: Callable[[Store, int, int], np.ndarray] | None = None

    @property
    def fewest(self) -> int:
        """Fewest examples of a shard: centring successors leaves nothing of two."""
        return 3 if self.kind == "successors" else 2

    def result(self, name: str, store: Store, permutations: int) -> TestResult:
        """Result of the test, under the name by which it was asked for."""
        return replace(self.statistic(self.scores(store, permutations)), test=name)


def summed(tokens: ShardTokens) -> np.ndarray:
    """Log-probability of every ordering (nats), as in Oren's tests."""
    return np.asarray(tokens.logprobs.sum(axis=1, dtype=np.float64))


def standardised(tokens: ShardTokens) -> np.ndarray:
    """Sum of tokens, each centred and divided by its spread over the orderings."""
    return token_standardised_scores(tokens.logprobs, tokens.leading)


def boundary(first: int) -> ShardScores:
    """Sum of the first tokens of every example but the leading one, centred (nats)."""

    def score(tokens: ShardTokens) -> np.ndarray:
        return boundary_scores(tokens.logprobs, tokens.leading, tokens.position, first=first)

    return score


def sampled_successors(
    store: Store, shard: int, first: int, *, orderings: int, rng: np.random.Generator
) -> np.ndarray:
    """Scores of the canonical and of sampled orderings from centred successors, (n + 1,)."""
    centred = centred_successors(store.successors(shard, first))
    return sampled_successor_scores(centred, resamples=orderings, rng=rng)


def _successors(store: Store, shard: int, permutations: int) -> np.ndarray:
    """Sampled orderings cost no scoring: their number is not the user's to save on."""
    rng = np.random.default_rng([store.header.seed, store.header.shards, shard])
    return sampled_successors(store, shard, SUCCESSOR_TOKENS, orderings=SAMPLED_ORDERINGS, rng=rng)


def _tokens(score: ShardScores) -> Callable[[Store, int, int], np.ndarray]:
    return lambda store, shard, permutations: score(store.shard_tokens(shard, permutations))


def _by_shard(score: Callable[[Store, int, int], np.ndarray]) -> Scores:
    return lambda store, permutations: np.stack(
        [score(store, shard, permutations) for shard in range(store.header.shards)]
    )


def _exact(
    kind: Kind, first: int | None, size: int, score: Callable[[Store, int, int], np.ndarray]
) -> Test:
    return Test(kind, first, size, _by_shard(score), recombination_test, score)


def _whole(store: Store, permutations: int) -> np.ndarray:
    return store.log_probs(permutations)


TESTS = {
    "successor": _exact("successors", SUCCESSOR_TOKENS, 10, _successors),
    # Sums are read part by part, whatever shard a part belongs to.
    "exact": Test("orderings", None, 4, _whole, recombination_test, _tokens(summed)),
    "token_standardised": _exact("orderings", None, 4, _tokens(standardised)),
    "boundary": _exact("orderings", None, 4, _tokens(boundary(16))),
    "sharded_t": Test("orderings", None, 4, _whole, sharded_t_test),
    "permutation": Test("orderings", None, None, _whole, lambda s: permutation_test(s[0])),
}
DEFAULT_TESTS = ("successor",)  # chosen and confirmed in docs/power.md
