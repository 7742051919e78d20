"""A negative control that has seen no test set: a compressor in the place of the model.

Oren (section 4.3) drop the subsets of MMLU where a model that cannot be contaminated rejects. A
compressor knows nothing but the text in its window, so an order that it prefers is one that the
records themselves give away. Its window here is the example before: a neighbour that shares words
with the next example makes it shorter, and nothing further away counts. Of the arrangements of an
item's options, it reads each alone and as a whole.

A code of c bytes has probability 256^-c. Example b after example a costs size(a + b) - size(a)
bytes, the first example of an ordering size(b), with the sizes of zlib (deflate at level 9, without
header): whole bytes, whose ties `sharded_exact_test` counts as such.
"""

import math
import zlib
from dataclasses import replace
from functools import cache
from itertools import pairwise, starmap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from contamination.audit.registry import SAMPLED_ORDERINGS
from contamination.randomness import random_stream
from contamination.scoring.store_format import Kind
from contamination.statistics import centred_successors, sampled_successor_scores
from contamination.statistics.sharded_exact import ShardedExactResult, sharded_exact_test
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.orderings import ordering, shard_bounds

if TYPE_CHECKING:
    from contamination.testsets.variants import VariantSet

NATS_PER_BYTE = 8 * math.log(2)


def zlib_test(test_set: ExampleSet, **store: Any) -> ShardedExactResult:
    """Exact test of the shards of an audit under a compressor instead of its model.

    A small p says that the order carries information by itself. 1,000 records of 200 characters
    take half a second, as pairs in shards of ten or as 250 shards in 25 orderings. Parameters and
    errors as in `zlib_scores`.
    """
    return replace(sharded_exact_test(zlib_scores(test_set, **store)), test="compressor")


def zlib_scores(
    test_set: ExampleSet, *, kind: Kind, shards: int, permutations: int, seed: int
) -> NDArray[np.float64]:
    """Scores (nats) that `zlib_test` tests, (shards, n + 1), canonical first.

    `kind` is what the audit scores: "orderings", the very ones that the model is given, or
    "successors", pairs of whole examples (a code has no first tokens) from which orderings are
    sampled as those of the model are. The rest is as in the audit. Raises InputError if a shard has
    fewer than two examples, three for successors.
    """
    examples = [text.encode() for text in test_set.examples]
    alone = [_size(example) for example in examples]

    @cache  # each pair of neighbours is compressed once
    def following(a: int, b: int) -> int:
        return _size(examples[a] + examples[b]) - alone[a]

    scores = []
    rng = random_stream(seed, "compressor", test_set.revision, shards)
    for shard, bounds in enumerate(shard_bounds(len(examples), shards)):
        if kind == "orderings":
            named: dict[str, Any] = {"seed": seed, "dataset": test_set.revision, "shard": shard}
            orders = (ordering(bounds, index, **named) for index in range(permutations + 1))
            sizes = [alone[o[0]] + sum(starmap(following, pairwise(o))) for o in orders]
            scores.append(-NATS_PER_BYTE * np.array(sizes))
        else:
            pairs = np.array([[following(a, b) for b in range(*bounds)] for a in range(*bounds)])
            centred = centred_successors(-NATS_PER_BYTE * pairs)
            drawn = sampled_successor_scores(centred, resamples=SAMPLED_ORDERINGS, rng=rng)
            scores.append(drawn)
    return np.stack(scores)


def zlib_option_test(alternatives: "VariantSet") -> ShardedExactResult:
    """Exact test of the published alternatives of all records under a compressor.

    The log-probability (nats) of an alternative is that of its size by zlib. A small p says that
    the arrangement of the options is no accident, whoever has read it: options that share words
    stand side by side. A large one says little: a compressor neither counts nor knows an alphabet,
    and has no liking for a letter.
    """
    sizes = np.array([[_size(text.encode()) for text in row] for row in alternatives.texts])
    scores = -NATS_PER_BYTE * sizes
    return replace(sharded_exact_test(scores, weights="equal"), test="compressor")


def _size(data: bytes) -> int:
    return len(zlib.compress(data, level=9, wbits=-15))
