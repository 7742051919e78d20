"""Sums in the place of tokens: what makes a store small enough to travel with a repository.

Tests of whole orderings and of alternatives read one number of each, and the test of pairs one of
each pair.
`sums.parquet` holds these in full precision, so p-values are those of the store that was summed,
bit by bit. A row is a unit: shard and ordering as in parts, and `sums`, a list of float64 (nats):
one of an ordering; of a predecessor one for each other example of its shard, in canonical order;
and of a record one for each of its alternatives. The file carries the key of the header and
checksums of its pages, as parts do.
"""

import shutil
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contamination.errors import InputError
from contamination.files import replacing
from contamination.scoring.store import SUMS, Store
from contamination.scoring.store_format import UNREADABLE, Header, Kind, Unit, UnitRows

SCHEMA = pa.schema(
    [("shard", pa.int32()), ("ordering", pa.int32()), ("sums", pa.list_(pa.float64()))]
)


def write_sums(directory: Path, header: Header, sums: Mapping[Unit, np.ndarray]) -> Path:
    """Write the sums of all units of a store, float64 arrays in nats, whole or not at all."""
    units = np.array(list(sums), dtype=np.int32)
    table = pa.table(
        [units[:, 0], units[:, 1], [values.tolist() for values in sums.values()]],
        schema=SCHEMA.with_metadata({"key": header.key}),
    )
    path = directory / SUMS
    with replacing(path) as temporary:
        pq.write_table(table, temporary, compression="zstd", write_page_checksum=True)
    return path


def read_sums(path: Path, header: Header) -> dict[Unit, np.ndarray]:
    """Return what `write_sums` wrote, shard by shard.

    Raises InputError if the file is damaged, lacks a sum, or belongs to another store.
    """
    damaged = InputError(f"{path}: the sums are damaged; restore them, or remove the directory")
    try:
        table = pq.read_table(path, page_checksum_verification=True)
        shards, orderings, sums = (column.to_pylist() for column in table.columns)
    except (*UNREADABLE, ValueError) as error:
        raise damaged from error
    if (table.schema.metadata or {}).get(b"key") != header.key.encode():
        raise InputError(f"{path}: the sums belong to another store; remove the directory")
    units = header.units(len(sums) // header.shards - 1)
    found = [np.array(values, dtype=np.float64) for values in sums]
    if not (
        table.schema.equals(SCHEMA)
        and list(zip(shards, orderings, strict=True)) == units
        and all(
            len(values) == (1 if header.kind == "orderings" else len(header.examples(unit)))
            for unit, values in zip(units, found, strict=True)
        )
        and np.isfinite(np.concatenate(found)).all()
    ):
        raise damaged
    return dict(zip(units, found, strict=True))


class SummedStore(Store):
    """A store that was summed: it has `sums.parquet` and no parts.

    What needs tokens raises InputError: all but `log_probs`, `alternatives`, `resolution` and
    `successors`, and the last for fewer tokens of an example than were summed.
    """

    @cached_property
    def _held(self) -> dict[Unit, np.ndarray]:
        return read_sums(self.directory / SUMS, self.header)

    def _sums(self, permutations: int) -> np.ndarray:
        if self.header.kind != "orderings":
            return super()._sums(permutations)
        held = np.array(list(self._held.values())).reshape(self.header.shards, -1)
        if permutations >= held.shape[1]:
            raise InputError(
                f"{self.directory}: it has the sums of {held.shape[1] - 1} permutations, not of "
                f"{permutations}; ask for fewer"
            )
        return held[:, : permutations + 1]

    def _alternative_sums(self) -> np.ndarray:
        if self.header.kind != "alternatives":
            return super()._alternative_sums()
        return np.array(list(self._held.values()))

    def successors(self, shard: int, tokens_per_example: int) -> np.ndarray:
        """Return sums as `Store.successors` does, of as many tokens as were summed."""
        self._check_kept(tokens_per_example)
        if self.header.kind != "successors" or tokens_per_example < self.header.stored.max():
            return super().successors(shard, tokens_per_example)
        start, stop = self.header.bounds[shard]
        sums = np.full((stop - start, stop - start), np.nan)
        for index in range(stop - start):
            sums[index, self.header.examples((shard, index)) - start] = self._held[shard, index]
        return sums

    def _units(self, kind: Kind, shard: int | None, permutations: int | None) -> Iterator[UnitRows]:
        if self.header.kind == kind:
            raise InputError(
                f"{self.directory}: it has sums alone, and this takes tokens; use a store of a run"
            )
        return super()._units(kind, shard, permutations)


def sum_store(store: Store, directory: Path, *, permutations: int) -> None:
    """Write a store of the same header to `directory` that has the sums of `store`, and no tokens.

    `permutations` counts for orderings alone. The records of runs come along: they say with which
    model, packages and precision the tokens were scored. Raises InputError if `store` lacks one of
    these units or is damaged.
    """
    header = store.header
    if header.kind == "orderings":
        rows = [*store._sums(permutations).reshape(-1, 1)]
    elif header.kind == "alternatives":
        rows = [*store._alternative_sums()]
    else:
        kept = header.tokens_per_example or int(header.stored.max())
        matrices = (store.successors(shard, kept) for shard in range(header.shards))
        rows = [row[~np.isnan(row)] for matrix in matrices for row in matrix]
    Store(directory, header, replace=True)
    write_sums(directory, header, dict(zip(header.units(permutations), rows, strict=True)))
    for record in store.records():
        shutil.copy(record, directory)
