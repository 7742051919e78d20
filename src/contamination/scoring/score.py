"""Score a test set under a model into its store, doing only what is missing.

Oren, Algorithm 1, up to the statistics: for every shard the log-probability of the canonical order
and of m shuffled ones; or of every example right after every other. Or of every alternative of a
record: each is tokenised whole, as what a model has read was, the tokens with which all begin are
read once, and those after them are stored.

The work is cut into parts by the header, the number of permutations and the scorer's batches alone.
So one process and many, a run that was interrupted and one that was not, write the same parts.

A number may depend on when and where it was computed: a float on its place in the batch, an answer
on the requests before it. So the units of a shard are scored in a random order, one shard after
another, and so are the examples after a predecessor and the alternatives of a record: the orderings
stay exchangeable under H0, and a drift, slow against a shard, cancels in it. Units that are missing
from an older run are scored after it. One stored ordering of each of their shards is scored again
first: if it has moved by more than the engine's resolution, nothing is added.
"""

import platform
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from functools import lru_cache, partial
from importlib.metadata import version
from itertools import chain, takewhile
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import numpy as np
from tqdm import tqdm
from transformers import PreTrainedTokenizerBase

from contamination.device import describe
from contamination.errors import InputError
from contamination.files import write_json
from contamination.randomness import random_stream
from contamination.scoring.contract import Scorer, start_token
from contamination.scoring.local import TransformersScorer
from contamination.scoring.plan import StorePlan
from contamination.scoring.prefix import continuation_logprobs
from contamination.scoring.processes import mine, processes, share, together
from contamination.scoring.store import Store, is_stored, open_store
from contamination.scoring.store_format import (
    Header,
    Unit,
    UnitRow,
    count_values,
    require_one_model,
)
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.tokens import TokenisedSet, consecutive, tokenize, tokenize_set

if TYPE_CHECKING:
    from contamination.testsets.variants import VariantSet

PARTS = 256  # that the work is cut into, unless they become too small or too large
SMALLEST_PART = 1 << 14  # tokens that the model reads, as below
LARGEST_PART = 1 << 20  # the work that an interruption may cost in each process
BATCHES = 4  # of a part at least: between two parts the device waits
PACKAGES = ("contamination", "torch", "transformers", "tokenizers", "numpy", "pyarrow")

Read = Callable[[Sequence[Unit]], Iterator[UnitRow]]  # scores some units, as they come


