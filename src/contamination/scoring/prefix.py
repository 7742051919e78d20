"""Many continuations of one prefix, which is read once.

The successor statistic needs log p(first b tokens of x_j | x_i) for all ordered pairs in a shard:
each example is the prefix of all the others. Behind an endpoint, and wherever sharing gives other
numbers, each pair is a sequence of its own. A model that runs here reads each prefix once and keeps
its keys and values. The continuations follow one another in rows: every token sees the prefix and,
of its row, its own continuation alone, at the position right after the prefix. A row copies the
keys of its prefix, and each of its inputs attends to them and to the whole row: many short rows
copy too often, few long ones compute what is masked, and unequal rows are padded.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from inspect import signature
from itertools import pairwise
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor
from transformers import Cache

from contamination.errors import InputError
from contamination.scoring.contract import Scorer
from contamination.scoring.loading import is_out_of_memory
from contamination.scoring.local import TransformersScorer
from contamination.scoring.windows import Window, assemble, padded

# Costs in units of the time in which one input attends to one key, measured on a CPU. The minimum
# is so flat that they serve other machines as well.
COPY = 32  # a key and its value
NETWORK = 2000  # all of an input but attention
ATTENTIONS = ("sdpa", "eager")  # kinds that take a mask for every pair of tokens
ARGUMENTS = {"attention_mask", "position_ids", "past_key_values"}  # others are silently ignored
WINDOWS = ("sliding_window", "attention_chunk_size")  # names in configurations
BY_INDEX = ("gpt_neo",)  # architectures with windows of their own besides the mask
FLOAT32_NATS = 1e-3  # most that a token's log-probability may differ from plain scoring
ROUGH_NATS = 0.1  # its average over a continuation, where rounding depends on the batch
PLAIN_BATCHES = 64  # of concatenations that exist at a time


class Piece(NamedTuple):
    """Continuations (at least one id each) of a prefix, which is without the start token.

    `members` are their numbers in the group.
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
        """Divide what is longer than the one predicted token into the rows that cost least."""
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


def attention_mask(blocks: Tensor, widths: Tensor, longest: int, dtype: torch.dtype) -> Tensor:
    """What is added to attention scores, [R, 1, T, longest + T]: 0 for what a token sees.

    `blocks` [R, T] numbers the continuations of a row, -1 behind the last; `widths` [R] are those
    of the rows' prefixes, padded to `longest`.
    """
    prefix = torch.arange(longest, device=blocks.device) < widths[:, None]
    own = (blocks[:, :, None] == blocks[:, None, :]).tril()
    seen = torch.cat([prefix[:, None].expand(*blocks.shape, longest), own], dim=2)[:, None]
    # The lowest number instead of minus infinity, and no boolean: every kind of attention adds it.
    lowest = torch.finfo(dtype).min
    return torch.zeros(seen.shape, dtype=dtype, device=seen.device).masked_fill_(~seen, lowest)


class SharedKeys(Cache):  # type: ignore[misc]
    """Keys and values of prefixes: kept while `owners` is None; then row i continues owners[i]."""

    def __init__(self) -> None:
        super().__init__(layers=[])
        self.owners: Tensor | None = None
        self.kept: dict[int, tuple[Tensor, Tensor]] = {}

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


Scored = tuple[int, int, np.ndarray]  # group, number of the continuation in it, its values

# (span, width) up to which sharing was found to give the right numbers; None where it does not.
_agreed: WeakKeyDictionary[TransformersScorer, tuple[int, int] | None] = WeakKeyDictionary()


def continuation_logprobs(
    scorer: Scorer, groups: Sequence[tuple[np.ndarray, Sequence[np.ndarray]]]
) -> Iterator[tuple[int, list[np.ndarray]]]:
    """Yield (index of the group, log-probabilities of each of its continuations, float32, nats).

    A group is a prefix and its continuations (integer ids), any of which may be empty; the order of
    results is free. A token is conditioned on the start token, the prefix, and the tokens of its
    continuation before it. Where a prefix leaves no room in the context, its last
    `scorer.context - len(continuation)` tokens count: a value depends on nothing else in the group.
    Raises InputError if a continuation is longer than the context, and as `scorer.token_logprobs`.
    """
    pieces = [p for number, group in enumerate(groups) for p in _pieces(number, *group, scorer)]
    found = [[np.empty(0, dtype=np.float32) for _ in ids] for _, ids in groups]
    owners = [piece.group for piece in pieces for _ in piece.members]
    yield from assemble(found, owners, _scored(scorer, pieces))


