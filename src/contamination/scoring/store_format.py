"""A store on disk: its header, and its parts, which are Parquet files, each complete or absent.

A part holds whole scored sequences, a row each. Its columns: shard, ordering (the
second number of the sequence's place), examples (their indices in canonical order, as
they were read), nats (the log-probability of each of their tokens, float32; or sums of
them, float64). What sequences there are depends on the kind of the store:
`contamination.scoring.stores` has a class for each.

A logarithm takes 3 bytes, whose mantissa is noise; BYTE_STREAM_SPLIT puts the exponents
side by side, where zstd finds them.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import fields as fields_of
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field, TypeAdapter

from contamination.errors import InputError
from contamination.files import read_json, replacing, sha256_of
from contamination.testsets.orderings import shard_bounds

SCHEMA_VERSION = 5
Kind = Literal["orderings", "successors", "alternatives"]
# Of a sequence: (shard, ordering), or (shard, index of the predecessor in the shard).
Place = tuple[int, int]

# What Arrow raises of bad bytes.
UNREADABLE = (OSError, pa.ArrowException, UnicodeDecodeError)
SERVED = b"served"  # in the metadata of a part: what a server called the model
_NAME = re.compile(r"part-(\d+)\.(\d+)-(\d+)\.(\d+)\.parquet")


class ScoredSequence(NamedTuple):
    """A sequence that the model has read, with the log-probabilities of its tokens.

    Attributes
    ----------
    place
        Index of the shard, and of the sequence in the shard.
    examples
        The examples whose tokens are scored, as they were read, int32. A store of sums
        has none.
    nats
        The log-probabilities of their tokens, float32. A store of sums has one sum,
        float64, of an ordering, or of each successor in canonical order.
    """

    place: Place
    examples: np.ndarray
    nats: np.ndarray


@dataclass(frozen=True)
class Header:
    """Name what a store holds; two stores with the same header hold the same numbers.

    Attributes
    ----------
    model, dataset
        Names for people.
    model_revision, dataset_revision
        Hashes that identify the model and the set.
    template
        Name/version of the rendering of a record.
    seed
        Seed of the orderings.
    shards
        Number of contiguous shards into which the set is cut.
    example_tokens
        Number of tokens of each example, in canonical order.
    kind
        Kind of the store; `contamination.scoring.stores` has a class for each.
    tokens_per_example
        Number of first tokens of each example that are scored and stored; None is all.
    summed
        Sums stand in the place of the tokens, as
        `contamination.scoring.store.sum_store` says.
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
        """Return the header of which `as_json` made this.

        Raise ValueError for anything else.
        """
        fields = dict(value)
        fields.pop("schema", None)
        header: Header = _HEADER.validate_json(json.dumps(fields), strict=True)
        if header.as_json() != value or not header.bounds:
            # Shards that the examples do not fill.
            raise InputError("not the fields of a header")
        return header

    def as_json(self) -> dict[str, Any]:
        """Return the contents of `store.json`."""
        fields = self._fields()
        fields["example_tokens"] = list(self.example_tokens)
        return {"schema": SCHEMA_VERSION, **fields}

    @cached_property
    def key(self) -> str:
        """SHA-256 of what was scored, which every part carries."""
        fields = self._fields()
        del fields["summed"]
        return sha256_of(repr(fields))

    def _fields(self) -> dict[str, Any]:
        """Return each field by its name; `asdict` would copy every length by itself."""
        return {field.name: getattr(self, field.name) for field in fields_of(self)}

    @cached_property
    def bounds(self) -> tuple[tuple[int, int], ...]:
        """Bounds [start, stop) of each shard.

        Raises `InputError` if one has fewer than two examples.
        """
        return shard_bounds(len(self.example_tokens), self.shards)

    @cached_property
    def stored(self) -> np.ndarray:
        """Tokens stored of each example, int64[examples]."""
        lengths = np.asarray(self.example_tokens, dtype=np.int64)
        if self.tokens_per_example is None:
            return lengths
        return lengths.clip(max=self.tokens_per_example)

    @cached_property
    def stored_of_shards(self) -> list[int]:
        """Tokens stored of each shard, its examples counted once."""
        return [int(self.stored[start:stop].sum()) for start, stop in self.bounds]


_HEADER = TypeAdapter(Header)


def read_header(path: Path) -> Header:
    """Return the header in a `store.json`.

    Raises InputError if it is damaged, or one of another version of this package.
    """
    fields: dict[str, Any] = {}
    try:
        fields = read_json(path)
        return Header.from_json(fields)
    except ValueError as error:  # pydantic's, too
        reason = "the header is damaged; remove it and score again, which keeps what is whole"
        schema = fields.get("schema")
        if type(schema) is int and schema != SCHEMA_VERSION:
            reason = (
                f"a store of schema {schema}, and this version reads {SCHEMA_VERSION}; "
                "score again into another directory"
            )
        raise InputError(f"{path}: {reason}") from error


def part_name(first: Place, last: Place) -> str:
    """Return the name of the part from one place to another.

    Names sort as the places do.
    """
    return f"part-{first[0]:05d}.{first[1]:05d}-{last[0]:05d}.{last[1]:05d}.parquet"


