"""The tests on the canary sets (Oren, Table 1): computed, and laid out."""

from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from contamination.audit.registry import TESTS
from contamination.statistics import adjust
from contamination.statistics.results import outcome_row
from contamination.tables import Layout, format_p, lay_out
from reproduction.notebooks.canaries.score import CANARY_TESTS
from reproduction.run.experiment import MODELS, Experiment
from reproduction.run.null_calibration import (
    COUNTS,
    format_null_rejections,
    null_calibration_counts,
    with_rates,
)
from reproduction.run.profile import CanarySpec


def canary_table(experiment: Experiment, *, alpha: float, redrawn: int) -> pd.DataFrame:
    """Run every test on every canary set under both models: a row for each of them.

    Parameters
    ----------
    experiment
        The run.
    alpha
        Level at which null calibration counts rejections.
    redrawn
        Number of redrawn canonical orders of each set, for null calibration.

    Returns
    -------
    canaries
        `dup_count` is how often the contaminated model read the set, `holm_p` is Holm's
        correction over the sets of one model and test, `tokens_scored` counts the
        tokens that the model had to read for the test. The columns `redrawn_*` are
        those of `null_calibration_counts`, with rates and their intervals. The test of
        the whole set has too few orderings for it, and no entry.
    """
    rows = []
    for model, spec, name in product(MODELS, experiment.profile.canaries, CANARY_TESTS):
        rows.append(
            _test_set(experiment, model, spec, name, alpha=alpha, redrawn=redrawn),
        )
    table = pd.DataFrame(rows).astype(dict.fromkeys(COUNTS, "Int64"))
    log10_p_values = table.groupby(["model", "test"])["log10_p"]
    table["holm_p"] = log10_p_values.transform(lambda log10_p: adjust(log10_p, method="holm").p)
    return with_rates(table)


def with_floors(rows: pd.DataFrame) -> pd.DataFrame:
    """Add floor_log10_p, log10 of the least p that the orderings of a set permit.

    The sharded t-test has none: its law is approximate.
    """
    floors = -rows["shards"] * np.log10(1 + rows["permutations"])
    return rows.assign(floor_log10_p=floors.where(rows["test"] != "sharded_t", -np.inf))


def _test_set(
    experiment: Experiment,
    model: str,
    spec: CanarySpec,
    name: str,
    *,
    alpha: float,
    redrawn: int,
) -> dict[str, Any]:
    """Return the row of a test of a canary set under a model."""
    test = TESTS[name]
    store, permutations = experiment.store_for(model, spec.name, test)
    scores = test.scores(store, permutations)
    result = test.result_from_scores(store, scores)
    row: dict[str, Any] = {
        "model": model,
        "dataset": spec.name,
        "kind": experiment.corpus_facts["canaries"][spec.name]["kind"],
        "examples": spec.examples,
        "dup_count": spec.dup_count,
    }
    row |= outcome_row(result)
    row["tokens_scored"] = store.tokens_read(permutations)
    is_of_whole_set = test.shard_size is None
    if not is_of_whole_set:
        row |= null_calibration_counts(
            test,
            store,
            scores,
            result.p,
            orders=redrawn,
            alpha=alpha,
        )
    return row


def canary_layout(canaries: pd.DataFrame, model: str, alpha: float) -> Layout:
    """Lay out Table 1 for one model: a row for each set, a column for each test.

    The exact test has a second column, its p-value after Holm's correction over the
    sets, bold where at most `alpha`; so has the successor test, with the share of
    redrawn canonical orders that it rejects. The clean model has read no set, so its
    duplication count is 0.

    Parameters
    ----------
    canaries
        The table of notebook 01.
    model
        The one that is shown.
    alpha
        Level of the p-values in bold.
    """

    def cells(row: dict[str, Any]) -> dict[str, str]:
        label = TESTS[row["test"]].label
        shown = {label: format_p(row["p"], row["log10_p"])}
        if row["test"] == "sharded_exact":
            shown[f"{label}, Holm"] = format_p(
                row["holm_p"],
                bold=row["holm_p"] <= alpha,
            )
        if row["test"] == "successor":
            shown["Redrawn"] = f"{row['redrawn_rate']:.1%}"
        return shown

    rows = canaries[canaries["model"] == model].sort_values(
        ["dup_count", "dataset"],
        kind="stable",
    )
    if model == "clean":
        rows = rows.assign(dup_count=0)
    keys = {"dataset": "Set", "examples": "Examples", "dup_count": "Duplication count"}
    return lay_out(rows, keys, cells)


def null_calibration_layout(pooled: pd.DataFrame) -> Layout:
    """Lay out `pooled_null_calibration`: a row for each test, models side by side."""

    def cell(row: dict[str, Any]) -> dict[str, str]:
        return {f"{row['model'].capitalize()} model": format_null_rejections(row)}

    rows = pooled.assign(
        label=[TESTS[test].label for test in pooled["test"]],
        orders=pooled["redrawn_orders"].map("{:,.0f}".format),
    )
    return lay_out(rows, {"label": "Test", "orders": "Redrawn orders"}, cell)
