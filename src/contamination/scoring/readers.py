"""Readers of the sequences of each kind of store.

A number may depend on when and where it was computed: a float on its place in the
batch, an answer on the requests before it. So the sequences of a shard are scored in a
random order, one shard after another, and so are the examples after a predecessor and
the variants of a record: the orderings stay exchangeable under H0, and a drift, slow
against a shard, cancels in it.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from contamination.scoring.contract import Scorer, start_token
from contamination.scoring.prefix import continuation_logprobs
from contamination.scoring.store_format import Place, ScoredSequence
from contamination.scoring.stores.base import Store
from contamination.scoring.stores.successors import SuccessorStore
from contamination.scoring.token_groups import Group
from contamination.scoring.work import order_of_work
from contamination.testsets.tokens import TokenisedSet

FEWEST_SHARED = 2  # continuations, whose prefix then is shared


class Reader(Protocol):
    """Reads the sequences of a store with a model."""

    def read(self, places: Sequence[Place]) -> Iterator[ScoredSequence]:
        """Yield these sequences with their log-probabilities, in any order."""

    def read_sample(self, places: Sequence[Place], tokens: int) -> int:
        """Read about `tokens` tokens of these sequences for the clock alone.

        Return the tokens that were read, of the first sequence at least a part.
        """

    def tokens_of(self, place: Place) -> int:
        """Return the tokens that a model here reads for a sequence."""


def shuffled_places(store: Store, permutations: int) -> list[Place]:
    """Return the places of a full store, shard by shard, each in a random order of its own."""
    places: list[Place] = []
    for shard in range(store.header.shards):
        size = store.shard_size(shard, permutations=permutations)
        order = order_of_work(store.header, size, "units", shard)
        places += [(shard, index) for index in order.tolist()]
    return places


def start_tokens_of(data: TokenisedSet, scorer: Scorer) -> int:
    """Return how many start tokens each example brings, 0 or 1.

    The scorer begins a sequence itself, so its first example loses a start token of its
    own.
    """
    if not data.test_set.started:
        return 0
    return int(data.ids[0][0] == start_token(scorer.tokenizer))


class OrderingReader:
    """Read orderings of shards, each as one long sequence."""

    def __init__(self, store: Store, scorer: Scorer, data: TokenisedSet) -> None:
        self.store = store
        self.scorer = scorer
        self.ids = data.ids
        self.start_tokens = start_tokens_of(data, scorer)

    def read(self, places: Sequence[Place]) -> Iterator[ScoredSequence]:
        """Yield these orderings with their log-probabilities, in any order."""
        orders = [self.store.examples(place) for place in places]
        sequences = [self._tokens(order) for order in orders]
        for i, values in self.scorer.token_logprobs(sequences):
            nats = np.pad(values, (self.start_tokens, 0))
            yield ScoredSequence(places[i], orders[i], nats)

    def read_sample(self, places: Sequence[Place], tokens: int) -> int:
        """Read the first of these orderings; equal ones are read once, and count once."""
        sample: dict[bytes, np.ndarray] = {}
        left = tokens
        for place in places:
            ids = self._tokens(self.store.examples(place))
            if sample and len(ids) > left:
                break
            ids = ids[:tokens]
            key = ids.tobytes()
            if key not in sample:
                sample[key] = ids
                left -= len(ids)
        for _ in self.scorer.token_logprobs(list(sample.values())):
            pass
        return tokens - left

    def tokens_of(self, place: Place) -> int:
        """Return the tokens of the shard."""
        return self.store.tokens_read_of(place)

    def _tokens(self, order: np.ndarray) -> np.ndarray:
        """Return the token ids of the examples, one after the other."""
        ids = np.concatenate([self.ids[example] for example in order])
        return ids[self.start_tokens :]


class ContinuationReader:
    """Read continuations of prefixes, in a random order; each kind says which."""

    def __init__(self, store: Store, scorer: Scorer) -> None:
        self.store = store
        self.scorer = scorer

    @abstractmethod
    def group(self, place: Place) -> Group:
        """Return the prefix and the continuations of a sequence."""

    def read(self, places: Sequence[Place]) -> Iterator[ScoredSequence]:
        """Yield these sequences with their log-probabilities, in any order."""
        groups: list[Group] = []
        orders: list[np.ndarray] = []
        requests: list[tuple[np.ndarray, list[np.ndarray]]] = []
        for place in places:
            group = self.group(place)
            order = order_of_work(self.store.header, len(group.rests), *place)
            groups.append(group)
            orders.append(order)
            requests.append((group.prefix, [group.rests[number] for number in order]))
        for i, values in continuation_logprobs(self.scorer, requests):
            # Of each continuation: its number in the request.
            scored_at = np.argsort(orders[i])
            nats = [values[scored_at[number]] for number in groups[i].which]
            examples = self.store.examples(places[i])
            yield ScoredSequence(places[i], examples, np.concatenate(nats))

    def read_sample(self, places: Sequence[Place], tokens: int) -> int:
        """Read the first of these sequences; of a long one the first continuations alone."""
        requests: list[tuple[np.ndarray, list[np.ndarray]]] = []
        left = tokens
        for place in places:
            if requests and self.tokens_of(place) > left:
                break
            group = self.group(place)
            left -= len(group.prefix)
            rests: list[np.ndarray] = []
            for ids in group.rests:
                if len(rests) >= FEWEST_SHARED and len(ids) > left:
                    break
                rests.append(ids)
                left -= len(ids)
            requests.append((group.prefix, rests))
        for _ in continuation_logprobs(self.scorer, requests):
            pass
        return tokens - left

    @abstractmethod
    def tokens_of(self, place: Place) -> int:
        """Return the tokens of the prefix and of the continuations."""


class SuccessorReader(ContinuationReader):
    """Read each example of a shard once, and all others of the shard after it."""

    def __init__(
        self,
        store: SuccessorStore,
        scorer: Scorer,
        data: TokenisedSet,
    ) -> None:
        super().__init__(store, scorer)
        self.predecessor = store.predecessor
        self.ids = data.ids
        self.start_tokens = start_tokens_of(data, scorer)

    def group(self, place: Place) -> Group:
        """Return a predecessor, and the first tokens of all others of its shard."""
        predecessor = self.predecessor(place)
        others = self.store.examples(place)
        kept = self.store.header.tokens_per_example
        return Group(
            record=predecessor,
            prefix=self.ids[predecessor][self.start_tokens :],
            rests=[self.ids[example][:kept] for example in others],
            which=range(len(others)),
        )

    def tokens_of(self, place: Place) -> int:
        """Return the tokens of a predecessor and of its successors."""
        return self.store.tokens_read_of(place)


class VariantReader(ContinuationReader):
    """Read once what the variants of a record share, and after it what they do not."""

    def __init__(self, store: Store, scorer: Scorer, groups: Sequence[Group]) -> None:
        super().__init__(store, scorer)
        self.groups = groups
        self.tokens = [len(group.prefix) + sum(map(len, group.rests)) for group in groups]

    def group(self, place: Place) -> Group:
        """Return the beginning and the endings of a record's variants."""
        return self.groups[place[0]]

    def tokens_of(self, place: Place) -> int:
        """Return the tokens of the beginning and of its distinct endings."""
        return self.tokens[place[0]]
