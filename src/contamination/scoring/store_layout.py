"""What a store holds: its units, and the tokens of each.

A unit is one sequence that the model reads: one ordering of one shard (Oren, Algorithm 1), or one
example followed by each of the others of its shard.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from contamination.errors import InputError
from contamination.files import sha256_of
from contamination.testsets.orderings import ordering, shard_bounds

SCHEMA_VERSION = 3
Kind = Literal["orderings", "successors"]
Unit = tuple[int, int]  # (shard, ordering), or (shard, index of the predecessor in the shard)


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
        (s, a) is every other example of shard s, each of them right after the a-th.
    tokens_per_example : only so many tokens of each example are scored and stored; None is all.

    Raises
    ------
    InputError
        An unknown kind, or no tokens to store.
    """

    model: str
    model_revision: str
    dataset: str
    dataset_revision: str
    template: str
    seed: int
    shards: int
    example_tokens: tuple[int, ...]
    kind: Kind = "orderings"
    tokens_per_example: int | None = None

    def __post_init__(self) -> None:
        """Refuse what no store can hold."""
        if self.kind not in get_args(Kind):
            raise InputError(f"kind is {self.kind!r}: give one of {', '.join(get_args(Kind))}")
        if self.tokens_per_example is not None and self.tokens_per_example < 1:
            raise InputError(
                f"tokens_per_example is {self.tokens_per_example}: give at least 1 token of each "
                "example"
            )

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Header":
        """Rebuild a header from what `as_json` returned."""
        fields = {name: value[name] for name in cls.__dataclass_fields__}
        return cls(**fields | {"example_tokens": tuple(fields["example_tokens"])})

    def as_json(self) -> dict[str, Any]:
        """Return the contents of `store.json`."""
        fields = asdict(self) | {"example_tokens": list(self.example_tokens)}
        return {"schema": SCHEMA_VERSION, **fields}

    @cached_property
    def key(self) -> str:
        """SHA-256 of the header, which every part carries."""
        return sha256_of(repr(asdict(self)))

    @cached_property
    def bounds(self) -> list[tuple[int, int]]:
        """Bounds [start, stop) of each shard; `InputError` if one has fewer than two examples."""
        return shard_bounds(len(self.example_tokens), self.shards)

    @cached_property
    def stored(self) -> np.ndarray:
        """Tokens stored of each example, int64[examples]."""
        lengths = np.asarray(self.example_tokens, dtype=np.int64)
        return (
            lengths
            if self.tokens_per_example is None
            else lengths.clip(max=self.tokens_per_example)
        )

    @cached_property
    def _shard_tokens(self) -> list[int]:
        return [sum(self.example_tokens[start:stop]) for start, stop in self.bounds]

    def units(self, permutations: int) -> list[Unit]:
        """All units of a full store, in order; `permutations` counts for orderings alone."""
        return [
            (shard, index)
            for shard, (start, stop) in enumerate(self.bounds)
            for index in range(permutations + 1 if self.kind == "orderings" else stop - start)
        ]

    def examples(self, unit: Unit) -> np.ndarray:
        """Examples whose tokens the unit holds, in the order in which they are stored, int32."""
        shard, index = unit
        start, stop = self.bounds[shard]
        if self.kind == "successors":
            return np.delete(np.arange(start, stop, dtype=np.int32), index)
        return ordering(
            (start, stop), index, seed=self.seed, dataset=self.dataset_revision, shard=shard
        )

    def tokens_read(self, unit: Unit) -> int:
        """Tokens that the model reads for the unit, scored or not."""
        shard, index = unit
        if self.kind == "orderings":
            return self._shard_tokens[shard]
        start, stop = self.bounds[shard]
        others = int(self.stored[start:stop].sum() - self.stored[start + index])
        return self.example_tokens[start + index] + others

    def tokens_of(self, permutations: int) -> int:
        """Tokens that the model reads for the full store."""
        return sum(self.tokens_read(unit) for unit in self.units(permutations))

    def name_of(self, unit: Unit) -> str:
        """What messages call a unit."""
        what = "ordering" if self.kind == "orderings" else "predecessor"
        return f"{what} {unit[1]} of shard {unit[0]}"


def positions(lengths: np.ndarray) -> np.ndarray:
    """Return 0..n-1 for each of the lengths, one after the other, int32."""
    starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
    return np.arange(len(starts), dtype=np.int32) - starts.astype(np.int32)
