"""The zlib baseline: a control that has seen no test set, in the place of the model.

Oren (section 4.3) drop the subsets of MMLU where a model that cannot be contaminated
rejects. zlib knows nothing but the text in its window, so an order that it
prefers is one that the records themselves give away. Its window here is the example
before: a neighbour that shares words with the next example makes it shorter, and
nothing further away counts. Of the arrangements of an item's options, it reads each
alone and as a whole.

A code of c bytes has probability 256^-c. Example b after example a costs size(a + b) -
size(a) bytes, the first example of an ordering size(b), with the sizes of zlib (deflate
at level 9, without header): whole bytes, whose ties `sharded_exact_test` counts as
such.
"""

import math
import zlib
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from contamination.audit.shard_scores import SAMPLED_ORDERINGS
from contamination.randomness import random_stream
from contamination.scoring.store_format import Kind
from contamination.statistics import centred_successors, sampled_successor_scores
from contamination.statistics.sharded_exact import (
    ShardedExactResult,
    sharded_exact_test,
)
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.orderings import ordering, shard_bounds

if TYPE_CHECKING:
    from contamination.testsets.variants import VariantSet

NATS_PER_BYTE = 8 * math.log(2)
LARGEST_WINDOW = 15  # bits; a match reaches back so far, but for the bytes below
UNUSED = 300  # zlib leaves 262 bytes of a window alone
LARGEST_MEMORY = 8  # a block of the code has 2^(6 + memory) symbols at most


def zlib_test(
    test_set: ExampleSet, *, kind: Kind, shards: int, permutations: int, seed: int
) -> ShardedExactResult:
    """Return the exact test of the shards of an audit under zlib instead of its model.

    The arguments are those of `zlib_scores`. A small p says that the order carries
    information by itself. 1,000 records of 200 characters take half a second, as pairs
    in shards of ten or as 250 shards in 25 orderings. Raises InputError if a shard has
    fewer than two examples, three for successors.
    """
    scores = zlib_scores(
        test_set,
        kind=kind,
        shards=shards,
        permutations=permutations,
        seed=seed,
    )
    return replace(sharded_exact_test(scores), test="compressor")


def zlib_scores(
    test_set: ExampleSet, *, kind: Kind, shards: int, permutations: int, seed: int
) -> NDArray[np.float64]:
    """Return the scores (nats) that `zlib_test` tests, (shards, n + 1), canonical first.

    Set, shards, permutations and seed are those of the audit, and `kind` is that of its
    store. Of "orderings" zlib reads the very orderings that the model is given; of
    "successors" pairs of whole examples (compressed text has no first tokens), from
    which orderings are sampled as they are for the model. Raises InputError if a shard
    has fewer than two examples, three for successors.
    """
    costs = _Costs([text.encode() for text in test_set.examples])
    rng = random_stream(seed, "compressor", test_set.revision, shards)
    scores = []
    for shard, bounds in enumerate(shard_bounds(len(test_set.examples), shards)):
        if kind == "successors":
            pairs = costs.of_pairs(bounds)
            centred = centred_successors(-NATS_PER_BYTE * pairs)
            sampled = sampled_successor_scores(
                centred,
                resamples=SAMPLED_ORDERINGS,
                rng=rng,
            )
            scores.append(sampled)
            continue
        sizes = []
        for index in range(permutations + 1):
            examples = ordering(
                bounds,
                index,
                seed=seed,
                dataset=test_set.revision,
                shard=shard,
            )
            sizes.append(costs.of_ordering(examples.tolist()))
        scores.append(-NATS_PER_BYTE * np.array(sizes))
    return np.stack(scores)


class _Costs:
    """The bytes that examples take, alone and after each other."""

    def __init__(self, examples: Sequence[bytes]) -> None:
        self._examples = examples
        self._alone = [_size(example) for example in examples]
        self._following: dict[tuple[int, int], int] = {}

    def following(self, first: int, second: int) -> int:
        """Return the bytes of the second example after the first."""
        pair = (first, second)
        if pair not in self._following:
            both = _size(self._examples[first] + self._examples[second])
            self._following[pair] = both - self._alone[first]
        return self._following[pair]

    def of_ordering(self, examples: Sequence[int]) -> int:
        """Return the bytes of examples in an order."""
        size = self._alone[examples[0]]
        for first, second in pairwise(examples):
            size += self.following(first, second)
        return size

    def of_pairs(self, bounds: tuple[int, int]) -> NDArray[np.int64]:
        """Return the bytes of each example of a shard (column) after another one (row).

        The diagonal, of an example after itself, is 0.
        """
        shard = range(*bounds)
        pairs = np.zeros((len(shard), len(shard)), dtype=np.int64)
        for row, first in enumerate(shard):
            for column, second in enumerate(shard):
                if first != second:
                    pairs[row, column] = self.following(first, second)
        return pairs


def zlib_option_test(variants: "VariantSet") -> ShardedExactResult:
    """Return the exact test of the published variants of all records under zlib.

    The log-probability (nats) of a variant is that of its size by zlib. A small p says
    that the arrangement of the options is no accident, whoever has read it: options
    that share words stand side by side. A large one says little: zlib neither counts
    nor knows an alphabet, and has no liking for a letter.
    """
    sizes = []
    for texts in variants.texts:
        sizes.append([_size(text.encode()) for text in texts])
    scores = -NATS_PER_BYTE * np.array(sizes)
    return replace(sharded_exact_test(scores, weights="equal"), test="compressor")


def _size(data: bytes) -> int:
    """Return the bytes that some bytes take.

    A short text fits into a small window with small tables, and its code is that of the
    largest ones, whose hundreds of kilobytes would be cleared for every text.
    """
    window = min(LARGEST_WINDOW, max(9, (len(data) + UNUSED).bit_length()))
    memory = min(LARGEST_MEMORY, max(1, (len(data) + 2).bit_length() - 6))
    code = zlib.compressobj(9, zlib.DEFLATED, -window, memory)
    return len(code.compress(data)) + len(code.flush())
