"""What a store holds, and what its parts are on disk: Parquet files, each complete or absent.

A unit is one sequence that the model reads: one ordering of one shard (Oren, Algorithm 1), one
example followed by each of the others of its shard, or all alternatives of one record. A part holds
whole units, a row each. Its columns: shard, ordering (0 = canonical; of successors, the
predecessor's index within the shard), examples (their indices in canonical order, as they were
read), nats (the log-probability of each of their tokens, float32; or sums of them, float64).

A logarithm takes 3 bytes, whose mantissa is noise; BYTE_STREAM_SPLIT puts the exponents side by
side, where zstd finds them.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field, TypeAdapter

from contamination.errors import InputError
from contamination.files import replacing, sha256_of
from contamination.testsets.orderings import ordering, shard_bounds

SCHEMA_VERSION = 5
Kind = Literal["orderings", "successors", "alternatives"]
Unit = tuple[int, int]  # (shard, ordering), or (shard, index of the predecessor in the shard)

CHOSEN = ("seed", "template")  # by whoever tests, and free to be chosen again
UNREADABLE = (OSError, pa.ArrowException, UnicodeDecodeError)  # what Arrow raises of bad bytes
SERVED = b"served"  # in the metadata of a part: what a server called the model
_NAME = re.compile(r"part-(\d+)\.(\d+)-(\d+)\.(\d+)\.parquet")


class UnitRow(NamedTuple):
    """One unit: its examples as they were read, int32, and the nats of their tokens, float32.

    In a store of sums there are no examples, and one sum, float64, of an ordering, or of each
    successor in canonical order.
    """

    unit: Unit
    examples: np.ndarray
    nats: np.ndarray


@dataclass(frozen=True)
class Header:
    """What a store holds; two stores with the same header hold the same numbers.

    Attributes
    ----------
    model, dataset : names for people. model_revision, dataset_revision : the identities.
    template : name/version of the rendering of a record.
    seed : of the orderings. shards : how many contiguous shards the set is cut into.
    example_tokens : number of tokens of each example, in canonical order.
    kind : "orderings": unit (s, j) is shard s in ordering j, 0 being canonical. "successors": unit
        (s, a) is every other example of shard s, each of them right after the a-th. "alternatives":
        a shard is a record with N alternatives, the published one first, an example is what follows
        in one of them on the beginning that all share, and unit (s, 0) is all N.
    tokens_per_example : only so many tokens of each example are scored and stored; None is all.
    summed : sums stand in the place of the tokens, as `contamination.scoring.store.sum_store` says.
    """

    model: str
    model_revision: str
    dataset: str
    dataset_revision: str
    template: str
    seed: int
    shards: int
    example_tokens: tuple[Annotated[int, Field(gt=0, lt=1 << 31)], ...]
    kind: Kind = "orderings"
    tokens_per_example: Annotated[int, Field(gt=0)] | None = None
    summed: bool = False

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Header":
        """Rebuild a header from what `as_json` returned; raises ValueError for anything else."""
        fields = {name: item for name, item in value.items() if name != "schema"}
        header: Header = _HEADER.validate_json(json.dumps(fields), strict=True)
        if header.as_json() != value or not header.bounds:  # shards that the examples do not fill
            raise InputError("not the fields of a header")
        return header

    def as_json(self) -> dict[str, Any]:
        """Return the contents of `store.json`."""
        fields = asdict(self) | {"example_tokens": list(self.example_tokens)}
        return {"schema": SCHEMA_VERSION, **fields}

    @cached_property
    def key(self) -> str:
        """SHA-256 of what was scored, which every part carries."""
        return sha256_of(repr({k: v for k, v in asdict(self).items() if k != "summed"}))

    @cached_property
    def bounds(self) -> tuple[tuple[int, int], ...]:
        """Bounds [start, stop) of each shard; `InputError` if one has fewer than two examples."""
        return shard_bounds(len(self.example_tokens), self.shards)

    @cached_property
    def stored(self) -> np.ndarray:
        """Tokens stored of each example, int64[examples]."""
        lengths = np.asarray(self.example_tokens, dtype=np.int64)
        first = self.tokens_per_example
        return lengths if first is None else lengths.clip(max=first)

    def units(self, permutations: int, shard: int | None = None) -> list[Unit]:
        """Units of a full store or shard, in order; `permutations` counts for orderings alone."""
        equal = {"orderings": permutations + 1, "alternatives": 1}.get(self.kind)
        sizes = [equal or stop - start for start, stop in self.bounds]
        shards = range(self.shards) if shard is None else [shard]
        return [(each, index) for each in shards for index in range(sizes[each])]

    def examples(self, unit: Unit) -> np.ndarray:
        """Examples whose tokens the unit holds, in the order in which they are stored, int32."""
        shard, index = unit
        start, stop = self.bounds[shard]
        if self.kind == "successors":
            return np.delete(np.arange(start, stop, dtype=np.int32), index)
        if self.kind == "alternatives":
            return np.arange(start, stop, dtype=np.int32)
        return ordering(
            (start, stop), index, seed=self.seed, dataset=self.dataset_revision, shard=shard
        )

    def tokens_stored_of(self, unit: Unit) -> int:
        """Tokens of the unit that get a log-probability; equal alternatives count each."""
        shard, index = unit
        start, stop = self.bounds[shard]
        left_out = int(self.stored[start + index]) if self.kind == "successors" else 0
        return int(self.stored[start:stop].sum()) - left_out

    def tokens_read(self, unit: Unit) -> int:
        """Tokens that the model reads for the unit."""
        shard, index = unit
        before = self.bounds[shard][0] + index
        read = self.example_tokens[before] if self.kind == "successors" else 0
        return read + self.tokens_stored_of(unit)

    def tokens_of(self, permutations: int) -> int:
        """Tokens that the model reads for the full store."""
        return sum(map(self.tokens_read, self.units(permutations)))

    def tokens_stored(self, permutations: int) -> int:
        """Tokens that the full store holds."""
        return sum(map(self.tokens_stored_of, self.units(permutations)))

    def name_of(self, unit: Unit) -> str:
        """What messages call a unit."""
        if self.kind == "alternatives":
            return f"record {unit[0]}"
        what = "ordering" if self.kind == "orderings" else "predecessor"
        return f"{what} {unit[1]} of shard {unit[0]}"


_HEADER = TypeAdapter(Header)


def check_same(path: Path, found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Raise InputError, with the first difference, if a store on disk is one of something else.

    Where the difference is a choice of whoever tests, the message says that a second choice is a
    second test; else the store is out of date.
    """
    differing = [field for field, now in expected.items() if found.get(field) != now]
    if not differing:
        return
    field = differing[0]
    if "template" in differing and "model_revision" not in differing:
        field = "template"  # which gives the set another revision, too
    values = f"{found.get(field)!s:.12}, now {expected[field]!s:.12}"
    what = f"this store is of another {field.replace('_', ' ')} ({values})"
    if field in CHOSEN:
        fix = f"keep to the first: every other {field} is one more test, to be corrected for"
        raise InputError(f"{path}: {what}; {fix}")
    fix = f"name another directory, or remove {path.parent}"
    raise InputError(f"{path}: {what}; {fix}", parameter="directory")


