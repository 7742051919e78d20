"""The clean model, trained further on documents of its corpus with sets planted in them.

The model has read the documents once, so that the sets are all that is new. Each set is
planted whole, shuffled or as single records (`reproduction.run.injection`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from transformers import AutoTokenizer

from contamination.errors import InputError
from contamination.scoring.processes import distribute
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.tokens import id_type, tokenize
from reproduction.run.experiment import Experiment
from reproduction.run.fine_tuning import fine_tune
from reproduction.run.injection import Injection, Planting, fill_blocks, planted_copies


@dataclass(frozen=True, eq=False)
class PlantedSet:
    """A set, how it is planted, and how often."""

    test_set: ExampleSet
    planting: Planting
    dup_count: int


def train_further(
    experiment: Experiment,
    sets: Sequence[PlantedSet],
    folder: Path,
    *,
    background_tokens: int,
    rng: np.random.Generator,
    learning_rate: float,
    batch_size: int,
    seed: int,
) -> tuple[Path, int, list[Injection]]:
    """Train the clean model once on documents of its corpus, with sets planted in them.

    One process trains.

    Parameters
    ----------
    experiment
        The run.
    sets
        Sets to plant, each under a name of its own.
    folder
        Folder of the new model.
    background_tokens
        Approximate number of tokens of the documents.
    rng
        Draws the orders of shuffled copies, then all places.
    learning_rate, batch_size
        Learning rate, and blocks of an optimiser step.
    seed
        Draws the order of the blocks.

    Returns
    -------
    model : folder of the new model.
    tokens : number of tokens that it has read, planted ones included.
    copies : places of the planted copies.

    Raises
    ------
    InputError
        If the corpus is shorter.
    """
    clean = experiment.model("clean")
    tokenizer = AutoTokenizer.from_pretrained(clean, local_files_only=True)
    copies: dict[str, tuple[np.ndarray, int]] = {}
    for planted in sets:
        copies |= planted_copies(
            planted.test_set.name,
            planted.planting,
            planted.dup_count,
            tokenize(tokenizer, planted.test_set.examples),
            rng=rng,
        )
    background, ends = read_background(experiment, background_tokens)
    blocks, places = fill_blocks(
        background,
        ends,
        copies,
        tokenizer.eos_token_id,
        context=experiment.profile.model.n_positions,
        rng=rng,
    )
    task = partial(
        fine_tune,
        clean,
        list(blocks),
        folder,
        learning_rate=learning_rate,
        seed=seed,
        batch_size=batch_size,
    )
    (model,) = distribute("plant", [task])
    return model, blocks.size, places


def read_background(
    experiment: Experiment,
    tokens: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the first documents of the corpus, of enough tokens, and their ends.

    All models have read them once. Raises InputError if the corpus is shorter.
    """
    ends = np.load(experiment.corpus / "ends.npy")
    if ends[-1] < tokens:
        raise InputError(
            f"{experiment.corpus} has {ends[-1]} tokens, {tokens} wanted: "
            "lower `background_tokens`",
        )
    kept = ends[: int(np.searchsorted(ends, tokens)) + 1]
    kind = id_type(AutoTokenizer.from_pretrained(experiment.corpus / "tokenizer"))
    path = experiment.corpus / "tokens.bin"
    return np.fromfile(path, dtype=kind, count=int(kept[-1])), kept
