"""A notebook's passes over texts, distributed tasks and a failure, in one process or several."""

from pathlib import Path
from unittest.mock import patch

import numpy as np
from transformers import AutoTokenizer

from contamination.errors import InputError
from contamination.membership.stored import stored_scores
from contamination.scoring import loading, local, room
from contamination.scoring.local import TransformersScorer
from contamination.scoring.processes import distribute, gather, processes
from fakes.data_fixtures import WORDS
from fakes.made_up_scorer import MadeUpScorer

COLUMNS = ("loss", "min_k_20", "min_k_pp_20")
TASKS = 5


def texts() -> list[str]:
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(WORDS, size=rng.integers(4, 12))) for _ in range(40)]


@patch.object(local, "fits_surely", lambda *_: False)  # all weights are counted
def run(model: Path, folder: Path) -> dict:
    """Score texts, deal tasks and fail in one process; return what this process was given."""
    scorer = TransformersScorer(model, batch_tokens=64)
    table = stored_scores(folder / "parts", scorer, texts(), columns=COLUMNS, neighbours=1, seed=3)
    rank = processes().process_index
    dealt = distribute("square", [lambda i=i: (i * i, rank) for i in range(TASKS)])

    def fails_last() -> None:
        if rank == processes().num_processes - 1:
            raise InputError("no such model")

    # Nobody goes on alone: who comes later meets the others where they are.
    problems = []
    for _ in range(2):
        try:
            gather(fails_last)
        except InputError as error:
            problems.append(str(error))
    # A model that is spread over all devices works in the first process.
    spread = MadeUpScorer(AutoTokenizer.from_pretrained(model))
    spread.spread = True
    stored_scores(folder / "spread", spread, texts(), columns=("loss",))
    # One that is in memory once, but not once for each process.
    weights = loading.count_parameters(scorer.config) * scorer.dtype.itemsize
    memory = [int(1.5 * weights / room.ROOM)]
    with patch.object(room, "memories", lambda device: memory):
        large = TransformersScorer(model, batch_tokens=64)
        stored_scores(folder / "large", large, texts(), columns=("loss",))
    return {
        "large": (large.spread, "model" in vars(large)),
        "table": table.to_dict("list"),
        "dealt": [list(one) for one in dealt],
        "problems": problems,
        "spread": spread.scored,
    }
