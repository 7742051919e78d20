"""Score a test set under a model into its store, doing only what is missing.

Oren, Algorithm 1, up to the statistics: for every shard the log-probability of the canonical order
and of m shuffled ones; or of every example right after every other.

The work is cut into parts by the header, the number of permutations and the scorer's batches alone.
So one process and many, a run that was interrupted and one that was not, write the same parts. A
`run-*.json` beside them says what each run was; neither the header nor any part depends on it.
"""

import platform
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from uuid import uuid4

import numpy as np
import pyarrow.parquet as pq
from tqdm import tqdm

from contamination.device import describe
from contamination.errors import InputError
from contamination.files import write_json
from contamination.scoring.contract import Scorer
from contamination.scoring.prefix import continuation_logprobs
from contamination.scoring.processes import gather, processes
from contamination.scoring.store import Store, open_store
from contamination.scoring.store_format import Header, Kind, Unit, positions
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.tokens import tokenize

PARTS = 256  # in which a plan is cut, if they then are neither too small nor too large
SMALLEST_PART = 1 << 14  # tokens read, as below
LARGEST_PART = 1 << 20  # the work that an interruption may cost in each process
BATCHES = 4  # of a part at least: between two parts the device waits
PACKAGES = ("contamination", "torch", "transformers", "tokenizers", "numpy", "pyarrow")

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
    enough: Callable[[Store, int], bool] | None = None,
    replace: bool = False,
) -> Store:
    """Make sure that `directory` holds the units of the plan, and return the store.

    Under torchrun all processes call this with the same arguments, and each scores its share of the
    missing parts; none returns before all are stored.

    Parameters
    ----------
    model : the model's name for people.
    shards, permutations : orderings 0..permutations of every shard. The whole-set permutation test
        is `shards=1`. Successors are all ordered pairs of a shard, whatever `permutations`.
    seed : of the orderings.
    kind, tokens_per_example : see `contamination.scoring.store_format.Header`.
    enough : asked after each shard, with the store and the index of that shard, whether to stop
        there; the shards are then scored one after the other. None scores all at once. Under
        torchrun every process asks, and all must get the same answer.
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
    units = list(header.units(permutations))
    work = [header.tokens_read(unit) for unit in units]

    rank, size = processes().process_index, processes().num_processes
    found = gather(_missing(directory, header, units, work, scorer, replace) if rank == 0 else None)
    if isinstance(found[0], InputError):
        raise found[0]
    store = open_store(directory)
    if store.header != header:
        raise InputError(
            f"process {rank} was to score something else than process 0; give every process the "
            "same model, test set and settings"
        )
    parts: list[list[int]] = found[0]
    stages = [parts] if enough is None else [_of_shard(s, parts, units) for s in range(shards)]
    # An endpoint may drift, so the canonical orderings are not always the first of their shards.
    for stage in stages:
        np.random.default_rng(0).shuffle(stage)
    score_part = _orderings if kind == "orderings" else _successors
    with (
        recorded(store, scorer) if parts else nullcontext(),
        tqdm(
            desc=f"{model} on {test_set.name}",
            total=sum(work[i] for stage in stages for part in stage[rank::size] for i in part),
            unit="tok",
            unit_scale=True,
            mininterval=1.0,
            leave=False,
            disable=rank != 0 or not parts,
        ) as bar,
    ):
        for shard, stage in enumerate(stages):
            for indices in stage[rank::size]:
                part = [(units[i], header.examples(units[i])) for i in indices]
                scores = dict(score_part(part, header, ids, scorer, bar.update))
                store.append((*item, scores[i]) for i, item in enumerate(part))
            if stage:
                gather(None)
            if enough is not None and enough(store, shard):
                break
    return store


def _missing(
    directory: Path,
    header: Header,
    units: Sequence[Unit],
    work: Sequence[int],
    scorer: Scorer,
    replace: bool,
) -> list[list[int]] | InputError:
    """Indices of the units that are not stored, part by part; the error is for all processes."""
    try:
        done = Store(directory, header, replace=replace).done()
    except InputError as error:
        return error
    parts = [
        [index for index in part if units[index] not in done]
        for part in _parts(work, scorer.batch_tokens)
    ]
    return [part for part in parts if part]


def _of_shard(shard: int, parts: Sequence[list[int]], units: Sequence[Unit]) -> list[list[int]]:
    """What parts hold of one shard."""
    own = ([index for index in part if units[index][0] == shard] for part in parts)
    return [part for part in own if part]


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


def _orderings(
    part: _Part,
    header: Header,
    ids: list[np.ndarray],
    scorer: Scorer,
    report: Callable[[int], object],
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (index in the part, log-probabilities to store) of orderings."""
    sequences = [np.concatenate([ids[e] for e in order]) for _, order in part]
    wanted = None
    if header.tokens_per_example is not None:
        lengths = np.asarray(header.example_tokens)
        wanted = [positions(lengths[order]) < header.tokens_per_example for _, order in part]
    for index, values in scorer.token_logprobs(sequences, wanted):
        report(len(values))
        yield index, values if wanted is None else values[wanted[index]]


def _successors(
    part: _Part,
    header: Header,
    ids: list[np.ndarray],
    scorer: Scorer,
    report: Callable[[int], object],
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
        report(header.tokens_read(part[index][0]))
        yield index, np.concatenate(values)


def device_of(scorer: Scorer) -> str:
    """One line on the device of this process, if the model runs here."""
    device = getattr(scorer, "device", None)
    return "elsewhere" if device is None else describe(device)


@contextmanager
def recorded(store: Store, scorer: Scorer) -> Iterator[None]:
    """Write `run-*.json` before the block and, whatever ends it, what came of it afterwards.

    Contents: started (UTC), seconds (null if the run was killed), processes, devices, precision,
    packages, parts and tokens that were added. Process 0 alone writes it.
    """
    devices = sorted(set(gather(device_of(scorer))))
    if not processes().is_main_process:
        yield
        return
    started, clock = datetime.now(UTC), time.perf_counter()
    path = store.directory / f"run-{started:%Y%m%dT%H%M%SZ}-{uuid4().hex[:8]}.json"
    before = set(store.parts())
    record = {
        "started": started.isoformat(timespec="seconds"),
        "seconds": None,
        "processes": processes().num_processes,
        "devices": devices,
        "precision": str(getattr(scorer, "dtype", "unknown")).removeprefix("torch."),
        "packages": {name: version(name) for name in PACKAGES},
        "python": platform.python_version(),
        "parts": [],
        "tokens": 0,
    }
    write_json(path, record)
    try:
        yield
    finally:
        added = [part for part in store.parts() if part not in before]
        write_json(
            path,
            record
            | {
                "seconds": time.perf_counter() - clock,
                "parts": [part.name for part in added],
                "tokens": sum(pq.read_metadata(part).num_rows for part in added),
            },
        )
