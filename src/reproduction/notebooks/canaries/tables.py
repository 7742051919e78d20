"""The tests on the canary sets (Oren, Table 1): computed from stores, and laid out as text."""

from itertools import product
from typing import Any

import pandas as pd

from contamination.audit.battery import TESTS
from contamination.statistics import adjust
from contamination.tables import Layout, format_p, lay_out, outcome_row
from reproduction.notebooks.canaries.score import CANARY_TESTS
from reproduction.run.experiment import MODELS, Experiment
from reproduction.run.null_calibration import (
    COUNTS,
    format_null_rejections,
    null_calibration_counts,
    with_rates,
)


def canary_table(experiment: Experiment, *, alpha: float, redrawn: int) -> pd.DataFrame:
    """Run every test on every canary set under both models: a row for each of them.

    `dup_count` is what the contaminated model was given, `holm_p` is Holm's correction over the
    sets of one model and test, `tokens_scored` is what the model had to read for the test.

    The columns `redrawn_*` are those of `null_calibration_counts`, with rates
    and their intervals. The test of the whole set has too few orderings for it, and no entry.
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
            row |= null_calibration_counts(
                *(test, store, scores, result.p), orders=redrawn, alpha=alpha
            )
        rows.append(row)
    table = pd.DataFrame(rows).astype(dict.fromkeys(COUNTS, "Int64"))
    table["holm_p"] = table.groupby(["model", "test"])["log10_p"].transform(
        lambda log10_p: adjust(log10_p=log10_p, method="holm").p
    )
    return with_rates(table)


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
    """Lay out `pooled_null_calibration`: a row for each test, a column for each model."""
    return lay_out(
        pooled.assign(
            label=[TESTS[test].label for test in pooled["test"]],
            orders=pooled["redrawn_orders"].map("{:,.0f}".format),
        ),
        {"label": "Test", "orders": "Redrawn orders"},
        lambda row: {f"{row['model'].capitalize()} model": format_null_rejections(row)},
    )
