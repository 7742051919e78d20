"""The passes of notebook 04: every subset of MMLU under models and negative controls.

A negative control is a model that cannot have read the subsets. Where it prefers the canonical
order, the order says something by itself, and the p-value of another model is no evidence.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import pandas as pd

from contamination.audit.battery import TESTS
from contamination.audit.request import Request
from contamination.scoring.contract import Scorer
from contamination.scoring.models import ModelEntry
from contamination.testsets import example_set
from contamination.testsets.example_set import ExampleSet
from reproduction.notebooks.mmlu.subsets import SEGMENTATIONS, segmented, subsets_at_hand
from reproduction.run.experiment import Experiment, named_models
from reproduction.run.grid import ACCESS, Access, Row, grid

STORES = Path("stores") / "mmlu"  # in the build directory
CELLS = ("model", "segmentation", "subset", "test", "store", "status")
NOTHING = pd.DataFrame(columns=list(CELLS))  # where nothing is measured


def measure(
    experiment: Experiment,
    *,
    measured: bool,
    models: Sequence[str],
    controls: Sequence[str],
    tests: Sequence[str],
    permutations: int,
    max_records: int,
    shards: int | None,
    start_each: bool,
    access: Access = ACCESS,
) -> dict[str, pd.DataFrame]:
    """Score the subsets if they are to be `measured`: models by record, controls also by line.

    The table `cells` has a row for each model, segmentation, subset and test, `CELLS`: `store` is
    its folder in `STORES`; where there is none, `status` says why. Raises InputError for a name
    twice, an unknown test, no permutation, or what `subsets_at_hand` refuses.

    Parameters
    ----------
    models : audited by record; models of the run, or names for `find_model`.
    controls : models that cannot have read MMLU: audited by record and by line.
    shards, permutations : in tests of whole orderings; None leaves four examples a shard or more.
    start_each : read subsets as `contamination.testsets.example_set.start_each`.
    """
    request = Request(
        tests,
        permutations=permutations,
        seed=experiment.profile.seed,
        directory=experiment.build / STORES,
    )
    entries = named_models(experiment, [*models, *controls])
    silent = {entry.name for entry in entries[len(models) :]}
    sets = subsets_at_hand(max_records, wanted=measured, access=access)
    opened = segmented(sets)

    def asked(entry: ModelEntry) -> Iterator[tuple[Row, tuple[str, ExampleSet] | str]]:
        kinds = SEGMENTATIONS if entry.name in silent else SEGMENTATIONS[:1]
        for kind, (subset, one), test in product(kinds, sets.items(), request.order_tests):
            row = {"segmentation": kind, "subset": subset, "test": test, "store": ""}
            yield row, one if isinstance(one, str) else (test, opened[kind][subset])

    def cell(entry: ModelEntry, scorer: Scorer, wanted: tuple[str, ExampleSet]) -> Row:
        # The directory belongs to this run: models trained anew replace their stores.
        count = shards if TESTS[wanted[0]].kind == "orderings" else None
        own = replace(request, name=entry.name, shards=count)
        test, begun = wanted[0], example_set.start_each(wanted[1], start_each)
        return {"store": access.score_orders(test, scorer, begun, own, keep_revisions=False)}

    rows = grid(entries, asked, cell, open_model=lambda entry: (access.open_model(entry), {}))
    return {"cells": pd.DataFrame(rows, columns=list(CELLS))}