def _pieces(
    group: int, prefix: np.ndarray, continuations: Sequence[np.ndarray], scorer: Scorer
) -> Iterator[Piece]:
    """Divide a group by what is left of its prefix, and where it exceeds a batch."""
    by_room: defaultdict[int, list[int]] = defaultdict(list)
    for member, ids in enumerate(continuations):
        if len(ids) > scorer.context:
            told = f"continuation {member} of group {group} has {len(ids)} tokens"
            raise InputError(f"{told}, but the context is {scorer.context}; score fewer of them")
        if len(ids):
            by_room[min(len(prefix), scorer.context - len(ids))].append(member)
    for room, members in by_room.items():
        piece = Piece(
            group, prefix[len(prefix) - room :], [continuations[m] for m in members], members
        )
        begin, width = 0, 1 + room
        for end, ids in enumerate(piece.continuations):
            width += len(ids) - 1
            if width > scorer.batch_tokens and end > begin:
                yield piece.part(slice(begin, end))
                begin, width = end, room + len(ids)
        yield piece.part(slice(begin, None))


def _scored(scorer: Scorer, pieces: list[Piece]) -> Iterator[Scored]:
    """Score together the pieces whose prefix can be shared, and the others one by one."""
    if isinstance(scorer, TransformersScorer):
        scorer.require_known_tokens([ids for p in pieces for ids in (p.prefix, *p.continuations)])
        windows = [getattr(scorer.config.get_text_config(), name, None) for name in WINDOWS]
        reach = min([scorer.context, *filter(None, windows)])
        able = [piece for piece in pieces if len(piece.members) > 1 and piece.span <= reach]
        if able and _agrees(scorer, able):
            yield from _together(scorer, able)
            pieces = [piece for piece in pieces if len(piece.members) == 1 or piece.span > reach]
    yield from _plain(scorer, pieces)


def _plain(scorer: Scorer, pieces: list[Piece]) -> Iterator[Scored]:
    """Score each continuation behind a copy of its prefix."""
    tokens = sum(piece.span * len(piece.continuations) for piece in pieces)
    parts = 1 + tokens // (PLAIN_BATCHES * scorer.batch_tokens)
    for part in (pieces[i::parts] for i in range(parts)):
        owners = [(piece, k) for piece in part for k in range(len(piece.members))]
        sequences = [np.concatenate([p.prefix, p.continuations[k]]) for p, k in owners]
        firsts = [len(piece.prefix) for piece, _ in owners]
        for number, values in scorer.token_logprobs(sequences, firsts):
            piece, k = owners[number]
            yield piece.group, piece.members[k], values[len(piece.prefix) :]


def _agrees(scorer: TransformersScorer, pieces: list[Piece]) -> bool:
    """Whether sharing gives the numbers of plain scoring; tried on the largest pieces so far.

    Whatever an architecture does with positions, windows, states, masks and caches shows in the
    numbers, or as an error.
    """
    known, config = _agreed.get(scorer, (0, 0)), scorer.model.config
    if (
        known is None
        or config._attn_implementation not in ATTENTIONS
        or config.get_text_config().model_type in BY_INDEX
        or not signature(scorer.model.base_model.forward).parameters.keys() >= ARGUMENTS
    ):
        return False
    longest, widest = max(pieces, key=lambda p: p.span), max(pieces, key=lambda p: p.width)
    size = max(longest.span, known[0]), max(widest.width, known[1])
    if size != known:
        padded = min(pieces, key=lambda p: p.span)
        trial = {id(piece): piece for piece in (longest, widest, padded)}
        _agreed[scorer] = size if _differ_little(scorer, list(trial.values())) else None
    return _agreed[scorer] is not None


