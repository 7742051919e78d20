"""The log-probability store: score once, test many ways.

One store holds the per-token log-probabilities of one test set under one model for one number of
shards: a directory with a header (`store.json`) that says what was scored, Parquet parts, and a
`run-*.json` for every run that has added parts. What no part holds is missing, so an interrupted
run that is started again writes the same bytes as one that was not interrupted.

Parts are read one at a time: memory does not grow with the number of permutations. If two runs at
once have stored the same unit, the copy in the part that comes first by name counts.
"""

import math
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace as changed
from functools import cached_property
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import numpy as np

from contamination.errors import InputError
from contamination.files import (
    check_directory,
    read_json,
    remove_leftovers,
    sha256_of,
    write_json,
    writing,
)
from contamination.scoring.store_format import (
    SCHEMA_VERSION,
    Header,
    Kind,
    Unit,
    UnitRow,
    check_same,
    may_hold,
    part_name,
    read_units,
    served_of,
    write_part,
)
from contamination.statistics.results import with_ties

# Nats by which an engine may change the log-probability of a token with its place in a batch: 4 to
# 5 times the most that random models of 2 to 8 layers did, and in proportion for float16.
RESOLUTION = {"float32": 1e-4, "float16": 0.004, "bfloat16": 0.03}


class ShardTokens(NamedTuple):
    """The T tokens of one shard in orderings 0..m; a column is one token, in canonical order."""

    logprobs: np.ndarray  # nats, float32 (m + 1, T)
    leading: np.ndarray  # whether the token's example is first in the ordering, bool (m + 1, T)
    position: np.ndarray  # of the token within its example, int32 (T,)
    resolution: float = 0.0  # nats that the engine cannot tell apart in a token

    def sums(self) -> np.ndarray:
        """Log-probabilities (nats) of the orderings, float64 (m + 1,); see `Store.log_probs`."""
        sums: np.ndarray = self.logprobs.sum(axis=1, dtype=np.float64)
        return with_ties(sums, self.resolution * math.sqrt(self.logprobs.shape[1]))

    def first_orderings(self, permutations: int) -> "ShardTokens":
        """Return the same tokens in orderings 0..permutations alone."""
        rows = slice(permutations + 1)
        return self._replace(logprobs=self.logprobs[rows], leading=self.leading[rows])


