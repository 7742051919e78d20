"""The passes of notebook 12: the planted sets under the released checkpoints and their controls.

The examples of a set are the lines of its file (`open_lines`), which were planted most likely; in
Table 1 its records as well, through the registry's template, since that is not certain.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from contamination.audit.battery import TESTS
from contamination.audit.request import Request
from contamination.errors import InputError
from contamination.randomness import random_stream
from contamination.scoring.contract import Scorer
from contamination.scoring.models import ModelEntry, Role
from contamination.scoring.plan import stores_of
from contamination.scoring.status import OK
from contamination.testsets import example_set
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.registry import entries
from reproduction.run.experiment import Experiment, named_models, parts_of
from reproduction.run.grid import ACCESS, Access, Row, grid, load_each

STORES = Path("stores") / "checkpoints"  # in the build directory
TABLE, ABLATION, SPAN = "table 1", "figure 3a", "table 5"  # what a cell is scored for
CONTROL: Role = "negative_control"  # it cannot have read the sets in the order that was planted
SHARDED = "sharded_t"  # names the store that both tests on shards read
SETTING = ("purpose", "test", "shards", "permutations")  # no shards: ten examples each
LINE, RECORD = "line", "record"  # what an example is
SETS = ("dataset", "segmentation", "examples", "revision", "status")
CELLS = ("model", "dataset", "segmentation", *SETTING, "store", "status")
SPANS = ("model", "dataset", "score", "status")

Setting = tuple[str, str, int | None, int]
Key = tuple[str, str]  # of an open set: its name, and `LINE` or `RECORD`


def checkpoints(
    experiment: Experiment, models: Sequence[str], controls: Sequence[str]
) -> list[ModelEntry]:
    """Return the models, then the controls by their role; InputError if two have one name."""
    found = named_models(experiment, [*models, *controls])
    ours = [replace(entry, role="contaminated") for entry in found[: len(models)]]
    return ours + [replace(entry, role=CONTROL) for entry in found[len(models) :]]


def title(dataset: str) -> str:
    """What the paper's tables call a set; one that is not registered goes by its file."""
    return entries()[dataset].title if dataset in entries() else Path(dataset).stem


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
    start_each: bool,
    access: Access = ACCESS,
) -> dict[str, pd.DataFrame]:
    """Score what Tables 1 and 5 and Figures 2 and 3 of Oren need.

    Tables: `sets` (`SETS`: what could be opened), `cells` (`CELLS`: the store of each model, set
    and setting, in `STORES`) and `spans` (`SPANS`: Min-K% of each span, larger for members; a set
    without a span has one row, which says why). Raises InputError for an unknown test, two models
    of one name, and numbers that cannot be.

    `sets` (registered names or files) and `tests` are of Table 1, with `permutations` of each of
    the `shards` (section 4.1) or of the whole set; the ablation is Figure 3a, in which controls
    have no part. Table 5 draws so many `spans` of `length` tokens of each of `min_k_sets`, and of
    the validation sets that tune its threshold (appendix E): planted ones, and ones that no
    checkpoint has read. `start_each` is that of `example_set.start_each`, in tests of order.
    """
    if length < 2 or spans < 1:
        raise InputError(f"length {length}, spans {spans}: give at least 2 tokens and 1 span")
    for count in (permutations, whole_set_permutations):
        Request(tests, permutations=count)  # refuses what cannot be, before a model is opened
    table: list[Setting] = []
    for name in dict.fromkeys(tests):
        # Successors have shards of their own: their number is no parameter of the paper.
        own = shards if TESTS[name].kind == "orderings" else None
        whole = TESTS[name].shard_size is None
        table.append((TABLE, name, own, whole_set_permutations if whole else permutations))
    ablation: list[Setting] = [(ABLATION, SHARDED, r, permutations) for r in ablation_shards]
    spanned = [*min_k_sets, *validation_members, *validation_non_members]
    known = entries()
    by_record = [name for name in sets if name in known and known[name].template]
    keys = [(name, LINE) for name in [*sets, *ablation_sets, *spanned]]
    opened = load_each(
        [*keys, *((name, RECORD) for name in by_record)],
        lambda key: access.open_set(key[0], max_records=max_records, lines=key[1] == LINE),
    )
    parts, column = parts_of(experiment, "checkpoints"), f"min_k_{k:g}"
    request = Request(seed=experiment.profile.seed, directory=experiment.build / STORES)

    def asked(entry: ModelEntry) -> Iterator[tuple[Row, tuple[Key, Setting, ExampleSet] | str]]:
        own = [*((name, LINE) for name in sets), *((name, RECORD) for name in by_record)]
        wanted = [(key, setting) for key in own for setting in table]
        if entry.role != CONTROL:
            wanted += [((name, LINE), setting) for name in ablation_sets for setting in ablation]
        wanted += [((name, LINE), (SPAN, "", None, 0)) for name in spanned]
        for key, setting in dict.fromkeys(wanted):
            one = opened[key]
            row: Row = dict(zip(("dataset", "segmentation", *SETTING), key + setting, strict=True))
            yield row | {"store": ""}, one if isinstance(one, str) else (key, setting, one)

    def cell(entry: ModelEntry, scorer: Scorer, wanted: tuple[Key, Setting, ExampleSet]) -> Row:
        (dataset, _), (purpose, test, count, most), found = wanted
        if purpose != SPAN:
            own = replace(request, shards=count, permutations=most, name=entry.name)
            begun = example_set.start_each(found, start_each)
            return {"store": access.score_orders(test, scorer, begun, own)}
        from contamination.membership.api import sample_spans

        rng = random_stream(request.seed, "spans of a set", found.revision)
        drawn = sample_spans(scorer, found.examples, length, spans, rng=rng)
        if not drawn:
            raise InputError(f"{found.name}: it has fewer than the {length} tokens of a span")
        folder = stores_of(parts, entry.name, f"spans of {dataset}")
        return {"score": list(access.score_texts(folder, scorer, drawn, columns=[column])[column])}

    found = checkpoints(experiment, models, controls)
    rows = grid(found, asked, cell, open_model=lambda entry: (access.open_model(entry), {}))
    cells = pd.DataFrame([row for row in rows if row["purpose"] != SPAN], columns=list(CELLS))
    scored = pd.DataFrame([row for row in rows if row["purpose"] == SPAN], columns=list(SPANS))
    facts = [
        (*key, None, "", one)
        if isinstance(one, str)
        else (*key, len(one.examples), one.revision, OK)
        for key, one in opened.items()
    ]
    return {
        "sets": pd.DataFrame(facts, columns=list(SETS)).astype({"examples": "Int64"}),
        "cells": cells.astype({"shards": "Int64"}),
        "spans": scored.explode("score", ignore_index=True).astype({"score": "float64"}),
    }
