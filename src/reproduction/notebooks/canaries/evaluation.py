"""The tests on the canary sets (Oren, Table 1): read from stores, completed first."""

from typing import Any

import pandas as pd
from statsmodels.stats.proportion import proportion_confint

from contamination.audit.battery import TESTS
from contamination.audit.redrawn import redrawn_p_values
from contamination.statistics import adjust
from contamination.tables import outcome_row
from reproduction.run.experiment import MODELS, Experiment

# Those of the paper, the exact test on shards, and two that count fewer tokens.
CANARY_TESTS = ("permutation", "sharded_t", "sharded_exact", "boundary", "successor")


def canary_table(experiment: Experiment, *, alpha: float, redrawn: int) -> pd.DataFrame:
    """Run every test on every canary set under both models: a row for each of them.

    `dup_count` is what the contaminated model was given, `holm_p` is Holm's correction over the
    sets of one model and test, `tokens_scored` is what the model had to read for the test.

    The columns `redrawn_*` are a control that costs no scoring (`contamination.audit.redrawn`): so
    many canonical orders are drawn anew for each set (`redrawn_orders`), `redrawn_rejections` of
    them have p at most `alpha`, a rate with its Clopper-Pearson interval (95%), and of
    `redrawn_as_small` the p-value is at most that of the published order. The test of the whole set
    has too few orderings for it, and no entry.
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
                test = TESTS[name]
                store, permutations = experiment.store_for(model, spec.name, test)
                scores = test.scores(store, permutations)
                result = test.judge(store, scores)
                row = facts | outcome_row(result)
                row["tokens_scored"] = store.header.tokens_of(permutations)
                if test.shard_size is not None:
                    p = redrawn_p_values(test, store, scores, draws=redrawn)
                    row["redrawn_orders"] = redrawn
                    row["redrawn_alpha"] = alpha
                    row["redrawn_rejections"] = int((p <= alpha).sum())
                    row["redrawn_as_small"] = int((p <= result.p).sum())
                rows.append(row)
    table = pd.DataFrame(rows)
    counts = [f"redrawn_{name}" for name in ("orders", "rejections", "as_small")]
    table[counts] = table[counts].astype("Int64")
    table["holm_p"] = table.groupby(["model", "test"])["log10_p"].transform(
        lambda log10_p: adjust(log10_p=log10_p, method="holm").p
    )
    return with_rates(table)


def pooled_redrawn(canaries: pd.DataFrame) -> pd.DataFrame:
    """Count the redrawn orders of all sets that each test rejects: a row for each model and test.

    The columns of `canary_table` that begin with `redrawn`, and `sets`. Draws are independent given
    the scores, also over sets, so that the interval of the binomial law holds (a sum of unequal
    chances varies less).
    """
    rows = canaries.dropna(subset="redrawn_orders")
    keys = ["model", "test", "redrawn_alpha"]
    grouped = rows.groupby(keys, sort=False)
    table = grouped[["redrawn_orders", "redrawn_rejections"]].sum().assign(sets=grouped.size())
    return with_rates(table.reset_index())


def with_rates(table: pd.DataFrame) -> pd.DataFrame:
    """Add the share of redrawn orders that are rejected, and its Clopper-Pearson interval (95%)."""
    hits, orders = (table[f"redrawn_{name}"].astype(float) for name in ("rejections", "orders"))
    low, high = proportion_confint(hits, orders, method="beta")
    return table.assign(redrawn_rate=hits / orders, redrawn_low=low, redrawn_high=high)