def may_hold(path: Path, shard: int | None, last_index: int | None) -> bool:
    """Return whether a part, by its name, may hold sequences 0..last_index of a shard.

    None is any shard, or any index.
    """
    match = _NAME.fullmatch(path.name)
    if match is None:
        return True  # to be read and found damaged
    first_shard, first_index, last_shard, _ = map(int, match.groups())
    if shard is not None and not first_shard <= shard <= last_shard:
        return False
    if last_index is None or first_shard != last_shard:
        return True
    return first_index <= last_index


def write_part(
    directory: Path,
    header: Header,
    sequences: Sequence[ScoredSequence],
    *,
    served: str = "",
) -> Path:
    """Write one part of sequences in the order of their places, and return its path.

    There is at least one sequence. `served` is what a server called the model; "" of a
    local one. Raises InputError, and writes nothing, if the disk is full.
    """
    schema = part_schema(header)
    if served:
        schema = schema.with_metadata(schema.metadata | {SERVED: served.encode()})
    columns = [
        np.array([sequence.place[0] for sequence in sequences], dtype=np.int32),
        np.array([sequence.place[1] for sequence in sequences], dtype=np.int32),
        [sequence.examples for sequence in sequences],
        [sequence.nats for sequence in sequences],
    ]
    path = directory / part_name(sequences[0].place, sequences[-1].place)
    write_table(
        path,
        columns,
        schema,
        use_dictionary=["shard", "ordering", "examples.list.element"],
        column_encoding={"nats.list.element": "BYTE_STREAM_SPLIT"},
    )
    return path


def part_schema(header: Header) -> pa.Schema:
    """Return the columns of a part; none may hold a null."""
    integer = pa.int32()
    number = pa.float64() if header.summed else pa.float32()
    integers = pa.list_(pa.field("element", integer, nullable=False))
    numbers = pa.list_(pa.field("element", number, nullable=False))
    fields = [
        pa.field("shard", integer, nullable=False),
        pa.field("ordering", integer, nullable=False),
        pa.field("examples", integers, nullable=False),
        pa.field("nats", numbers, nullable=False),
    ]
    return pa.schema(fields, metadata={"key": header.key})


def write_table(
    path: Path,
    columns: Iterable[Any],
    schema: pa.Schema,
    *,
    use_dictionary: bool | list[str] = True,
    column_encoding: dict[str, str] | None = None,
) -> None:
    """Write a part, whole or not at all, with a checksum of every page.

    Columns are in the order of the schema, which has the key of the store; the other
    arguments are those of `pyarrow.parquet.write_table`.
    """
    arrays = list(map(pa.array, columns, schema.types))
    table = pa.table(arrays, schema=schema)
    with replacing(path) as temporary:
        pq.write_table(
            table,
            temporary,
            compression="zstd",
            compression_level=3,
            write_page_checksum=True,
            use_dictionary=use_dictionary,
            column_encoding=column_encoding,
        )


def read_table(path: Path, schema: pa.Schema) -> pa.Table:
    """Return a part.

    Raises InputError if it is damaged, or its key is not that of the schema.
    """
    try:  # whole: where a footer is damaged, a read with filters may never end
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            table = file.read()
    except UNREADABLE as error:
        raise damaged(path) from error
    key = (table.schema.metadata or {}).get(b"key")
    if key != schema.metadata[b"key"]:
        raise InputError(
            f"{path}: the part belongs to another store; remove it and score again",
        )
    if not table.schema.equals(schema):  # no checksum covers names and types
        raise damaged(path)
    return table


def damaged(path: Path) -> InputError:
    """Return the error for a part that does not hold what it should."""
    return InputError(f"{path}: the part is damaged; score again, and it is replaced")


def served_of(path: Path) -> str:
    """Return what a server called the model of a part, by its footer alone.

    It is "" where none did.
    """
    try:
        metadata = pq.read_schema(path).metadata or {}
        return str(metadata.get(SERVED, b"").decode())
    except UNREADABLE:
        return ""


def count_values(path: Path) -> int:
    """Count the numbers in a part, by its footer alone; 0 if the footer is damaged."""
    try:
        return int(pq.read_metadata(path).row_group(0).column(3).num_values)
    except (*UNREADABLE, IndexError):
        return 0


def read_part(path: Path, header: Header) -> list[ScoredSequence]:
    """Return the sequences of a part as they lie there.

    Raises InputError if a checksum is wrong, a place occurs twice, or the part belongs
    to another store.
    """
    shards, indices, examples, nats = read_table(path, part_schema(header)).columns
    places = list(zip(shards.to_pylist(), indices.to_pylist(), strict=True))
    if len(set(places)) < len(places):
        raise damaged(path)
    rows = zip(places, _split(examples), _split(nats), strict=True)
    return [ScoredSequence(place, order, values) for place, order, values in rows]


def _split(column: pa.ChunkedArray) -> list[np.ndarray]:
    """Return the lists of a column as arrays."""
    lists = column.combine_chunks()
    # Not by `to_numpy`, which imports pandas.
    values = np.from_dlpack(lists.flatten())
    ends = np.cumsum(np.from_dlpack(lists.value_lengths())).tolist()
    starts = [0, *ends[:-1]]
    return [values[start:stop] for start, stop in zip(starts, ends, strict=False)]
