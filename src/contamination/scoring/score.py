"""Score a test set under a model into its store, doing only what is missing.

Oren, Algorithm 1, up to the statistics: for every shard the log-probability of the canonical order
and of m shuffled ones; or of every example right after every other.

The work is cut into parts by the header, the number of permutations and the scorer's batches alone.
So one process and many, a run that was interrupted and one that was not, write the same parts.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from tqdm import tqdm

from contamination.errors import InputError
from contamination.scoring.contract import Scorer
from contamination.scoring.prefix import continuation_logprobs
from contamination.scoring.queue import WorkQueue, work_queue
from contamination.scoring.store import Store, open_store
from contamination.scoring.store_format import Header, Kind, Unit, positions
from contamination.scoring.store_runs import device_of, recorded
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.tokens import tokenize

PARTS = 256  # in which a plan is cut, if they then are neither too small nor too large
SMALLEST_PART = 1 << 14  # tokens read, as below
LARGEST_PART = 1 << 20  # the work that an interruption may cost in each process
BATCHES = 4  # of a part at least: between two parts the device waits

_Part = Sequence[tuple[Unit, np.ndarray]]  # each with its examples in order


def score(
    test_set: ExampleSet,
    scorer: Scorer,
    directory: Path,
    *,
    model: str,
    shards: int,
    permutations: int,
    seed: int,
    kind: Kind = "orderings",
    tokens_per_example: int | None = None,
    upto: int | None = None,
    replace: bool = False,
) -> Store:
    """Make sure that `directory` holds all units of the plan, and return the store.

    Under torchrun all processes call this with the same arguments, and share the work.

    Parameters
    ----------
    model : the model's name for people.
    shards, permutations : orderings 0..permutations of every shard. The whole-set permutation test
        is `shards=1`. Successors are all ordered pairs of a shard, whatever `permutations`.
    seed : of the orderings.
    kind, tokens_per_example : see `contamination.scoring.store_format.Header`.
    upto : only the first so many shards, the others later; None is all.
    replace : a store of something else in `directory` makes way instead of being refused.

    Raises
    ------
    InputError
        Fewer than two examples per shard, an example without a token, `directory` is the store of
        something else, a log-probability that is not finite, or a full disk.
    """
    ids = tokenize(scorer.tokenizer, test_set.examples)
    if empty := [index for index, tokens in enumerate(ids) if len(tokens) == 0]:
        raise InputError(
            f"{test_set.name}: example {empty[0]} has no token; remove it, or use a template that "
            "ends with a separator"
        )
    header = Header(
        model=model,
        model_revision=scorer.revision,
        dataset=test_set.name,
        dataset_revision=test_set.revision,
        template=test_set.template,
        seed=seed,
        shards=shards,
        example_tokens=tuple(len(i) for i in ids),
        kind=kind,
        tokens_per_example=tokens_per_example,
    )
    units = [u for u in header.units(permutations) if upto is None or u[0] < upto]
    work = [header.tokens_read(unit) for unit in units]

    def plan() -> list[list[int]]:
        done = Store(directory, header, replace=replace).done()
        parts = [
            [index for index in part if units[index] not in done]
            for part in _parts(work, scorer.batch_tokens)
        ]
        return [part for part in parts if part]

    queue = work_queue()
    parts = [_indices(runs) for runs in queue.agree(lambda: [_runs(part) for part in plan()])]
    store = open_store(directory)
    if store.header != header:
        raise InputError(
            f"process {queue.rank} was to score something else than process 0; give every process "
            "the same model, test set and settings"
        )
    if not parts:
        return store
    total = sum(work[index] for part in parts for index in part)
    score_part = _orderings if kind == "orderings" else _successors
    with (
        recorded(store, scorer, queue),
        tqdm(
            desc=f"{model} on {test_set.name}",
            total=total,
            unit="tok",
            unit_scale=True,
            mininterval=1.0,
            leave=False,
            disable=queue.rank != 0,
        ) as bar,
    ):

        def show(tokens: int) -> None:
            bar.update(min(tokens, total) - bar.n)  # a part that was lost is counted twice

        for index in queue.tasks(len(parts), note=device_of(scorer), show=show):
            part = [(units[i], header.examples(units[i])) for i in parts[index]]
            scores = dict(score_part(part, header, ids, scorer, queue))
            store.append((*item, scores[i]) for i, item in enumerate(part))
    return store


def _parts(work: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Group consecutive units, which read `work` tokens each, into parts of about equal work."""
    size = min(max(sum(work) // PARTS, SMALLEST_PART, BATCHES * batch_tokens), LARGEST_PART)
    part: list[int] = []
    tokens = 0
    for index, count in enumerate(work):
        part.append(index)
        tokens += count
        if tokens >= size:
            yield part
            part, tokens = [], 0
    if part:
        yield part


def _runs(indices: list[int]) -> list[tuple[int, int]]:
    """Bounds [start, stop) of the runs of consecutive indices."""
    breaks = [i for i in range(1, len(indices)) if indices[i] != indices[i - 1] + 1]
    return [
        (indices[start], indices[stop - 1] + 1)
        for start, stop in zip([0, *breaks], [*breaks, len(indices)], strict=True)
    ]


def _indices(runs: Sequence[tuple[int, int]]) -> list[int]:
    return [index for start, stop in runs for index in range(start, stop)]


def _orderings(
    part: _Part, header: Header, ids: list[np.ndarray], scorer: Scorer, queue: WorkQueue
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (index in the part, log-probabilities to store) of orderings."""
    sequences = [np.concatenate([ids[e] for e in order]) for _, order in part]
    wanted = None
    if header.tokens_per_example is not None:
        lengths = np.asarray(header.example_tokens)
        wanted = [positions(lengths[order]) < header.tokens_per_example for _, order in part]
    for index, values in scorer.token_logprobs(sequences, wanted):
        queue.report(len(values))
        yield index, values if wanted is None else values[wanted[index]]


def _successors(
    part: _Part, header: Header, ids: list[np.ndarray], scorer: Scorer, queue: WorkQueue
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (index in the part, log-probabilities to store) of examples after one and the same."""
    groups = [
        (
            ids[header.bounds[shard][0] + index],
            [ids[e][: header.tokens_per_example] for e in others],
        )
        for (shard, index), others in part
    ]
    for index, values in continuation_logprobs(scorer, groups):
        queue.report(header.tokens_read(part[index][0]))
        yield index, np.concatenate(values)
