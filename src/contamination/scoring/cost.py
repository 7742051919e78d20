"""The cost of scoring, predicted before the run: tokens and FLOPs.

Tokens are counted exactly. FLOPs are those of the matrix products: two for every weight
that a token meets, and four per layer, channel and token attended to. `speed` measures
how long they take here.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from contamination.errors import InputError
from contamination.scoring.plan import StorePlan
from contamination.scoring.windows import windows
from contamination.testsets.orderings import shard_bounds


@dataclass(frozen=True)
class Workload:
    """The work of a plan, whichever the model: sequences, tokens and forward passes.

    Attributes
    ----------
    sequences
        Orderings of shards, predecessors, or beginnings that variants share.
    scored, read
        Tokens that get a log-probability, and tokens that the network reads for them:
        windows overlap, so these are more where sequences are longer than the context.
    windows
        Forward passes of one sequence each; an endpoint needs a request for each.
    attended
        Sum over the read tokens of the tokens that each attends to.
    """

    sequences: int
    scored: int
    read: int
    windows: int
    attended: int


@dataclass(frozen=True)
class Shape:
    """Sizes that give the cost of a forward pass: weights of layers and head, and attention.

    Attributes
    ----------
    body, head
        Weights in the matrix products of the layers, and of the output layer. A mixture
        of experts counts them all, whichever a token is sent to.
    channels
        Layers x width of the attention heads together.
    """

    body: int
    head: int
    channels: int

    def flops(self, work: Workload) -> float:
        """Floating-point operations of the matrix products."""
        return (
            2.0 * self.body * work.read
            + 2.0 * self.head * work.scored
            + 4.0 * self.channels * work.attended
        )


def workload(
    store: StorePlan,
    lengths: Sequence[int],
    permutations: int,
    context: int,
) -> Workload:
    """Count what filling a store takes, from the tokens of each example.

    Of successors every predecessor is read once, and the others after it; only
    orderings have permutations. Raises InputError for fewer than two examples per
    shard, or successors longer than the context.
    """
    bounds = shard_bounds(len(lengths), store.shards)
    if store.kind == "orderings":
        sums = [sum(lengths[start:stop]) for start, stop in bounds]
        return sequence_workload(sums, permutations + 1, context)
    kept = np.array(lengths, dtype=np.int64)
    if store.tokens_per_example is not None:
        kept = kept.clip(max=store.tokens_per_example)
    if kept.max() > context:
        raise InputError(
            f"the successor test reads {kept.max()} tokens at once, the context is "
            f"{context}; use tests='sharded_exact'",
            parameter="tests",
        )
    parts: list[Workload] = []
    for start, stop in bounds:
        for predecessor in range(start, stop):
            others = np.delete(kept[start:stop], predecessor - start)
            parts.append(continuation_workload(lengths[predecessor], others))
    return total(parts)


def continuation_workload(prefix: int, lengths: np.ndarray) -> Workload:
    """Count the work of scoring continuations of these lengths after a prefix of `prefix` tokens.

    A model here reads the prefix once. A server without a cache reads it again with
    each of them, in a request for each.
    """
    scored = int(lengths.sum())
    within_prefix = prefix * (prefix + 1) // 2
    within_continuations = int((lengths * (lengths + 1) // 2).sum())
    return Workload(
        sequences=1,
        scored=scored,
        read=prefix + scored,
        windows=len(lengths),
        attended=within_prefix + within_continuations + prefix * scored,
    )


def sequence_workload(lengths: Sequence[int], times: int, context: int) -> Workload:
    """Count the work of scoring sequences of these lengths, each a number of times.

    It takes less where windows are equal: a model here reads those of one part once.
    """
    of_windows = [window.width for window in windows(lengths, context)]
    widths = np.array(of_windows, dtype=np.int64)
    return Workload(
        sequences=times * len(lengths),
        scored=times * sum(lengths),
        read=times * int(widths.sum()),
        windows=times * len(widths),
        attended=times * int((widths * (widths + 1) // 2).sum()),
    )


def distinct_share(examples: int, shards: int, permutations: int) -> float:
    """Return the expected share of the orderings of shards that no earlier one equals.

    A model here reads equal orderings once, and a shard of three examples has but six.
    The permutations are without the canonical ordering.
    """
    drawn = permutations + 1
    distinct = 0.0
    for start, stop in shard_bounds(examples, shards):
        chance = math.exp(-math.lgamma(stop - start + 1))  # of one ordering among all
        # Of all orderings, each is drawn at least once with probability 1 - (1 - chance)^drawn.
        distinct += -math.expm1(drawn * math.log1p(-chance)) / chance
    return distinct / (shards * drawn)


def total(parts: Iterable[Workload]) -> Workload:
    """Add up workloads, of which there is at least one."""
    sequences = 0
    scored = 0
    read = 0
    windows_of_parts = 0
    attended = 0
    for part in parts:
        sequences += part.sequences
        scored += part.scored
        read += part.read
        windows_of_parts += part.windows
        attended += part.attended
    return Workload(
        sequences=sequences,
        scored=scored,
        read=read,
        windows=windows_of_parts,
        attended=attended,
    )
