"""Numbers of shards and of permutations (Oren, Figure 3): each sharded test under every setting."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from contamination.scoring.plan import StorePlan
from contamination.statistics import sharded_exact_test, sharded_t_test
from contamination.tables import outcome_row
from reproduction.run.experiment import Experiment


def measure(
    experiment: Experiment, *, datasets: Sequence[str], shards: Sequence[int]
) -> dict[str, pd.DataFrame]:
    """Each sharded test under the contaminated model for several numbers of shards (Figure 3a).

    Another number of shards means other sequences, which are scored here. The table is `by_shards`.
    """
    rows, m = [], experiment.profile.scoring.permutations
    for count, dataset in product(shards, datasets):
        store = experiment.score("contaminated", dataset, StorePlan("orderings", count), m)
        rows += _test(experiment, dataset, store.log_probs(m))
    return {"by_shards": pd.DataFrame(rows)}


def permutation_ablation(
    experiment: Experiment,
    datasets: Sequence[str],
    permutations: Sequence[int],
    *,
    replicates: int,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """Each sharded test with fewer permutations, sub-sampled from what is stored (Figure 3b).

    Orderings of a shard are independent, so any subset drawn without looking at their scores is as
    good as having scored no others. `replicates` are drawn of each size, of all there is only one.
    """
    rows, scoring = [], experiment.profile.scoring
    plan = StorePlan("orderings", scoring.shards)
    for dataset in datasets:
        store = experiment.scored("contaminated", dataset, plan, scoring.permutations)
        log_probs = store.log_probs(scoring.permutations)
        for m in permutations:
            for replicate in range(1 if m == scoring.permutations else replicates):
                kept = 1 + rng.permutation(scoring.permutations)[:m]
                rows += _test(experiment, dataset, log_probs[:, [0, *kept]], replicate=replicate)
    return pd.DataFrame(rows)


def _test(
    experiment: Experiment, dataset: str, log_probs: np.ndarray, **facts: int
) -> list[dict[str, Any]]:
    row = {"dataset": dataset, "dup_count": experiment.spec(dataset).dup_count} | facts
    return [row | outcome_row(test(log_probs)) for test in (sharded_t_test, sharded_exact_test)]
