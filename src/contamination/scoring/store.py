"""The log-probability store: score once, test many ways.

One store holds the per-token log-probabilities of one test set under one model for one number of
shards: a directory with a header (`store.json`) that says what was scored, Parquet parts, and a
`run-*.json` for every run that has added parts. What no part holds is missing, so an interrupted
run that is started again writes the same bytes as one that was not interrupted.

Parts are read one at a time, and of a part only what is asked for: apart from what is returned, the
memory needed does not grow with the number of permutations. If two runs at once have stored the
same unit, the copy in the part that comes first by name counts, whatever its numbers.
"""

import math
import os
import shutil
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from contamination.errors import InputError
from contamination.files import check_directory, read_json, remove_leftovers, write_json
from contamination.scoring.store_format import (
    SCHEMA_VERSION,
    Header,
    Kind,
    Unit,
    UnitRows,
    may_hold,
    part_name,
    positions,
    read_units,
    write_part,
)
from contamination.statistics.validation import with_ties

# Nats by which an engine may change the log-probability of a token with its place in a batch. On
# identical texts, random models of 2 to 8 layers moved one by up to 2e-5 in float32 and 0.008 in
# bfloat16, whose spacing at 1 is 0.008; here 4 to 5 times that, and in proportion for float16.
RESOLUTION = {"float32": 1e-4, "float16": 0.004, "bfloat16": 0.03}
SUMS = "sums.parquet"  # of a store that was summed


