"""Membership scores with a p-value: each planted set against its held-out twin.

Every set and its twin are compared as `contamination compare` does it, under the model
that has read the set and under the clean one. The contaminated model has read the sets
of the profile. The clean model, trained further, has read a few more sets, shuffled or
record by record, of which the order of records says little.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from contamination.audit.comparison import Comparison
from contamination.audit.decision import decide
from contamination.audit.held_out import SidesRequest, compare
from contamination.audit.registry import TESTS
from contamination.randomness import random_stream
from contamination.scoring.local import TransformersScorer
from contamination.scoring.plan import plan_store
from contamination.scoring.score import score
from contamination.statistics import adjust
from contamination.statistics.results import TestResult
from reproduction.notebooks.min_k.held_out_tables import COLUMNS, FURTHER, ORDER
from reproduction.notebooks.min_k.settings import Settings
from reproduction.notebooks.min_k.twins import TwinSets, draw_twins
from reproduction.run.experiment import Experiment, parts_of
from reproduction.run.further import train_further


def measure_held_out(
    experiment: Experiment,
    settings: Settings,
    scorers: Mapping[str, TransformersScorer],
) -> pd.DataFrame:
    """Compare all sets with their twins; return a row for each model and set.

    Parameters
    ----------
    experiment
        The run.
    settings
        Settings of the notebook.
    scorers
        Of the contaminated and the clean model.

    Returns
    -------
    The `COLUMNS`. `order_p` is there for further sets alone: notebook 01 has tested the
    others.

    Raises
    ------
    InputError
        If too few records are left for twins, or the corpus is too short.
    """
    of_profile, further = draw_twins(experiment, settings)
    runs = [
        ("contaminated", scorers["contaminated"], of_profile),
        ("clean", scorers["clean"], of_profile),
    ]
    if further:
        seed = experiment.profile.seed
        folder, _, _ = train_further(
            experiment,
            [twins.planted for twins in further],
            experiment.build / "min_k" / "further",
            background_tokens=settings.background_tokens,
            rng=random_stream(seed, "planting of twins"),
            learning_rate=settings.learning_rate,
            batch_size=settings.batch_size,
            seed=seed,
        )
        scorer = TransformersScorer(folder)
        runs += [(FURTHER, scorer, further), ("clean", scorers["clean"], further)]
    rows = []
    for model, scorer, sets in runs:
        comparisons = []
        for twins in sets:
            comparisons.append(_compare(experiment, settings, scorer, twins, model=model))
        rows += _rows(comparisons, sets, model=model, alpha=settings.alpha)
    table = pd.DataFrame(rows, columns=list(COLUMNS)).set_index(["model", "dataset"], drop=False)
    for model, scorer, sets in runs[2:]:
        for twins in sets:
            result = _test_order(experiment, scorer, twins, model=model)
            table.loc[(model, twins.name), "order_p"] = result.p
            table.loc[(model, twins.name), "order_log10_p"] = result.log10_p
    return table.reset_index(drop=True)


def _compare(
    experiment: Experiment,
    settings: Settings,
    scorer: TransformersScorer,
    twins: TwinSets,
    *,
    model: str,
) -> Comparison:
    """Compare a set with its twin under a model, as the command does it."""
    request = SidesRequest(
        resamples=settings.divisions,
        seed=experiment.profile.seed,
        directory=parts_of(experiment, "min_k"),
        name=model,
    )
    return compare(scorer, twins.published, twins.held_out, request)


def _rows(
    comparisons: Sequence[Comparison],
    sets: Sequence[TwinSets],
    *,
    model: str,
    alpha: float,
) -> list[dict[str, Any]]:
    """Return a row for each set of a model; verdicts are those after Holm over these sets."""
    count = len(comparisons)
    if not count:
        return []
    holm = adjust(log10_p=[one.result.log10_p for one in comparisons], method="holm").p
    rows: list[dict[str, Any]] = []
    for comparison, twins, holm_p in zip(comparisons, sets, holm, strict=True):
        evidence = comparison.evidence(float(holm_p), corrected_for=count)
        result = comparison.result
        blind = comparison.blind
        row: dict[str, Any] = {"model": model, "dataset": twins.name, "kind": twins.kind}
        row["planting"] = twins.planted.planting
        row["dup_count"] = twins.planted.dup_count
        row["published"] = result.published
        row["held_out"] = result.held_out
        row["p"] = result.p
        row["log10_p"] = result.log10_p
        row["holm_p"] = float(holm_p)
        row["score"] = result.best
        row["auc"] = comparison.aucs[result.best]
        row["blind_p"] = blind.p if blind is not None else math.nan
        row["verdict"] = decide([evidence], alpha=alpha).conclusion
        rows.append(row)
    return rows


def _test_order(
    experiment: Experiment,
    scorer: TransformersScorer,
    twins: TwinSets,
    *,
    model: str,
) -> TestResult:
    """Test the order of the records of a further set under a model."""
    test_set = twins.planted.test_set
    store = score(
        test_set,
        scorer,
        experiment.build / "min_k" / "stores" / model / test_set.name,
        plan_store(TESTS[ORDER], len(test_set.examples), None),
        model=model,
        permutations=0,
        seed=experiment.profile.seed,
        replace=True,
    )
    return TESTS[ORDER].result(store, 0)