class Store:
    """A store on disk, bound to its header.

    Raises InputError if the directory holds a store of something else, and names the first
    difference, one of another version of this package, or a damaged `store.json`, which may be
    removed: every part says by itself which header it belongs to. With `replace` a store of
    something else is removed.
    """

    def __init__(self, directory: Path, header: Header, *, replace: bool = False) -> None:
        self.directory = Path(directory)
        self.header = header
        if is_stored(self.directory, header, replace=replace):
            return
        path = self.directory / "store.json"
        if path.exists():
            shutil.rmtree(self.directory)
        write_json(path, header.as_json())

    def parts(self) -> list[Path]:
        """Finished parts, sorted by name."""
        return sorted(self.directory.glob("part-*.parquet"))

    def records(self) -> list[Path]:
        """Records of the runs that have added parts."""
        return sorted(self.directory.glob("run-*.json"))

    def done(self) -> set[Unit]:
        """Units that are stored, every byte checked; a damaged part is set aside as `.damaged`.

        For one process of a run only: it renames files.
        """
        remove_leftovers(self.directory)
        units: set[Unit] = set()
        for path in self.parts():
            held = []
            with suppress(InputError):
                held = [row.unit for row in read_units(path, self.header)]
            # Readers go by the name: a unit that it does not cover would not be found.
            if held and path.name == part_name(held[0], held[-1]):
                units.update(held)
            else:
                with writing(path), suppress(FileNotFoundError):  # another run was faster
                    path.rename(path.with_suffix(f".{uuid4().hex[:8]}.damaged"))
        return units

    def permutations(self) -> int:
        """Permutations that all shards have, 0 of other kinds; every byte is checked.

        Nothing is renamed, unlike in `done`: InputError is raised for a damaged part.
        """
        held = {row.unit for path in self.parts() for row in read_units(path, self.header)}
        kind, shards, found = self.header.kind, range(self.header.shards), 0
        while kind == "orderings" and all((shard, found + 1) in held for shard in shards):
            found += 1
        return found

    def checksum(self, permutations: int) -> str:
        """SHA-256 (hex) of what a test of so many permutations reads, whatever its parts are.

        That is the header, the resolution and the units; raises as `units`.
        """
        kind = self.header.kind
        rows = self.units(kind, None, permutations if kind == "orderings" else None)
        found = {row.unit: sha256_of(row.examples.tobytes(), row.nats.tobytes()) for row in rows}
        units = (found[unit] for unit in self.header.units(permutations))
        return sha256_of(self.header.key, repr(self._token_resolution), *units)

    def served(self) -> list[str]:
        """Names that servers gave to the model when they filled the parts; none of a model here."""
        names = map(served_of, self.parts())
        return [name for name in dict.fromkeys(names) if name]

    def append(
        self, units: Iterable[tuple[Unit, np.ndarray, np.ndarray]], *, served: str = ""
    ) -> Path:
        """Write one part; see `contamination.scoring.store_format.write_part`."""
        return write_part(self.directory, self.header, units, served=served)

    def log_probs(self, permutations: int) -> np.ndarray:
        """Sequence log-probabilities (nats), float64[shards, permutations + 1], canonical first.

        They are sums over the tokens that are stored. Where all orderings of a shard lie within
        the `resolution` of such a sum, they are ties: all get the mean. Raises InputError if the
        store lacks one of these orderings or is damaged.
        """
        lengths = [int(self.header.stored[slice(*bounds)].sum()) for bounds in self.header.bounds]
        resolution = [self.resolution(tokens) for tokens in lengths]
        return with_ties(self._sums(permutations), resolution)

    def _sums(self, permutations: int) -> np.ndarray:
        sums = np.empty((self.header.shards, permutations + 1))
        for unit, _, nats in self.units("orderings", None, permutations):
            sums[unit] = nats.sum(dtype=np.float64)
        return sums

    def resolution(self, tokens: int) -> float:
        """Nats that the engine cannot tell apart in a sum of so many log-probabilities.

        Roundings of tokens add up as independent errors do. The precision is that of the records of
        the runs; servers count as bfloat16, and numbers that no run has a record of as float32.
        """
        return self._token_resolution * math.sqrt(tokens)

    @cached_property
    def _token_resolution(self) -> float:
        precisions = (str(read_json(path).get("precision")) for path in self.records())
        found = (RESOLUTION.get(name, RESOLUTION["bfloat16"]) for name in precisions)
        return max(found, default=RESOLUTION["float32"])

    def shard_tokens(self, shard: int, permutations: int) -> ShardTokens:
        """Every token of a shard in orderings 0..permutations; raises as `log_probs`."""
        start, stop = self.header.bounds[shard]
        lengths = self.header.stored[start:stop]
        offsets = np.cumsum(lengths) - lengths
        logprobs = np.empty((permutations + 1, int(lengths.sum())), dtype=np.float32)
        leading = np.zeros(logprobs.shape, dtype=bool)
        for (_, index), examples, nats in self.units("orderings", shard, permutations, whole=True):
            order = examples - start
            spans = lengths[order]
            logprobs[index, np.repeat(offsets[order], spans) + _positions(spans)] = nats
            leading[index, offsets[order[0]] : offsets[order[0]] + spans[0]] = True
        return ShardTokens(logprobs, leading, _positions(lengths), self.resolution(1))

    def successors(self, shard: int, tokens_per_example: int) -> np.ndarray:
        """Sums S[a, b] = log p(first tokens of x_b | x_a) in nats, float64[k, k].

        Examples a and b count from the start of the shard; the diagonal is NaN. Raises as
        `successor_tokens`.
        """
        if not self.header.summed or tokens_per_example < self.header.stored.max():
            tokens = self.successor_tokens(shard, tokens_per_example)
            return np.asarray(tokens.sum(axis=2, dtype=np.float64))
        self._check_kept(tokens_per_example)
        found = {index: nats for (_, index), _, nats in self.units("successors", shard, None)}
        return np.stack([np.insert(found[index], index, np.nan) for index in range(len(found))])

    def successor_tokens(self, shard: int, tokens_per_example: int) -> np.ndarray:
        """Terms of `successors`: each of the first tokens of x_b after x_a, float32[k, k, first].

        Zero where x_b has fewer tokens; NaN where a is b. Raises InputError if the store keeps
        fewer than `tokens_per_example` tokens of an example, lacks a predecessor, or is damaged.
        """
        self._check_kept(tokens_per_example)
        start, stop = self.header.bounds[shard]
        size = stop - start
        tokens = np.zeros((size, size, tokens_per_example), dtype=np.float32)
        for (_, index), examples, nats in self.units("successors", shard, None, whole=True):
            lengths = self.header.stored[examples]
            position, successor = _positions(lengths), np.repeat(examples - start, lengths)
            kept = position < tokens_per_example
            tokens[index, successor[kept], position[kept]] = nats[kept]
        tokens[np.arange(size), np.arange(size)] = np.nan
        return tokens

    def alternatives(self) -> np.ndarray:
        """Log-probabilities (nats) of the N alternatives of each record, float64[records, N].

        The published one comes first. They are conditional on the beginning that all alternatives
        of a record share, which adds the same to each. Ties and errors as in `log_probs`.
        """
        sums = np.empty((self.header.shards, len(self.header.stored) // self.header.shards))
        lengths = self.header.stored.reshape(sums.shape)
        for (shard, _), _, nats in self.units("alternatives", None, None, whole=True):
            starts = np.cumsum(lengths[shard]) - lengths[shard]
            sums[shard] = np.add.reduceat(nats, starts, dtype=np.float64)
        return with_ties(sums, [self.resolution(tokens) for tokens in lengths.max(axis=1)])

    def _check_kept(self, tokens_per_example: int) -> None:
        limit = self.header.tokens_per_example
        if not 1 <= tokens_per_example <= (limit or tokens_per_example):
            raise InputError(
                f"{self.directory}: tokens_per_example is {tokens_per_example}, and the store "
                f"keeps {limit or 'all'} of an example; give 1 to that many"
            )

    def units(
        self, kind: Kind, shard: int | None, permutations: int | None, *, whole: bool = False
    ) -> Iterator[UnitRow]:
        """Yield each unit once, from the first part by name; raise if one is missing at the end.

        With `whole` it is tokens that are wanted.
        """
        if self.header.kind != kind:
            raise InputError(
                f"{self.directory}: the store holds {self.header.kind}, not {kind}; score {kind}"
            )
        if whole and self.header.summed:
            raise InputError(
                f"{self.directory}: it has sums alone, and this takes tokens; use a store of a run"
            )
        missing = dict.fromkeys(self.header.units(permutations or 0, shard))  # in their order
        for path in (path for path in self.parts() if may_hold(path, shard, permutations)):
            for row in read_units(path, self.header, shard, permutations):
                if missing.pop(row.unit, False) is None:
                    yield row
        if missing:
            name = self.header.name_of(next(iter(missing)))
            what = f"{permutations} permutations" if kind == "orderings" else "the whole store"
            raise InputError(f"{self.directory}: {name} is not scored yet; score {what} first")


def is_stored(directory: Path, header: Header, *, replace: bool = False) -> bool:
    """Whether a directory is bound to this header; what is not there can still be refused.

    Raises InputError as `Store` does; with `replace`, a store of something else is not refused.
    """
    path = directory / "store.json"
    if not path.exists():
        return False
    found = _read_header(path)
    if not replace:
        check_same(path, found.as_json(), header.as_json())
    return found == header


def sum_store(store: Store, directory: Path, *, permutations: int) -> None:
    """Write a store to `directory` that has the sums of `store`, to travel with a repository.

    It has one sum of an ordering, or one of a predecessor for each other example of its shard, in
    canonical order; p-values are those of `store`, bit by bit. What needs tokens raises InputError
    there: all but `log_probs`, `resolution` and `successors` of whole examples.

    `store` holds orderings or successors; `permutations` counts for orderings alone. The records of
    runs come along: they say with which model, packages and precision the tokens were scored.
    Raises InputError if `store` lacks one of these units or is damaged.
    """
    header = store.header
    if header.kind == "orderings":
        sums = [*store._sums(permutations).reshape(-1, 1)]
    else:
        kept = header.tokens_per_example or int(header.stored.max())
        matrices = (store.successors(shard, kept) for shard in range(header.shards))
        sums = [row[~np.isnan(row)] for matrix in matrices for row in matrix]
    copy, none = Store(directory, changed(header, summed=True), replace=True), np.empty(0, np.int32)
    units = zip(header.units(permutations), sums, strict=True)
    copy.append((unit, none, nats) for unit, nats in units)
    for record in store.records():
        shutil.copy(record, directory)


def _positions(lengths: np.ndarray) -> np.ndarray:
    """Return 0..n-1 for each of the lengths, one after the other, int32."""
    starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
    return np.arange(len(starts), dtype=np.int32) - starts.astype(np.int32)


def open_store(directory: Path | str) -> Store:
    """Open a store that was scored before, whatever it holds.

    Raises InputError if there is none, its header is damaged, or it is one of another version of
    this package.
    """
    path = Path(directory) / "store.json"
    check_directory(path.parent)
    if not path.is_file():
        raise InputError(
            f"{path}: no such store; score it first, on several nodes into a directory that all of "
            "them see"
        )
    return Store(path.parent, _read_header(path))


def _read_header(path: Path) -> Header:
    """Read a `store.json`; raises InputError if it is damaged, or one of another version."""
    found = {}
    try:
        found = read_json(path)
        return Header.from_json(found)
    except ValueError as error:  # pydantic's, too
        told = "the header is damaged; remove it and score again, which keeps what is whole"
        if type(schema := found.get("schema")) is int and schema != SCHEMA_VERSION:
            told = f"a store of schema {schema}, and this version reads {SCHEMA_VERSION}; "
            told += "score again into another directory"
        raise InputError(f"{path}: {told}") from error
