"""Stores of successors: every example right after each of the others of its shard.

Sequence (s, a) is every other example of shard s, each of them right after the a-th,
its predecessor. Of each example the first `tokens_per_example` tokens are scored.
"""

from collections.abc import Iterator

import numpy as np

from contamination.errors import InputError
from contamination.scoring.store_format import Place
from contamination.scoring.stores.base import Store
from contamination.scoring.windows import positions


class SuccessorStore(Store):
    """Log-probabilities of every example after every other one of its shard."""

    kind = "successors"

    def shard_size(self, shard: int, *, permutations: int = 0) -> int:
        """Return the number of predecessors: the examples of the shard."""
        start, stop = self.header.bounds[shard]
        return stop - start

    def examples(self, place: Place) -> np.ndarray:
        """Return the examples that follow the predecessor: all others of its shard, int32."""
        shard, index = place
        start, stop = self.header.bounds[shard]
        before = np.arange(start, start + index, dtype=np.int32)
        behind = np.arange(start + index + 1, stop, dtype=np.int32)
        return np.concatenate([before, behind])

    def predecessor(self, place: Place) -> int:
        """Return the index of the predecessor in the set."""
        shard, index = place
        return self.header.bounds[shard][0] + index

    def name_of(self, place: Place) -> str:
        """Return what messages call a predecessor."""
        return f"predecessor {place[1]} of shard {place[0]}"

    def sums_of(self, place: Place) -> int:
        """Return the number of successors: one sum for each."""
        return self.shard_size(place[0]) - 1

    def sums(self, permutations: int) -> Iterator[np.ndarray]:
        """Yield the sums (nats) of each predecessor's successors, in canonical order, float64."""
        kept = self.header.tokens_per_example or int(self.header.stored.max())
        with self.shards_in_turn():
            for shard in range(self.header.shards):
                for row in self.successors(shard, kept):
                    yield row[~np.isnan(row)]

    def tokens_stored_of(self, place: Place) -> int:
        """Return the tokens of the successors that get a log-probability."""
        predecessor = int(self.header.stored[self.predecessor(place)])
        return super().tokens_stored_of(place) - predecessor

    def tokens_read_of(self, place: Place) -> int:
        """Return the tokens that the model reads: the whole predecessor, then the successors."""
        predecessor = self.header.example_tokens[self.predecessor(place)]
        return predecessor + self.tokens_stored_of(place)

    def successors(self, shard: int, tokens_per_example: int) -> np.ndarray:
        """Return the sums S[a, b] = log p(first tokens of x_b | x_a) in nats, float64[k, k].

        Examples a and b count from the start of the shard; the diagonal is NaN. Raises
        InputError if the store keeps fewer than `tokens_per_example` tokens of an
        example, lacks a predecessor, or is damaged.
        """
        if not self.header.summed or tokens_per_example < self.header.stored.max():
            tokens = self.successor_tokens(shard, tokens_per_example)
            return np.asarray(tokens.sum(axis=2, dtype=np.float64))
        self._check_kept(tokens_per_example)
        size = self.shard_size(shard)
        sums = np.empty((size, size))
        for place, _, nats in self.sequences(shard=shard):
            row = place[1]
            sums[row] = np.insert(nats, row, np.nan)
        return sums

    def successor_tokens(self, shard: int, tokens_per_example: int) -> np.ndarray:
        """Return the terms of `successors`, float32[k, k, tokens_per_example].

        Entry [a, b, t] is token t of x_b after x_a: zero where x_b has fewer tokens,
        NaN where a is b. Raises InputError if the store keeps fewer than
        `tokens_per_example` tokens of an example, lacks a predecessor, has sums alone,
        or is damaged.
        """
        self._check_kept(tokens_per_example)
        self._require_tokens()
        start, _ = self.header.bounds[shard]
        size = self.shard_size(shard)
        rows: list[int] = []
        followers: list[np.ndarray] = []
        values: list[np.ndarray] = []
        for place, examples, nats in self.sequences(shard=shard):
            rows.append(place[1])
            followers.append(examples)
            values.append(nats)
        successors = np.concatenate(followers) - start
        lengths = self.header.stored[successors + start]
        position = positions(lengths)
        kept = position < tokens_per_example
        row = np.repeat(np.repeat(rows, size - 1), lengths)
        column = np.repeat(successors, lengths)
        tokens = np.zeros((size, size, tokens_per_example), dtype=np.float32)
        tokens[row[kept], column[kept], position[kept]] = np.concatenate(values)[kept]
        diagonal = np.arange(size)
        tokens[diagonal, diagonal] = np.nan
        return tokens

    def _check_kept(self, tokens_per_example: int) -> None:
        """Raise InputError unless the store keeps this number of tokens of an example."""
        limit = self.header.tokens_per_example
        most = tokens_per_example if limit is None else limit
        if not 1 <= tokens_per_example <= most:
            raise InputError(
                f"{self.directory}: tokens_per_example is {tokens_per_example}, and "
                f"the store keeps {limit or 'all'} of an example; give 1 to that many"
            )