class ShardTokens(NamedTuple):
    """The T tokens of one shard in orderings 0..m; a column is one token, in canonical order."""

    logprobs: np.ndarray  # nats, float32 (m + 1, T)
    leading: np.ndarray  # whether the token's example is first in the ordering, bool (m + 1, T)
    position: np.ndarray  # of the token within its example, int32 (T,)
    example: np.ndarray  # index in the test set, int32 (T,)
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
    difference. With `replace` that store is removed instead: right where the directory belongs to
    one run, as `build/` does. A damaged `store.json` is set aside as `store.damaged` and written
    anew: every part says by itself which header it belongs to.
    """

    def __init__(self, directory: Path, header: Header, *, replace: bool = False) -> None:
        self.directory = Path(directory)
        self.header = header
        path = self.directory / "store.json"
        expected = header.as_json()
        found = None
        if os.path.lexists(path):
            try:
                found = _read_header(path)
            except InputError:
                _set_aside(path)
        if replace and found not in (None, expected):
            shutil.rmtree(self.directory)
            found = None
        if found is None:
            write_json(path, expected)
        elif found != expected:
            field = next(k for k in expected if found.get(k) != expected[k])
            raise InputError(
                f"{path}: this store was scored with another {field.replace('_', ' ')} "
                f"({_brief(found.get(field))}, now {_brief(expected[field])}); "
                f"remove {self.directory} to score again, or name another directory"
            )

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
            try:
                held = [rows.unit for rows in read_units(path, self.header)]
            except InputError:
                held = []
            # Readers go by the name: a unit that it does not cover would not be found.
            if held and path.name == part_name(held[0], held[-1]):
                units.update(held)
            else:
                _set_aside(path)
        return units

    def append(self, units: Iterable[tuple[Unit, np.ndarray, np.ndarray]]) -> Path:
        """Write one part; see `contamination.scoring.store_format.write_part`."""
        return write_part(self.directory, self.header, units)

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
        """Sequence log-probabilities as they are, ties or not."""
        sums = np.zeros((self.header.shards, permutations + 1))
        for unit, _, _, logprob in self._units("orderings", None, permutations):
            sums[unit] = logprob.sum(dtype=np.float64)
        return sums

    def resolution(self, tokens: int) -> float:
        """Nats that the engine cannot tell apart in a sum of so many log-probabilities.

        Roundings of tokens add up as independent errors do, with the square root of their number.
        The precision is that of the records of the runs. Servers keep theirs to themselves and
        hardly compute in more than bfloat16; numbers that no run has a record of count as float32.
        """
        return self._token_resolution * math.sqrt(tokens)

    @cached_property
    def _token_resolution(self) -> float:
        found = []
        for path in self.records():
            precision = read_json(path).get("precision")
            if not isinstance(precision, str):
                raise InputError(f"{path}: no record of a run, which names a precision; remove it")
            found.append(RESOLUTION.get(precision, RESOLUTION["bfloat16"]))
        return max(found, default=RESOLUTION["float32"])

    def shard_tokens(self, shard: int, permutations: int) -> ShardTokens:
        """Every token of a shard in orderings 0..permutations; raises as `log_probs`.

        Takes 5 bytes for each of its (permutations + 1) x T cells, and reads little else.
        """
        start, stop = self.header.bounds[shard]
        lengths = self.header.stored[start:stop]
        offsets = np.cumsum(lengths) - lengths
        shape = (permutations + 1, int(lengths.sum()))
        logprobs = np.full(shape, np.nan, dtype=np.float32)
        leading = np.zeros(shape, dtype=bool)
        for (_, index), example, position, logprob in self._units("orderings", shard, permutations):
            logprobs[index, offsets[example - start] + position] = logprob
            front = example[0] - start
            leading[index, offsets[front] : offsets[front] + lengths[front]] = True
        examples = np.repeat(np.arange(start, stop, dtype=np.int32), lengths)
        return ShardTokens(
            logprobs, leading, positions(lengths), examples, resolution=self.resolution(1)
        )

    def successors(self, shard: int, tokens_per_example: int) -> np.ndarray:
        """Sums S[a, b] = log p(first tokens of x_b | x_a) in nats, float64[k, k].

        Examples a and b count from the start of the shard; the diagonal is NaN. Raises as
        `successor_tokens`.
        """
        tokens = self.successor_tokens(shard, tokens_per_example)
        return np.asarray(tokens.sum(axis=2, dtype=np.float64))

    def successor_tokens(self, shard: int, tokens_per_example: int) -> np.ndarray:
        """Terms of `successors`: each of the first tokens of x_b after x_a, float32[k, k, first].

        Zero where x_b has fewer tokens; NaN where a is b. Raises InputError if the store keeps
        fewer than `tokens_per_example` tokens of an example, lacks a predecessor, or is damaged.
        """
        self._check_kept(tokens_per_example)
        start, stop = self.header.bounds[shard]
        size = stop - start
        tokens = np.zeros((size, size, tokens_per_example), dtype=np.float32)
        for (_, index), example, position, logprob in self._units("successors", shard, None):
            kept = position < tokens_per_example
            tokens[index, example[kept] - start, position[kept]] = logprob[kept]
        tokens[np.arange(size), np.arange(size)] = np.nan
        return tokens

    def alternatives(self) -> np.ndarray:
        """Log-probabilities (nats) of the N alternatives of each record, float64[records, N].

        The published one comes first. They are conditional on the beginning that all alternatives
        of a record share, which adds the same to each. Ties and errors as in `log_probs`.
        """
        sums = self._alternative_sums()
        longest = self.header.stored.reshape(sums.shape).max(axis=1)
        return with_ties(sums, [self.resolution(tokens) for tokens in longest])

    def _alternative_sums(self) -> np.ndarray:
        """Log-probabilities of alternatives as they are, ties or not."""
        sums = np.empty((self.header.shards, len(self.header.stored) // self.header.shards))
        for (shard, _), _, position, logprob in self._units("alternatives", None, None):
            sums[shard] = np.add.reduceat(logprob, np.flatnonzero(position == 0), dtype=np.float64)
        return sums

    def _check_kept(self, tokens_per_example: int) -> None:
        limit = self.header.tokens_per_example
        if not 1 <= tokens_per_example <= (limit or tokens_per_example):
            raise InputError(
                f"{self.directory}: tokens_per_example is {tokens_per_example}, and the store "
                f"keeps {limit or 'all'} of an example; give 1 to that many"
            )

    def unit(self, unit: Unit) -> UnitRows:
        """Return the rows of one unit; raises as `log_probs`."""
        for path in self.parts():
            if may_hold(path, *unit):
                for rows in read_units(path, self.header, *unit):
                    if rows.unit == unit:
                        return rows
        raise InputError(f"{self.directory}: {self.header.name_of(unit)} is not scored yet")

    def _units(self, kind: Kind, shard: int | None, permutations: int | None) -> Iterator[UnitRows]:
        """Yield each unit once, from the first part by name; raise if one is missing at the end."""
        if self.header.kind != kind:
            raise InputError(
                f"{self.directory}: the store holds {self.header.kind}, not {kind}; score {kind}"
            )
        missing = dict.fromkeys(self.header.units(permutations or 0, shard))  # in their order
        for path in self.parts():
            if not may_hold(path, shard, permutations):
                continue
            for rows in read_units(path, self.header, shard, permutations):
                if rows.unit in missing:
                    del missing[rows.unit]
                    yield rows
        if missing:
            name = self.header.name_of(next(iter(missing)))
            what = f"{permutations} permutations" if kind == "orderings" else "the whole store"
            raise InputError(f"{self.directory}: {name} is not scored yet; score {what} first")


def open_store(directory: Path | str) -> Store:
    """Open a store that was scored before, whatever it holds: a `SummedStore` if it was summed.

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
    found = _read_header(path)
    if found.get("schema") != SCHEMA_VERSION:
        raise InputError(
            f"{path}: a store of schema {found.get('schema')}, and this version reads "
            f"{SCHEMA_VERSION}; score again into another directory"
        )
    store = Store(path.parent, Header.from_json(found))
    if store.parts() or not (store.directory / SUMS).is_file():
        return store
    from contamination.scoring.store_sums import SummedStore

    return SummedStore(store.directory, store.header)


def _read_header(path: Path) -> dict[str, Any]:
    """Read a `store.json`, of this version or another; raises InputError if it is damaged."""
    try:
        found = read_json(path) if path.is_file() else {}  # a pipe would be waited for
        if type(found.get("schema")) is not int:
            raise InputError("no schema")
        if found["schema"] == SCHEMA_VERSION:
            Header.from_json(found)
    except InputError as error:
        raise InputError(
            f"{path}: the header is damaged; score again, and it is replaced"
        ) from error
    return found


def _set_aside(path: Path) -> None:
    """Rename what is damaged, beside what was set aside before."""
    names = [path.with_suffix(".damaged")]
    while os.path.lexists(names[-1]):
        names.append(path.with_suffix(f".{len(names) + 1}.damaged"))
    try:
        path.rename(names[-1])
    except FileNotFoundError:  # another run was faster
        return
    except OSError as error:
        raise InputError(
            f"{path}: it is damaged and cannot be set aside ({error.strerror}); remove it"
        ) from error


def _brief(value: object) -> str:
    text = str(value)
    return text if len(text) <= 12 else f"{text[:12]}…"
