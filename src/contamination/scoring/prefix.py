"""Many continuations of one prefix, which is read once.

The successor statistic needs log p(first b tokens of x_j | x_i) for all ordered pairs in a shard:
each example is the prefix of all the others. A model that runs here reads it once (see `packing`);
elsewhere, and wherever that gives other numbers, each pair is a sequence of its own.
"""

from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Sequence
from inspect import signature
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from contamination.errors import InputError
from contamination.scoring.batching import Job
from contamination.scoring.contract import Scorer
from contamination.scoring.load_errors import is_out_of_memory
from contamination.scoring.local import TransformersScorer
from contamination.scoring.packing import Piece, SharedKeys, attention_mask, lay_out
from contamination.scoring.windows import Window

Scored = tuple[Piece, list[np.ndarray]]

ATTENTIONS = ("sdpa", "eager")  # that take a mask for every pair of tokens
ARGUMENTS = {"attention_mask", "position_ids", "past_key_values"}  # others are silently ignored
WINDOWS = ("sliding_window", "attention_chunk_size")  # as configurations call them
BY_INDEX = ("gpt_neo",)  # have windows of their own besides the mask
FLOAT32_NATS = 1e-3  # most that a token's log-probability may differ from plain scoring
ROUGH_NATS = 0.1  # its average over a continuation, where rounding depends on the batch
PLAIN_BATCHES = 64  # of concatenations that exist at a time

# (span, width) up to which sharing was found to give the right numbers; None where it does not.
_agreed: WeakKeyDictionary[TransformersScorer, tuple[int, int] | None] = WeakKeyDictionary()


def continuation_logprobs(
    scorer: Scorer, groups: Sequence[tuple[np.ndarray, Sequence[np.ndarray]]]
) -> Iterator[tuple[int, list[np.ndarray]]]:
    """Yield (index of the group, log-probabilities of each of its continuations, float32, nats).

    A token is conditioned on the start token, the prefix, and the tokens of its continuation before
    it. Of a prefix that leaves no room for a continuation in the context, the last
    `scorer.context - len(continuation)` tokens count: a value depends on nothing else in the group.

    Parameters
    ----------
    groups : pairs of ids (integers): a prefix and its continuations, any of which may be empty. The
        order of results is free.

    Raises
    ------
    InputError
        A continuation is longer than the context, or what `scorer.token_logprobs` raises.
    """
    pieces = [
        piece
        for group, (prefix, continuations) in enumerate(groups)
        for piece in _pieces(group, prefix, continuations, scorer)
    ]
    found = [[np.empty(0, dtype=np.float32) for _ in ids] for _, ids in groups]
    missing = Counter(piece.group for piece in pieces)
    for group, values in enumerate(found):
        if not missing[group]:
            yield group, values
    for piece, scored in _scored(scorer, pieces):
        for member, value in zip(piece.members, scored, strict=True):
            found[piece.group][member] = value
        missing[piece.group] -= 1
        if not missing[piece.group]:
            yield piece.group, found[piece.group]


def _pieces(
    group: int, prefix: np.ndarray, continuations: Sequence[np.ndarray], scorer: Scorer
) -> Iterator[Piece]:
    """Divide a group by what is left of its prefix, and where it exceeds a batch."""
    by_room: defaultdict[int, list[int]] = defaultdict(list)
    for member, ids in enumerate(continuations):
        if len(ids) > scorer.context:
            raise InputError(
                f"continuation {member} of group {group} has {len(ids)} tokens, but the context "
                f"is {scorer.context}; score fewer of its first tokens"
            )
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
    if isinstance(scorer, TransformersScorer):
        pieces = yield from _shared(scorer, pieces)
    yield from _plain(scorer, pieces)


def _plain(scorer: Scorer, pieces: list[Piece]) -> Iterator[Scored]:
    """Score each continuation behind a copy of its prefix."""
    tokens = sum(piece.span * len(piece.continuations) for piece in pieces)
    parts = 1 + tokens // (PLAIN_BATCHES * scorer.batch_tokens)
    for part in (pieces[i::parts] for i in range(parts)):
        owners = [(i, k) for i, piece in enumerate(part) for k in range(len(piece.members))]
        sequences, wanted = [], []
        for i, k in owners:
            prefix, ids = part[i].prefix, part[i].continuations[k]
            sequences.append(np.concatenate([prefix, ids]))
            wanted.append(np.arange(len(prefix) + len(ids)) >= len(prefix))
        found = [[np.empty(0, dtype=np.float32)] * len(piece.members) for piece in part]
        missing = Counter(i for i, _ in owners)
        for number, values in scorer.token_logprobs(sequences, wanted):
            i, k = owners[number]
            found[i][k] = values[len(part[i].prefix) :]
            missing[i] -= 1
            if not missing[i]:
                yield part[i], found[i]


def _shared(
    scorer: TransformersScorer, pieces: list[Piece]
) -> Generator[Scored, None, list[Piece]]:
    """Score the pieces whose prefix can be shared; return the others."""
    scorer.require_known_tokens([ids for p in pieces for ids in (p.prefix, *p.continuations)])
    windows = [getattr(scorer.config.get_text_config(), name, None) for name in WINDOWS]
    reach = min([scorer.context, *filter(None, windows)])
    able = [piece for piece in pieces if len(piece.members) > 1 and piece.span <= reach]
    if not able or not _agrees(scorer, able):
        return pieces
    yield from _together(scorer, able)
    return [piece for piece in pieces if len(piece.members) == 1 or piece.span > reach]