def require_one_model(directory: Path, names: Iterable[str]) -> None:
    """Raise InputError if servers called the model of a store by more than one name.

    `names` are those of its parts and of what answers now; "" stands for none.
    """
    served = [name for name in dict.fromkeys(names) if name]
    if len(served) > 1:
        told = ", and ".join(map(repr, served))
        raise InputError(
            f"{directory}: its answers come from {told}: ask for one model by its exact name, and "
            "remove the directory to start again"
        )


def part_name(first: Unit, last: Unit) -> str:
    """Name of the part that begins and ends with these units; in this order parts are sorted."""
    return f"part-{first[0]:05d}.{first[1]:05d}-{last[0]:05d}.{last[1]:05d}.parquet"


def may_hold(path: Path, shard: int | None, permutations: int | None) -> bool:
    """Whether the name of a part allows units of that shard, and of orderings 0..permutations."""
    if (match := _NAME.fullmatch(path.name)) is None:
        return True  # to be read and found damaged
    first_shard, first, last_shard, _ = map(int, match.groups())
    return (shard is None or first_shard <= shard <= last_shard) and (
        permutations is None or first_shard != last_shard or first <= permutations
    )


def write_part(
    directory: Path,
    header: Header,
    items: Iterable[tuple[Unit, np.ndarray, np.ndarray]],
    *,
    served: str = "",
) -> Path:
    """Write one part of units, each as in `UnitRow`.

    `served` is what a server called the model, "" of one here. Raises InputError, and writes
    nothing, if a log-probability is not finite or the disk is full.
    """
    rows = list(items)
    for unit, _, values in rows:
        if not np.isfinite(values).all():
            raise InputError(
                f"{header.model}: a log-probability of {header.name_of(unit)} of {header.dataset} "
                "is not finite; check the weights and the precision of the model"
            )
    schema = _schema(header)
    if served:
        schema = schema.with_metadata(schema.metadata | {SERVED: served.encode()})
    units, examples, nats = zip(*rows, strict=True)
    columns = *np.array(units, dtype=np.int32).T, examples, nats
    path = directory / part_name(units[0], units[-1])
    plain, split = ["shard", "ordering", "examples.list.element"], "BYTE_STREAM_SPLIT"
    coding = {"nats.list.element": split}
    write_table(path, columns, schema, use_dictionary=plain, column_encoding=coding)
    return path


