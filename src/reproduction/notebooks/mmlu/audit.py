"""The audit of MMLU (Oren, section 4.3): every subset under models and negative controls.

A negative control is a model that cannot have read the subsets. Where it prefers the canonical
order, the order says something by itself, and the p-value of another model is no evidence.
"""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from contamination.audit.battery import TESTS
from contamination.audit.request import Request
from contamination.errors import InputError
from contamination.scoring.models import ModelEntry, find_model
from contamination.scoring.status import OK
from contamination.scoring.store import open_store
from contamination.tables import outcome_row
from reproduction.notebooks.mmlu.segmentation import SEGMENTATIONS, Segmented
from reproduction.notebooks.mmlu.subsets import FAMILY
from reproduction.output.published import published_p
from reproduction.run.experiment import Experiment, trained_here

WORK = ("model", "segmentation", "test", "examples", "tokens_read", "tokens_scored")
CELLS = ("model", "segmentation", "subset", "test", "store", "status")
ROWS = (
    *("model", "subset", "segmentation", "examples", "test", "shards", "permutations"),
    *("statistic", "p", "log10_p", "published_p", "tokens_scored"),
)
# What `measure` gives where nothing is measured.
NOTHING = {"work": pd.DataFrame(columns=list(WORK)), "cells": pd.DataFrame(columns=list(CELLS))}


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

    def segmentations(self) -> Iterator[tuple[ModelEntry, str]]:
        """Yield what is scored: models by record, controls by record and by line."""
        for entry in (self.models | self.controls).values():
            for segmentation in SEGMENTATIONS:
                if segmentation == "record" or entry.name in self.controls:
                    yield entry, segmentation

    def rows(self, cells: pd.DataFrame, sets: Segmented, published: Path | str) -> pd.DataFrame:
        """Test every cell of `reproduction.notebooks.mmlu.measure` that was scored.

        published_p is that of the model in Table 4, by record, where it has a column there;
        `published` is the directory of the papers' tables.
        """
        entries = self.models | self.controls
        rows: list[dict[str, Any]] = []
        for cell in cells[cells["status"] == OK].to_dict("records"):
            subset, segmentation = cell["subset"], cell["segmentation"]
            printed = published_p(entries[cell["model"]], FAMILY + subset, published)
            store = open_store(Path(self.request.directory) / cell["store"])
            result = TESTS[cell["test"]].result(store, self.request.permutations)
            facts = {
                "model": cell["model"],
                "subset": subset,
                "segmentation": segmentation,
                "examples": len(sets[segmentation][subset].examples),
                "published_p": printed if segmentation == "record" else math.nan,
                "tokens_scored": store.header.tokens_of(self.request.permutations),
            }
            rows.append(facts | outcome_row(result))
        return pd.DataFrame(rows, columns=list(ROWS))
