"""The tests on the canary sets (Oren, Table 1): read from stores, completed first."""

from typing import Any

import pandas as pd

from contamination.audit.battery import TESTS
from contamination.pretraining.experiment import MODELS, Experiment
from contamination.results.tables import outcome_row
from contamination.statistics import adjust

# Those of the paper, the exact test on shards, and two that count fewer tokens.
CANARY_TESTS = ("permutation", "sharded_t", "sharded_exact", "boundary", "successor")


def canary_table(experiment: Experiment) -> pd.DataFrame:
    """Run every test on every canary set under both models: a row for each of them.

    `dup_count` is what the contaminated model was given, `holm_p` is Holm's correction over the
    sets of one model and test, `tokens_scored` is what the model had to read for the test.
    """
    rows: list[dict[str, Any]] = []
    for model in MODELS:
        for spec in experiment.profile.canaries:
            facts = {
                "model": model,
                "dataset": spec.name,
                "kind": experiment.corpus_facts["canaries"][spec.name]["kind"],
                "examples": spec.examples,
                "dup_count": spec.dup_count,
            }
            for name in CANARY_TESTS:
                store, permutations = experiment.store_for(model, spec.name, TESTS[name])
                result = outcome_row(TESTS[name].result(store, permutations))
                cost = {"tokens_scored": store.header.tokens_of(permutations)}
                rows.append(facts | result | cost)
    table = pd.DataFrame(rows)
    table["holm_p"] = table.groupby(["model", "test"])["log10_p"].transform(
        lambda log10_p: adjust(log10_p=log10_p, method="holm").p
    )
    return table
