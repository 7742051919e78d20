"""The tests on the canary sets (Oren, Table 1 and Figure 2) and their settings (Oren, Figure 3).

Everything here reads stores; a store that lacks orderings is completed first. Rows are tidy: one
test of one set under one model each.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from contamination.battery import TESTS
from contamination.errors import InputError
from contamination.experiment import MODELS, Experiment
from contamination.statistics import (
    TestResult,
    adjust,
    recombination_test,
    sharded_t_test,
)
from contamination.store import Store

# Those of the paper, the exact one, and two from fewer tokens.
CANARY_TESTS = ("permutation", "sharded_t", "exact", "boundary", "successor")


def canary_table(experiment: Experiment) -> pd.DataFrame:
    """Every test on every canary set under both models.

    Returns
    -------
    DataFrame
        model, dataset, kind, examples, dup_count (what the contaminated model was given), test,
        shards, permutations, statistic, p, log10_p, holm_p (Holm over the sets of one model and
        test) and tokens_scored (what the model had to read for the test).
    """
    rows: list[dict[str, Any]] = []
    for model in MODELS:
        for spec in experiment.profile.canaries:
            for name in CANARY_TESTS:
                store, permutations = store_for(experiment, model, spec.name, name)
                result = TESTS[name].result(name, store, permutations)
                rows.append(
                    {
                        "model": model,
                        "dataset": spec.name,
                        "kind": experiment.corpus_facts["canaries"][spec.name]["kind"],
                        "examples": spec.examples,
                        "dup_count": spec.dup_count,
                        **_outcome(result),
                        "tokens_scored": store.header.tokens_of(permutations),
                    }
                )
    table = pd.DataFrame(rows)
    table["holm_p"] = table.groupby(["model", "test"])["log10_p"].transform(
        lambda log10_p: adjust(log10_p=log10_p, method="holm").p
    )
    return table


def store_for(experiment: Experiment, model: str, dataset: str, test: str) -> tuple[Store, int]:
    """Store that a test of a canary set reads in this profile, and the number of permutations."""
    scoring, chosen = experiment.profile.scoring, TESTS[test]
    shards, permutations = scoring.shards, scoring.permutations
    if chosen.shard_size is None:
        shards, permutations = 1, scoring.whole_set_permutations
    elif chosen.kind == "successors":
        shards = max(1, experiment.spec(dataset).examples // chosen.shard_size)
    store = experiment.scored(
        model,
        dataset,
        shards=shards,
        permutations=permutations,
        kind=chosen.kind,
        first=chosen.first,
    )
    return store, permutations


def _outcome(result: TestResult) -> dict[str, Any]:
    return {
        "test": result.test,
        "shards": result.shards,
        "permutations": result.permutations,
        "statistic": result.statistic,
        "p": result.p,
        "log10_p": result.log10_p,
    }


SHARDED_TESTS = (sharded_t_test, recombination_test)


def shard_ablation(
    experiment: Experiment, datasets: Sequence[str], shards: Sequence[int]
) -> pd.DataFrame:
    """Each sharded test under the contaminated model for several numbers of shards (Figure 3a).

    Another number of shards means other sequences, so all but the profile's own are scored anew.
    """
    permutations = experiment.profile.scoring.permutations
    rows = []
    for count in tqdm(shards, desc="numbers of shards", unit="setting"):
        for dataset in datasets:
            store = experiment.scored(
                "contaminated", dataset, shards=count, permutations=permutations
            )
            log_probs = store.log_probs(permutations)
            dup_count = experiment.spec(dataset).dup_count
            rows += [
                {"dataset": dataset, "dup_count": dup_count, **_outcome(test(log_probs))}
                for test in SHARDED_TESTS
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
        dup_count = experiment.spec(dataset).dup_count
        for m in permutations:
            for replicate in range(1 if m == scoring.permutations else replicates):
                chosen = 1 + rng.permutation(scoring.permutations)[:m]
                subset = log_probs[:, [0, *chosen]]
                rows += [
                    {
                        "dataset": dataset,
                        "dup_count": dup_count,
                        "replicate": replicate,
                        **_outcome(test(subset)),
                    }
                    for test in SHARDED_TESTS
                ]
    return pd.DataFrame(rows)


def mean_log10_p(rows: pd.DataFrame, setting: str) -> pd.DataFrame:
    """Mean log10 p over sets (each set's replicates first), by setting and test."""
    by_set = rows.groupby([setting, "test", "dataset"], as_index=False)["log10_p"].mean()
    grouped = by_set.groupby([setting, "test"], as_index=False)["log10_p"]
    table = grouped.mean().rename(columns={"log10_p": "mean_log10_p"})
    table["datasets"] = grouped.size()["size"]
    return pd.DataFrame(table)
