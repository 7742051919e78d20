"""The last row of an audit: all sets of a model and a test in one p-value.

A set that was read once shows next to nothing alone. The exact test adds the shards of all sets, at
no cost in tokens, and sets that all show a little show it together.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from contamination.audit.compressor import compressor_scores, compressor_test
from contamination.audit.diagnosis import Verdict
from contamination.audit.diagnostics import diagnose_order
from contamination.scoring.status import FAILURES, OK, status_of
from contamination.statistics import adjust, pooled_exact_test
from contamination.tables import POOLED, SIGNIFICANT, outcome_row
from contamination.testsets.example_set import ExampleSet
from reproduction.notebooks.open_models.measure import SetName

Row = dict[str, Any]
FEWEST = 2  # sets to pool


class WithoutModel:
    """What is known of opened sets without a model; each answer is computed once."""

    def __init__(self, sets: Mapping[SetName, ExampleSet]) -> None:
        self.opened = sets
        self.verdict = cache(self._verdict)
        self.compressor_p = cache(self._compressor_p)
        self.pooled_compressor_p = cache(self._pooled_compressor_p)

    def _verdict(self, name: SetName, shards: int, seed: int) -> Verdict:
        """Diagnose the order of the records within the shards of a test."""
        return diagnose_order(self.opened[name], seed=seed, shards=shards).verdict

    def _compressor_p(self, name: SetName, **store: Any) -> float:
        """Test the shards of a store under a compressor: the p-value."""
        return compressor_test(self.opened[name], **store).p

    def _pooled_compressor_p(
        self, stores: tuple[tuple[SetName, tuple[tuple[str, Any], ...]], ...]
    ) -> float:
        """Test the shards of several sets at once under a compressor; each with its store."""
        scores = [compressor_scores(self.opened[name], **dict(store)) for name, store in stores]
        return pooled_exact_test(scores).p


def why_left_out(row: Row, control_p: float) -> str | None:
    """Why a set is not pooled, or None: it has no p-value, its order is not quiet, or its control
    rejects at 0.05. The p-value of the row itself is not asked.

    `control_p` is that of its control after Holm's correction over the sets of the audit. Without
    it one quiet set in twenty would be lost to chance; and the control of those that are left,
    pooled, would be the more reassuring for having lost its smallest p-values.
    """
    if row["status"] != OK:
        return "no p-value"
    if row["verdict"] != "quiet":
        return f"order: {row['verdict']}"
    if control_p <= SIGNIFICANT:
        return f"{row['control']} rejects"
    return None


def pooled_rows(rows: Sequence[Row], sets: WithoutModel) -> list[Row]:
    """Return a row for each model and test that were asked of several sets.

    `rows` have their controls, and `scores` where they are done: a function that returns the scores
    of all shards, (r, m + 1). Tests that take the best of several statistics have no such scores
    and no row. All others are pooled by the exact test, the paper's t-test among them: p is that of
    `contamination.statistics.pooled_exact_test`. `pooled` counts the sets that went in, `left_out`
    names the others with the reason. The control is that of the sets, pooled over the same ones.

    H0 is that of every set: its order is exchangeable given the model. Given the model, the orders
    of different sets are independent draws.
    """
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["model"], row["test"]), []).append(row)
    found = []
    for group in groups.values():
        if len(group) >= FEWEST:
            found += _pooled(group, rows, sets)
    return found


def _pooled(group: Sequence[Row], rows: Sequence[Row], sets: WithoutModel) -> list[Row]:
    """Return one row, or none where the test has no scores to add."""
    reasons = {
        row["dataset"]: why_left_out(row, p)
        for row, p in zip(group, _corrected_controls(group), strict=True)
    }
    chosen = [row for row in group if reasons[row["dataset"]] is None]
    shared = ("model", "role", "test", "model_id", "model_revision")
    row: Row = {name: group[0][name] for name in shared} | {
        "dataset": POOLED,
        "published_p": math.nan,
        "dataset_revision": "",
        "pooled": len(chosen),
        "left_out": "; ".join(f"{name} ({why})" for name, why in reasons.items() if why),
        "status": OK,
    }
    if len(chosen) < FEWEST:
        return [row | {"status": f"not pooled: {len(chosen)} of {len(group)} sets are left"}]
    try:
        scores = [one["scores"]() for one in chosen]
        if any(each.ndim != 2 for each in scores):
            return []
        row |= outcome_row(pooled_exact_test(scores)) | {"test": row["test"]}
        row |= _control(chosen, rows, sets)
    except FAILURES as error:
        return [row | {"status": status_of(error)}]
    totals = {name: sum(one[name] for one in chosen) for name in ("examples", "tokens_scored")}
    return [row | totals | {"verdict": "quiet"}]


def _corrected_controls(group: Sequence[Row]) -> list[float]:
    """Return the p-value of each set's control after Holm's correction, NaN of one without."""
    p = np.array([row.get("control_p", math.nan) for row in group], dtype=float)
    known = ~np.isnan(p)
    if known.any():
        p[known] = adjust(p[known], method="holm").p
    return [float(each) for each in p]


def _control(chosen: Sequence[Row], rows: Sequence[Row], sets: WithoutModel) -> Row:
    """Pool the control of the chosen sets; where they have several, none stands for all."""
    names = {row["control"] for row in chosen}
    if len(names) > 1:
        return {"control": "several", "control_p": math.nan}
    (name,) = names
    by_set = {
        row["dataset"]: row["scores"]
        for row in rows
        if row["model"] == name and row["test"] == chosen[0]["test"] and row["status"] == OK
    }
    if by_set:
        p = pooled_exact_test([by_set[row["dataset"]]() for row in chosen]).p
    else:
        p = sets.pooled_compressor_p(
            tuple((row["name"], tuple(row["store"].items())) for row in chosen)
        )
    return {"control": name, "control_p": p}
