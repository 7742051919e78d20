"""Numbers of shards and of permutations (Oren, Figure 3), for each sharded test."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from contamination.scoring.plan import StorePlan
from contamination.statistics import sharded_exact_test, sharded_t_test
from contamination.statistics.results import outcome_row
from reproduction.notebooks.ablation.settings import Settings
from reproduction.run.experiment import Experiment


def measure(experiment: Experiment, settings: Settings) -> dict[str, pd.DataFrame]:
    """Run each sharded test for several numbers of shards (Oren, Figure 3a).

    Another number of shards means other sequences, which are scored here. The table is
    `by_shards`.
    """
    permutations = experiment.profile.scoring.permutations
    rows = []
    for shards, dataset in product(settings.shards, settings.datasets):
        plan = StorePlan("orderings", shards)
        store = experiment.score("contaminated", dataset, plan, permutations)
        rows += _test(experiment, dataset, store.log_probs(permutations))
    return {"by_shards": pd.DataFrame(rows)}


def permutation_ablation(
    experiment: Experiment,
    datasets: Sequence[str],
    permutations: Sequence[int],
    *,
    replicates: int,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """Run each sharded test with fewer permutations (Oren, Figure 3b).

    Orderings of a shard are independent, so any subset drawn without looking at their
    scores is as good as having scored no others.

    Parameters
    ----------
    experiment
        The run.
    datasets
        Names of canary sets.
    permutations
        Numbers of permutations.
    replicates
        Subsets of each size; of all permutations there is only one.
    rng
        Draws the subsets.
    """
    scoring = experiment.profile.scoring
    plan = StorePlan("orderings", scoring.shards)
    rows = []
    for dataset in datasets:
        store = experiment.scored("contaminated", dataset, plan, scoring.permutations)
        log_probs = store.log_probs(scoring.permutations)
        for m in permutations:
            draws = 1 if m == scoring.permutations else replicates
            for replicate in range(draws):
                kept = 1 + rng.permutation(scoring.permutations)[:m]
                subset = log_probs[:, [0, *kept]]  # the canonical ordering stays
                rows += _test(experiment, dataset, subset, replicate=replicate)
    return pd.DataFrame(rows)


def _test(
    experiment: Experiment,
    dataset: str,
    log_probs: np.ndarray,
    replicate: int | None = None,
) -> list[dict[str, Any]]:
    """Return a row for each sharded test of a canary set."""
    row: dict[str, Any] = {
        "dataset": dataset,
        "dup_count": experiment.spec(dataset).dup_count,
    }
    if replicate is not None:
        row["replicate"] = replicate
    return [row | outcome_row(test(log_probs)) for test in (sharded_t_test, sharded_exact_test)]
