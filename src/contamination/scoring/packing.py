"""Continuations of prefixes in few rows: the layout, the mask, and keys that many rows share.

The network reads each prefix once and keeps its keys and values. Its continuations then stand one
after another in rows: every token sees the prefix and, of its row, its own continuation alone, and
stands where it would if that came right after the prefix.

A row copies the keys of its prefix, and each of its inputs attends to them and to all of the row.
So many short rows copy too often, and few long ones compute what the mask throws away; rows of
unequal length waste the rest of the network on padding. `Piece.rows` takes what costs least.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from transformers import Cache

# Times in units of that for one input to attend to one key, measured on a CPU with models of 4 and
# 124 million parameters; the least of all costs is so flat that it holds elsewhere.
COPY = 32  # a key and its value
NETWORK = 2000  # all of an input but attention


class Piece(NamedTuple):
    """Continuations (ids, at least one each) of a prefix in a group; `members` are their numbers.

    The prefix is without the start token that comes before it.
    """

    group: int
    prefix: np.ndarray
    continuations: list[np.ndarray]
    members: list[int]

    @property
    def span(self) -> int:
        """Inputs from the start token to the end of the longest continuation."""
        return len(self.prefix) + max(len(ids) for ids in self.continuations)

    @property
    def width(self) -> int:
        """Inputs altogether, the prefix counted once."""
        return 1 + len(self.prefix) + sum(len(ids) - 1 for ids in self.continuations)

    def part(self, where: slice) -> "Piece":
        """Return a piece with some of the continuations."""
        return self._replace(continuations=self.continuations[where], members=self.members[where])

    def rows(self) -> list[list[np.ndarray]]:
        """Divide what is longer than the one token that the prefix predicts into rows."""
        longer = [ids for ids in self.continuations if len(ids) > 1]
        if not longer:
            return []
        counts = np.arange(1, len(longer) + 1)
        mean = sum(len(ids) - 1 for ids in longer) / len(longer)
        inputs = np.ceil(len(longer) / counts) * mean  # of the longest row
        keys = 1 + len(self.prefix) + inputs
        costs = counts * (inputs * (NETWORK + keys) + COPY * keys)
        ends = np.linspace(0, len(longer), 1 + counts[costs.argmin()]).round().astype(int)
        return [longer[a:b] for a, b in pairwise(ends)]


class Layout(NamedTuple):
    """Pieces as int64 arrays: B prefixes of at most W inputs, R rows of at most T."""

    prefixes: np.ndarray  # [B, W], the start token included, padded on the right
    widths: np.ndarray  # [B]
    owners: np.ndarray  # [R], the prefix that a row continues
    inputs: np.ndarray  # [R, T]
    positions: np.ndarray  # [R, T], counted from the start token
    blocks: np.ndarray  # [R, T], number of the continuation in its row, -1 behind the last
    firsts: np.ndarray  # [B, K], the tokens that the prefix itself predicts, padded with 0
    scored: np.ndarray  # [N], flat positions in the rows
    targets: np.ndarray  # [N], the tokens predicted there
    order: np.ndarray  # where each token of each continuation is in `firsts` followed by `targets`


def lay_out(pieces: Sequence[Piece], start: int) -> Layout:
    """Lay out pieces; `start` is the start token."""
    widths = np.array([1 + len(piece.prefix) for piece in pieces])
    prefixes = np.full((len(pieces), widths.max()), start, dtype=np.int64)
    firsts = np.zeros((len(pieces), max(len(p.continuations) for p in pieces)), dtype=np.int64)
    order, end = [], firsts.size
    for i, piece in enumerate(pieces):
        prefixes[i, 1 : widths[i]] = piece.prefix
        for k, ids in enumerate(piece.continuations):
            firsts[i, k] = ids[0]
            order.append(np.array([i * firsts.shape[1] + k, *range(end, end + len(ids) - 1)]))
            end += len(ids) - 1

    rows = [(i, row) for i, piece in enumerate(pieces) for row in piece.rows()]
    shape = (len(rows), max((sum(len(ids) - 1 for ids in row) for _, row in rows), default=0))
    inputs, positions = np.full(shape, start, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    blocks = np.full(shape, -1, dtype=np.int64)
    for r, (i, row) in enumerate(rows):
        stop = 0
        for number, ids in enumerate(row):
            here = slice(stop, stop := stop + len(ids) - 1)
            inputs[r, here] = ids[:-1]
            positions[r, here] = widths[i] + np.arange(len(ids) - 1)
            blocks[r, here] = number
    targets = [ids[1:] for _, row in rows for ids in row]
    return Layout(
        prefixes,
        widths,
        np.array([i for i, _ in rows], dtype=np.int64),
        inputs,
        positions,
        blocks,
        firsts,
        np.flatnonzero(blocks >= 0),
        np.concatenate([np.empty(0, dtype=np.int64), *targets]),
        np.concatenate(order),
    )


def attention_mask(blocks: Tensor, widths: Tensor, longest: int, dtype: torch.dtype) -> Tensor:
    """What is added to attention scores, [R, 1, T, longest + T]: 0 for what is seen.

    `blocks` is of the layout; `widths` [R] are those of the rows' prefixes, `longest` is their
    padded width.
    """
    rows, length = blocks.shape
    prefix = torch.arange(longest, device=blocks.device) < widths[:, None]
    own = (blocks[:, :, None] == blocks[:, None, :]).tril()
    seen = torch.cat([prefix[:, None].expand(rows, length, longest), own], dim=2)[:, None]
    # The lowest number instead of minus infinity, and no boolean: every kind of attention adds it.
    lowest = torch.finfo(dtype).min
    return torch.zeros(seen.shape, dtype=dtype, device=seen.device).masked_fill_(~seen, lowest)


class SharedKeys(Cache):  # type: ignore[misc]
    """Keys and values of prefixes, which any number of rows continue.

    As long as `owners` is None it takes them in; then row i continues prefix owners[i], and nothing
    more is kept.
    """

    def __init__(self) -> None:
        super().__init__(layers=[])
        self.owners: Tensor | None = None
        self.kept: dict[int, tuple[Tensor, Tensor]] = {}

    @property
    def dtype(self) -> torch.dtype:
        """Precision in which the network attends."""
        return next(iter(self.kept.values()))[0].dtype

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        """Return the keys and values [.., .., tokens, ..] that a layer is to attend to."""
        if self.owners is None:
            self.kept[layer_idx] = key_states, value_states
            return key_states, value_states
        keys, values = self.kept[layer_idx]
        owners = self.owners.to(keys.device)
        return (
            torch.cat([keys.index_select(0, owners), key_states], dim=-2),
            torch.cat([values.index_select(0, owners), value_states], dim=-2),
        )
