"""The audit of MMLU (Oren, section 4.3): every subset, a filter by negative controls, and Fisher.

A negative control is a model that cannot have seen the subsets, or a compressor, which has seen
nothing. Where one of them prefers the canonical order, the order says something by itself, and the
p-value of another model is no evidence. What is left is combined.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from contamination.audit.battery import TESTS
from contamination.audit.plan import planned_store
from contamination.audit.request import Request
from contamination.errors import InputError
from contamination.experiments.mmlu.segmentation import COMPRESSOR, READINGS, Readings
from contamination.experiments.mmlu.subsets import FAMILY
from contamination.pretraining.experiment import Experiment, trained_here
from contamination.results.published import FISHER_COLUMNS, SUBSET_COLUMNS, load_published
from contamination.scoring import cost
from contamination.scoring.contract import Scorer
from contamination.scoring.local import open_scorer
from contamination.scoring.models import ModelEntry, find_model, published_p
from contamination.scoring.score import score
from contamination.statistics import fisher
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.tokens import tokenize

WORK = ("model", "reading", "test", "examples", "tokens_read", "tokens_scored")
ROWS = (
    *("model", "subset", "reading", "examples", "test", "shards", "permutations", "statistic"),
    *("p", "log10_p", "published_p", "tokens_scored"),
)
NUMBERS = ("p", "log10_p", "published_p")
Row = dict[str, Any]


class MmluAudit:
    """Models and negative controls, and the tests that they are put to.

    Parameters
    ----------
    experiment : run whose models may be named; stores lie in its `stores/mmlu/`.
    models : audited by record; names for `contamination.scoring.models.find_model`, or of the run's
        models.
    controls : models that cannot have seen MMLU: read by record and by line.
    tests : names from `contamination.audit.battery.TESTS`.
    permutations : m, shuffled orderings per shard, in tests of whole orderings.
    published : directory of the papers' tables.

    Raises
    ------
    InputError
        A name twice, an unknown test, or no permutation.
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
        self.entries = {entry.name: entry for entry in entries}
        if len(self.entries) < len(entries):
            raise InputError(
                f"models {', '.join(models)} and controls {', '.join(controls)} name a model "
                "twice; name it once"
            )
        self.controls = [entry.name for entry in entries[len(models) :]]
        self.published = Path(published)
        self.request = Request(
            tests=tests,
            permutations=permutations,
            seed=experiment.profile.seed,
            directory=experiment.build / "stores" / "mmlu",
        )

    def work(self, readings: Readings) -> pd.DataFrame:
        """Count the tokens of `rows`, those already stored included, before any is scored.

        Returns
        -------
        DataFrame
            model, reading, test, examples, tokens_read and tokens_scored, summed over the subsets.
        """
        rows: list[Row] = []
        for entry, scorer in self._scorers(readings):
            for reading, sets in self._readings_of(entry, readings):
                ids = [tokenize(scorer.tokenizer, s.examples) for s in sets.values()]
                lengths = [[len(i) for i in examples] for examples in ids]
                for test in self.request.tests:
                    works = [
                        planned_store(test, each, scorer.context, self.request).work(
                            each, self.request.permutations, scorer.context
                        )
                        for each in lengths
                    ]
                    total = cost.total(works)
                    count = sum(map(len, lengths))
                    values = (entry.name, reading, test, count, total.read, total.scored)
                    rows.append(dict(zip(WORK, values, strict=True)))
        return pd.DataFrame(rows, columns=list(WORK))

    def rows(self, readings: Readings) -> pd.DataFrame:
        """Score what no store holds yet, and test every subset: models by record, controls by both.

        Returns
        -------
        DataFrame
            model, subset, reading, examples, test, shards, permutations, statistic, p, log10_p,
            published_p (of that model in Table 4, where it has a column) and tokens_scored.

        Raises
        ------
        InputError
            A subset too short for a test, or whatever loading and scoring complain of.
        """
        rows: list[Row] = []
        for entry, scorer in self._scorers(readings):
            for reading, sets in self._readings_of(entry, readings):
                label = f"{entry.name} by {reading}"
                for subset, test_set in tqdm(sets.items(), label, unit="subset", leave=False):
                    for row in self._tested(entry.name, scorer, test_set):
                        p = math.nan
                        if reading == "record":
                            p = published_p(entry, FAMILY + subset, self.published)
                        rows.append(row | {"subset": subset, "reading": reading, "published_p": p})
        return pd.DataFrame(rows, columns=list(ROWS))

    def subsets(self, rows: pd.DataFrame, free: pd.DataFrame, exclude_below: float) -> pd.DataFrame:
        """Apply the filter of negative controls to what was measured by record.

        Parameters
        ----------
        rows : from `rows`.
        free : from `contamination.experiments.mmlu.segmentation.model_free`.
        exclude_below : a subset is excluded where a control has a smaller p-value in the same test,
            or the compressor has.

        Returns
        -------
        DataFrame
            The columns of `contamination.results.published.mmlu_subsets`, with source "measured".
        """
        by_record = rows[rows["reading"] == "record"]
        silent = free[free["reading"] == "record"].set_index("subset")["compressor_log10_p"]
        level = math.log10(exclude_below)
        of_control = by_record[by_record["model"].isin(self.controls)]
        rejected = of_control[of_control["log10_p"] < level]
        reasons = []
        for row in by_record.itertuples():
            same = (rejected["subset"] == row.subset) & (rejected["test"] == row.test)
            named = rejected.loc[same, "model"].tolist()
            named += [COMPRESSOR] if silent[row.subset] < level else []
            reasons.append(f"p < {exclude_below:g} under {', '.join(named)}" if named else "")
        found = by_record.assign(source="measured", reason=reasons)
        return found.assign(excluded=found["reason"] != "")[list(SUBSET_COLUMNS)].reset_index(
            drop=True
        )

    def fisher(self, subsets: pd.DataFrame) -> pd.DataFrame:
        """Fisher's combination of the kept subsets, for the audited models, by test.

        Returns
        -------
        DataFrame
            The columns of `contamination.results.published.mmlu_fisher`, with source "measured". A
            model of which no subset is kept has no p-value.
        """
        table2 = load_published(self.published, "oren2024_table2_open_models").set_index("dataset")
        rows = []
        audited = subsets[~subsets["model"].isin(self.controls)]
        for (model, test), found in audited.groupby(["model", "test"], sort=False):
            kept = found[~found["excluded"]]
            combined = fisher(log10_p=kept["log10_p"]) if len(kept) else None
            rows.append(
                {
                    "model": model,
                    "source": "measured",
                    "test": test,
                    "subsets_kept": len(kept),
                    "statistic": combined.statistic if combined else math.nan,
                    "p": combined.p if combined else math.nan,
                    "log10_p": combined.log10_p if combined else math.nan,
                    "published_p": table2.loc["MMLU (Fisher)"].get(self.entries[model].published),
                }
            )
        return pd.DataFrame(rows, columns=list(FISHER_COLUMNS))

    def _scorers(self, readings: Readings) -> Iterator[tuple[ModelEntry, Scorer]]:
        """Open one model after the other; none where there is nothing to read."""
        if any(readings.values()):
            for entry in self.entries.values():
                yield entry, open_scorer(entry)

    def _readings_of(
        self, entry: ModelEntry, readings: Readings
    ) -> Iterator[tuple[str, dict[str, ExampleSet]]]:
        for reading in READINGS:
            if reading == "record" or entry.name in self.controls:
                yield reading, dict(readings[reading])

    def _tested(self, model: str, scorer: Scorer, test_set: ExampleSet) -> Iterator[Row]:
        lengths = [len(ids) for ids in tokenize(scorer.tokenizer, test_set.examples)]
        request = replace(self.request, name=model)
        for test in request.tests:
            plan = planned_store(test, lengths, scorer.context, request)
            store = score(
                test_set,
                scorer,
                plan.path(request.directory, model, test_set.name),
                model=model,
                shards=plan.shards,
                permutations=request.permutations,
                seed=request.seed,
                kind=plan.kind,
                tokens_per_example=plan.tokens_per_example,
                replace=True,  # the directory belongs to this run: models trained anew replace
            )
            result = TESTS[test].result(store, request.permutations)
            yield {
                "model": model,
                "examples": len(test_set.examples),
                "test": test,
                "shards": result.shards,
                "permutations": result.permutations,
                "statistic": result.statistic,
                "p": result.p,
                "log10_p": result.log10_p,
                "tokens_scored": store.header.tokens_of(request.permutations),
            }
