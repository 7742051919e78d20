"""The store that a test reads: its kind, its shards, and its tokens of every example.

The one rule of how many shards a test gets is `plan_store`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from contamination.errors import InputError

if TYPE_CHECKING:  # the help of the command reads the needs of the tests, without numpy
    from contamination.scoring.store_format import Kind

SUCCESSOR_TOKENS = 32  # of every example after every other
# Of whole orderings, as in Oren, sections 4.1 and 4.3; 4.2 finds 10 to 20 best.
MOST_SHARDS = 50


@dataclass(frozen=True, kw_only=True)
class StoreNeed:
    """The store that a test needs.

    Attributes
    ----------
    kind, tokens_per_example
        Kind of the store, and tokens of each example, as in
        `contamination.scoring.store_format.Header`.
    shard_size
        Number of examples of a shard unless the user sets the number of shards; None is
        the whole set.
    fewest_shards
        Smallest number of shards that give a p-value.
    """

    kind: "Kind" = "orderings"
    tokens_per_example: int | None = None
    shard_size: int | None = 4
    fewest_shards: int = 1


@dataclass(frozen=True)
class StorePlan:
    """One store that an audit reads; see `contamination.scoring.store_format.Header`."""

    kind: "Kind"
    shards: int
    tokens_per_example: int | None = None

    def path(
        self,
        directory: Path | str,
        model: str,
        dataset: str,
        identity: str | None = None,
    ) -> Path:
        """Return the folder of this store: the one rule for the names of folders.

        `identity` is a hash of what may change under one name (weights, examples),
        where stores of the old and the new are both kept.

        Examples
        --------
        >>> StorePlan("orderings", 25).path("stores", "gpt2", "mmlu/law").as_posix()
        'stores/gpt2/mmlu-law/orderings-025'
        """
        name = f"{self.kind}-{self.shards:03d}"
        if self.kind == "successors" and self.tokens_per_example != SUCCESSOR_TOKENS:
            name += f"-{self.tokens_per_example or 'all'}"
        if identity:
            name += f"-{identity[:8]}"
        return stores_of(directory, model, dataset) / name

    def within(self, context: int, lengths: Sequence[int]) -> "StorePlan":
        """Keep no more of whole successors than leaves half of the context to the one before.

        A plan that says how many tokens to keep stays as it is.
        """
        whole = self.kind == "successors" and self.tokens_per_example is None
        if whole and max(lengths) > context // 2:
            return replace(self, tokens_per_example=context // 2)
        return self


def stores_of(directory: Path | str, model: str, dataset: str) -> Path:
    """Return the folder of all stores of a model and a set, by their names for people."""
    return Path(directory) / _slug(model) / _slug(dataset)


def plan_store(test: StoreNeed, examples: int, shards: int | None) -> StorePlan:
    """Return the store that a test reads; without a number of shards, it has that of the test.

    Raises InputError for too few examples or too few shards, or a test of variants:
    what it reads is planned from their texts.

    Examples
    --------
    >>> plan_store(StoreNeed(), examples=100, shards=None)
    StorePlan(kind='orderings', shards=25, tokens_per_example=None)
    """
    if test.kind == "alternatives":
        raise InputError(
            "a test of options has no shards of records; use a test of their order",
        )
    if test.shard_size is None:
        shards = 1
    elif shards is None:
        shards = max(1, examples // test.shard_size)
        if test.kind == "orderings":
            shards = min(shards, MOST_SHARDS)
    # Centring successors leaves nothing of two.
    fewest = 3 if test.kind == "successors" else 2
    if examples < fewest:
        raise InputError(f"the set has too few examples ({examples}): give at least {fewest}")
    if examples < fewest * shards:
        raise InputError(
            f"{examples} examples are fewer than {fewest} per shard for {shards} "
            f"shards; use at most {examples // fewest} shards, or give more examples"
        )
    check_shards(test, shards)
    return StorePlan(test.kind, shards, test.tokens_per_example)


def check_shards(test: StoreNeed, shards: int) -> None:
    """Raise InputError for fewer shards than a test needs."""
    if shards < test.fewest_shards:
        raise InputError(
            f"a test that compares shards needs at least {test.fewest_shards}, and there is "
            f"{shards}: give more shards, or another test",
            parameter="shards",
        )


def _slug(label: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", label).strip("-.") or "unnamed"
