"""Numbers of shards and of permutations (Oren, Figure 3): each sharded test under every setting."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from contamination.errors import InputError
from contamination.pretraining.experiment import Experiment
from contamination.results.tables import outcome_row
from contamination.statistics import sharded_exact_test, sharded_t_test

SHARDED_TESTS = (sharded_t_test, sharded_exact_test)


def shard_ablation(
    experiment: Experiment, datasets: Sequence[str], shards: Sequence[int]
) -> pd.DataFrame:
    """Each sharded test under the contaminated model for several numbers of shards (Figure 3a).

    Another number of shards means other sequences; `contamination.experiments.ablation.measure` has
    scored them.
    """
    permutations = experiment.profile.scoring.permutations
    rows = []
    for count in tqdm(shards, desc="numbers of shards", unit="setting"):
        for dataset in datasets:
            store = experiment.scored(
                "contaminated", dataset, shards=count, permutations=permutations
            )
            facts = {"dataset": dataset, "dup_count": experiment.spec(dataset).dup_count}
            rows += _test(store.log_probs(permutations), facts)
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

    Orderings 1..m are independent, so any subset of them drawn without looking at their scores is
    as good as having scored no others. `replicates` subsets are drawn for each number; the full
    number has only one.
    """
    scoring = experiment.profile.scoring
    if too_many := [m for m in permutations if m > scoring.permutations]:
        raise InputError(
            f"permutations {too_many[0]}: only {scoring.permutations} are scored; raise "
            "scoring.permutations in the profile or ask for fewer"
        )
    rows = []
    for dataset in datasets:
        store = experiment.scored(
            "contaminated", dataset, shards=scoring.shards, permutations=scoring.permutations
        )
        log_probs = store.log_probs(scoring.permutations)
        facts = {"dataset": dataset, "dup_count": experiment.spec(dataset).dup_count}
        for m in permutations:
            for replicate in range(1 if m == scoring.permutations else replicates):
                chosen = 1 + rng.permutation(scoring.permutations)[:m]
                rows += _test(log_probs[:, [0, *chosen]], facts | {"replicate": replicate})
    return pd.DataFrame(rows)


def _test(log_probs: np.ndarray, facts: dict[str, Any]) -> list[dict[str, Any]]:
    return [facts | outcome_row(test(log_probs)) for test in SHARDED_TESTS]


def mean_log10_p(rows: pd.DataFrame, setting: str) -> pd.DataFrame:
    """Mean log10 p over sets (each set's replicates first), by setting and test."""
    by_set = rows.groupby([setting, "test", "dataset"], as_index=False)["log10_p"].mean()
    grouped = by_set.groupby([setting, "test"], as_index=False)["log10_p"]
    table = grouped.mean().rename(columns={"log10_p": "mean_log10_p"})
    table["datasets"] = grouped.size()["size"]
    return pd.DataFrame(table)
