"""What scoring will cost: tokens, FLOPs and time, predicted before the run and compared after it.

Tokens are counted exactly, window by window. FLOPs are those of the matrix products: two for every
weight that a token meets, and four per layer, channel and token attended to. Time is the FLOPs over
the rate at which this model just ran a sample of this very work, so it needs no table of hardware.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

import numpy as np

from contamination.scoring.windows import windows
from contamination.testsets.orderings import shard_bounds

if TYPE_CHECKING:  # what there is to score is planned without torch
    from contamination.scoring.contract import Scorer


@dataclass(frozen=True)
class Workload:
    """What a plan asks of any model.

    Attributes
    ----------
    sequences : int
        Orderings of shards.
    scored, read : int
        Tokens that get a log-probability, and tokens that the network reads for them: windows
        overlap, so the second is larger where sequences are longer than the context.
    windows : int
        Forward passes of one sequence each; an endpoint needs a request for each.
    attended : int
        Sum over the read tokens of the tokens that each attends to.
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


def workload(
    example_tokens: Sequence[int], *, shards: int, permutations: int, context: int
) -> Workload:
    """Count what scoring every shard in its m+1 orderings takes.

    Raises
    ------
    InputError
        Fewer than two examples per shard.
    """
    bounds = shard_bounds(len(example_tokens), shards)
    lengths = [sum(example_tokens[start:stop]) for start, stop in bounds]
    return repeated(lengths, permutations + 1, context)


def successor_workload(
    example_tokens: Sequence[int], *, shards: int, tokens_per_example: int
) -> Workload:
    """Count what scoring the first tokens of every example after every other of its shard takes.

    Every predecessor is read once, and its successors after it; an endpoint reads it again with
    each of them, in one request per pair.

    Raises
    ------
    InputError
        Fewer than two examples per shard.
    """
    lengths = np.asarray(example_tokens, dtype=np.int64)
    parts = []
    for start, stop in shard_bounds(len(lengths), shards):
        before, after = lengths[start:stop], lengths[start:stop].clip(max=tokens_per_example)
        pairs = stop - start - 1
        parts.append(
            Workload(
                sequences=stop - start,
                scored=pairs * int(after.sum()),
                read=int(before.sum()) + pairs * int(after.sum()),
                windows=pairs * (stop - start),
                attended=int((before * (before + 1) // 2).sum())
                + pairs * int((after * (after + 1) // 2).sum())
                + int(before.sum() * after.sum() - (before * after).sum()),
            )
        )
    return total(parts)


def repeated(lengths: Sequence[int], times: int, context: int) -> Workload:
    """Workload of sequences of these lengths, each scored so many times."""
    widths = np.array([w.width for n in lengths for w in windows(n, context)], dtype=np.int64)
    return Workload(
        sequences=times * len(lengths),
        scored=times * sum(lengths),
        read=times * int(widths.sum()),
        windows=times * len(widths),
        attended=times * int((widths * (widths + 1) // 2).sum()),
    )


def total(parts: Iterable[Workload]) -> Workload:
    """Sum of workloads."""
    return Workload(*(sum(column) for column in zip(*map(astuple, parts), strict=True)))


def flops_per_second(scorer: "Scorer", shape: Shape, sequences: Sequence[np.ndarray]) -> float:
    """Rate of the model on a sample of the work: two batches' worth, after one to warm up."""
    sample: list[np.ndarray] = []
    for ids in sequences:
        sample.append(ids)
        if sum(map(len, sample)) >= 2 * scorer.batch_tokens:
            break
    lengths = [len(ids) for ids in sample]
    for _ in scorer.token_logprobs(sample[: -(-len(sample) // 2)]):
        pass
    started = time.perf_counter()
    for _ in scorer.token_logprobs(sample):
        pass
    seconds = time.perf_counter() - started
    return shape.flops(repeated(lengths, 1, scorer.context)) / seconds
