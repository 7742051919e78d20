"""Stores of variants: all N variants of each record, the published one first.

A shard is a record, and an example is what follows, in one variant, on the beginning
that all variants of the record share. Sequence (s, 0) is all N of record s. On disk the
kind is called "alternatives".
"""

from collections.abc import Iterator

import numpy as np

from contamination.scoring.store_format import Place
from contamination.scoring.stores.base import Store
from contamination.statistics.results import with_ties


class VariantStore(Store):
    """Log-probabilities of every variant of each record."""

    kind = "alternatives"

    def shard_size(self, shard: int, *, permutations: int = 0) -> int:
        """Return 1: all variants of a record are one sequence."""
        return 1

    def examples(self, place: Place) -> np.ndarray:
        """Return the variants of a record, the published one first, int32."""
        start, stop = self.header.bounds[place[0]]
        return np.arange(start, stop, dtype=np.int32)

    def name_of(self, place: Place) -> str:
        """Return what messages call a record."""
        return f"record {place[0]}"

    def sums_of(self, place: Place) -> int:
        """Return the number of variants: one sum for each."""
        start, stop = self.header.bounds[place[0]]
        return stop - start

    def sums(self, permutations: int) -> Iterator[np.ndarray]:
        """Raise InputError: only stores of orderings and successors are summed."""
        raise self._other_kind("orderings")

    def variants(self) -> np.ndarray:
        """Return log-probabilities (nats) of the N variants of each record, float64[records, N].

        The published one comes first. They are conditional on the beginning that all
        variants of a record share, which adds the same to each. Where all variants of a
        record lie within the `resolution` of such a sum, they are ties: all get the
        mean. Raises InputError if the store lacks a record or is damaged.
        """
        self._require_tokens()
        records = self.header.shards
        lengths = self.header.stored.reshape(records, -1)
        sums = np.empty(lengths.shape)
        for place, _, nats in self.sequences():
            record = place[0]
            starts = np.cumsum(lengths[record]) - lengths[record]
            sums[record] = np.add.reduceat(nats, starts, dtype=np.float64)
        resolutions = [self.resolution(tokens) for tokens in lengths.max(axis=1)]
        return with_ties(sums, resolutions)
