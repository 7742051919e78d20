"""A small store of made-up numbers."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from contamination.scoring.store import store_of
from contamination.scoring.store_format import Header

HEADER = Header(
    model="m",
    model_revision="weights-1",
    dataset="d",
    dataset_revision="data-1",
    template="text/1",
    seed=1,
    shards=2,
    example_tokens=(3, 1, 2, 4, 2),  # shards [0, 3) and [3, 5)
)
SUCCESSORS = replace(HEADER, kind="successors", tokens_per_example=2)
# Each makes a header of something else.
OTHERS: list[dict] = [
    {"model": "n"},
    {"model_revision": "weights-2"},
    {"dataset": "e"},
    {"dataset_revision": "data-2"},
    {"template": "text/2"},
    {"seed": 2},
    {"shards": 1},
    {"example_tokens": (3, 1, 2, 4, 3)},
    {"kind": "successors"},
    {"tokens_per_example": 7},
    {"summed": True},
]


def unit(index: tuple[int, int], header: Header = HEADER, seed: int = 0):
    """Return what `append` takes for a unit: its examples in order, and random log-probs."""
    rng = np.random.default_rng([seed, *index])
    examples = store_of(Path(), header).examples(index)
    return index, examples, rng.normal(-3, 2, header.stored[examples].sum()).astype(np.float32)


def units(permutations: int, header: Header = HEADER):
    places = store_of(Path(), header).places(permutations=permutations)
    return [unit(index, header) for index in places]


def contents(directory) -> dict[str, bytes]:
    """Return what lies in a store, but for the records of runs and what was set aside."""
    hidden = ("run-*", "*.damaged")
    files = (path for path in directory.iterdir() if not any(map(path.match, hidden)))
    return {path.name: path.read_bytes() for path in sorted(files)}