def _schema(header: Header) -> pa.Schema:
    """Columns of a part; none may hold a null."""
    places, value = pa.int32(), pa.float64() if header.summed else pa.float32()
    types = {"shard": places, "ordering": places}
    for name, each in (("examples", places), ("nats", value)):
        types[name] = pa.list_(pa.field("element", each, nullable=False))
    fields = [pa.field(name, each, nullable=False) for name, each in types.items()]
    return pa.schema(fields, metadata={"key": header.key})


def write_table(path: Path, columns: Iterable[Any], schema: pa.Schema, **coding: Any) -> None:
    """Write a part, whole or not at all, with a checksum of every page."""
    table = pa.table(list(map(pa.array, columns, schema.types)), schema=schema)
    how = {"compression": "zstd", "compression_level": 3, "write_page_checksum": True}
    with replacing(path) as temporary:
        pq.write_table(table, temporary, **how, **coding)


def read_table(path: Path, schema: pa.Schema) -> pa.Table:
    """Read a part; raises InputError if it is damaged, or its key is not that of the schema."""
    try:  # whole: where a footer is damaged, a read with filters may never end
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            table = file.read()
    except UNREADABLE as error:
        raise _damaged(path) from error
    if (table.schema.metadata or {}).get(b"key") != schema.metadata[b"key"]:
        raise InputError(f"{path}: the part belongs to another store; remove it and score again")
    if not table.schema.equals(schema):  # no checksum covers names and types
        raise _damaged(path)
    return table


def _damaged(path: Path) -> InputError:
    return InputError(f"{path}: the part is damaged; score again, and it is replaced")


def served_of(path: Path) -> str:
    """Return what a server called the model of a part, by its footer alone; "" where none did."""
    try:
        metadata = pq.read_schema(path).metadata or {}
        return str(metadata.get(SERVED, b"").decode())
    except UNREADABLE:
        return ""


def count_values(path: Path) -> int:
    """Log-probabilities or sums in a part, by its footer alone; 0 if the footer is damaged."""
    try:
        return int(pq.read_metadata(path).row_group(0).column(3).num_values)
    except (*UNREADABLE, IndexError):
        return 0


def read_units(
    path: Path, header: Header, shard: int | None = None, permutations: int | None = None
) -> list[UnitRow]:
    """Return the units of a part, or only those of a shard and of orderings 0..permutations.

    Checked: the checksums, and that every token of each unit is there, once. Raises InputError if
    the part is damaged or belongs to another store.
    """
    columns = read_table(path, _schema(header)).columns
    *places, examples, nats = (column.combine_chunks() for column in columns)
    units = list(zip(*(column.to_pylist() for column in places), strict=True))
    rows = map(UnitRow, units, *map(_split, (examples, nats)))
    found = [
        row
        for row, (each, index) in zip(rows, units, strict=True)
        if shard in (None, each) and (permutations is None or index <= permutations)
    ]
    if len(set(units)) < len(units) or not all(_is_whole(header, row) for row in found):
        raise _damaged(path)
    return found


def _split(lists: pa.ListArray) -> list[np.ndarray]:
    ends = np.cumsum(lists.value_lengths().to_numpy())
    return np.split(lists.flatten().to_numpy(), ends[:-1]) if len(ends) else []


def _is_whole(header: Header, row: UnitRow) -> bool:
    (shard, index), examples, nats = row
    if not (0 <= shard < header.shards and index >= 0 and np.isfinite(nats).all()):
        return False
    start, stop = header.bounds[shard]
    if header.kind != "orderings" and index >= (stop - start if header.kind == "successors" else 1):
        return False
    if header.summed:
        sums = 1 if header.kind == "orderings" else len(header.examples(row.unit))
        return not len(examples) and len(nats) == sums
    if header.kind == "orderings":
        # Shuffled ones count in any order: the row says which, however it was drawn.
        given, expected = np.sort(examples) if index else examples, np.arange(start, stop)
    else:
        given, expected = examples, header.examples(row.unit)
    return np.array_equal(given, expected) and len(nats) == header.stored[examples].sum()