def score(
    data: "ExampleSet | TokenisedSet | VariantSet",
    scorer: Scorer,
    directory: Path,
    plan: StorePlan | None = None,
    *,
    model: str,
    seed: int,
    permutations: int = 0,
    enough: Callable[[Store, int], bool] | None = None,
    replace: bool = False,
) -> Store:
    """Make sure that `directory` holds what a test of the set reads, and return the store.

    Under torchrun all processes call this with the same arguments, and each scores its share of the
    missing parts; none returns before all are stored. Raises InputError if a shard has fewer than
    two examples, an example or an alternative has no token, what alternatives do not share is
    longer than the context, the plan keeps tokens of orderings, `directory` holds a store of
    something else, or one that a server filled under another name of the model, a log-probability
    is not finite, or the disk is full.

    Parameters
    ----------
    data : a set, tokenised by this scorer's tokenizer or to be; or alternatives of its records. A
        row of `Store.alternatives` is a record that has any (`VariantSet.distinct` above 1), in
        canonical order: one that does not move says nothing, and is not read.
    plan : of orderings 0..permutations of every shard, or of all ordered pairs of a shard; None is
        the whole set in one shard. Alternatives have none.
    model, seed : as in `store_format.Header`; of alternatives, the order of work alone is drawn.
    enough : called after each shard with the store and the index of that shard; scoring ends when
        it returns True. The shards are then scored one after the other; None scores all at once.
        Under torchrun every process calls it, and all must get the same answer.
    replace : remove a store of something else from `directory` instead of raising an error.
    """
    if isinstance(data, ExampleSet):
        data = tokenize_set(scorer.tokenizer, data)
    of: ExampleSet | VariantSet
    if isinstance(data, TokenisedSet):
        of, lengths, plan = data.test_set, data.lengths, plan or StorePlan("orderings", 1)
    else:
        of, groups = data, token_groups(scorer.tokenizer, data)
        lengths = tuple(len(group.rests[number]) for group in groups for number in group.which)
        plan = StorePlan("alternatives", len(groups))
    if plan.kind == "orderings" and plan.tokens_per_example is not None:
        raise InputError("tokens_per_example is of successors: orderings are scored as a whole")
    named = (model, scorer.revision, of.name, of.revision, of.template, seed, plan.shards)
    header = Header(*named, lengths, plan.kind, plan.tokens_per_example)
    if isinstance(data, TokenisedSet):
        units, read = _orders(data, scorer, header, permutations)
    else:
        units = header.units(0)
        read = partial(_score_continuations, header, scorer, lambda unit: groups[unit[0]])
    work = [header.tokens_read(unit) for unit in units]
    rank, alone = processes().process_index, getattr(scorer, "spread", False)

    def missing_parts() -> list[list[int]]:
        if rank > 0:
            return []
        if not is_stored(directory, header, replace=replace):
            load_network(scorer)  # what is refused then leaves no store
        store = Store(directory, header, replace=replace)
        require_one_model(directory, store.served())
        done = store.done()
        missing = {index for index, unit in enumerate(units) if unit not in done}
        if header.kind == "orderings":
            _require_no_drift(store, done, {units[i][0] for i in missing}, read, scorer)
        return _within(cut_into_parts(work, scorer.batch_tokens), missing)

    def ready() -> None:
        if mine(parts, alone=alone):
            load_network(scorer)

    def opened() -> Store:
        if rank > 0:
            open_store(directory)  # which process 0 has made, where this one sees it
        return Store(directory, header)

    parts = share(missing_parts)[0]
    store = together(opened)
    together(ready)
    before = store.served()
    stages = [parts]
    if enough is not None:
        owned = [{i for i, unit in enumerate(units) if unit[0] == s} for s in range(header.shards)]
        stages = [_within(parts, wanted) for wanted in owned]
    bar = tqdm(
        desc=f"{header.model} on {header.dataset}",
        total=sum(work[i] for part in mine(parts, alone=alone) for i in part),
        unit="tok",
        unit_scale=True,
        leave=False,
        disable=True if rank or not parts else None,  # None: on a terminal alone
    )
    with recorded(store, scorer) if parts else nullcontext(), bar:

        def work_through(stage: Sequence[list[int]]) -> None:
            for indices in mine(stage, alone=alone):
                found = []
                for scored in read([units[i] for i in indices]):
                    bar.update(header.tokens_read(scored.unit))
                    found.append(scored)
                served = _served(scorer)
                require_one_model(directory, [*before, served])
                store.append(sorted(found, key=itemgetter(0)), served=served)

        for shard, stage in enumerate(stages):
            if stage:
                share(partial(work_through, stage))
            if enough is not None and enough(store, shard):
                break
    return store


def load_network(scorer: Scorer) -> None:
    """Load the network of a model that runs here; raises InputError as `TransformersScorer`."""
    if isinstance(scorer, TransformersScorer):
        scorer.load()


def _orders(
    data: TokenisedSet, scorer: Scorer, header: Header, permutations: int
) -> tuple[list[Unit], Read]:
    """Units of orderings or successors in the order of work, and how they are scored."""
    ids = data.ids
    shuffled = [  # shard by shard, each in a random order of its own
        (shard, int(index))
        for shard in range(header.shards)
        for index in order_of_work(header, len(header.units(permutations, shard)), "units", shard)
    ]

    # The scorer begins a sequence itself, so an example that brings a start token loses it there.
    begun = int(data.test_set.started and ids[0][0] == start_token(scorer.tokenizer))

    def successors(unit: Unit) -> Group:
        others, before = header.examples(unit), header.bounds[unit[0]][0] + unit[1]
        rests = [ids[e][: header.tokens_per_example] for e in others]
        return Group(before, ids[before][begun:], rests, range(len(others)))

    def orderings(part: Sequence[Unit]) -> Iterator[UnitRow]:
        examples = [header.examples(unit) for unit in part]
        sequences = [np.concatenate([ids[e] for e in order])[begun:] for order in examples]
        for i, values in scorer.token_logprobs(sequences):
            yield UnitRow(part[i], examples[i], np.pad(values, (begun, 0)))

    pairs = partial(_score_continuations, header, scorer, successors)
    return shuffled, pairs if header.kind == "successors" else orderings


class Group(NamedTuple):
    """One record whose alternatives differ, or one whose successors are scored: token ids."""

    record: int  # index in the set
    prefix: np.ndarray  # what all alternatives begin with, less than any of them
    rests: Sequence[np.ndarray]  # the distinct continuations, at least one token each
    which: Sequence[int]  # of the N alternatives, the published one first: its continuation


