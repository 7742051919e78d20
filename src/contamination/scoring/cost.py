"""What scoring will cost: tokens, FLOPs and time, predicted before the run and compared after it.

Tokens are counted exactly. FLOPs are two for each parameter and token read: attention adds some
percent. Time is the tokens over the rate at which this model just ran a sample of this very work,
so it needs no table of hardware.
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
    sequences : orderings of shards, or predecessors.
    scored, read : tokens that get a log-probability, and tokens that the network reads for them:
        windows overlap, so these are more where sequences are longer than the context.
    windows : forward passes of one sequence each; an endpoint needs a request for each.
    """

    sequences: int
    scored: int
    read: int
    windows: int

    def flops(self, parameters: int) -> float:
        """Floating-point operations of a model with so many parameters, about."""
        return 2.0 * parameters * self.read


def workload(store: StorePlan, lengths: Sequence[int], permutations: int, context: int) -> Workload:
    """Count what filling a store takes, for examples of so many tokens.

    Of successors every predecessor is read once, and the others after it; an endpoint without a
    cache reads it again with each of them, in one request per pair. Raises InputError for fewer
    than two examples per shard, or successors longer than the context.
    """
    bounds = shard_bounds(len(lengths), store.shards)
    if store.kind == "orderings":
        sums = [sum(lengths[start:stop]) for start, stop in bounds]
        return sequence_workload(sums, permutations + 1, context)
    kept = [min(length, store.tokens_per_example or length) for length in lengths]
    if max(kept) > context:
        told = f"the successor test reads {max(kept)} tokens at once"
        raise InputError(f"{told}, the context is {context}; use --test sharded_exact")
    pairs = sum((stop - start) * (stop - start - 1) for start, stop in bounds)
    scored = sum((stop - start - 1) * sum(kept[start:stop]) for start, stop in bounds)
    return Workload(len(lengths), scored, sum(lengths) + scored, pairs)


def sequence_workload(lengths: Sequence[int], times: int, context: int) -> Workload:
    """Count what scoring sequences of these lengths takes, each of them so many times.

    It takes less where windows are equal: a model here reads those of one part once.
    """
    widths = [window.width for length in lengths for window in windows(length, context)]
    counts = len(lengths), sum(lengths), sum(widths), len(widths)
    return Workload(*(times * count for count in counts))


def total(parts: Iterable[Workload]) -> Workload:
    """Add up workloads."""
    return Workload(*(sum(column) for column in zip(*map(astuple, parts), strict=True)))


def tokens_per_second(scorer: Scorer, sequences: Sequence[np.ndarray]) -> float:
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
            return sequence_workload(list(map(len, sample)), 1, scorer.context).read / seconds
        tokens *= 2
