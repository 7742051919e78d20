"""Sums in the place of tokens: what makes a store small enough to travel with a repository.

Tests of whole orderings and of alternatives read one number of each, and the test of pairs one of
each pair.
`sums.parquet` holds these in full precision, so p-values are those of the store that was summed,
bit by bit. A row is a unit: shard and ordering as in parts, and `sums`, a list of float64 (nats):
one of an ordering; of a predecessor one for each other example of its shard, in canonical order;
and of a record one for each of its alternatives. The file carries the key of the header and
checksums of its pages, as parts do.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contamination.errors import InputError
from contamination.files import replacing
from contamination.scoring.store_format import UNREADABLE, Header, Unit

SUMS = "sums.parquet"
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
        and all(len(v) == _count(header, u) for u, v in zip(units, found, strict=True))
        and np.isfinite(np.concatenate(found)).all()
    ):
        raise damaged
    return dict(zip(units, found, strict=True))


def _count(header: Header, unit: Unit) -> int:
    """Sums that a unit has."""
    return 1 if header.kind == "orderings" else len(header.examples(unit))
