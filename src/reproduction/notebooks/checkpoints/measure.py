"""The passes of notebook 12: the planted sets under the released checkpoints and their controls.

The examples of a set are the lines of its file, since these were planted
(`contamination.testsets.lines`). Every model is opened once and freed before the next. A model or a
set that cannot be had is rows that say why, and the others go on. What is scored stays in stores.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from contamination.audit.request import Request
from contamination.audit.verdict import score_for
from contamination.device import free_memory
from contamination.errors import InputError
from contamination.membership.api import sample_spans
from contamination.membership.stored import stored_token_scores
from contamination.randomness import random_stream
from contamination.scoring.contract import Scorer
from contamination.scoring.local import open_scorer
from contamination.scoring.models import ModelEntry
from contamination.scoring.plan import stores_of
from contamination.scoring.processes import share, together
from contamination.scoring.status import FAILURES, OK, status_of
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.lines import open_lines
from reproduction.notebooks.checkpoints.cells import (
    ABLATION,
    CELLS,
    SETS,
    SHARDED,
    SPANS,
    STORES,
    Setting,
    checkpoints,
    table_settings,
)
from reproduction.run.experiment import Experiment
from reproduction.run.measured import parts_of

PACKAGE = "checkpoints"


def measure(
    experiment: Experiment,
    *,
    models: Sequence[str],
    controls: Sequence[str],
    sets: Sequence[str],
    tests: Sequence[str],
    shards: int,
    permutations: int,
    whole_set_permutations: int,
    max_records: int,
    ablation_sets: Sequence[str],
    ablation_shards: Sequence[int],
    min_k_sets: Sequence[str],
    validation_members: Sequence[str],
    validation_non_members: Sequence[str],
    length: int,
    spans: int,
    k: float,
) -> dict[str, pd.DataFrame]:
    """Score what Tables 1 and 5 and Figures 2 and 3 of Oren need.

    Tables: `sets` (`SETS`: what could be opened), `cells` (`CELLS`: the store of each model, set
    and setting, in the directory of the stores) and `spans` (`SPANS`: Min-K% of each span, larger
    for members; a set without a span has one row, which says why). `status` is "ok", "failed:
    reason" or "not run here: reason". Raises InputError for an unknown test, a model that is named
    twice, and numbers that cannot be.

    Parameters
    ----------
    models, controls : names for `contamination.scoring.models.find_model`; controls cannot have
        read the sets in the order that was planted, and have no part in the ablation.
    sets, tests : of Table 1: registered names or files, and names of `TESTS`.
    shards, permutations : of every shard, in tests of whole orderings (section 4.1).
    whole_set_permutations : of the permutation test.
    max_records : at most so many of each set, from its start.
    ablation_sets, ablation_shards : of Figure 3a, in so many permutations as Table 1.
    min_k_sets : of Table 5; validation_members and validation_non_members tune its threshold
        (appendix E): planted sets, and sets that no checkpoint has read.
    length, spans : tokens of a span, and how many are drawn of each set.
    k : percentage of Min-K%.
    """
    if length < 2 or spans < 1:
        raise InputError(f"length {length}, spans {spans}: give at least 2 tokens and 1 span")
    for count in (permutations, whole_set_permutations):
        Request(tests, permutations=count)  # refuses what cannot be, before a model is opened
    table = table_settings(
        tests,
        shards=shards,
        permutations=permutations,
        whole_set_permutations=whole_set_permutations,
    )
    ablation = [Setting(ABLATION, SHARDED, count, permutations) for count in ablation_shards]
    spanned = dict.fromkeys([*min_k_sets, *validation_members, *validation_non_members])
    every = _OpenSets([*sets, *ablation_sets, *spanned], max_records)
    directory = experiment.build / STORES
    cells: list[dict[str, Any]] = []
    scored: list[pd.DataFrame] = []
    for checkpoint in tqdm(checkpoints(models, controls), "models", leave=False, disable=None):
        entry = checkpoint.entry
        wanted = [(name, setting) for name in sets for setting in table]
        if not checkpoint.control:
            wanted += [(name, setting) for name in ablation_sets for setting in ablation]
        scorer = _opened(entry)
        request = Request(seed=experiment.profile.seed, directory=directory, name=entry.name)
        cells += _scored_stores(scorer, every, list(dict.fromkeys(wanted)), request)
        parts = stores_of(parts_of(experiment, PACKAGE), entry.name, "spans")
        drawn = _draw_spans(scorer, every, spanned, length, spans, experiment.profile.seed)
        scored.append(_scored_spans(scorer, drawn, parts, f"min_k_{k:g}").assign(model=entry.name))
        del scorer
        free_memory()  # the model goes before the next one comes
    none = pd.DataFrame(columns=list(SPANS))
    return {
        "sets": every.table(),
        "cells": pd.DataFrame(cells, columns=list(CELLS)).astype({"shards": "Int64"}),
        "spans": pd.concat(scored, ignore_index=True)[list(SPANS)] if scored else none,
    }


class _OpenSets:
    """Sets by name: those `opened`, and the `problems` of the others."""

    def __init__(self, names: Sequence[str], max_records: int) -> None:
        self.opened: dict[str, ExampleSet] = {}
        self.problems: dict[str, str] = {}
        for name in tqdm(dict.fromkeys(names), "test sets", leave=False, disable=None):
            try:
                self.opened[name] = open_lines(name, max_records=max_records)
            except FAILURES as error:
                self.problems[name] = status_of(error)
        for problems in share(lambda: self.problems):
            self.problems |= problems  # what one process cannot open, none scores
        self.names = list(dict.fromkeys(names))

    def table(self) -> pd.DataFrame:
        rows = []
        for name in self.names:
            found = None if name in self.problems else self.opened[name]
            known = (len(found.examples), found.revision) if found else (None, "")
            rows.append((name, *known, self.problems.get(name, OK)))
        return pd.DataFrame(rows, columns=list(SETS)).astype({"examples": "Int64"})


def _opened(entry: ModelEntry) -> Scorer | str:
    """Open a model, or say why it cannot be had."""
    try:
        return together(lambda: open_scorer(entry))
    except FAILURES as error:
        return status_of(error)


def _scored_stores(
    scorer: Scorer | str,
    sets: _OpenSets,
    wanted: Sequence[tuple[str, Setting]],
    request: Request,
) -> Iterator[dict[str, Any]]:
    """Yield a cell for each set and setting, whatever happens."""
    for dataset, setting in wanted:
        cell = {"model": request.name, "dataset": dataset, **asdict(setting), "store": ""}
        if isinstance(scorer, str) or dataset in sets.problems:
            yield cell | {"status": scorer if isinstance(scorer, str) else sets.problems[dataset]}
            continue
        asked = replace(request, shards=setting.shards, permutations=setting.permutations)
        found = sets.opened[dataset]
        try:
            store = score_for(setting.test, scorer, found, asked, keep_revisions=True)
            where = store.directory.relative_to(request.directory).as_posix()
            yield cell | {"store": where, "status": OK}
        except FAILURES as error:
            yield cell | {"status": status_of(error)}


Drawn = dict[str, list[np.ndarray] | str]  # spans of each set, or why it has none


def _draw_spans(
    scorer: Scorer | str, sets: _OpenSets, names: Iterable[str], length: int, count: int, seed: int
) -> Drawn:
    drawn: Drawn = {}
    for name in names:
        if isinstance(scorer, str) or name in sets.problems:
            drawn[name] = scorer if isinstance(scorer, str) else sets.problems[name]
            continue
        examples = sets.opened[name]
        rng = random_stream(seed, "spans of a set", examples.revision)
        found = sample_spans(scorer, examples.examples, length, count, rng=rng)
        short = InputError(f"{name}: it has fewer than the {length} tokens of a span")
        drawn[name] = found or status_of(short)
    return drawn


def _scored_spans(scorer: Scorer | str, drawn: Drawn, parts: Path, column: str) -> pd.DataFrame:
    """Score the spans: dataset, score and status; a row for each, or one that says why not."""
    rows: list[tuple[str, float, str]] = []
    held = {name: spans for name, spans in drawn.items() if not isinstance(spans, str)}
    if not isinstance(scorer, str) and held:
        every = [ids for spans in held.values() for ids in spans]
        owners = [name for name, spans in held.items() for _ in spans]
        try:
            scores = stored_token_scores(parts, scorer, every, [column])[column]
            rows += [(*one, OK) for one in zip(owners, scores, strict=True)]
        except FAILURES as error:
            rows += [(name, math.nan, status_of(error)) for name in held]
    rows += [(name, math.nan, why) for name, why in drawn.items() if isinstance(why, str)]
    return pd.DataFrame(rows, columns=["dataset", "score", "status"])
