"""Many continuations of one prefix, which is read once.

The successor statistic needs log p(first b tokens of x_j | x_i) for all ordered pairs
in a shard: each example is the prefix of all the others. Behind an endpoint, and
wherever sharing gives other numbers, each pair is a sequence of its own. A model that
runs here reads each prefix once and keeps its keys and values. The continuations follow
one another in rows: every token sees the prefix and, of its row, its own continuation
alone, at the position right after the prefix. A row copies the keys of its prefix, and
each of its inputs attends to them and to the whole row: many short rows copy too often,
few long ones compute what is masked, and unequal rows are padded.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from inspect import signature
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from contamination.errors import InputError
from contamination.scoring import agreement
from contamination.scoring.contract import Scorer
from contamination.scoring.load_errors import is_out_of_memory
from contamination.scoring.local import TransformersScorer
from contamination.scoring.shared_keys import SharedKeys, attention_mask
from contamination.scoring.windows import Window, assemble, padded, positions

# Costs in units of the time in which one input attends to one key, measured on a CPU.
# The minimum is so flat that they serve other machines as well.
COPY = 32  # a key and its value
NETWORK = 2000  # all of an input but attention
ATTENTIONS = ("sdpa", "eager")  # kinds that take a mask for every pair of tokens
# Others are silently ignored.
ARGUMENTS = {"attention_mask", "position_ids", "past_key_values"}
WINDOWS = ("sliding_window", "attention_chunk_size")  # names in configurations
BY_INDEX = ("gpt_neo",)  # architectures with windows of their own
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
        continuations = self.continuations[where]
        return self._replace(continuations=continuations, members=self.members[where])

    def halves(self) -> list["Piece"]:
        """Return two pieces, each with half of the continuations."""
        middle = len(self.members) // 2
        return [self.part(slice(middle)), self.part(slice(middle, None))]

    def rows(self) -> list[list[np.ndarray]]:
        """Divide what is longer than the one predicted token into the rows that cost least."""
        longer = [ids for ids in self.continuations if len(ids) > 1]
        if not longer:
            return []
        mean = sum(len(ids) - 1 for ids in longer) / len(longer)
        costs: list[float] = []
        for count in range(1, len(longer) + 1):
            inputs = math.ceil(len(longer) / count) * mean  # of the longest row
            keys = 1 + len(self.prefix) + inputs
            costs.append(count * (inputs * (NETWORK + keys) + COPY * keys))
        cheapest = 1 + costs.index(min(costs))
        mean_row = len(longer) / cheapest
        ends = [round(number * mean_row) for number in range(cheapest + 1)]
        return [longer[start:stop] for start, stop in pairwise(ends)]


class ContinuationRow(NamedTuple):
    """Continuations that follow one another behind the prefix of a piece."""

    piece: int
    continuations: list[np.ndarray]


# Group, number of the continuation in it, its values.
ScoredContinuation = tuple[int, int, np.ndarray]


def continuation_logprobs(
    scorer: Scorer, groups: Sequence[tuple[np.ndarray, Sequence[np.ndarray]]]
) -> Iterator[tuple[int, list[np.ndarray]]]:
    """Yield (index of the group, log-probabilities of each of its continuations, float32, nats).

    A group is a prefix and its continuations (integer ids), any of which may be empty;
    the order of results is free. A token is conditioned on the start token, the prefix,
    and the tokens of its continuation before it. Where a prefix leaves no room in the
    context, its last `scorer.context - len(continuation)` tokens count: a value depends
    on nothing else in the group. Raises InputError if a continuation is longer than the
    context, or the scorer cannot score.
    """
    pieces: list[Piece] = []
    results: list[list[np.ndarray]] = []
    for number, (prefix, continuations) in enumerate(groups):
        pieces += _pieces(number, prefix, continuations, scorer)
        results.append([np.empty(0, dtype=np.float32)] * len(continuations))
    owners: list[int] = []
    for piece in pieces:
        owners += [piece.group] * len(piece.members)
    yield from assemble(results, owners, _scored(scorer, pieces))


def _pieces(
    group: int, prefix: np.ndarray, continuations: Sequence[np.ndarray], scorer: Scorer
) -> Iterator[Piece]:
    """Divide a group by what is left of its prefix, and where it exceeds a batch."""
    by_room: defaultdict[int, list[int]] = defaultdict(list)
    for member, ids in enumerate(continuations):
        if len(ids) > scorer.context:
            raise InputError(
                f"continuation {member} of group {group} has {len(ids)} tokens, but "
                f"the context is {scorer.context}; score fewer of them"
            )
        if len(ids):
            by_room[min(len(prefix), scorer.context - len(ids))].append(member)
    for room, members in by_room.items():
        piece = Piece(
            group=group,
            prefix=prefix[len(prefix) - room :],
            continuations=[continuations[member] for member in members],
            members=members,
        )
        yield from _within_batches(piece, scorer.batch_tokens)


def _within_batches(piece: Piece, batch_tokens: int) -> Iterator[Piece]:
    """Divide a piece where it exceeds a batch."""
    begin = 0
    prefix_width = 1 + len(piece.prefix)
    width = prefix_width
    for end, ids in enumerate(piece.continuations):
        own_width = len(ids) - 1
        width += own_width
        if width > batch_tokens and end > begin:
            yield piece.part(slice(begin, end))
            begin = end
            width = prefix_width + own_width
    yield piece.part(slice(begin, None))


def _scored(scorer: Scorer, pieces: list[Piece]) -> Iterator[ScoredContinuation]:
    """Score together the pieces whose prefix can be shared, and the others one by one."""
    if not isinstance(scorer, TransformersScorer):
        yield from _plain(scorer, pieces)
        return
    sequences: list[np.ndarray] = []
    for piece in pieces:
        sequences += [piece.prefix, *piece.continuations]
    scorer.require_known_tokens(sequences)
    reach = _reach(scorer)
    able: list[Piece] = []
    others: list[Piece] = []
    for piece in pieces:
        if len(piece.members) > 1 and piece.span <= reach:
            able.append(piece)
        else:
            others.append(piece)
    if able and _agrees(scorer, able):
        yield from _together(scorer, able)
        yield from _plain(scorer, others)
    else:
        yield from _plain(scorer, pieces)


def _reach(scorer: TransformersScorer) -> int:
    """Return the inputs among which every token sees all before it."""
    config = scorer.config.get_text_config()
    given = [getattr(config, name, None) for name in WINDOWS]
    # Architectures without windows take any value of a config.json.
    windows = [window for window in given if type(window) is int and window > 0]
    return min([scorer.context, *windows])


def _plain(scorer: Scorer, pieces: list[Piece]) -> Iterator[ScoredContinuation]:
    """Score each continuation behind a copy of its prefix."""
    tokens = sum(piece.span * len(piece.continuations) for piece in pieces)
    parts = 1 + tokens // (PLAIN_BATCHES * scorer.batch_tokens)
    for first in range(parts):
        yield from _concatenated(scorer, pieces[first::parts])


def _concatenated(scorer: Scorer, pieces: list[Piece]) -> Iterator[ScoredContinuation]:
    """Score the concatenations of prefixes and continuations."""
    # Of each sequence: piece, number of the continuation.
    owners: list[tuple[Piece, int]] = []
    sequences: list[np.ndarray] = []
    firsts: list[int] = []
    for piece in pieces:
        for member, ids in zip(piece.members, piece.continuations, strict=True):
            owners.append((piece, member))
            sequences.append(np.concatenate([piece.prefix, ids]))
            firsts.append(len(piece.prefix))
    for number, values in scorer.token_logprobs(sequences, firsts):
        piece, member = owners[number]
        yield piece.group, member, values[firsts[number] :]


def _agrees(scorer: TransformersScorer, pieces: list[Piece]) -> bool:
    """Return whether sharing gives the numbers of plain scoring, on the largest pieces so far.

    Whatever an architecture does with positions, windows, states, masks and caches
    shows in the numbers, or as an error.
    """
    agreed = agreement.agreed_size(scorer)
    if agreed is None or not _can_share(scorer):
        return False
    longest = max(pieces, key=lambda piece: piece.span)
    widest = max(pieces, key=lambda piece: piece.width)
    size = (max(longest.span, agreed[0]), max(widest.width, agreed[1]))
    if size == agreed:
        return True
    most_padded = min(pieces, key=lambda piece: piece.span)
    trial = {id(piece): piece for piece in (longest, widest, most_padded)}
    agrees = _differ_little(scorer, list(trial.values()))
    agreement.remember(scorer, size if agrees else None)
    return agrees


def _can_share(scorer: TransformersScorer) -> bool:
    """Return whether the network takes a mask, positions and keys from outside."""
    config = scorer.model.config
    if config._attn_implementation not in ATTENTIONS:
        return False
    if config.get_text_config().model_type in BY_INDEX:
        return False
    arguments = signature(scorer.model.base_model.forward).parameters.keys()
    return arguments >= ARGUMENTS


def _differ_little(scorer: TransformersScorer, pieces: list[Piece]) -> bool:
    """Compare the first and the last continuation of each piece, scored either way."""
    ends = [piece.part(slice(None, None, len(piece.members) - 1)) for piece in pieces]
    plain = _by_place(_plain(scorer, ends))
    try:
        shared = _by_place(_together(scorer, pieces))
    except Exception:  # architectures refuse what they do not know in many ways
        return False
    errors = [np.abs(shared[place] - values) for place, values in plain.items()]
    if scorer.dtype == torch.float32:
        return all(error.max() <= FLOAT32_NATS for error in errors)
    return all(error.mean() <= ROUGH_NATS for error in errors)


def _by_place(scored: Iterator[ScoredContinuation]) -> dict[tuple[int, int], np.ndarray]:
    """Return the values by group and number of the continuation."""
    return {(group, member): values for group, member, values in scored}


def _together(scorer: TransformersScorer, pieces: list[Piece]) -> Iterator[ScoredContinuation]:
    """Score pieces in batches, each prefix read once."""
    windows = [Window(number, 0, 0, piece.width) for number, piece in enumerate(pieces)]

    def forward(batch: list[Window]) -> Tensor:
        return _forward(scorer, [pieces[window.sequence] for window in batch])

    for batch, values in scorer.results(windows, forward, keeps_keys=True):
        start = 0
        for window in batch:
            piece = pieces[window.sequence]
            for member, ids in zip(piece.members, piece.continuations, strict=True):
                stop = start + len(ids)
                yield piece.group, member, values[start:stop]
                start = stop


def _forward(scorer: TransformersScorer, pieces: list[Piece]) -> Tensor:
    """Return the log-probabilities, float32, of the tokens of all continuations, in order."""
    try:
        return _run(scorer, pieces)
    except RuntimeError as error:
        divisible = len(pieces) == 1 and len(pieces[0].members) > 1
        if not divisible or not is_out_of_memory(error):
            raise
    # Outside of the except block, whose traceback holds the tensors.
    halves = [_forward(scorer, [half]) for half in pieces[0].halves()]
    return torch.cat(halves)


@torch.inference_mode()
def _run(scorer: TransformersScorer, pieces: list[Piece]) -> Tensor:
    """Read the prefixes, padded on the right, then all rows, each of which continues one."""
    keys = SharedKeys()
    widths = np.array([1 + len(piece.prefix) for piece in pieces])
    hidden = _read_prefixes(scorer, pieces, widths, keys)
    firsts = padded([_first_tokens(piece) for piece in pieces], 0)
    values = [scorer.head(hidden, scorer.send(firsts).to(hidden.device)).flatten()]
    rows: list[ContinuationRow] = []
    for number, piece in enumerate(pieces):
        rows += [ContinuationRow(number, continuations) for continuations in piece.rows()]
    if rows:
        values.append(_continue_rows(scorer, rows, widths, keys))
    order = _order_of_tokens(pieces, firsts)
    return torch.cat(values).index_select(0, scorer.send(order).to(hidden.device))


def _first_tokens(piece: Piece) -> list[int]:
    """Return the first token of each continuation, which the prefix alone predicts."""
    return [int(ids[0]) for ids in piece.continuations]


def _read_prefixes(
    scorer: TransformersScorer, pieces: list[Piece], widths: np.ndarray, keys: SharedKeys
) -> Tensor:
    """Fill the keys, and return the hidden state at the end of each prefix."""
    prefixes = padded([piece.prefix for piece in pieces], scorer.start)
    output = scorer.body(
        input_ids=scorer.send(np.insert(prefixes, 0, scorer.start, axis=1)),
        past_key_values=keys,
        use_cache=True,
    )
    hidden: Tensor = output.last_hidden_state
    numbers = torch.arange(len(pieces), device=hidden.device)
    ends = scorer.send(widths).to(hidden.device) - 1
    return hidden[numbers, ends]


def _continue_rows(
    scorer: TransformersScorer, rows: list[ContinuationRow], widths: np.ndarray, keys: SharedKeys
) -> Tensor:
    """Return the log-probabilities of all tokens but the first of each continuation, in order."""
    owners = np.array([row.piece for row in rows])
    continuations: list[np.ndarray] = []
    for row in rows:
        continuations += row.continuations
    lengths = np.array([len(ids) - 1 for ids in continuations])
    row_of = np.repeat(np.arange(len(rows)), [len(row.continuations) for row in rows])
    row_lengths = np.bincount(row_of, weights=lengths)
    filled = np.arange(row_lengths.max()) < row_lengths[:, None]
    inputs = np.concatenate([ids[:-1] for ids in continuations])
    behind_prefix = np.repeat(widths[owners[row_of]], lengths) + positions(lengths)
    blocks = np.repeat(np.arange(len(continuations)), lengths)
    targets = np.concatenate([ids[1:] for ids in continuations])
    keys.owners = scorer.send(owners)
    prefix_keys, _ = next(iter(keys.kept.values()))
    mask = attention_mask(
        scorer.send(_in_rows(filled, blocks, -1)),
        scorer.send(widths[owners]),
        int(widths.max()),
        prefix_keys.dtype,  # that in which the network attends
    )
    output = scorer.body(
        input_ids=scorer.send(_in_rows(filled, inputs, scorer.start)),
        position_ids=scorer.send(_in_rows(filled, behind_prefix, 0)),
        attention_mask=mask,
        past_key_values=keys,
        use_cache=True,
    )
    hidden = output.last_hidden_state.flatten(0, 1)
    within = scorer.send(np.flatnonzero(filled)).to(hidden.device)
    hidden = hidden.index_select(0, within)
    return scorer.head(hidden, scorer.send(targets).to(hidden.device))


def _in_rows(filled: np.ndarray, values: np.ndarray, padding: int) -> np.ndarray:
    """Return the values, row after row, where a table is filled, and the padding elsewhere."""
    table = np.full(filled.shape, padding, dtype=np.int64)
    table[filled] = values
    return table


def _order_of_tokens(pieces: list[Piece], firsts: np.ndarray) -> np.ndarray:
    """Return where the value of each token stands, continuation after continuation.

    The values are those of the first tokens, with padding, and then those of all
    others.
    """
    further: list[int] = []
    for piece in pieces:
        further += [len(ids) - 1 for ids in piece.continuations]
    lengths = np.array(further, dtype=np.int64)
    counts = np.array([len(piece.continuations) for piece in pieces])
    of_firsts = np.flatnonzero(np.arange(firsts.shape[1]) < counts[:, None])
    of_others = np.arange(firsts.size, firsts.size + lengths.sum())
    begins = np.cumsum(lengths) - lengths
    return np.insert(of_others, begins, of_firsts)
