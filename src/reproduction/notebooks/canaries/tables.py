"""The tests on the canary sets (Oren, Table 1): computed from stores, and laid out as text."""

from collections.abc import Mapping
from itertools import product
from typing import Any

import pandas as pd
from statsmodels.stats.proportion import proportion_confint

from contamination.audit.battery import TESTS
from contamination.audit.redrawn import redrawn_p_values
from contamination.statistics import adjust
from contamination.tables import Layout, format_estimate, format_p, lay_out, outcome_row
from reproduction.notebooks.canaries.score import CANARY_TESTS
from reproduction.run.experiment import MODELS, Experiment


def canary_table(experiment: Experiment, *, alpha: float, redrawn: int) -> pd.DataFrame:
    """Run every test on every canary set under both models: a row for each of them.

    `dup_count` is what the contaminated model was given, `holm_p` is Holm's correction over the
    sets of one model and test, `tokens_scored` is what the model had to read for the test.

    The columns `redrawn_*` are a control that costs no scoring (`contamination.audit.redrawn`): of
    so many canonical orders drawn anew for each set, `redrawn_rejections` have p at most `alpha`, a
    rate with its Clopper-Pearson interval (95%), and `redrawn_as_small` one at most that of the
    published order. The test of the whole set has too few orderings for it, and no entry.
    """
    rows: list[dict[str, Any]] = []
    for model, spec, name in product(MODELS, experiment.profile.canaries, CANARY_TESTS):
        test = TESTS[name]
        store, permutations = experiment.store_for(model, spec.name, test)
        scores = test.scores(store, permutations)
        result = test.judge(store, scores)
        kind = experiment.corpus_facts["canaries"][spec.name]["kind"]
        row = {"model": model, "dataset": spec.name, "kind": kind, "examples": spec.examples}
        row |= {"dup_count": spec.dup_count, **outcome_row(result)}
        row["tokens_scored"] = store.header.tokens_of(permutations)
        if test.shard_size is not None:
            p = redrawn_p_values(test, store, scores, draws=redrawn)
            row |= {"redrawn_orders": redrawn, "redrawn_alpha": alpha}
            row["redrawn_rejections"] = int((p <= alpha).sum())
            row["redrawn_as_small"] = int((p <= result.p).sum())
        rows.append(row)
    counts = [f"redrawn_{name}" for name in ("orders", "rejections", "as_small")]
    table = pd.DataFrame(rows).astype(dict.fromkeys(counts, "Int64"))
    table["holm_p"] = table.groupby(["model", "test"])["log10_p"].transform(
        lambda log10_p: adjust(log10_p=log10_p, method="holm").p
    )
    return _with_rates(table)


def pooled_redrawn(canaries: pd.DataFrame) -> pd.DataFrame:
    """Count the redrawn orders of all sets that each test rejects: a row for each model and test.

    Draws are independent given the scores, also over sets, so that the interval of the binomial law
    holds (a sum of unequal chances varies less).
    """
    keys = ["model", "test", "redrawn_alpha"]
    grouped = canaries.dropna(subset="redrawn_orders").groupby(keys, sort=False)
    table = grouped[["redrawn_orders", "redrawn_rejections"]].sum().assign(sets=grouped.size())
    return _with_rates(table.reset_index())


def _with_rates(table: pd.DataFrame) -> pd.DataFrame:
    """Add the share of redrawn orders that are rejected, and its Clopper-Pearson interval (95%)."""
    hits, orders = (table[f"redrawn_{name}"].astype(float) for name in ("rejections", "orders"))
    low, high = proportion_confint(hits, orders, method="beta")
    return table.assign(redrawn_rate=hits / orders, redrawn_low=low, redrawn_high=high)


def canary_layout(canaries: pd.DataFrame, model: str, alpha: float) -> Layout:
    """Lay out Table 1 for one model: a row for each set, a column for each test.

    Beside the exact test stands its p-value after Holm's correction over the sets, bold where at
    most `alpha`; beside the successor test the share of redrawn canonical orders that it rejects.
    The clean model has read no set, so its duplication count is 0.
    """

    def cells(row: dict[str, Any]) -> dict[str, str]:
        label = TESTS[row["test"]].label
        shown = {label: format_p(row["p"], row["log10_p"])}
        if row["test"] == "sharded_exact":
            shown[f"{label}, Holm"] = format_p(row["holm_p"], bold=row["holm_p"] <= alpha)
        if row["test"] == "successor":
            shown["Redrawn"] = f"{row['redrawn_rate']:.1%}"
        return shown

    rows = canaries[canaries["model"] == model].sort_values(["dup_count", "dataset"], kind="stable")
    return lay_out(
        rows.assign(dup_count=0) if model == "clean" else rows,
        {"dataset": "Set", "examples": "Examples", "dup_count": "Duplication count"},
        cells,
    )


def redrawn_layout(pooled: pd.DataFrame) -> Layout:
    """Lay out `pooled_redrawn`: a row for each test, a column for each model."""
    return lay_out(
        pooled.assign(
            label=[TESTS[test].label for test in pooled["test"]],
            orders=pooled["redrawn_orders"].map("{:,.0f}".format),
        ),
        {"label": "Test", "orders": "Redrawn orders"},
        lambda row: {f"{row['model'].capitalize()} model": format_redrawn(row)},
    )


def format_redrawn(row: Mapping[str, float]) -> str:
    """Percent of the redrawn orders that are rejected, with its interval: "4.9 (4.6 to 5.3)"."""
    numbers = (100 * row[f"redrawn_{name}"] for name in ("rate", "low", "high"))
    return format_estimate(*numbers, digits=1)
