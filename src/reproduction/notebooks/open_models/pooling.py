"""All sets of a model and a test in one p-value.

A set that was read once shows next to nothing alone, but the exact test adds the shards
of all sets, and what all show a little they show together.
"""

import math
from collections.abc import Sequence

import numpy as np

from contamination.audit.registry import ITEM_TESTS
from contamination.scoring.status import OK
from contamination.statistics import adjust, pooled_exact_test
from contamination.statistics.results import outcome_row
from contamination.tables import POOLED, SIGNIFICANT
from reproduction.run.grid import Row, attempt

FEWEST = 2  # sets to pool


def pooled_rows(rows: Sequence[Row]) -> list[Row]:
    """Return a row for each model and test that several sets have taken.

    `rows` have their controls, and where they are done `texts`, their examples, and
    `scores` and `control_scores`: functions that return the scores of all shards, (r, m
    + 1). Tests that take the best of several statistics have no such scores and no row,
    nor have those of options, which test no order of records. All others are pooled by
    `contamination.statistics.pooled_exact_test`, the paper's t-test among them; H0 is
    that of every set, whose orders are independent draws given the model.

    `pooled` counts the sets that went in, `left_out` names the others: without a
    p-value, with an order that is not quiet, with an example of a set before (the draws
    are independent without one), or with a control that rejects at 0.05 after Holm's
    correction over the sets. Without that correction one quiet set in twenty would be
    lost to chance, and the control, which is that of the same sets, pooled, would be
    reassuring for having lost its smallest p-values. Where sets are left out for their
    order, p is no longer exact: see `pooled_exact_test`.
    """
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row["test"] not in ITEM_TESTS:
            groups.setdefault((row["model"], row["test"]), []).append(row)
    pooled = [_pooled(group) for group in groups.values() if len(group) >= FEWEST]
    return [row for row in pooled if row["status"] != OK or "p" in row]


def _pooled(group: Sequence[Row]) -> Row:
    """Return the pooled row of a model and test; without p if it has no scores."""
    chosen, left_out = _chosen(group)
    row: Row = {"dataset": POOLED}
    for name in ("model", "role", "test", "model_id", "model_revision"):
        row[name] = group[0][name]
    row["pooled"] = len(chosen)
    row["status"] = OK
    row["left_out"] = "; ".join(f"{name} ({why})" for name, why in left_out.items())
    if len(chosen) < FEWEST:
        row["status"] = f"not pooled: {len(chosen)} of {len(group)} sets are left"
        return row

    def compute() -> Row:
        scores = [set_row["scores"]() for set_row in chosen]
        if any(of_set.ndim != 2 for of_set in scores):
            return {}
        pooled = pooled_exact_test(scores)
        result = outcome_row(pooled)
        result["log10_least"] = pooled.log10_least
        result["test"] = row["test"]
        result["examples"] = sum(set_row["examples"] for set_row in chosen)
        result["tokens_scored"] = sum(set_row["tokens_scored"] for set_row in chosen)
        result["verdict"] = "quiet"
        result["control"] = "several"
        controls = {set_row["control"] for set_row in chosen}
        if len(controls) == 1:
            control_scores = [set_row["control_scores"]() for set_row in chosen]
            result["control"] = controls.pop()
            result["control_p"] = pooled_exact_test(control_scores).p
        return result

    return attempt(row, compute)


def _chosen(group: Sequence[Row]) -> tuple[list[Row], dict[str, str]]:
    """Return the rows that are pooled, and the reason why another set is not."""
    chosen: list[Row] = []
    reasons: dict[str, str] = {}
    for row, control_p in zip(group, _corrected_control_p(group), strict=True):
        reason = _reason_against(row, control_p, chosen)
        if reason is None:
            chosen.append(row)
        else:
            reasons[row["dataset"]] = reason
    return chosen, reasons


def _corrected_control_p(group: Sequence[Row]) -> np.ndarray:
    """Return p of the controls after Holm's correction over the sets; NaN of none."""
    p = np.array([row.get("control_p", math.nan) for row in group], dtype=float)
    known = ~np.isnan(p)
    if known.any():
        p[known] = adjust(np.log10(p[known]), method="holm").p
    return p


def _reason_against(row: Row, control_p: float, chosen: Sequence[Row]) -> str | None:
    """Return why a set is not pooled with those chosen before it; None if it is."""
    if row["status"] != OK:
        return "no p-value"
    if row["verdict"] != "quiet":
        return f"order: {row['verdict']}"
    if control_p <= SIGNIFICANT:
        return f"{row['control']} rejects"
    for other in chosen:
        if set(row["texts"]) & set(other["texts"]):
            return f"has examples of {other['dataset']}"
    return None