@lru_cache(maxsize=1)  # planned and scored one after the other
def token_groups(
    tokenizer: PreTrainedTokenizerBase, alternatives: "VariantSet"
) -> tuple[Group, ...]:
    """Tokenise the records that have any alternative, in canonical order.

    Raises InputError if an alternative has no token.
    """
    moving = [i for i, count in enumerate(alternatives.distinct) if count > 1]
    distinct = list(dict.fromkeys(chain.from_iterable(alternatives.texts[i] for i in moving)))
    ids = dict(zip(distinct, tokenize(tokenizer, distinct), strict=True))
    groups = []
    for record in moving:
        rows = [ids[text] for text in alternatives.texts[record]]
        if not all(map(len, rows)):
            raise InputError(
                f"{alternatives.name}, record {record + 1}: an alternative has no token; end the "
                "template with a separator"
            )
        columns = zip(*(row[:-1].tolist() for row in rows), strict=False)
        common = sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, columns))
        rests = {row[common:].tobytes(): row[common:] for row in rows}
        number = {rest: k for k, rest in enumerate(rests)}
        which = [number[row[common:].tobytes()] for row in rows]
        groups.append(Group(record, rows[0][:common], list(rests.values()), which))
    return tuple(groups)


def _served(scorer: Scorer) -> str:
    """Return what a server calls the model; "" before its first answer, and of a model here."""
    return str(getattr(scorer, "served", ""))


def _require_no_drift(
    store: Store, done: set[Unit], shards: set[int], read: Read, scorer: Scorer
) -> None:
    """Score one stored ordering of each of these shards again; InputError if it has moved."""
    # Where machine, library or server changed, a shift of all that is added looks like evidence.
    again = [min(u for u in done if u[0] == s) for s in sorted({s for s, _ in done} & shards)]
    for unit, _, values in read(again) if again else ():
        require_one_model(store.directory, [*store.served(), _served(scorer)])
        stored = next(row for row in store.units("orderings", *unit) if row.unit == unit)
        before = float(stored.nats.sum(dtype=np.float64))
        now = float(values.sum(dtype=np.float64))
        if abs(now - before) > store.resolution(len(values)):
            raise InputError(
                f"{store.directory}: {store.header.name_of(unit)} has {before:.8g} nats there and "
                f"{now:.8g} now, on another engine; remove the directory to score again"
            )


def _within(parts: Iterable[list[int]], wanted: set[int]) -> list[list[int]]:
    """Keep the wanted units, and the parts that have any."""
    return [kept for part in parts if (kept := [index for index in part if index in wanted])]


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


def _score_continuations(
    header: Header, scorer: Scorer, group: Callable[[Unit], Group], part: Sequence[Unit]
) -> Iterator[UnitRow]:
    """Yield units whose examples are continuations of a prefix, scored in a random order."""
    groups = [group(unit) for unit in part]
    units = zip(part, groups, strict=True)
    orders = [order_of_work(header, len(one.rests), *unit) for unit, one in units]
    pairs = zip(orders, groups, strict=True)
    asked = [(one.prefix, [one.rests[number] for number in order]) for order, one in pairs]
    for i, values in continuation_logprobs(scorer, asked):
        places = np.argsort(orders[i])
        rows = [values[places[number]] for number in groups[i].which]
        yield UnitRow(part[i], header.examples(part[i]), np.concatenate(rows))


@contextmanager
def recorded(store: Store, scorer: Scorer) -> Iterator[None]:
    """Write `run-*.json` before the block and, whatever ends it, what came of it afterwards.

    Its seconds are null if the run was killed; `noise` is of an endpoint, in nats a token. Process
    0 alone writes it.
    """
    device = getattr(scorer, "device", None)
    devices = sorted(set(share(lambda: "elsewhere" if device is None else describe(device))))
    if not processes().is_main_process:
        yield
        return
    started, clock, before = datetime.now(UTC), time.perf_counter(), set(store.parts())
    path = store.directory / f"run-{started:%Y%m%dT%H%M%SZ}-{uuid4().hex[:8]}.json"
    record = {
        "started": started.isoformat(timespec="seconds"),
        "processes": processes().num_processes,
        "devices": devices,
        "precision": str(getattr(scorer, "dtype", "unknown")).removeprefix("torch."),
        "packages": {name: version(name) for name in PACKAGES},
        "python": platform.python_version(),
    }
    outcome: dict[str, Any] = {"seconds": None, "noise": None, "parts": [], "tokens": 0}
    write_json(path, record | outcome)
    try:
        yield
    finally:
        added = [part for part in store.parts() if part not in before]
        outcome = {"parts": [part.name for part in added], "tokens": sum(map(count_values, added))}
        outcome |= {"seconds": time.perf_counter() - clock, "noise": getattr(scorer, "noise", None)}
        write_json(path, record | outcome)
