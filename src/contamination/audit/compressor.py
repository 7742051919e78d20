"""A negative control that has seen no test set: a compressor in the place of the model.

Oren (section 4.3) drop the subsets of MMLU where a model that cannot be contaminated rejects. A
compressor knows nothing but the text in its window, so an order that it prefers is one that the
records themselves give away. Its window here is the example before: a neighbour that shares words
with the next example makes it shorter, and nothing further away counts. Of the arrangements of an
item's options, it reads each alone and as a whole.
"""

import math
import zlib
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise, starmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contamination.audit.battery import SAMPLED_ORDERINGS
from contamination.randomness import random_stream
from contamination.scoring.store_format import Kind
from contamination.statistics import centred_successors, sampled_successor_scores
from contamination.statistics.sharded_exact import ShardedExactResult, sharded_exact_test
from contamination.testsets.alternatives import AlternativeSet
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.orderings import ordering, shard_bounds

NATS_PER_BYTE = 8 * math.log(2)


def compressor_test(test_set: ExampleSet, **store: Any) -> ShardedExactResult:
    """Exact test of the shards of an audit under a compressor instead of its model.

    A small p says that the order carries information by itself. 1,000 records of 200 characters
    take half a second, as pairs in shards of ten or as 250 shards in 25 orderings. Parameters and
    errors as in `compressor_scores`.
    """
    return replace(sharded_exact_test(compressor_scores(test_set, **store)), test="compressor")


def compressor_scores(
    test_set: ExampleSet, *, kind: Kind, shards: int, permutations: int, seed: int
) -> NDArray[np.float64]:
    """Scores (nats) that `compressor_test` tests, (shards, n + 1), canonical first.

    Raises InputError if a shard has fewer than two examples, three for successors.

    Parameters
    ----------
    kind : what the audit scores: "orderings", the very ones that the model is given; or
        "successors", pairs from which orderings are sampled as those of the model are.
    shards, permutations, seed : as in the audit.
    """
    if kind == "orderings":
        return compressor_log_probs(test_set, shards=shards, permutations=permutations, seed=seed)
    rng = random_stream(seed, "compressor", test_set.revision, shards)
    centred = map(centred_successors, compressor_successors(test_set, shards=shards))
    return np.stack(
        [sampled_successor_scores(c, resamples=SAMPLED_ORDERINGS, rng=rng) for c in centred]
    )


def compressor_alternatives(alternatives: AlternativeSet) -> ShardedExactResult:
    """Exact test of the published alternatives of all records under a compressor.

    The log-probability (nats) of an alternative is that of its size by zlib. A small p says that
    the arrangement of the options is no accident, whoever has read it: options that share words
    stand side by side. A large one says little: a compressor neither counts nor knows an alphabet,
    and has no liking for a letter.
    """
    sizes = np.array([[_size(text.encode()) for text in row] for row in alternatives.texts])
    scores = -NATS_PER_BYTE * sizes
    return replace(sharded_exact_test(scores, weights="equal"), test="compressor")


def compressor_successors(test_set: ExampleSet, *, shards: int) -> Iterator[NDArray[np.float64]]:
    """Yield S[a, b] = log-probability (nats) of x_b after x_a, (k, k), for every shard.

    Of all of x_b: a code has no first tokens. The diagonal is NaN. Errors as `compressor_scores`.
    """
    examples = [text.encode() for text in test_set.examples]
    for start, stop in shard_bounds(len(examples), shards):
        shard = examples[start:stop]
        sizes = np.array([[_size(a + b) for b in shard] for a in shard], dtype=np.float64)
        sizes -= np.array([[_size(a)] for a in shard])
        np.fill_diagonal(sizes, np.nan)
        yield -NATS_PER_BYTE * sizes


def compressor_log_probs(
    test_set: ExampleSet, *, shards: int, permutations: int, seed: int
) -> NDArray[np.float64]:
    """Log-probability (nats) of every shard in every ordering, (shards, permutations + 1).

    Column 0 is canonical. With the same revision, shards and seed, the orderings are those that a
    model is given. A code of c bytes has probability 256^-c. Example b after example a costs
    size(a + b) - size(a) bytes, the first example of an ordering size(b), with the sizes of zlib
    (deflate at level 9, without header): whole bytes, whose ties `sharded_exact_test` counts as
    such. Each pair of neighbours is compressed once. Errors as `compressor_scores`.
    """
    examples = [text.encode() for text in test_set.examples]
    alone = [_size(example) for example in examples]

    @cache
    def following(a: int, b: int) -> int:
        return _size(examples[a] + examples[b]) - alone[a]

    scores = []
    for shard, bounds in enumerate(shard_bounds(len(examples), shards)):
        named: dict[str, Any] = {"seed": seed, "dataset": test_set.revision, "shard": shard}
        orders = (ordering(bounds, index, **named) for index in range(permutations + 1))
        scores.append([alone[o[0]] + sum(starmap(following, pairwise(o))) for o in orders])
    return -NATS_PER_BYTE * np.array(scores)


def _size(data: bytes) -> int:
    return len(zlib.compress(data, level=9, wbits=-15))
