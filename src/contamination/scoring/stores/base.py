"""The common base of all kinds of stores: a directory of parts, bound to a header.

A store has a header (`store.json`) that says what was scored, Parquet parts, and a
`run-*.json` for every run that has added parts. What no part holds is missing, so an
interrupted run that is started again writes the same bytes as one that was not
interrupted.

Parts are read one at a time: memory does not grow with the number of permutations. If
two runs at once have stored the same sequence, the copy in the part that comes first by
name counts.
"""

import math
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar
from uuid import uuid4

import numpy as np

from contamination.errors import InputError
from contamination.files import (
    read_json,
    remove_leftovers,
    sha256_of,
    write_json,
    writing,
)
from contamination.scoring.store_checks import check_same
from contamination.scoring.store_format import (
    Header,
    Kind,
    Place,
    ScoredSequence,
    damaged,
    may_hold,
    part_name,
    read_header,
    read_part,
    served_of,
    write_part,
)

if TYPE_CHECKING:
    from contamination.scoring.stores.shard_tokens import ShardTokens

# Nats by which an engine may change the log-probability of a token with its place in a
# batch: 4 to 5 times the most that random models of 2 to 8 layers did, and in
# proportion for float16.
RESOLUTION = {"float32": 1e-4, "float16": 0.004, "bfloat16": 0.03}


