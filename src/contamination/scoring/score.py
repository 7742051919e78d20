"""Score a test set under a model into its store, doing only what is missing.

Oren, Algorithm 1, up to the statistics: for every shard the log-probability of the canonical order
and of m shuffled ones; or of every example right after every other.

The work is cut into parts by the header, the number of permutations and the scorer's batches alone.
So one process and many, a run that was interrupted and one that was not, write the same parts. A
`run-*.json` beside them says what each run was; neither the header nor any part depends on it.

A number may depend on when and where it was computed: a float on its place in the batch, an answer
on the requests before it. So the units of a shard are scored in a random order, one shard after
another, and so are the examples after a predecessor: places then say nothing about the canonical
order, the orderings stay exchangeable under H0, and a drift, slow against a shard, cancels in it.
Units that are missing from an older run are scored after it; only they are put in a random order.
One stored ordering of each of their shards is scored again first: if it has moved by more than the
engine's resolution, nothing is added.
"""

import platform
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from operator import itemgetter
from pathlib import Path
from uuid import uuid4

import numpy as np
from tqdm import tqdm

from contamination.device import describe
from contamination.errors import InputError
from contamination.files import write_json
from contamination.randomness import random_stream
from contamination.scoring.contract import Scorer
from contamination.scoring.prefix import continuation_logprobs
from contamination.scoring.processes import gather, mine, processes, share, together
from contamination.scoring.store import Store, open_store
from contamination.scoring.store_format import Header, Kind, Unit, count_rows, positions
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.tokens import TokenisedSet, consecutive, tokenize_set

PARTS = 256  # that the work is cut into, unless they become too small or too large
SMALLEST_PART = 1 << 14  # tokens that the model reads, as below
LARGEST_PART = 1 << 20  # the work that an interruption may cost in each process
BATCHES = 4  # of a part at least: between two parts the device waits
ScoredUnit = tuple[Unit, np.ndarray, np.ndarray]  # unit, its examples, float32 of their tokens
PACKAGES = ("contamination", "torch", "transformers", "tokenizers", "numpy", "pyarrow")


