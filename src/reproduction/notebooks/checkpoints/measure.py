"""The passes of notebook 12: the planted sets under the released checkpoints and their controls.

The examples of a set are the lines of its file, since these were planted
(`contamination.testsets.lines`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from contamination.audit.battery import TESTS
from contamination.audit.request import Request
from contamination.errors import InputError
from contamination.randomness import random_stream
from contamination.scoring.models import ModelEntry, find_model
from contamination.scoring.plan import stores_of
from contamination.scoring.status import OK
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.registry import entries
from reproduction.run.experiment import Experiment
from reproduction.run.grid import ACCESS, Access, Row, grid, load_each
from reproduction.run.measured import parts_of

if TYPE_CHECKING:
    from contamination.scoring.contract import Scorer

STORES = Path("stores") / "checkpoints"  # in the build directory
TABLE, ABLATION = "table 1", "figure 3a"  # what a cell is scored for
SHARDED = "sharded_t"  # names the store that both tests on shards read
SPAN = "table 5"
SETS = ("dataset", "examples", "revision", "status")
CELLS = ("model", "dataset", "purpose", "test", "shards", "permutations", "store", "status")
SPANS = ("model", "dataset", "score", "status")


@dataclass(frozen=True)
class Checkpoint:
    """A model of the notebook; a control cannot have read the sets in the order that was planted.

    Raises InputError as `contamination.scoring.models.find_model`.
    """

    entry: ModelEntry
    control: bool

    def dup_count(self, dataset: str) -> int | None:
        """How often the set was planted: 0 in a control, None where that is not known."""
        return 0 if self.control else self.entry.dup_count(dataset)


def checkpoints(models: Sequence[str], controls: Sequence[str]) -> list[Checkpoint]:
    """Return the released models, then the controls, each of them once.

    Raises InputError for a bare string in the place of a list, and two models of one name.
    """
    for name, given in (("models", models), ("controls", controls)):
        if isinstance(given, str):
            raise InputError(f"{name} is {given!r}: give a list of names, paths or hub ids")
    found = [Checkpoint(find_model(name), name in controls) for name in [*models, *controls]]
    names = [one.entry.name for one in found]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"models and controls name {repeated[0]!r} twice; name it once")
    return found


def title(dataset: str) -> str:
    """What the paper's tables call a set; one that is not registered goes by its file."""
    return entries()[dataset].title if dataset in entries() else Path(dataset).stem


@dataclass(frozen=True)
class Setting:
    """A test with its shards and permutations; `shards` None leaves ten examples a shard."""

    purpose: str
    test: str
    shards: int | None
    permutations: int


def table_setting(
    name: str, shards: int, permutations: int, whole_set_permutations: int
) -> Setting:
    """Return the setting of a test in Table 1."""
    whole = TESTS[name].shard_size is None
    # Successors have shards of their own: their number is no parameter of the paper.
    count = shards if TESTS[name].kind == "orderings" else None
    return Setting(TABLE, name, count, whole_set_permutations if whole else permutations)


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
    access: Access = ACCESS,
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
    k : percentage of Min-K%. access : to sets and models.
    """
    if length < 2 or spans < 1:
        raise InputError(f"length {length}, spans {spans}: give at least 2 tokens and 1 span")
    for count in (permutations, whole_set_permutations):
        Request(tests, permutations=count)  # refuses what cannot be, before a model is opened
    known = {one.entry.name: one for one in checkpoints(models, controls)}
    numbers = (shards, permutations, whole_set_permutations)
    table = [table_setting(name, *numbers) for name in dict.fromkeys(tests)]
    ablation = [Setting(ABLATION, SHARDED, count, permutations) for count in ablation_shards]
    spanned = [*min_k_sets, *validation_members, *validation_non_members]
    opened = load_each(
        [*sets, *ablation_sets, *spanned],
        lambda name: access.open_set(name, max_records=max_records, lines=True),
    )
    directory, parts = experiment.build / STORES, parts_of(experiment, "checkpoints")

    def asked(entry: ModelEntry) -> Iterator[tuple[Row, tuple[str, Setting, ExampleSet] | str]]:
        wanted = [(name, setting) for name in sets for setting in table]
        if not known[entry.name].control:
            wanted += [(name, setting) for name in ablation_sets for setting in ablation]
        wanted += [(name, Setting(SPAN, "", None, 0)) for name in spanned]
        for name, setting in dict.fromkeys(wanted):
            one = opened[name]
            row = {"dataset": name, **asdict(setting), "store": ""}
            yield row, one if isinstance(one, str) else (name, setting, one)

    def open_model(entry: ModelEntry) -> tuple["Scorer", Row]:
        return access.open_model(entry), {}

    def cell(entry: ModelEntry, scorer: "Scorer", wanted: tuple[str, Setting, ExampleSet]) -> Row:
        dataset, setting, found = wanted
        if setting.purpose == SPAN:
            folder = stores_of(parts, entry.name, f"spans of {dataset}")
            drawn = draw_spans(scorer, found, length, spans, experiment.profile.seed)
            name = f"min_k_{k:g}"
            return {"score": list(access.score_tokens(folder, scorer, drawn, [name])[name])}
        request = Request(
            shards=setting.shards,
            permutations=setting.permutations,
            seed=experiment.profile.seed,
            directory=directory,
            name=entry.name,
        )
        return {"store": access.score_orders(setting.test, scorer, found, request)}

    rows = grid([one.entry for one in known.values()], asked, cell, open_model=open_model)
    cells = pd.DataFrame([row for row in rows if row["purpose"] != SPAN], columns=list(CELLS))
    scored = pd.DataFrame([row for row in rows if row["purpose"] == SPAN], columns=list(SPANS))
    facts = [
        (name, None, "", one)
        if isinstance(one, str)
        else (name, len(one.examples), one.revision, OK)
        for name, one in opened.items()
    ]
    return {
        "sets": pd.DataFrame(facts, columns=list(SETS)).astype({"examples": "Int64"}),
        "cells": cells.astype({"shards": "Int64"}),
        "spans": scored.explode("score", ignore_index=True).astype({"score": "float64"}),
    }


def draw_spans(
    scorer: "Scorer", examples: ExampleSet, length: int, count: int, seed: int
) -> list[np.ndarray]:
    """Draw spans of `length` tokens of a set; raises InputError where it is shorter than one."""
    from contamination.membership.api import sample_spans

    rng = random_stream(seed, "spans of a set", examples.revision)
    found = sample_spans(scorer, examples.examples, length, count, rng=rng)
    if not found:
        raise InputError(f"{examples.name}: it has fewer than the {length} tokens of a span")
    return found