def _differ_little(scorer: TransformersScorer, pieces: list[Piece]) -> bool:
    """Compare the first and the last continuation of each piece, scored either way."""
    ends = [piece.part(slice(None, None, len(piece.members) - 1)) for piece in pieces]
    plain = {tuple(where): values for *where, values in _plain(scorer, ends)}
    try:
        shared = {tuple(where): values for *where, values in _together(scorer, pieces)}
    except Exception:  # of any class: architectures refuse what they do not know in many ways
        return False
    errors = [np.abs(shared[where] - values) for where, values in plain.items()]
    if scorer.dtype == torch.float32:
        return all(error.max() <= FLOAT32_NATS for error in errors)
    return all(error.mean() <= ROUGH_NATS for error in errors)


def _together(scorer: TransformersScorer, pieces: list[Piece]) -> Iterator[Scored]:
    """Score pieces in batches, each prefix read once."""
    wide = [Window(i, 0, 0, piece.width) for i, piece in enumerate(pieces)]
    for batch, values in scorer.results(
        wide, lambda batch: _forward(scorer, [pieces[window.sequence] for window in batch])
    ):
        stop = 0
        for piece in (pieces[window.sequence] for window in batch):
            for member, ids in zip(piece.members, piece.continuations, strict=True):
                yield piece.group, member, values[stop : (stop := stop + len(ids))]


def _forward(scorer: TransformersScorer, pieces: list[Piece]) -> Tensor:
    """Log-probabilities, float32, of the tokens of all continuations, in order."""
    half = len(pieces[0].members) // 2
    try:
        return _run(scorer, pieces)
    except RuntimeError as error:
        if len(pieces) > 1 or not half or not is_out_of_memory(error):
            raise
    parts = [pieces[0].part(slice(half)), pieces[0].part(slice(half, None))]
    return torch.cat([_forward(scorer, [part]) for part in parts])


@torch.inference_mode()
def _run(scorer: TransformersScorer, pieces: list[Piece]) -> Tensor:
    """Read the prefixes, padded on the right, then all rows, each of which continues one."""
    start, send, keys = scorer.start, scorer.send, SharedKeys()
    widths = np.array([1 + len(piece.prefix) for piece in pieces])
    prefixes = padded([np.append(start, piece.prefix) for piece in pieces], start)
    hidden = scorer.body(
        input_ids=send(prefixes), past_key_values=keys, use_cache=True
    ).last_hidden_state
    device = hidden.device
    hidden = hidden[torch.arange(len(pieces), device=device), send(widths).to(device) - 1]
    firsts = padded([[ids[0] for ids in piece.continuations] for piece in pieces], 0)
    values = [scorer.head(hidden, send(firsts).to(device)).flatten()]
    rows = [(i, row) for i, piece in enumerate(pieces) for row in piece.rows()]
    if rows:
        owners = np.array([i for i, _ in rows])
        keys.owners = send(owners)
        lengths = [[len(ids) - 1 for ids in row] for _, row in rows]
        inputs = [np.concatenate([ids[:-1] for ids in row]) for _, row in rows]
        behind = [np.concatenate([*map(np.arange, each)]) for each in lengths]
        blocks = padded([np.repeat(np.arange(len(each)), each) for each in lengths], -1)
        mask = attention_mask(
            send(blocks),
            send(widths[owners]),
            prefixes.shape[1],
            next(iter(keys.kept.values()))[0].dtype,  # that in which the network attends
        )
        hidden = scorer.body(
            input_ids=send(padded(inputs, start)),
            position_ids=send(padded([*map(np.add, widths[owners], behind)], 0)),
            attention_mask=mask,
            past_key_values=keys,
            use_cache=True,
        ).last_hidden_state
        hidden = hidden.flatten(0, 1).index_select(0, send(np.flatnonzero(blocks >= 0)).to(device))
        targets = np.concatenate([ids[1:] for _, row in rows for ids in row])
        values.append(scorer.head(hidden, send(targets).to(device)))
    # The values are those of the first tokens, with padding, and then those of all others.
    order, end = [], firsts.size
    for i, piece in enumerate(pieces):
        for k, ids in enumerate(piece.continuations):
            order.append(np.array([i * firsts.shape[1] + k, *range(end, end + len(ids) - 1)]))
            end += len(ids) - 1
    return torch.cat(values).index_select(0, send(np.concatenate(order)).to(device))
