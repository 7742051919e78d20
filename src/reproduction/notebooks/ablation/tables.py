"""Numbers of shards and of permutations (Oren, Figure 3): each sharded test under every setting."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from contamination.errors import InputError
from contamination.statistics import fewer_permutations, sharded_exact_test, sharded_t_test
from contamination.tables import outcome_row
from reproduction.run.experiment import Experiment


def shard_ablation(
    experiment: Experiment, datasets: Sequence[str], shards: Sequence[int]
) -> pd.DataFrame:
    """Each sharded test under the contaminated model for several numbers of shards (Figure 3a).

    Another number of shards means other sequences; `reproduction.notebooks.ablation.measure` has
    scored them.
    """
    rows = []
    for count in tqdm(shards, desc="numbers of shards", unit="setting"):
        for dataset in datasets:
            rows += _test(_log_probs(experiment, dataset, count), _facts(experiment, dataset))
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
    scoring = experiment.profile.scoring
    if too_many := [m for m in permutations if m > scoring.permutations]:
        raise InputError(
            f"permutations {too_many[0]}: only {scoring.permutations} are scored; raise "
            "scoring.permutations in the profile or ask for fewer"
        )
    rows = []
    for dataset in datasets:
        log_probs = _log_probs(experiment, dataset, scoring.shards)
        for m in permutations:
            subsets = fewer_permutations(log_probs, m, replicates=replicates, rng=rng)
            for replicate, fewer in enumerate(subsets):
                rows += _test(fewer, _facts(experiment, dataset) | {"replicate": replicate})
    return pd.DataFrame(rows)


def _log_probs(experiment: Experiment, dataset: str, shards: int) -> np.ndarray:
    m = experiment.profile.scoring.permutations
    return experiment.scored("contaminated", dataset, shards=shards, permutations=m).log_probs(m)


def _facts(experiment: Experiment, dataset: str) -> dict[str, Any]:
    return {"dataset": dataset, "dup_count": experiment.spec(dataset).dup_count}


def _test(log_probs: np.ndarray, facts: dict[str, Any]) -> list[dict[str, Any]]:
    results = (test(log_probs) for test in (sharded_t_test, sharded_exact_test))
    return [facts | outcome_row(result) for result in results]
