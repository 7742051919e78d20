"""The audit of MMLU (Oren, section 4.3): every subset under models and negative controls.

A negative control is a model that cannot have read the subsets. Where it prefers the canonical
order, the order says something by itself, and the p-value of another model is no evidence.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from contamination.audit.battery import Request
from contamination.audit.published import published_p
from contamination.audit.verdict import choose_store, score_and_test
from contamination.errors import InputError
from contamination.experiments.mmlu.segmentation import SEGMENTATIONS, Segmented
from contamination.experiments.mmlu.subsets import FAMILY
from contamination.pretraining.experiment import Experiment, trained_here
from contamination.results.tables import outcome_row
from contamination.scoring import cost
from contamination.scoring.contract import Scorer
from contamination.scoring.local import open_scorer
from contamination.scoring.models import ModelEntry, find_model
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.tokens import tokenize

WORK = ("model", "segmentation", "test", "examples", "tokens_read", "tokens_scored")
ROWS = (
    *("model", "subset", "segmentation", "examples", "test", "shards", "permutations"),
    *("statistic", "p", "log10_p", "published_p", "tokens_scored"),
)


class MmluAudit:
    """Models and negative controls by name, and the tests that they are put to.

    Raises InputError for a name twice, an unknown test, or no permutation.

    Parameters
    ----------
    experiment : run whose models may be named; stores lie in its `stores/mmlu/`.
    models : audited by record; models of the run, or names for `find_model`.
    controls : models that cannot have read MMLU: audited by record and by line.
    permutations : m, shuffled orderings per shard, in tests of whole orderings.
    published : directory of the papers' tables.
    """

    def __init__(
        self,
        experiment: Experiment,
        *,
        models: Sequence[str],
        controls: Sequence[str],
        tests: Sequence[str],
        permutations: int,
        published: Path | str,
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
        self.published = Path(published)
        self.request = Request(
            tests=tests,
            permutations=permutations,
            seed=experiment.profile.seed,
            directory=experiment.build / "stores" / "mmlu",
        )

    def work(self, sets: Segmented) -> pd.DataFrame:
        """Count the tokens of `rows` over all subsets, stored already or not, before scoring."""
        rows = []
        permutations = self.request.permutations
        for entry, scorer, segmentation, subsets in self._cells(sets):
            ids = [tokenize(scorer.tokenizer, subset.examples) for subset in subsets.values()]
            lengths = [[len(i) for i in examples] for examples in ids]
            count, context = sum(map(len, lengths)), scorer.context
            for test in self.request.tests:
                plans = [choose_store(test, each, context, self.request) for each in lengths]
                total = cost.total(
                    plan.work(each, permutations, context)
                    for plan, each in zip(plans, lengths, strict=True)
                )
                rows.append((entry.name, segmentation, test, count, total.read, total.scored))
        return pd.DataFrame(rows, columns=list(WORK))

    def rows(self, sets: Segmented) -> pd.DataFrame:
        """Score what no store holds yet, and test every subset: models by record, controls by both.

        published_p is that of the model in Table 4, by record, where it has a column there. Raises
        InputError for a subset too short for a test, and what loading and scoring raise.
        """
        rows: list[dict[str, Any]] = []
        for entry, scorer, segmentation, subsets in self._cells(sets):
            request = replace(self.request, name=entry.name)
            label = f"{entry.name} by {segmentation}"
            for subset, examples in tqdm(subsets.items(), label, unit="subset", leave=False):
                printed = published_p(entry, FAMILY + subset, self.published)
                facts = {
                    "model": entry.name,
                    "subset": subset,
                    "segmentation": segmentation,
                    "examples": len(examples.examples),
                    "published_p": printed if segmentation == "record" else math.nan,
                }
                for test in request.tests:
                    # The directory belongs to this run: models trained anew replace their stores.
                    result, store = score_and_test(
                        test, scorer, examples, request, keep_revisions=False
                    )
                    scored = store.header.tokens_of(request.permutations)
                    rows.append(facts | outcome_row(result) | {"tokens_scored": scored})
        return pd.DataFrame(rows, columns=list(ROWS))

    def _cells(
        self, sets: Segmented
    ) -> Iterator[tuple[ModelEntry, Scorer, str, Mapping[str, ExampleSet]]]:
        """Open one model after the other, unless there is no subset, and go through its sets."""
        if not any(sets.values()):
            return
        for entry in (self.models | self.controls).values():
            scorer = open_scorer(entry)
            for segmentation in SEGMENTATIONS:
                if segmentation == "record" or entry.name in self.controls:
                    yield entry, scorer, segmentation, sets[segmentation]
