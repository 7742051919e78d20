"""Numbers of shards and of permutations (Oren, Figure 3): each sharded test under every setting."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from contamination.scoring.plan import StorePlan
from contamination.statistics import fewer_permutations, sharded_exact_test, sharded_t_test
from contamination.tables import outcome_row
from reproduction.run.experiment import Experiment


def measure(
    experiment: Experiment, *, datasets: Sequence[str], shards: Sequence[int]
) -> dict[str, pd.DataFrame]:
    """Score sets in every number of shards under the contaminated model; there is no table."""
    permutations = experiment.profile.scoring.permutations
    for count, dataset in product(shards, datasets):
        experiment.score("contaminated", dataset, StorePlan("orderings", count), permutations)
    return {}


def shard_ablation(
    experiment: Experiment, datasets: Sequence[str], shards: Sequence[int]
) -> pd.DataFrame:
    """Each sharded test under the contaminated model for several numbers of shards (Figure 3a).

    Another number of shards means other sequences; `measure` has scored them.
    """
    rows = [
        row
        for count, dataset in product(shards, datasets)
        for row in _test(experiment, dataset, _log_probs(experiment, dataset, count))
    ]
    return pd.DataFrame(rows)


def permutation_ablation(
    experiment: Experiment,
    datasets: Sequence[str],
    permutations: Sequence[int],
    *,
    replicates: int,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """Each sharded test with fewer permutations, sub-sampled from what is stored (Figure 3b).

    `replicates` subsets are drawn for each number (`contamination.statistics.fewer_permutations`).
    Raises InputError for more permutations than are scored.
    """
    rows = []
    for dataset in datasets:
        log_probs = _log_probs(experiment, dataset, experiment.profile.scoring.shards)
        for m in permutations:
            subsets = fewer_permutations(log_probs, m, replicates=replicates, rng=rng)
            for replicate, fewer in enumerate(subsets):
                rows += _test(experiment, dataset, fewer, replicate=replicate)
    return pd.DataFrame(rows)


def _log_probs(experiment: Experiment, dataset: str, shards: int) -> np.ndarray:
    m = experiment.profile.scoring.permutations
    plan = StorePlan("orderings", shards)
    return experiment.scored("contaminated", dataset, plan, m).log_probs(m)


def _test(
    experiment: Experiment, dataset: str, log_probs: np.ndarray, **facts: int
) -> list[dict[str, Any]]:
    facts = {"dup_count": experiment.spec(dataset).dup_count} | facts
    results = (test(log_probs) for test in (sharded_t_test, sharded_exact_test))
    return [{"dataset": dataset} | facts | outcome_row(result) for result in results]
