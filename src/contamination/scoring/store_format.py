"""What a store holds, and what its parts are on disk: Parquet files, each complete or absent.

A unit is one sequence that the model reads: one ordering of one shard (Oren, Algorithm 1), one
example followed by each of the others of its shard, or all alternatives of one record. A part holds
whole units. Its columns: shard, ordering (0 = canonical; of successors, the predecessor's index
within the shard), example (index in canonical order), position (of the token within its example),
logprob (float32, nats).

Measured on stores of models trained here: 3.1 to 3.3 bytes a token (float32 in plain encoding with
zstd: 3.6). Only 0.15 of them name the token: runs of the same shard, ordering and example, and
positions that repeat, are next to nothing as dictionary indices. The rest is the logarithm itself,
whose 23 mantissa bits are noise and whose exponent has 3 bits of entropy: at least 3.3 bytes for
values that never repeat. BYTE_STREAM_SPLIT puts the exponents side by side, where zstd finds
them. Long sequences repeat values exactly, where two orderings share a window: 1.0 byte a token.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field, TypeAdapter, ValidationError

from contamination.errors import InputError
from contamination.files import replacing, sha256_of
from contamination.testsets.orderings import ordering, shard_bounds

SCHEMA_VERSION = 4
Kind = Literal["orderings", "successors", "alternatives"]
Unit = tuple[int, int]  # (shard, ordering), or (shard, index of the predecessor in the shard)

INDICES = ["shard", "ordering", "example", "position"]
SCHEMA = pa.schema([*((name, pa.int32()) for name in INDICES), ("logprob", pa.float32())])
ROW_GROUP = 1 << 16  # rows: at most so many are decoded in vain when a single shard is read
UNREADABLE = (OSError, pa.ArrowException, UnicodeDecodeError)  # what Arrow raises of bad bytes
_NAME = re.compile(r"part-(\d+)\.(\d+)-(\d+)\.(\d+)\.parquet")


@dataclass(frozen=True)
class Header:
    """What a store holds; two stores with the same header hold the same numbers.

    Raises InputError if the kind is unknown, or no token of an example would be stored.

    Attributes
    ----------
    model, dataset : names for people. model_revision, dataset_revision : the identities.
    template : name/version of the rendering of a record.
    seed : of the orderings. shards : how many contiguous shards the set is cut into.
    example_tokens : number of tokens of each example, in canonical order.
    kind : "orderings": unit (s, j) is shard s in ordering j, 0 being canonical. "successors": unit
        (s, a) is every other example of shard s, each of them right after the a-th. "alternatives":
        a shard is a record that has N alternatives, the published one first, and an example what
        follows in one of them on the beginning that all N share; unit (s, 0) is all N.
    tokens_per_example : only so many tokens of each example are scored and stored; None is all.
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
    tokens_per_example: int | None = None

    def __post_init__(self) -> None:
        """Check the kind and the number of tokens."""
        if self.kind not in get_args(Kind):
            raise InputError(f"kind is {self.kind!r}: give one of {', '.join(get_args(Kind))}")
        if self.tokens_per_example is not None and self.tokens_per_example < 1:
            raise InputError(
                f"tokens_per_example is {self.tokens_per_example}: give at least 1 token of each "
                "example"
            )

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Header":
        """Rebuild a header from what `as_json` returned; raises InputError for anything else."""
        fields = {name: item for name, item in value.items() if name != "schema"}
        if fields.keys() != cls.__dataclass_fields__.keys():
            raise InputError("not the fields of a header")
        try:
            header: Header = _HEADER.validate_json(json.dumps(fields), strict=True)
        except ValidationError as error:
            raise InputError("not the values of a header") from error
        _ = header.bounds  # refuses shards that the examples do not fill
        return header

    def as_json(self) -> dict[str, Any]:
        """Return the contents of `store.json`."""
        fields = asdict(self) | {"example_tokens": list(self.example_tokens)}
        return {"schema": SCHEMA_VERSION, **fields}

    @cached_property
    def key(self) -> str:
        """SHA-256 of the header, which every part carries."""
        return sha256_of(repr(asdict(self)))

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

    def tokens_read(self, unit: Unit) -> int:
        """Tokens that the model reads for the unit, scored or not.

        Of alternatives all N without their common beginning, although equal ones are read once.
        """
        shard, index = unit
        start, stop = self.bounds[shard]
        if self.kind != "successors":
            return sum(self.example_tokens[start:stop])
        others = int(self.stored[start:stop].sum() - self.stored[start + index])
        return self.example_tokens[start + index] + others

    def tokens_of(self, permutations: int) -> int:
        """Tokens that the model reads for the full store."""
        return sum(self.tokens_read(unit) for unit in self.units(permutations))

    def tokens_stored(self, permutations: int) -> int:
        """Tokens that the full store holds."""
        sums = [int(self.stored[start:stop].sum()) for start, stop in self.bounds]
        if self.kind == "orderings":
            return (permutations + 1) * sum(sums)
        if self.kind == "alternatives":
            return sum(sums)
        # Each example stands after every other one of its shard.
        return sum((b - a - 1) * tokens for (a, b), tokens in zip(self.bounds, sums, strict=True))

    def name_of(self, unit: Unit) -> str:
        """What messages call a unit."""
        if self.kind == "alternatives":
            return f"record {unit[0]}"
        what = "ordering" if self.kind == "orderings" else "predecessor"
        return f"{what} {unit[1]} of shard {unit[0]}"


_HEADER = TypeAdapter(Header)


