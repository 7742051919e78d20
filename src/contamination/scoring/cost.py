"""What scoring will cost: tokens, FLOPs and time, predicted before the run and compared after it.

Tokens are counted exactly. FLOPs are those of the matrix products: two for every weight that a
token meets, and four per layer, channel and token attended to. Time is the FLOPs over the rate at
which this model just ran a sample of this very work, so it needs no table of hardware.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass

import numpy as np

from contamination.errors import InputError
from contamination.scoring.contract import Scorer
from contamination.scoring.plan import StorePlan
from contamination.scoring.windows import windows
from contamination.testsets.orderings import shard_bounds

SMALLEST_SAMPLE, LONG_ENOUGH = 256, 0.5  # tokens, seconds


@dataclass(frozen=True)
class Workload:
    """What a plan asks of any model.

    Attributes
    ----------
    sequences : orderings of shards, predecessors, or beginnings that alternatives share.
    scored, read : tokens that get a log-probability, and tokens that the network reads for them:
        windows overlap, so these are more where sequences are longer than the context.
    windows : forward passes of one sequence each; an endpoint needs a request for each.
    attended : sum over the read tokens of the tokens that each attends to.
    """

    sequences: int
    scored: int
    read: int
    windows: int
    attended: int


@dataclass(frozen=True)
class Shape:
    """What a forward pass costs: weights met by each token, by each scored token, and attention.

    Attributes
    ----------
    body, head : weights in the matrix products of the layers, and of the output layer. A mixture
        of experts counts them all, whichever a token is sent to.
    channels : layers x width of the attention heads together.
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


def workload(store: StorePlan, lengths: Sequence[int], permutations: int, context: int) -> Workload:
    """Count what filling a store takes, for examples of so many tokens.

    Of successors every predecessor is read once, and the others after it. Raises InputError for
    fewer than two examples per shard, or successors longer than the context.
    """
    bounds = shard_bounds(len(lengths), store.shards)
    if store.kind == "orderings":
        sums = [sum(lengths[start:stop]) for start, stop in bounds]
        return sequence_workload(sums, permutations + 1, context)
    kept = np.array([min(n, store.tokens_per_example or n) for n in lengths], dtype=np.int64)
    if kept.max() > context:
        told = f"the successor test reads {kept.max()} tokens at once"
        raise InputError(
            f"{told}, the context is {context}; use tests='sharded_exact'", parameter="tests"
        )
    return total(
        continuation_workload(lengths[before], np.delete(kept[start:stop], before - start))
        for start, stop in bounds
        for before in range(start, stop)
    )


def continuation_workload(prefix: int, lengths: np.ndarray) -> Workload:
    """Count what scoring continuations of these lengths takes after a prefix of so many tokens.

    A model here reads the prefix once. A server without a cache reads it again with each of them,
    in a request for each.
    """
    count, scored = len(lengths), int(lengths.sum())
    attended = prefix * (prefix + 1) // 2 + int((lengths * (lengths + 1) // 2).sum())
    return Workload(1, scored, prefix + scored, count, attended + prefix * scored)


def sequence_workload(lengths: Sequence[int], times: int, context: int) -> Workload:
    """Count what scoring sequences of these lengths takes, each of them so many times.

    It takes less where windows are equal: a model here reads those of one part once.
    """
    widths = np.array([window.width for window in windows(lengths, context)], dtype=np.int64)
    return Workload(
        sequences=times * len(lengths),
        scored=times * sum(lengths),
        read=times * int(widths.sum()),
        windows=times * len(widths),
        attended=times * int((widths * (widths + 1) // 2).sum()),
    )


def total(parts: Iterable[Workload]) -> Workload:
    """Add up workloads."""
    return Workload(*(sum(column) for column in zip(*map(astuple, parts), strict=True)))


def flops_per_second(scorer: Scorer, shape: Shape, sequences: Sequence[np.ndarray]) -> float:
    """Time the model on samples of the work, each twice as large, until one takes long enough.

    The largest sample is two batches; a slow model is timed on less than a second's worth.
    """
    tokens = SMALLEST_SAMPLE
    list(scorer.token_logprobs([sequences[0][:tokens]]))  # warms up
    while True:
        ends = np.cumsum([min(len(ids), tokens) for ids in sequences])
        sample = [ids[:tokens] for ids in sequences[: 1 + int(np.searchsorted(ends, tokens))]]
        started = time.perf_counter()
        list(scorer.token_logprobs(sample))
        seconds = time.perf_counter() - started
        if seconds >= LONG_ENOUGH or tokens >= 2 * scorer.batch_tokens or ends[-1] < tokens:
            lengths = [len(ids) for ids in sample]
            return shape.flops(sequence_workload(lengths, 1, scorer.context)) / seconds
        tokens *= 2
