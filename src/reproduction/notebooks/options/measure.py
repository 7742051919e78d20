"""The passes of notebook 14: the clean model reads planted sets, then both score all of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from transformers import AutoTokenizer

from contamination.audit.battery import OPTION_TEST, TESTS
from contamination.errors import InputError
from contamination.randomness import random_stream
from contamination.scoring.local import TransformersScorer
from contamination.scoring.plan import plan_store
from contamination.scoring.processes import deal
from contamination.scoring.score import score, score_alternatives
from contamination.scoring.store import Store
from contamination.testsets.alternatives import Keep, option_alternatives
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.tokens import id_type, tokenize
from reproduction.notebooks.options import tables
from reproduction.notebooks.options.planting import Cell, item_sets, plant
from reproduction.run.experiment import Experiment
from reproduction.run.fine_tuning import fine_tune
from reproduction.run.injection import PLANTINGS

FOLDER = "options"  # of the model and the stores, in the build directory
OWN = Keep(habits=False)  # all may move: a seed has drawn every arrangement


def measure(
    experiment: Experiment,
    *,
    examples: int,
    dup_counts: Sequence[int],
    permutations: int,
    packages: Sequence[str],
    longest: int,
    background_tokens: int,
    learning_rate: float,
    batch_size: int,
) -> dict[str, pd.DataFrame]:
    """Plant a set for every planting and number of copies, and run both axes on all of them.

    Tables: `outcomes`, as of `options_table`; `text` (tokens of the text that was read, planted: so
    many of them of items, places: of copies in it); `items` (item: the first example of every set).
    """
    cells = [Cell(planting, count) for planting in PLANTINGS for count in dup_counts]
    sizes = {cell.name: examples for cell in cells}
    sets = item_sets(experiment, sizes, packages=packages, longest=longest)
    base, seed = experiment.model("clean"), experiment.profile.seed
    tokenizer = AutoTokenizer.from_pretrained(base, local_files_only=True)
    background, ends = read_background(experiment, background_tokens)
    blocks, injections = plant(
        {cell: tokenize(tokenizer, sets[cell.name].examples) for cell in cells},
        background,
        ends,
        context=experiment.profile.model.n_positions,
        end_of_text=tokenizer.eos_token_id,
        rng=random_stream(seed, "planting"),
    )
    folder = experiment.build / FOLDER
    rates: dict[str, Any] = {"learning_rate": learning_rate, "batch_size": batch_size}

    def make() -> None:
        fine_tune(base, list(blocks), folder / tables.PLANTED, epochs=1, seed=seed, **rates)

    deal("plant", [make])
    found = {}
    for model, directory in ((tables.PLANTED, folder / tables.PLANTED), (tables.CLEAN, base)):
        scorer = TransformersScorer(directory)
        for name, one in sets.items():
            place = folder / "stores" / model / name
            stores = score_axes(
                one, scorer, place, model=model, permutations=permutations, seed=seed
            )
            found[model, name] = tables.axis_outcomes(stores)
    planted = sum(one.stop - one.start for one in injections)
    facts = {"tokens": [blocks.size], "planted": [planted], "places": [len(injections)]}
    return {
        "outcomes": tables.options_table(cells, examples, found),
        "text": pd.DataFrame(facts),
        "items": pd.DataFrame({"item": [one.examples[0] for one in sets.values()]}),
    }


def read_background(experiment: Experiment, tokens: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first documents of the corpus, of so many tokens at least, and their ends.

    All models have read them once. Raises InputError if the corpus is shorter.
    """
    ends = np.load(experiment.corpus / "ends.npy")
    if ends[-1] < tokens:
        raise InputError(
            f"{experiment.corpus} has {ends[-1]} tokens, {tokens} wanted: lower `background_tokens`"
        )
    kept = ends[: int(np.searchsorted(ends, tokens)) + 1]
    kind = id_type(AutoTokenizer.from_pretrained(experiment.corpus / "tokenizer"))
    path = experiment.corpus / "tokens.bin"
    return np.fromfile(path, dtype=kind, count=int(kept[-1])), kept


def score_axes(
    test_set: ExampleSet,
    scorer: TransformersScorer,
    place: Path,
    *,
    model: str,
    permutations: int,
    seed: int,
) -> dict[str, Store]:
    """Score what both axes read of a set: pairs of records, and so many other arrangements each."""
    plan = plan_store(TESTS[tables.ORDER], len(test_set.examples), None)
    options = option_alternatives(test_set, permutations=permutations, seed=seed, keep=OWN)
    same: dict[str, Any] = {"model": model, "seed": seed, "replace": True}
    order = score(test_set, scorer, place / tables.ORDER, plan, permutations=0, **same)
    alternatives = score_alternatives(options, scorer, place / OPTION_TEST, **same)
    return {tables.ORDER: order, OPTION_TEST: alternatives}
