"""`ScoringJob`: fill a store with what it lacks, step by step.

`run` has the steps in their order: plan the parts, create or open the store, load the
network, score part after part. Sequences that are missing from an older run are scored
after it. One stored ordering of each of their shards is scored again first: if it has
moved by more than the engine's resolution, nothing is added.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import numpy as np
from tqdm import tqdm

from contamination.errors import InputError
from contamination.scoring.contract import Scorer
from contamination.scoring.local import TransformersScorer
from contamination.scoring.processes import gather, own_parts, processes, run_in_all
from contamination.scoring.readers import Reader
from contamination.scoring.run_record import recorded
from contamination.scoring.store import open_store
from contamination.scoring.store_checks import require_one_model
from contamination.scoring.store_format import Place, ScoredSequence
from contamination.scoring.stores.base import Store
from contamination.scoring.work import cut_into_parts, keep_wanted

Part = list[int]  # of the work: indices of its places
# Whether to stop after a shard, by store and shard.
Enough = Callable[[Store, int], bool]


class ScoringJob:
    """The work of filling a store: `run` creates it, and has a reader read what it lacks.

    Under torchrun all processes run equal jobs, and each scores its share of the
    missing parts. `places` are those of the full store, in the order of work. With
    `replace` a store of something else is removed; else it is refused.
    """

    def __init__(
        self,
        store: Store,
        scorer: Scorer,
        reader: Reader,
        places: Sequence[Place],
        *,
        replace: bool = False,
    ) -> None:
        self.store = store
        self.scorer = scorer
        self.reader = reader
        self.places = places
        self.replace = replace
        self.tokens = [store.tokens_read_of(place) for place in places]
        # One process has all devices.
        self.alone: bool = getattr(scorer, "spread", False)
        self.served_before: list[str] = []
        # That scoring took, without what came before it; none if all was there.
        self.seconds = 0.0

    def run(self, enough: Enough | None = None) -> Store:
        """Score what is missing, and return the store.

        No process returns before all parts are stored. With `enough` the shards are
        scored one after the other, until it returns True. Raises InputError if the
        store is one of something else, a log-probability is not finite, or the disk is
        full.
        """
        parts = gather(self.plan_parts)[0]
        run_in_all(self.open_store)
        run_in_all(partial(self.load_network, parts))
        self.served_before = self.store.served()
        rounds = [parts] if enough is None else self.parts_by_shard(parts)
        started = time.perf_counter()
        with self.record(parts), self.progress_bar(parts) as bar:
            for shard, of_round in enumerate(rounds):
                if of_round:
                    gather(partial(self.score_parts, of_round, bar))
                if enough is not None and enough(self.store, shard):
                    break
        if parts:
            self.seconds = time.perf_counter() - started
        return self.store

    def plan_parts(self) -> list[Part]:
        """Create the store, and return the parts of the work that it lacks.

        Process 0 alone does so.
        """
        if not processes().is_main_process:
            return []
        if not self.store.is_created(replace=self.replace):
            load_network(self.scorer)  # what is refused then leaves no store
        self.store.create(replace=self.replace)
        require_one_model(self.store.directory, self.store.served())
        done = self.store.done()
        missing = {index for index, place in enumerate(self.places) if place not in done}
        if self.store.has_permutations:
            self.check_drift(done, missing)
        parts = cut_into_parts(self.tokens, self.scorer.batch_tokens)
        return keep_wanted(parts, missing)

    def check_drift(self, done: set[Place], missing: set[int]) -> None:
        """Score one stored ordering again of each shard that lacks some.

        Raises InputError if it moved.
        """
        # Where machine, library or server changed, a shift of all that is added looks
        # like evidence of contamination.
        incomplete = {self.places[index][0] for index in missing}
        first_stored: dict[int, Place] = {}
        for place in sorted(done):
            if place[0] in incomplete:
                first_stored.setdefault(place[0], place)
        if not first_stored:
            return
        for sequence in self.reader.read(list(first_stored.values())):
            names = [*self.store.served(), served(self.scorer)]
            require_one_model(self.store.directory, names)
            self._require_equal(sequence)

    def _require_equal(self, sequence: ScoredSequence) -> None:
        """Raise InputError if an ordering has another log-probability than the store says."""
        shard, index = sequence.place
        rows = self.store.sequences(shard=shard, permutations=index)
        stored = next(row for row in rows if row.place == sequence.place)
        before = float(stored.nats.sum(dtype=np.float64))
        now = float(sequence.nats.sum(dtype=np.float64))
        if abs(now - before) > self.store.resolution(len(sequence.nats)):
            raise InputError(
                f"{self.store.directory}: {self.store.name_of(sequence.place)} has "
                f"{before:.8g} nats there and {now:.8g} now, on another engine; remove "
                "the directory to score again"
            )

    def open_store(self) -> None:
        """Make sure that this process sees the store that process 0 has created."""
        if not processes().is_main_process:
            open_store(self.store.directory)
        self.store.create()

    def load_network(self, parts: Sequence[Part]) -> None:
        """Load the network if this process has a part to score."""
        if self.parts_of_mine(parts):
            load_network(self.scorer)

    def parts_of_mine(self, parts: Sequence[Part]) -> Sequence[Part]:
        """Return the parts that are this process's share."""
        return own_parts(parts, alone=self.alone)

    def parts_by_shard(self, parts: Sequence[Part]) -> list[list[Part]]:
        """Return the parts of each shard, cut where they reach into another one."""
        of_shards: list[set[int]] = [set() for _ in range(self.store.header.shards)]
        for index, (shard, _) in enumerate(self.places):
            of_shards[shard].add(index)
        return [keep_wanted(parts, wanted) for wanted in of_shards]

    def record(self, parts: Sequence[Part]) -> AbstractContextManager[None]:
        """Return what keeps the record of this run, if there is anything to score."""
        if not parts:
            return nullcontext()
        return recorded(self.store, self.scorer)

    def progress_bar(self, parts: Sequence[Part]) -> "tqdm[Any]":
        """Return a bar of the tokens that this process reads, shown by process 0."""
        hidden = not parts or not processes().is_main_process
        tokens = 0
        for part in self.parts_of_mine(parts):
            tokens += sum(self.reader.tokens_of(self.places[index]) for index in part)
        return tqdm(
            desc=f"{self.store.header.model} on {self.store.header.dataset}",
            total=tokens,
            unit="tok",
            unit_scale=True,
            smoothing=0,  # what is left takes as long as what was done did on average
            leave=False,
            disable=True if hidden else None,  # None: on a terminal alone
        )

    def score_parts(self, parts: Sequence[Part], bar: "tqdm[Any]") -> None:
        """Score this process's share of the parts, and append each to the store."""
        for part in self.parts_of_mine(parts):
            sequences = sorted(self.scored(part, bar), key=place_of)
            model = served(self.scorer)
            require_one_model(self.store.directory, [*self.served_before, model])
            self.store.append(sequences, served=model)

    def scored(self, part: Part, bar: "tqdm[Any]") -> Iterator[ScoredSequence]:
        """Yield the sequences of one part as the model has read them."""
        places = [self.places[index] for index in part]
        for sequence in self.reader.read(places):
            bar.update(self.reader.tokens_of(sequence.place))
            yield sequence


def place_of(sequence: ScoredSequence) -> Place:
    """Return the place of a sequence, by which those of a part are sorted."""
    return sequence.place


def served(scorer: Scorer) -> str:
    """Return what a server calls the model.

    It is "" before its first answer, and of a model here.
    """
    return str(getattr(scorer, "served", ""))


def load_network(scorer: Scorer) -> None:
    """Load the network of a model that runs here.

    Raises InputError if it cannot be used.
    """
    if isinstance(scorer, TransformersScorer):
        scorer.load()
