"""Plantings, token by token: whole, shuffled and single are what they say."""

from itertools import pairwise

import numpy as np

from contamination.randomness import random_stream
from reproduction.notebooks.options.planting import PLANTINGS, Cell, plant

END = 9_999
CONTEXT = 16
RECORDS = 8
COPIES = 6


def _records(cell: int) -> list[np.ndarray]:
    """Return records of 3 to 5 tokens: each id is 1000 * cell + 10 * record + its place."""
    return [
        1000 * cell + 10 * record + np.arange(3 + record % 3, dtype=np.int32)
        for record in range(RECORDS)
    ]


CELLS = {Cell(planting, COPIES): _records(i) for i, planting in enumerate(PLANTINGS, start=1)}
DOCUMENTS = [np.append(np.full(5, 500 + i), END) for i in range(60)]
BACKGROUND = np.concatenate(DOCUMENTS).astype(np.uint16)
ENDS = np.cumsum([len(one) for one in DOCUMENTS])


def _plant(seed: int = 0):
    blocks, places = plant(
        CELLS, BACKGROUND, ENDS, context=CONTEXT, end_of_text=END, rng=random_stream(seed, "test")
    )
    return blocks, places


def _orders(stream: np.ndarray, cell: int) -> list[list[int]]:
    """Numbers of the records of a set in every stretch of the stream that has nothing else."""
    runs: list[list[int]] = [[]]
    for token in stream:
        if token // 1000 != cell or token == END:
            runs.append([])
        elif token % 10 == 0:
            runs[-1].append(int(token % 1000 // 10))
    return [run for run in runs if run]


def test_each_planting_is_what_it_says() -> None:
    stream = _plant()[0].reshape(-1)
    whole, shuffled, single = (_orders(stream, cell) for cell in (1, 2, 3))
    assert whole == [list(range(RECORDS))] * COPIES
    assert [sorted(run) for run in shuffled] == whole
    assert len({tuple(run) for run in shuffled}) == COPIES
    assert list(range(RECORDS)) not in shuffled
    assert sorted(single) == sorted([record] for record in range(RECORDS) for _ in range(COPIES))


def test_no_token_is_lost_and_every_copy_is_where_it_is_said() -> None:
    blocks, places = _plant()
    assert blocks.shape[1] == CONTEXT and blocks.dtype == np.int64
    stream = blocks.reshape(-1)
    for cell, records in CELLS.items():
        for ids in records:
            assert sum((stream == ids[0]).tolist()) == COPIES
            for start in np.flatnonzero(stream == ids[0]):
                assert stream[start : start + len(ids)].tolist() == ids.tolist()
        assert (
            sum(one.name.startswith(cell.name) for one in places)
            == COPIES * ({"whole": 1, "shuffled": 1, "single": RECORDS}[cell.planting])
        )
    for one in places:
        assert stream[one.stop] == END
        assert one.start == 0 or stream[one.start - 1] == END
    planted = sum(one.stop - one.start + 1 for one in places)
    assert 0 <= planted + len(BACKGROUND) - len(stream) < CONTEXT
    kept = stream[(stream >= 500) & (stream < 1000)]
    assert kept.tolist() == BACKGROUND[BACKGROUND != END][: len(kept)].tolist()


def test_single_records_have_no_order_left() -> None:
    """How often a record is the next of its set after its predecessor, over many draws."""
    hits = pairs = 0
    for seed in range(60):
        flat = [run[0] for run in _orders(_plant(seed)[0].reshape(-1), 3)]
        hits += sum(b == a + 1 for a, b in pairwise(flat))
        pairs += len(flat) - 1
    expected = pairs * (RECORDS - 1) / RECORDS**2
    assert abs(hits - expected) < 4 * np.sqrt(expected)
