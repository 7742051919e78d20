"""Contamination: the clean model reads on, and its text holds sets in one of three plantings.

*whole*: every copy of a set in canonical order, in one piece, as Oren (section 4.1) injects it.
*shuffled*: every copy in one piece, the records in another order each time.
*single*: every copy of every record alone, at a place of its own; no order of records is left.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from contamination.errors import InputError
from reproduction.run.injection import Injection, mix

Planting = Literal["whole", "shuffled", "single"]
PLANTINGS: tuple[Planting, ...] = ("whole", "shuffled", "single")


@dataclass(frozen=True)
class Cell:
    """One set of the design: how it is planted, and how often."""

    planting: Planting
    dup_count: int
    part: int = 0  # tells sets apart that are planted alike

    @property
    def name(self) -> str:
        """Name of its set: single-16, or single-16-1 for a second one."""
        return f"{self.planting}-{self.dup_count}" + (f"-{self.part}" if self.part else "")


def planted_copies(
    cell: Cell, records: list[np.ndarray], *, rng: np.random.Generator
) -> dict[str, tuple[np.ndarray, int]]:
    """Return what is inserted as one piece, by name: token ids, and how often.

    `records` are the token ids of the set in canonical order. Names begin with that of the cell; of
    shuffled copies they end in the number of the copy, of single records in that of the record.
    """
    if cell.planting == "single":
        return {f"{cell.name} {i}": (ids, cell.dup_count) for i, ids in enumerate(records)}
    if cell.planting == "whole":
        return {cell.name: (np.concatenate(records), cell.dup_count)}
    orders = [rng.permutation(len(records)) for _ in range(cell.dup_count)]
    return {
        f"{cell.name} {copy}": (np.concatenate([records[i] for i in order]), 1)
        for copy, order in enumerate(orders)
    }


def plant(
    sets: Mapping[Cell, list[np.ndarray]],
    background: np.ndarray,
    ends: np.ndarray,
    *,
    context: int,
    end_of_text: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, list[Injection]]:
    """Insert all copies between random documents; return blocks (n, context) and where copies lie.

    The last document is cut so that the last block is full; no copy is cut but by the blocks, one
    after the other. Raises InputError if the background is shorter than a block.

    Parameters
    ----------
    sets : token ids of the records of every set, in canonical order.
    background : token ids of documents, each closed by `end_of_text`.
    ends : offset in `background` after each document.
    """
    copies = {
        name: copy
        for cell, records in sets.items()
        for name, copy in planted_copies(cell, records, rng=rng).items()
    }
    planted = sum((len(ids) + 1) * dup_count for ids, dup_count in copies.values())
    room = (planted + len(background)) // context * context - planted
    if room <= 0:
        raise InputError(
            f"{len(background)} tokens of background are fewer than a block of {context}; raise "
            "`background_tokens`"
        )
    pieces, injections = mix(background[:room], ends[ends <= room], copies, end_of_text, rng=rng)
    return np.concatenate(pieces).astype(np.int64).reshape(-1, context), injections
