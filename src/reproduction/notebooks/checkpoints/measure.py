"""The passes of notebook 12: planted sets and their spans, by checkpoint.

Examples are the lines of the released files, as in the profile `checkpoints`
(data/README.md).
"""

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from contamination.audit.request import Request
from contamination.errors import InputError
from contamination.randomness import random_stream
from contamination.scoring.contract import Scorer
from contamination.scoring.models import ModelEntry
from contamination.scoring.plan import stores_of
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.tokens import tokenize
from reproduction.notebooks.checkpoints.settings import Settings
from reproduction.run.experiment import Experiment, named_models, parts_of
from reproduction.run.grid import ACCESS, Access, Row, grid, load_each

STORES = Path("stores") / "checkpoints"  # in the build directory
SHARDED = "sharded_exact"  # names the store that both tests on shards read
SPANS = 0  # in the place of a number of shards: spans are scored
CELLS = ("model", "dataset", "dup_count", "shards", "store", "status")
SCORES = ("model", "dataset", "dup_count", "score", "status")

Cell = tuple[str, int, ExampleSet]  # set, number of shards or SPANS, and its examples


def measure(
    experiment: Experiment,
    settings: Settings,
    access: Access = ACCESS,
) -> dict[str, pd.DataFrame]:
    """Score the sets in every number of shards, and the spans.

    Returns
    -------
    cells : `CELLS`, a row for each model, set and number of shards: the folder of its store.
    spans : `SCORES`, a row for each model, set and span: its Min-K%, larger for members; a set
        without spans has one row, which says why.

    Raises
    ------
    InputError
        For two models of one name, and numbers that cannot be.
    """
    if settings.length < 2 or settings.spans < 1:
        raise InputError("length, spans: give at least 2 tokens and 1 span")
    spanned = [
        *settings.min_k_sets,
        *settings.tuning_members,
        *settings.tuning_non_members,
    ]
    sets = load_each(
        [*settings.ablation_sets, *spanned],
        lambda name: access.open_set(name, max_records=settings.max_records, lines=True),
    )
    wanted = list(product(settings.ablation_sets, settings.shards))
    wanted += [(name, SPANS) for name in dict.fromkeys(spanned)]
    parts = parts_of(experiment, "checkpoints")
    column = f"min_k_{settings.k:g}"

    def cells_of(entry: ModelEntry) -> Iterator[tuple[Row, Cell | str]]:
        for name, shards in wanted:
            examples = sets[name]
            row = {"dataset": name, "dup_count": entry.dup_count(name), "shards": shards}
            if isinstance(examples, str):
                yield row, examples
            else:
                yield row, (name, shards, examples)

    def score_cell(entry: ModelEntry, scorer: Scorer, cell: Cell) -> Row:
        name, shards, examples = cell
        if shards == SPANS:
            spans = sample_spans(scorer, examples, settings, experiment.profile.seed)
            folder = stores_of(parts, entry.name, f"spans of {name}")
            scores = access.score_texts(folder, scorer, spans, columns=[column])
            return {"score": list(scores[column])}
        request = Request(
            shards=shards,
            permutations=settings.permutations,
            seed=experiment.profile.seed,
            directory=experiment.build / STORES,
            name=entry.name,
        )
        return {"store": access.score_orders(SHARDED, scorer, examples, request)}

    def open_model(entry: ModelEntry) -> tuple[Scorer, Row]:
        return access.open_model(entry), {}

    entries = named_models(experiment, settings.models)
    rows = grid(entries, cells_of, score_cell, open_model=open_model)
    of_stores = [row for row in rows if row["shards"] != SPANS]
    of_spans = [row for row in rows if row["shards"] == SPANS]
    cells = pd.DataFrame(of_stores, columns=list(CELLS))
    scored = pd.DataFrame(of_spans, columns=list(SCORES)).explode(
        "score",
        ignore_index=True,
    )
    return {
        "cells": cells.astype({"dup_count": "Int64"}),
        "spans": scored.astype({"dup_count": "Int64", "score": "float64"}),
    }


def sample_spans(
    scorer: Scorer,
    examples: ExampleSet,
    settings: Settings,
    seed: int,
) -> list[np.ndarray]:
    """Draw spans of a set, which begin anywhere and may overlap (Oren, appendix E).

    Raises InputError for a set of fewer tokens than a span has.
    """
    stream = np.concatenate(tokenize(scorer.tokenizer, examples.examples))
    last = len(stream) - settings.length
    if last < 0:
        raise InputError(
            f"{examples.name}: it has {len(stream)} tokens, and a span {settings.length}; "
            "lower `length`",
        )
    rng = random_stream(seed, "spans of a set", examples.revision)
    starts = rng.integers(last + 1, size=settings.spans)
    return [stream[start : start + settings.length] for start in starts]
