"""The passes of notebook 04: every subset of MMLU under models and negative controls.

A negative control is a model that cannot have read the subsets. Where it prefers the canonical
order, the order says something by itself, and the p-value of another model is no evidence.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import pandas as pd

from contamination.audit.request import Request
from contamination.errors import InputError
from contamination.scoring.models import ModelEntry, find_model
from contamination.testsets.example_set import ExampleSet
from reproduction.notebooks.mmlu.subsets import SEGMENTATIONS, by_line, subsets_at_hand
from reproduction.run.experiment import Experiment, trained_here
from reproduction.run.grid import ACCESS, Access, Row, grid

if TYPE_CHECKING:
    from contamination.scoring.contract import Scorer

CELLS = ("model", "segmentation", "subset", "test", "store", "status")
NOTHING = pd.DataFrame(columns=list(CELLS))  # where nothing is measured


class MmluAudit:
    """Models and negative controls by name, and the tests that they are put to.

    Raises InputError for a name twice, an unknown test, or no permutation.

    Parameters
    ----------
    experiment : run whose models may be named; stores lie in its `stores/mmlu/`.
    models : audited by record; models of the run, or names for `find_model`.
    controls : models that cannot have read MMLU: audited by record and by line.
    permutations : m, shuffled orderings per shard, in tests of whole orderings.
    """

    def __init__(
        self,
        experiment: Experiment,
        *,
        models: Sequence[str],
        controls: Sequence[str],
        tests: Sequence[str],
        permutations: int,
    ) -> None:
        local = {entry.name: entry for entry in trained_here(experiment)}
        entries = [local.get(name) or find_model(name) for name in [*models, *controls]]
        if len({entry.name for entry in entries}) < len(entries):
            raise InputError(
                f"models {', '.join(models)} and controls {', '.join(controls)} name a model "
                "twice; name it once"
            )
        self.models = {entry.name: entry for entry in entries[: len(models)]}
        self.controls = {entry.name: entry for entry in entries[len(models) :]}
        self.request = Request(
            tests=tests,
            permutations=permutations,
            seed=experiment.profile.seed,
            directory=experiment.build / "stores" / "mmlu",
        )


def measure(
    experiment: Experiment,
    *,
    measured: bool,
    models: Sequence[str],
    controls: Sequence[str],
    tests: Sequence[str],
    permutations: int,
    max_records: int,
    access: Access = ACCESS,
) -> dict[str, pd.DataFrame]:
    """Score the subsets if they are to be `measured`: models by record, controls also by line.

    The table `cells` has a row for each model, segmentation, subset and test, `CELLS`: `store` is
    its folder in the directory of the audit's stores; where there is none, `status` says why.
    Arguments are those of `MmluAudit` and `subsets_at_hand`.
    """
    sets = subsets_at_hand(max_records, wanted=measured, access=access)
    audit = MmluAudit(
        experiment, models=models, controls=controls, tests=tests, permutations=permutations
    )
    lines = {name: one if isinstance(one, str) else by_line(one) for name, one in sets.items()}

    def asked(entry: ModelEntry) -> Iterator[tuple[Row, tuple[str, ExampleSet] | str]]:
        kinds = SEGMENTATIONS if entry.name in audit.controls else SEGMENTATIONS[:1]
        for kind, subset, test in product(kinds, sets, audit.request.order_tests):
            row = {"segmentation": kind, "subset": subset, "test": test, "store": ""}
            one = sets[subset] if kind == "record" else lines[subset]
            yield row, one if isinstance(one, str) else (test, one)

    def open_model(entry: ModelEntry) -> tuple["Scorer", Row]:
        return access.open_model(entry), {}

    def cell(entry: ModelEntry, scorer: "Scorer", wanted: tuple[str, ExampleSet]) -> Row:
        # The directory belongs to this run: models trained anew replace their stores.
        request = replace(audit.request, name=entry.name)
        test, examples = wanted
        return {"store": access.score_orders(test, scorer, examples, request, keep_revisions=False)}

    entries = [*audit.models.values(), *audit.controls.values()]
    rows = grid(entries, asked, cell, open_model=open_model)
    return {"cells": pd.DataFrame(rows, columns=list(CELLS))}
