"""The layout of shared prefixes against what each token ought to see."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from contamination.scoring.prefix import Piece, SharedKeys, attention_mask, lay_out

START = 1000

tokens = st.integers(1, 99)


@st.composite
def piece(draw) -> Piece:
    prefix = draw(st.lists(tokens, max_size=12))
    continuations = draw(st.lists(st.lists(tokens, min_size=1, max_size=5), min_size=1, max_size=9))
    ids = [np.array(c, dtype=np.int32) for c in continuations]
    return Piece(0, np.array(prefix, dtype=np.int32), ids, list(range(len(ids))))


def a_piece(prefix: int, lengths: list[int]) -> Piece:
    ids = [np.arange(1, n + 1, dtype=np.int32) for n in lengths]
    return Piece(0, np.arange(prefix, dtype=np.int32), ids, list(range(len(ids))))


@given(st.lists(piece(), min_size=1, max_size=4))
def test_every_token_is_predicted_from_its_prefix_and_what_came_before_it(pieces):
    layout = lay_out(pieces, START)
    rows, length = layout.inputs.shape
    longest = layout.prefixes.shape[1]
    mask = attention_mask(
        torch.from_numpy(layout.blocks),
        torch.from_numpy(layout.widths[layout.owners]),
        longest,
        torch.float32,
    )
    assert mask.shape == (rows, 1, length, longest + length)
    assert set(mask.unique().tolist()) <= {0.0, torch.finfo(torch.float32).min}
    seen = (mask[:, 0] == 0).numpy()
    assert seen.any(axis=2).all()  # padding too, or it would become NaN
    predicted = []  # (tokens before, token), first those that the prefixes predict
    for i, firsts in enumerate(layout.firsts):
        before = layout.prefixes[i, : layout.widths[i]].tolist()
        predicted += [(before, token) for token in firsts.tolist()]
    for where, target in zip(layout.scored.tolist(), layout.targets.tolist(), strict=True):
        row, column = divmod(where, length)
        ids = np.append(layout.prefixes[layout.owners[row]], layout.inputs[row])
        places = np.append(np.arange(longest), layout.positions[row])
        visible = seen[row, column]
        assert places[visible].tolist() == list(range(visible.sum()))
        assert ids[longest + column] == ids[visible][-1]
        predicted.append((ids[visible].tolist(), target))
    expected = [
        ([START, *piece.prefix.tolist(), *ids[:k].tolist()], ids[k])
        for piece in pieces
        for ids in piece.continuations
        for k in range(len(ids))
    ]
    assert [predicted[k] for k in layout.order] == expected


@given(piece())
def test_rows_hold_the_continuations_in_order(piece):
    held = [ids.tolist() for row in piece.rows() for ids in row]
    assert held == [ids.tolist() for ids in piece.continuations if len(ids) > 1]
    assert all(piece.rows())


@pytest.mark.parametrize(
    ("prefix", "count", "length", "rows"),
    [
        (800, 19, 8, 1),  # to copy the prefix costs more than products that are masked
        (20, 19, 32, 19),  # the other way round
        (200, 19, 32, 19),  # 2 in a row would leave 10 rows with 1 place empty
        (800, 49, 32, 7),  # 7 times 7
        (800, 3, 8, 1),
        (0, 1, 8, 1),
        (20, 5, 1, 0),  # the prefix predicts them all
    ],
)
def test_rows_are_as_long_as_the_prefix_is_worth(prefix, count, length, rows):
    assert len(a_piece(prefix, [length] * count).rows()) == rows


def test_sizes_of_a_piece():
    piece = a_piece(7, [3, 1, 5])
    assert piece.width == 1 + 7 + 2 + 0 + 4
    assert piece.span == len([START, *piece.prefix, *piece.continuations[2][:-1]])
    part = piece.part(slice(1, None))
    assert [len(ids) for ids in part.continuations] == [1, 5]
    assert part.members == [1, 2]
    assert part.prefix is piece.prefix


def test_keys_of_a_prefix_come_before_those_of_its_rows_in_every_layer():
    shared = SharedKeys()
    prefixes = {layer: torch.randn(2, 3, 5, 4, dtype=torch.float64) for layer in (0, 1)}
    for layer, keys in prefixes.items():
        kept = shared.update(keys, -keys, layer)
        assert kept[0] is keys
    assert shared.dtype is torch.float64
    shared.owners = torch.tensor([1, 0, 1])
    for _ in range(2):  # nothing of a row stays behind
        for layer, keys in prefixes.items():
            new = torch.randn(3, 3, 2, 4, dtype=torch.float64)
            both, values = shared.update(new, -new, layer)
            torch.testing.assert_close(both, torch.cat([keys[[1, 0, 1]], new], dim=2))
            torch.testing.assert_close(values, -both)