def _agrees(scorer: TransformersScorer, pieces: list[Piece]) -> bool:
    """Whether sharing gives the numbers of plain scoring; tried on the largest pieces so far.

    Positions counted by index, windows and states of all kinds, masks or caches that are refused:
    whatever an architecture does shows in the numbers, or as an error.
    """
    known = _agreed.get(scorer, (0, 0))
    if known is None or not _takes_masks(scorer):
        return False
    longest, widest = max(pieces, key=lambda p: p.span), max(pieces, key=lambda p: p.width)
    if longest.span > known[0] or widest.width > known[1]:
        padded = min(pieces, key=lambda p: p.span)
        trial = {id(piece): piece for piece in (longest, widest, padded)}
        right = _differ_little(scorer, list(trial.values()))
        size = max(longest.span, known[0]), max(widest.width, known[1])
        _agreed[scorer] = size if right else None
        return right
    return True


def _takes_masks(scorer: TransformersScorer) -> bool:
    """Whether the network at least accepts a mask for every pair of tokens, and positions."""
    config = scorer.model.config
    return (
        config._attn_implementation in ATTENTIONS
        and config.get_text_config().model_type not in BY_INDEX
        and signature(scorer.model.base_model.forward).parameters.keys() >= ARGUMENTS
    )


def _differ_little(scorer: TransformersScorer, pieces: list[Piece]) -> bool:
    """Compare the first and the last continuation of each piece, scored either way."""
    pieces = [piece._replace(group=i) for i, piece in enumerate(pieces)]
    ends = [piece.part(slice(None, None, len(piece.members) - 1)) for piece in pieces]
    plain = {piece.group: values for piece, values in _plain(scorer, ends)}
    try:
        shared = {piece.group: values for piece, values in _together(scorer, pieces)}
    except Exception:  # of any class: architectures refuse what they do not know in many ways
        return False
    errors = [
        np.abs(shared[i][k] - expected)
        for i in plain
        for k, expected in zip((0, -1), plain[i], strict=True)
    ]
    if scorer.dtype == torch.float32 and scorer.source.bits is None:
        return all(error.max() <= FLOAT32_NATS for error in errors)
    return all(error.mean() <= ROUGH_NATS for error in errors)


def _together(scorer: TransformersScorer, pieces: list[Piece]) -> Iterator[Scored]:
    """Score pieces in batches, each prefix read once."""

    def forward(batch: list[Job]) -> Tensor:
        return _forward(scorer, [pieces[job.sequence] for job in batch])

    jobs = [Job(i, Window(0, 0, piece.width)) for i, piece in enumerate(pieces)]
    for batch, values in scorer.results(jobs, forward):
        done = [pieces[job.sequence] for job in batch]
        lengths = [len(ids) for piece in done for ids in piece.continuations]
        parts = iter(np.split(values, np.cumsum(lengths)[:-1]))
        for piece in done:
            yield piece, [next(parts) for _ in piece.members]


def _forward(scorer: TransformersScorer, pieces: list[Piece]) -> Tensor:
    """Log-probabilities, float32, of the tokens of all continuations, in order."""
    try:
        return _run(scorer, pieces)
    except RuntimeError as error:
        if len(pieces) > 1 or len(pieces[0].members) == 1 or not is_out_of_memory(error):
            raise
    half = len(pieces[0].members) // 2
    parts = [pieces[0].part(slice(half)), pieces[0].part(slice(half, None))]
    return torch.cat([_forward(scorer, [part]) for part in parts])


@torch.inference_mode()
def _run(scorer: TransformersScorer, pieces: list[Piece]) -> Tensor:
    layout = lay_out(pieces, scorer.start)
    keys = SharedKeys()
    hidden = scorer.body(
        input_ids=scorer.send(layout.prefixes), past_key_values=keys, use_cache=True
    ).last_hidden_state
    device = hidden.device
    last = scorer.send(layout.widths).to(device) - 1
    hidden = hidden[torch.arange(len(pieces), device=device), last]
    values = scorer.head(hidden, scorer.send(layout.firsts).to(device)).flatten()
    if len(layout.inputs):
        keys.owners = scorer.send(layout.owners)
        mask = attention_mask(
            scorer.send(layout.blocks),
            scorer.send(layout.widths[layout.owners]),
            layout.prefixes.shape[1],
            keys.dtype,
        )
        hidden = scorer.body(
            input_ids=scorer.send(layout.inputs),
            position_ids=scorer.send(layout.positions),
            attention_mask=mask,
            past_key_values=keys,
            use_cache=True,
        ).last_hidden_state
        hidden = hidden.flatten(0, 1).index_select(0, scorer.send(layout.scored).to(device))
        rest = scorer.head(hidden, scorer.send(layout.targets).to(device))
        values = torch.cat([values, rest])
    return values.index_select(0, scorer.send(layout.order).to(device))