def positions(lengths: np.ndarray) -> np.ndarray:
    """Return 0..n-1 for each of the lengths, one after the other, int32."""
    starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
    return np.arange(len(starts), dtype=np.int32) - starts.astype(np.int32)


class UnitRows(NamedTuple):
    """The rows of one unit, all arrays of one length: int32, int32 and float32 (nats)."""

    unit: Unit
    example: np.ndarray
    position: np.ndarray
    logprob: np.ndarray


def part_name(first: Unit, last: Unit) -> str:
    """Name of the part that begins and ends with these units; in this order parts are sorted."""
    return f"part-{first[0]:05d}.{first[1]:05d}-{last[0]:05d}.{last[1]:05d}.parquet"


def may_hold(path: Path, shard: int | None, permutations: int | None) -> bool:
    """Whether the name of a part allows units of that shard, and of orderings 0..permutations."""
    if (match := _NAME.fullmatch(path.name)) is None:
        return True  # to be read and found damaged
    first_shard, first, last_shard, _ = map(int, match.groups())
    if shard is not None and not first_shard <= shard <= last_shard:
        return False
    return permutations is None or first_shard != last_shard or first <= permutations


def write_part(
    directory: Path, header: Header, items: Iterable[tuple[Unit, np.ndarray, np.ndarray]]
) -> Path:
    """Write one part of (unit, examples in order, log-probabilities of their tokens).

    Raises InputError, and writes nothing, if a log-probability is not finite or the disk is full.
    """
    units = list(items)
    for unit, _, values in units:
        if not np.isfinite(values).all():
            raise InputError(
                f"{header.model}: a log-probability of {header.name_of(unit)} of {header.dataset} "
                "is not finite; check the weights and the precision of the model"
            )
    repeats = [len(values) for _, _, values in units]
    examples = np.concatenate([examples for _, examples, _ in units]).astype(np.int32)
    lengths = header.stored[examples]
    table = pa.table(
        [
            np.repeat(np.array([u[0] for u, _, _ in units], dtype=np.int32), repeats),
            np.repeat(np.array([u[1] for u, _, _ in units], dtype=np.int32), repeats),
            np.repeat(examples, lengths),
            positions(lengths),
            np.concatenate([values for _, _, values in units]),
        ],
        schema=SCHEMA.with_metadata({"key": header.key}),
    )
    path = directory / part_name(units[0][0], units[-1][0])
    with replacing(path) as temporary:
        pq.write_table(
            table,
            temporary,
            row_group_size=ROW_GROUP,
            compression="zstd",
            compression_level=3,
            use_dictionary=INDICES,
            column_encoding={"logprob": "BYTE_STREAM_SPLIT"},
            write_page_checksum=True,
        )
    return path


def count_rows(path: Path) -> int:
    """Tokens of a part, by its footer alone; 0 if the footer is damaged."""
    try:
        return int(pq.read_metadata(path).num_rows) if path.is_file() else 0
    except UNREADABLE:
        return 0


def read_units(
    path: Path, header: Header, shard: int | None = None, permutations: int | None = None
) -> Iterator[UnitRows]:
    """Yield the units of a part, or only those of a shard and of orderings 0..permutations.

    Checked: the checksums, and that every token of each unit is there, once. Raises InputError if
    the part is damaged or belongs to another store.
    """
    filters = [("shard", "==", shard)] if shard is not None else []
    filters += [("ordering", "<=", permutations)] if permutations is not None else []
    if not path.is_file():  # of a directory, Arrow would read what is in it
        raise _damaged(path)
    try:
        table = pq.read_table(path, filters=filters or None, page_checksum_verification=True)
    except UNREADABLE as error:
        raise _damaged(path) from error
    if (table.schema.metadata or {}).get(b"key") != header.key.encode():
        raise InputError(f"{path}: the part belongs to another store; remove it and score again")
    if not table.schema.equals(SCHEMA):  # no checksum covers names and types
        raise _damaged(path)
    if len(table) == 0:
        return
    shards, orderings, example, position, logprob = (column.to_numpy() for column in table.columns)
    change = (np.diff(shards) != 0) | (np.diff(orderings) != 0)
    starts = np.concatenate([[0], 1 + np.flatnonzero(change)])
    units = list(zip(shards[starts].tolist(), orderings[starts].tolist(), strict=True))
    places = map(slice, starts, [*starts[1:], len(table)])
    found = [
        UnitRows(unit, example[here], position[here], logprob[here])
        for unit, here in zip(units, places, strict=True)
    ]
    if (
        len(set(units)) < len(units)
        or position[starts].any()
        or not np.isfinite(logprob).all()
        or not all(_holds_its_examples(header, rows) for rows in found)
    ):
        raise _damaged(path)
    examples = example[position == 0]
    lengths = header.stored[examples]
    right = np.repeat(examples, lengths), positions(lengths)
    if not (np.array_equal(example, right[0]) and np.array_equal(position, right[1])):
        raise _damaged(path)
    yield from found


def _holds_its_examples(header: Header, rows: UnitRows) -> bool:
    (shard, index), examples = rows.unit, rows.example[rows.position == 0]
    if not 0 <= shard < header.shards or index < 0:
        return False
    expected = np.arange(*header.bounds[shard])
    if header.kind == "successors":
        return index < len(expected) and np.array_equal(examples, np.delete(expected, index))
    if header.kind == "alternatives" and index > 0:
        return False
    # Shuffled ones count in any order: the rows say which, however it was drawn.
    return np.array_equal(examples if index == 0 else np.sort(examples), expected)


def _damaged(path: Path) -> InputError:
    return InputError(f"{path}: the part is damaged; score again, and it is replaced")
