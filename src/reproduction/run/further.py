"""Text for training a model further: documents of its corpus, with sets planted in them.

The model has read the documents once, so that the sets are all that is new. Each set is
planted whole, shuffled or as single records (`reproduction.run.injection`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from transformers import AutoTokenizer

from contamination.errors import InputError
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.tokens import id_type, tokenize
from reproduction.run.experiment import Experiment
from reproduction.run.injection import Injection, Planting, fill_blocks, planted_copies


@dataclass(frozen=True, eq=False)
class PlantedSet:
    """A set, how it is planted, and how often."""

    test_set: ExampleSet
    planting: Planting
    dup_count: int


def plant_in_corpus(
    experiment: Experiment,
    model: Path,
    sets: Sequence[PlantedSet],
    *,
    background_tokens: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, list[Injection]]:
    """Plant sets in documents of the corpus; return blocks of the context, and the copies.

    Parameters
    ----------
    experiment
        The run.
    model
        Folder of the model whose tokenizer reads the sets.
    sets
        Sets to plant, each under a name of its own.
    background_tokens
        Approximate number of tokens of the documents.
    rng
        Draws the orders of shuffled copies, then all places.

    Raises
    ------
    InputError
        If the corpus is shorter.
    """
    tokenizer = AutoTokenizer.from_pretrained(model, local_files_only=True)
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
    return fill_blocks(
        background,
        ends,
        copies,
        tokenizer.eos_token_id,
        context=experiment.profile.model.n_positions,
        rng=rng,
    )


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
