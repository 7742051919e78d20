"""Stores of orderings (Oren, Algorithm 1): each shard in its canonical order and in shuffled ones.

Sequence (s, j) is shard s in ordering j, of which 0 is the canonical one.
"""

from collections.abc import Iterator

import numpy as np

from contamination.scoring.store_format import Place, ScoredSequence
from contamination.scoring.stores.base import Store
from contamination.scoring.stores.shard_tokens import ShardTokens
from contamination.scoring.windows import positions
from contamination.statistics.results import with_ties
from contamination.testsets.orderings import ordering


class OrderingStore(Store):
    """Log-probabilities of every shard in its canonical order and in random ones."""

    kind = "orderings"
    has_permutations = True

    def shard_size(self, shard: int, *, permutations: int = 0) -> int:
        """Return the number of orderings: the canonical one and the permutations."""
        return permutations + 1

    def examples(self, place: Place) -> np.ndarray:
        """Return the examples of a shard in an ordering, int32."""
        shard, index = place
        return ordering(
            self.header.bounds[shard],
            index,
            seed=self.header.seed,
            dataset=self.header.dataset_revision,
            shard=shard,
        )

    def name_of(self, place: Place) -> str:
        """Return what messages call an ordering."""
        return f"ordering {place[1]} of shard {place[0]}"

    def sums_of(self, place: Place) -> int:
        """Return 1: the log-probability of the ordering."""
        return 1

    def sums(self, permutations: int) -> Iterator[np.ndarray]:
        """Yield the log-probability (nats) of each ordering, float64[1]."""
        yield from self._sums(permutations).reshape(-1, 1)

    def has_place(self, place: Place) -> bool:
        """Return whether there is such a shard: it may have any number of orderings."""
        shard, index = place
        return 0 <= shard < self.header.shards and index >= 0

    def has_examples(self, sequence: ScoredSequence) -> bool:
        """Return whether an ordering holds every example of its shard once.

        Shuffled examples count in any order: the part says which, however it was drawn.
        """
        shard, index = sequence.place
        examples = sequence.examples if index == 0 else np.sort(sequence.examples)
        start, stop = self.header.bounds[shard]
        return np.array_equal(examples, np.arange(start, stop))

    def permutations(self) -> int:
        """Return the permutations that all shards have; every byte is checked.

        Raises InputError for a damaged part.
        """
        held: set[Place] = set()
        for path in self.parts():
            held.update(sequence.place for sequence in self.read_part(path))
        permutations = 0
        while held.issuperset(self._orderings(permutations + 1)):
            permutations += 1
        return permutations

    def _orderings(self, index: int) -> list[Place]:
        """Return the places of one ordering of all shards."""
        return [(shard, index) for shard in range(self.header.shards)]

    def log_probs(self, permutations: int) -> np.ndarray:
        """Return log-probabilities (nats), float64[shards, permutations + 1], canonical first.

        They are sums over the tokens that are stored. Where all orderings of a shard
        lie within the `resolution` of such a sum, they are ties: all get the mean.
        Raises InputError if the store lacks one of these orderings or is damaged.
        """
        resolutions: list[float] = []
        for start, stop in self.header.bounds:
            tokens = int(self.header.stored[start:stop].sum())
            resolutions.append(self.resolution(tokens))
        return with_ties(self._sums(permutations), resolutions)

    def _sums(self, permutations: int) -> np.ndarray:
        sums = np.empty((self.header.shards, permutations + 1))
        for place, _, nats in self.sequences(permutations=permutations):
            sums[place] = nats.sum(dtype=np.float64)
        return sums

    def shard_tokens(self, shard: int, permutations: int) -> ShardTokens:
        """Return every token of a shard in orderings 0..permutations.

        Raises InputError if the store lacks one of these orderings, has sums alone, or
        is damaged.
        """
        self._require_tokens()
        start, stop = self.header.bounds[shard]
        lengths = self.header.stored[start:stop]
        offsets = np.cumsum(lengths) - lengths
        logprobs = np.empty((permutations + 1, int(lengths.sum())), dtype=np.float32)
        leading = np.zeros(logprobs.shape, dtype=bool)
        for place, examples, nats in self.sequences(shard=shard, permutations=permutations):
            row = place[1]
            order = examples - start
            spans = lengths[order]
            columns = np.repeat(offsets[order], spans) + positions(spans)
            logprobs[row, columns] = nats
            first = offsets[order[0]]
            leading[row, first : first + spans[0]] = True
        return ShardTokens(logprobs, leading, positions(lengths), self.resolution(1))