class Store(ABC):
    """A store, bound to its header; `create` puts it on disk.

    A kind says which sequences there are, and what of them is read and stored; and it
    fills in, of the five readings from `log_probs` to `variants`, those that it has.
    """

    kind: ClassVar[Kind]
    # More sequences of a shard can be added later.
    has_permutations: ClassVar[bool] = False

    def __init__(self, directory: Path, header: Header) -> None:
        self.directory = Path(directory)
        self.header = header
        self._keeps_last_part = False
        self._last_part: tuple[Path, list[ScoredSequence]] | None = None

    # --- on disk ----------------------------------------------------------------------

    @property
    def header_file(self) -> Path:
        """Path of `store.json`."""
        return self.directory / "store.json"

    def is_created(self, *, replace: bool = False) -> bool:
        """Return whether the directory holds a store with this header.

        Raises InputError if it holds a store of something else, and names the first
        difference, one of another version of this package, or a damaged `store.json`,
        which may be removed: every part says by itself which header it belongs to. With
        `replace` a store of something else is not refused.
        """
        if not self.header_file.exists():
            return False
        stored = read_header(self.header_file)
        if not replace:
            check_same(self.header_file, stored.as_json(), self.header.as_json())
        return stored == self.header

    def create(self, *, replace: bool = False) -> None:
        """Write the header unless it is there.

        With `replace` a store of something else is removed. Raises InputError if the
        directory holds something else, or a damaged `store.json`.
        """
        if self.is_created(replace=replace):
            return
        if self.header_file.exists():
            shutil.rmtree(self.directory)
        write_json(self.header_file, self.header.as_json())

    def parts(self) -> list[Path]:
        """Return the finished parts, sorted by name."""
        return sorted(self.directory.glob("part-*.parquet"))

    def records(self) -> list[Path]:
        """Return the records of the runs that have added parts."""
        return sorted(self.directory.glob("run-*.json"))

    def served(self) -> list[str]:
        """Return the names that servers gave to the model when they filled the parts."""
        names = dict.fromkeys(map(served_of, self.parts()))
        return [name for name in names if name]

    def append(
        self,
        sequences: Iterable[tuple[Place, np.ndarray, np.ndarray]],
        *,
        served: str = "",
    ) -> Path:
        """Write one part of sequences, each as in `ScoredSequence`, and return its path.

        `served` is what a server called the model, "" of one here. Raises InputError,
        and writes nothing, if a log-probability is not finite or the disk is full.
        """
        rows = [ScoredSequence(*sequence) for sequence in sequences]
        for row in rows:
            if not np.isfinite(row.nats).all():
                raise InputError(
                    f"{self.header.model}: a log-probability of "
                    f"{self.name_of(row.place)} of {self.header.dataset} is not "
                    "finite; check the weights and the precision of the model"
                )
        return write_part(self.directory, self.header, rows, served=served)

    def done(self) -> set[Place]:
        """Return what is stored, every byte checked.

        A damaged part is set aside as `.damaged`.

        For one process of a run only: it renames files.
        """
        remove_leftovers(self.directory)
        places: set[Place] = set()
        for path in self.parts():
            held: list[Place] = []
            with suppress(InputError):
                held = [sequence.place for sequence in self.read_part(path)]
            # Readers go by the name: a sequence that it does not cover would not be
            # found.
            if held and path.name == part_name(held[0], held[-1]):
                places.update(held)
            else:
                _set_aside(path)
        return places

    def permutations(self) -> int:
        """Return the permutations that all shards have, 0 of kinds without.

        Every byte is checked.

        Nothing is renamed, unlike in `done`: InputError is raised for a damaged part.
        """
        for path in self.parts():
            self.read_part(path)
        return 0

    def checksum(self, permutations: int) -> str:
        """Return the SHA-256 (hex) of what a test reads, whatever the parts are.

        That is the header, the resolution and the sequences. Raises InputError if one
        is missing, or a part is damaged.
        """
        hashes: dict[Place, str] = {}
        for place, examples, nats in self.sequences(permutations=permutations):
            hashes[place] = sha256_of(examples.tobytes(), nats.tobytes())
        in_order = [hashes[place] for place in self.places(permutations=permutations)]
        return sha256_of(self.header.key, repr(self._token_resolution), *in_order)

    # --- which sequences there are: each kind says it ---------------------------------

    @abstractmethod
    def shard_size(self, shard: int, *, permutations: int = 0) -> int:
        """Return how many sequences a full shard has; some kinds have no permutations."""

    @abstractmethod
    def examples(self, place: Place) -> np.ndarray:
        """Return the examples whose tokens a sequence holds, in the order stored, int32."""

    @abstractmethod
    def name_of(self, place: Place) -> str:
        """Return what messages call a sequence."""

    @abstractmethod
    def sums_of(self, place: Place) -> int:
        """Return how many sums stand for a sequence in a store of sums."""

    @abstractmethod
    def sums(self, permutations: int) -> Iterator[np.ndarray]:
        """Yield the sums of each sequence (nats), in order.

        Raises InputError if one is missing.
        """

    def has_place(self, place: Place) -> bool:
        """Return whether there is such a sequence."""
        shard, index = place
        if not 0 <= shard < self.header.shards:
            return False
        return 0 <= index < self.shard_size(shard)

    def has_examples(self, sequence: ScoredSequence) -> bool:
        """Return whether a sequence holds the examples that belong to its place."""
        return np.array_equal(sequence.examples, self.examples(sequence.place))

    def tokens_stored_of(self, place: Place) -> int:
        """Return the tokens of a sequence that get a log-probability."""
        return self.header.stored_of_shards[place[0]]

    def tokens_read_of(self, place: Place) -> int:
        """Return the tokens that the model reads for a sequence."""
        return self.tokens_stored_of(place)

    # --- what follows from it ---------------------------------------------------------

    def places(self, *, shard: int | None = None, permutations: int = 0) -> list[Place]:
        """Return the places of a full store or shard, in order."""
        shards = range(self.header.shards) if shard is None else [shard]
        places: list[Place] = []
        for number in shards:
            size = self.shard_size(number, permutations=permutations)
            places += [(number, index) for index in range(size)]
        return places

    def tokens_stored(self, permutations: int) -> int:
        """Return the tokens that the full store holds."""
        return sum(map(self.tokens_stored_of, self.places(permutations=permutations)))

    def tokens_read(self, permutations: int) -> int:
        """Return the tokens that the model reads for the full store."""
        return sum(map(self.tokens_read_of, self.places(permutations=permutations)))

    def sequences(
        self, *, shard: int | None = None, permutations: int = 0
    ) -> Iterator[ScoredSequence]:
        """Yield each sequence once, from the first part by name that holds it.

        None stands for all shards. Kinds without permutations give all sequences that
        they have. Raises InputError at the end if one is missing, and if a part is
        damaged.
        """
        last_index = permutations if self.has_permutations else None
        missing = dict.fromkeys(self.places(shard=shard, permutations=permutations))  # in order
        for path in self.parts():
            if not may_hold(path, shard, last_index):
                continue
            for sequence in self.read_part(path, shard=shard, last_index=last_index):
                if sequence.place in missing:
                    del missing[sequence.place]
                    yield sequence
        if missing:
            name = self.name_of(next(iter(missing)))
            wanted = "the whole store"
            if self.has_permutations:
                wanted = f"{permutations} permutations"
            raise InputError(
                f"{self.directory}: {name} is not scored yet; score {wanted} first",
            )

    def read_part(
        self, path: Path, *, shard: int | None = None, last_index: int | None = None
    ) -> list[ScoredSequence]:
        """Return the sequences of a part, or only those 0..last_index of a shard; None is any.

        Checked: the checksums, and that every token of each sequence is there, once.
        Raises InputError if the part is damaged or belongs to another store.
        """
        wanted: list[ScoredSequence] = []
        for sequence in self._all_of_part(path):
            if shard is not None and sequence.place[0] != shard:
                continue
            if last_index is not None and sequence.place[1] > last_index:
                continue
            if not self._is_whole(sequence):
                raise damaged(path)
            wanted.append(sequence)
        return wanted

    @contextmanager
    def shards_in_turn(self) -> Iterator[None]:
        """Keep the part that was read last until the block ends.

        Whoever reads one shard after another opens each part once then, although small
        shards share parts. No part may change within the block.
        """
        self._keeps_last_part = True
        try:
            yield
        finally:
            self._keeps_last_part = False
            self._last_part = None

    def _all_of_part(self, path: Path) -> list[ScoredSequence]:
        """Return all sequences of a part, from memory if it is the one that is kept."""
        if self._last_part is not None and self._last_part[0] == path:
            return self._last_part[1]
        sequences = read_part(path, self.header)
        if self._keeps_last_part:
            self._last_part = (path, sequences)
        return sequences

    def _is_whole(self, sequence: ScoredSequence) -> bool:
        """Return whether a sequence has all of its tokens, or sums, and nothing else."""
        place, examples, nats = sequence
        if not self.has_place(place) or not np.isfinite(nats).all():
            return False
        if self.header.summed:
            return not len(examples) and len(nats) == self.sums_of(place)
        if not self.has_examples(sequence):
            return False
        return len(nats) == self.tokens_stored_of(place)

    def resolution(self, tokens: int) -> float:
        """Return the nats that the engine cannot tell apart in a sum of log-probabilities.

        Roundings of tokens add up as independent errors do. The precision is the
        coarsest that the records of the runs name; servers, and numbers that no run has
        a record of, count as bfloat16. Raises InputError if a record is damaged.
        """
        return self._token_resolution * math.sqrt(tokens)

    @cached_property
    def _token_resolution(self) -> float:
        nats: list[float] = []
        for path in self.records():
            try:
                precision = str(read_json(path).get("precision"))
            except InputError:
                # Without it the others would count, which may be finer.
                raise InputError(
                    f"{path}: the record of a run cannot be read, and the precision of its "
                    f"numbers is lost; remove {self.directory} and score again"
                ) from None
            nats.append(RESOLUTION.get(precision, RESOLUTION["bfloat16"]))
        return max(nats, default=RESOLUTION["bfloat16"])

    # --- what tests read: each kind fills in its own ----------------------------------

    def log_probs(self, permutations: int) -> np.ndarray:
        """Return the log-probabilities of orderings; see `OrderingStore`."""
        raise self._other_kind("orderings")

    def shard_tokens(self, shard: int, permutations: int) -> "ShardTokens":
        """Return the tokens of orderings; see `OrderingStore`."""
        raise self._other_kind("orderings")

    def successors(self, shard: int, tokens_per_example: int) -> np.ndarray:
        """Return the log-probabilities of successors; see `SuccessorStore`."""
        raise self._other_kind("successors")

    def successor_tokens(self, shard: int, tokens_per_example: int) -> np.ndarray:
        """Return the tokens of successors; see `SuccessorStore`."""
        raise self._other_kind("successors")

    def variants(self) -> np.ndarray:
        """Return the log-probabilities of variants; see `VariantStore`."""
        raise self._other_kind("alternatives")

    def _other_kind(self, wanted: Kind) -> InputError:
        return InputError(
            f"{self.directory}: the store holds {self.kind}, not {wanted}; score {wanted}"
        )

    def _require_tokens(self) -> None:
        """Raise InputError for a store of sums."""
        if self.header.summed:
            raise InputError(
                f"{self.directory}: it has sums alone, and this takes tokens; use a store of a run"
            )


def _set_aside(path: Path) -> None:
    """Rename a damaged part, unless another run was faster."""
    with writing(path), suppress(FileNotFoundError):
        path.rename(path.with_suffix(f".{uuid4().hex[:8]}.damaged"))
