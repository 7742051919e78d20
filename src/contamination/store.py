"""The log-probability store: score once, test many ways.

One store holds the per-token log-probabilities of one test set under one model for one number of
shards: a directory with a header (`store.json`) that says what was scored, and Parquet parts. Parts
are written whole, in the order of (shard, ordering), and hold whole sequences. What is missing is
what no part holds, so an interrupted run that is started again writes the same bytes as one that
was not interrupted.

Columns of a part: shard, ordering (0 = canonical), example (index in canonical order), position (of
the token within its example), logprob (float32, nats).
"""

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contamination.errors import InputError
from contamination.files import read_json, replacing, sha256_of, write_json
from contamination.orderings import shard_bounds

SCHEMA_VERSION = 1
Unit = tuple[int, int]  # (shard, ordering)


@dataclass(frozen=True)
class Header:
    """What a store holds; two stores with the same header hold the same numbers.

    Attributes
    ----------
    model, dataset : names for people. model_revision, dataset_revision : the identities.
    template : name/version of the rendering of a record.
    seed : of the orderings. shards : how many contiguous shards the set is cut into.
    example_tokens : number of tokens of each example, in canonical order.
    """

    model: str
    model_revision: str
    dataset: str
    dataset_revision: str
    template: str
    seed: int
    shards: int
    example_tokens: tuple[int, ...]


class Store:
    """A store on disk, bound to its header.

    With `replace`, a store of something else in that directory is removed first: right where the
    directory belongs to one run, as `build/` does.

    Raises
    ------
    InputError
        The directory holds a store of something else; the message names the first difference.
    """

    def __init__(self, directory: Path, header: Header, *, replace: bool = False) -> None:
        self.directory = Path(directory)
        self.header = header
        self._key = sha256_of(repr(asdict(header)))
        path = self.directory / "store.json"
        expected = {"schema": SCHEMA_VERSION, **asdict(header)}
        expected["example_tokens"] = list(header.example_tokens)
        if replace and path.exists() and read_json(path) != expected:
            shutil.rmtree(self.directory)
        if not path.exists():
            write_json(path, expected)
        elif (found := read_json(path)) != expected:
            field = next(k for k in expected if found.get(k) != expected[k])
            raise InputError(
                f"{path}: this store was scored with another {field.replace('_', ' ')} "
                f"({_brief(found.get(field))}, now {_brief(expected[field])}); "
                f"remove {self.directory} to score again, or name another directory"
            )

    def parts(self) -> list[Path]:
        """Finished parts, in the order of what they hold."""
        return sorted(self.directory.glob("part-*.parquet"))

    def done(self) -> set[Unit]:
        """(shard, ordering) pairs that are stored; a damaged part is set aside as `.damaged`."""
        units: set[Unit] = set()
        for path in self.parts():
            try:
                table = self._read(path, None)  # every column: damage in any must be found here
            except InputError:
                path.rename(path.with_suffix(".damaged"))
                continue
            pairs = table.group_by(["shard", "ordering"]).aggregate([])
            shards, orderings = pairs["shard"].to_pylist(), pairs["ordering"].to_pylist()
            units.update(zip(shards, orderings, strict=True))
        return units

    def append(self, units: Iterable[tuple[Unit, np.ndarray, np.ndarray]]) -> Path:
        """Write one part of ((shard, ordering), examples in order, log-probabilities) units."""
        items = list(units)
        lengths = np.asarray(self.header.example_tokens)
        repeats = [len(values) for _, _, values in items]
        table = pa.table(
            {
                "shard": np.repeat([u[0] for u, _, _ in items], repeats).astype(np.int32),
                "ordering": np.repeat([u[1] for u, _, _ in items], repeats).astype(np.int32),
                "example": np.concatenate([np.repeat(e, lengths[e]) for _, e, _ in items]),
                "position": np.concatenate(
                    [np.arange(lengths[i], dtype=np.int32) for _, e, _ in items for i in e]
                ),
                "logprob": np.concatenate([values for _, _, values in items]),
            }
        ).replace_schema_metadata({"key": self._key})
        (first_shard, first), (last_shard, last) = items[0][0], items[-1][0]
        name = f"part-{first_shard:05d}.{first:05d}-{last_shard:05d}.{last:05d}.parquet"
        with replacing(self.directory / name) as temporary:
            pq.write_table(
                table,
                temporary,
                compression="zstd",
                use_dictionary=["shard", "ordering", "example"],
                column_encoding={"position": "DELTA_BINARY_PACKED"},
                write_page_checksum=True,
            )
        return self.directory / name

    def tokens(self) -> Iterator[pa.Table]:
        """Yield the parts as tables, one at a time, checksums verified."""
        for path in self.parts():
            yield self._read(path, None)

    def log_probs(self, permutations: int) -> np.ndarray:
        """Sequence log-probabilities (nats), float64[shards, permutations + 1], canonical first.

        Raises
        ------
        InputError
            The store does not hold that many orderings of every shard, each once.
        """
        shape = (self.header.shards, permutations + 1)
        sums, counts = np.zeros(shape), np.zeros(shape, dtype=np.int64)
        for path in self.parts():
            table = self._read(path, ["shard", "ordering", "logprob"])
            shard, ordering, logprob = (table[name].to_numpy() for name in table.column_names)
            keep = ordering <= permutations
            cell = shard[keep] * shape[1] + ordering[keep]
            sums += np.bincount(cell, logprob[keep].astype(np.float64), sums.size).reshape(shape)
            counts += np.bincount(cell, minlength=sums.size).reshape(shape)
        if (counts == 0).any():
            shard, ordering = np.argwhere(counts == 0)[0]
            raise InputError(
                f"{self.directory}: ordering {ordering} of shard {shard} is not scored yet; score "
                f"{permutations} permutations first"
            )
        bounds = shard_bounds(len(self.header.example_tokens), self.header.shards)
        tokens = [sum(self.header.example_tokens[start:stop]) for start, stop in bounds]
        if (wrong := counts != np.array(tokens)[:, None]).any():
            shard, ordering = np.argwhere(wrong)[0]
            raise InputError(
                f"{self.directory}: ordering {ordering} of shard {shard} is stored twice, by two "
                "runs at once; remove the directory and score again"
            )
        return sums

    def _read(self, path: Path, columns: list[str] | None) -> pa.Table:
        try:
            table = pq.read_table(path, columns=columns, page_checksum_verification=True)
        except (OSError, pa.ArrowException) as error:
            raise InputError(
                f"{path}: the part is damaged; score again, and it is replaced"
            ) from error
        if (table.schema.metadata or {}).get(b"key") != self._key.encode():
            raise InputError(
                f"{path}: the part belongs to another store; remove it and score again"
            )
        return table


def _brief(value: object) -> str:
    text = str(value)
    return text if len(text) <= 12 else f"{text[:12]}…"
