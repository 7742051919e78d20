"""The passes of notebook 04: every subset of MMLU under models and negative controls.

A model that cannot be had is cells that say why, and the others go on.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
from tqdm import tqdm

from contamination.audit.verdict import choose_store, score_for
from contamination.scoring import cost
from contamination.scoring.contract import Scorer
from contamination.scoring.local import open_scorer
from contamination.scoring.models import ModelEntry
from contamination.scoring.processes import together
from contamination.scoring.status import FAILURES, OK, status_of
from contamination.testsets.tokens import tokenize
from reproduction.notebooks.mmlu.audit import CELLS, WORK, MmluAudit
from reproduction.notebooks.mmlu.segmentation import Segmented, segmented
from reproduction.notebooks.mmlu.subsets import subsets_at_hand
from reproduction.run.experiment import Experiment


def measure(
    experiment: Experiment,
    *,
    measured: bool,
    models: Sequence[str],
    controls: Sequence[str],
    tests: Sequence[str],
    permutations: int,
    max_records: int,
) -> dict[str, pd.DataFrame]:
    """Score the subsets that are at hand, if they are to be `measured`.

    Tables: `work`, the tokens of the whole plan, stored already or not, and `cells` as of
    `score_subsets`. Arguments are those of `MmluAudit` and `subsets_at_hand`.
    """
    sets, problems = together(lambda: subsets_at_hand(max_records, wanted=measured))
    audit = MmluAudit(
        experiment, models=models, controls=controls, tests=tests, permutations=permutations
    )
    both = segmented(sets)
    return {"work": count_work(audit, both), "cells": score_subsets(audit, both, problems)}


def count_work(audit: MmluAudit, sets: Segmented) -> pd.DataFrame:
    """Count the tokens of the plan over all subsets, before scoring: a row as `WORK` has it.

    Models that cannot be opened are left out.
    """
    rows = []
    permutations = audit.request.permutations
    for entry, segmentation, scorer in _opened(audit, sets):
        if isinstance(scorer, str):
            continue
        subsets = sets[segmentation].values()
        ids = [tokenize(scorer.tokenizer, subset.examples) for subset in subsets]
        lengths = [[len(i) for i in examples] for examples in ids]
        count, context = sum(map(len, lengths)), scorer.context
        for test in audit.request.order_tests:
            plans = [choose_store(test, each, context, audit.request) for each in lengths]
            total = cost.total(
                plan.work(each, permutations, context)
                for plan, each in zip(plans, lengths, strict=True)
            )
            rows.append((entry.name, segmentation, test, count, total.read, total.scored))
    return pd.DataFrame(rows, columns=list(WORK))


def score_subsets(
    audit: MmluAudit, sets: Segmented, problems: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """Score what no store holds yet: models by record, controls by record and by line.

    A row for each model, segmentation, subset and test, `CELLS`: `store` is its folder in the
    directory of the audit's stores; where there is none, `status` says why. `problems` says so of
    the subsets that could not be opened.
    """
    cells: list[dict[str, Any]] = [
        {"model": entry.name, "segmentation": segmentation, "subset": subset}
        | {"test": test, "store": "", "status": status}
        for entry, segmentation in audit.segmentations()
        for subset, status in (problems or {}).items()
        for test in audit.request.order_tests
    ]
    for entry, segmentation, scorer in _opened(audit, sets):
        request = replace(audit.request, name=entry.name)
        label = f"{entry.name} by {segmentation}"
        bar = tqdm(sets[segmentation].items(), label, unit="subset", leave=False, disable=None)
        for subset, examples in bar:
            for test in request.order_tests:
                cell = {"model": entry.name, "segmentation": segmentation, "subset": subset}
                cell |= {"test": test, "store": "", "status": OK}
                try:
                    if isinstance(scorer, str):
                        cell["status"] = scorer
                    else:
                        # The directory belongs to this run: models trained anew replace their
                        # stores.
                        store = score_for(test, scorer, examples, request, keep_revisions=False)
                        where = store.directory.relative_to(request.directory)
                        cell["store"] = where.as_posix()
                except FAILURES as error:
                    cell["status"] = status_of(error)
                cells.append(cell)
    return pd.DataFrame(cells, columns=list(CELLS))


def _opened(audit: MmluAudit, sets: Segmented) -> Iterator[tuple[ModelEntry, str, Scorer | str]]:
    """Open one model after the other, unless there is no subset: the model, or why there is none.

    Each is opened once, and nobody holds it any more when the next one loads its weights.
    """
    known: tuple[str, Scorer | str] = ("", "")
    for entry, segmentation in audit.segmentations() if any(sets.values()) else ():
        if known[0] != entry.name:
            known = (entry.name, _open(entry))
        yield entry, segmentation, known[1]


def _open(entry: ModelEntry) -> Scorer | str:
    try:
        return together(lambda: open_scorer(entry))
    except FAILURES as error:
        return status_of(error)