def score(
    test_set: ExampleSet | TokenisedSet,
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
    missing parts; none returns before all are stored. Raises InputError if a shard has fewer than
    two examples, an example has no token, the kind is "alternatives"
    (`contamination.scoring.alternatives`), `directory` holds a store of something else, a
    log-probability is not finite, or the disk is full.

    Parameters
    ----------
    shards, permutations : orderings 0..permutations of every shard. The whole-set permutation test
        is `shards=1`. Successors are all ordered pairs of a shard, whatever `permutations`.
    test_set : tokenised by this scorer's tokenizer, or to be.
    model, seed, kind, tokens_per_example : see `contamination.scoring.store_format.Header`.
    enough : called after each shard with the store and the index of that shard; scoring ends when
        it returns True. The shards are then scored one after the other; None scores all at once.
        Under torchrun every process calls it, and all must get the same answer.
    replace : remove a store of something else from `directory` instead of raising an error.
    """
    if kind == "alternatives":
        raise InputError("kind is 'alternatives': score_alternatives scores those")
    if isinstance(test_set, ExampleSet):
        test_set = tokenize_set(scorer.tokenizer, test_set)
    header = Header(
        model=model,
        model_revision=scorer.revision,
        dataset=test_set.test_set.name,
        dataset_revision=test_set.test_set.revision,
        template=test_set.test_set.template,
        seed=seed,
        shards=shards,
        example_tokens=test_set.lengths,
        kind=kind,
        tokens_per_example=tokens_per_example,
    )
    ordered = [header.units(permutations, shard) for shard in range(header.shards)]
    shuffled = [  # shard by shard, each in a random order of its own
        units[i]
        for units in ordered
        for i in order_of_work(header, len(units), "units", units[0][0])
    ]
    return fill(
        directory,
        header,
        shuffled,
        scorer,
        partial(_scored, header=header, ids=test_set.ids, scorer=scorer),
        enough=enough,
        replace=replace,
    )


def fill(
    directory: Path,
    header: Header,
    units: Sequence[Unit],
    scorer: Scorer,
    read: Callable[[Sequence[Unit]], Iterator[ScoredUnit]],
    *,
    enough: Callable[[Store, int], bool] | None = None,
    replace: bool = False,
) -> Store:
    """Make sure that `directory` holds these units of the header, and return the store.

    Parameters
    ----------
    units : in the order of work, shard by shard.
    read : scores some units and yields each as it comes, with its examples in order and the
        log-probabilities of their tokens.
    enough, replace, errors : as in `score`.
    """
    work = [header.tokens_read(unit) for unit in units]
    rank, alone = processes().process_index, getattr(scorer, "spread", False)
    first: list[Store] = []  # of process 0

    def plan() -> list[list[int]]:
        if rank > 0:
            return []
        first.append(Store(directory, header, replace=replace))
        done = first[0].done()
        missing = {index for index, unit in enumerate(units) if unit not in done}
        if header.kind == "orderings":
            _require_no_drift(first[0], done, {units[index][0] for index in missing}, read)
        return _within(cut_into_parts(work, scorer.batch_tokens), missing)

    def opened() -> Store:
        store = first[0] if first else open_store(directory)
        if store.header != header:
            raise InputError(
                f"process {rank} was to score something else than process 0; give all the same"
            )
        return store

    parts = share(plan)[0]
    store = together(opened)
    stages = [parts]
    if enough is not None:
        owners = np.array([shard for shard, _ in units])
        stages = [
            _within(parts, set(np.flatnonzero(owners == shard).tolist()))
            for shard in range(header.shards)
        ]
    with (
        recorded(store, scorer) if parts else nullcontext(),
        tqdm(
            desc=f"{header.model} on {header.dataset}",
            total=sum(
                work[i] for stage in stages for part in mine(stage, alone=alone) for i in part
            ),
            unit="tok",
            unit_scale=True,
            mininterval=1.0,
            leave=False,
            disable=True if rank or not parts else None,  # None: on a terminal alone
        ) as bar,
    ):

        def work_through(stage: Sequence[list[int]]) -> None:
            for indices in mine(stage, alone=alone):
                found = []
                for scored in read([units[i] for i in indices]):
                    bar.update(header.tokens_read(scored[0]))
                    found.append(scored)
                store.append(sorted(found, key=itemgetter(0)))

        for shard, stage in enumerate(stages):
            if stage:
                share(partial(work_through, stage))
            if enough is not None and enough(store, shard):
                break
    return store


def _require_no_drift(
    store: Store,
    done: set[Unit],
    shards: set[int],
    read: Callable[[Sequence[Unit]], Iterator[ScoredUnit]],
) -> None:
    """Score one stored ordering of each of these shards again; InputError if it has moved.

    Orderings that are added later are compared with those in the store. Where machine, library or
    server have changed in between, every one of them is shifted against the canonical ordering, and
    a test takes the shift for evidence.
    """
    again = [
        min(unit for unit in done if unit[0] == s) for s in sorted({s for s, _ in done} & shards)
    ]
    for unit, _, values in read(again) if again else ():
        before = float(store.unit(unit).logprob.sum(dtype=np.float64))
        now = float(values.sum(dtype=np.float64))
        if abs(now - before) > store.resolution(len(values)):
            raise InputError(
                f"{store.directory}: {store.header.name_of(unit)} has {before:.8g} nats there and "
                f"{now:.8g} now, on another engine; remove the directory to score all again"
            )


def _within(parts: Iterable[list[int]], wanted: set[int]) -> list[list[int]]:
    """Keep the wanted units, and the parts that have any."""
    kept = ([index for index in part if index in wanted] for part in parts)
    return [part for part in kept if part]


def cut_into_parts(
    work: Sequence[int], batch_tokens: int, *, batches: int = BATCHES
) -> Iterator[list[int]]:
    """Group consecutive units, which read `work` tokens each, into parts of about equal work.

    A part is of so many `batches` at least; how many processes there are plays no role.
    """
    size = min(max(sum(work) // PARTS, SMALLEST_PART, batches * batch_tokens), LARGEST_PART)
    yield from map(list, consecutive(work, size))


def order_of_work(header: Header, count: int, *of: int | str) -> np.ndarray:
    """Order of work, int64[count], from a stream that no ordering and no test is drawn from."""
    return random_stream(header.seed, "order of work", header.key, *of).permutation(count)


def _scored(
    part: Sequence[Unit], *, header: Header, ids: Sequence[np.ndarray], scorer: Scorer
) -> Iterator[ScoredUnit]:
    """Yield (unit, its examples, log-probabilities to store), as they come."""
    first, wanted = header.tokens_per_example, None
    examples = [header.examples(unit) for unit in part]
    found: Iterator[tuple[int, np.ndarray]]
    if header.kind == "successors":
        orders = [
            order_of_work(header, len(e), *unit) for unit, e in zip(part, examples, strict=True)
        ]
        groups = [
            (ids[header.bounds[shard][0] + index], [ids[e][:first] for e in others[order]])
            for (shard, index), others, order in zip(part, examples, orders, strict=True)
        ]
        found = (
            (i, np.concatenate([values[place] for place in np.argsort(orders[i])]))
            for i, values in continuation_logprobs(scorer, groups)
        )
    else:
        sequences = [np.concatenate([ids[e] for e in order]) for order in examples]
        if first is not None:
            lengths = np.asarray(header.example_tokens)
            wanted = [positions(lengths[order]) < first for order in examples]
        found = scorer.token_logprobs(sequences, wanted)
    for i, values in found:
        yield part[i], examples[i], values if wanted is None else values[wanted[i]]


@contextmanager
def recorded(store: Store, scorer: Scorer) -> Iterator[None]:
    """Write `run-*.json` before the block and, whatever ends it, what came of it afterwards.

    Contents: started (UTC), seconds (null if the run was killed), processes, devices, precision,
    packages, noise (of an endpoint, nats a token), parts and tokens that were added. Process 0
    alone writes it.
    """
    device = getattr(scorer, "device", None)
    devices = sorted(set(gather("elsewhere" if device is None else describe(device))))
    if not processes().is_main_process:
        yield
        return
    started, clock = datetime.now(UTC), time.perf_counter()
    path = store.directory / f"run-{started:%Y%m%dT%H%M%SZ}-{uuid4().hex[:8]}.json"
    before = set(store.parts())
    record: dict[str, object] = {
        "started": started.isoformat(timespec="seconds"),
        "seconds": None,
        "processes": processes().num_processes,
        "devices": devices,
        "precision": str(getattr(scorer, "dtype", "unknown")).removeprefix("torch."),
        "packages": {name: version(name) for name in PACKAGES},
        "python": platform.python_version(),
        "noise": None,
        "parts": [],
        "tokens": 0,
    }
    write_json(path, record)
    try:
        yield
    finally:
        added = [part for part in store.parts() if part not in before]
        record["seconds"] = time.perf_counter() - clock
        record["noise"] = getattr(scorer, "noise", None)
        record["parts"] = [part.name for part in added]
        record["tokens"] = sum(map(count_rows, added))
        write_json(path, record)
