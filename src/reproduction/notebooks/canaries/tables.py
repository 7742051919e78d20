"""Tables of the canary sets: every test on every set, and what the paper prints (Oren, Table 1)."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from contamination.audit.battery import TESTS
from contamination.tables import format_estimate, format_p, lay_out
from reproduction.output.published import PRINTED


def canary_layout(canaries: pd.DataFrame, model: str, alpha: float) -> pd.DataFrame:
    """Lay out Table 1 for one model: a row for each set, a column for each test.

    `canaries` comes from `canary_table`. Beside the exact test stands its p-value after Holm's
    correction over the sets, bold where that is at most `alpha`; beside the successor test the
    share of redrawn canonical orders that it rejects. The clean model has read no set, so its
    duplication count is 0.
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


def redrawn_layout(pooled: pd.DataFrame) -> pd.DataFrame:
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


def published_layout(table1: pd.DataFrame) -> pd.DataFrame:
    """Lay out Table 1 as printed: a row for each set, a column for each of the paper's tests."""
    return lay_out(
        table1,
        {"dataset": "Set", "size": "Examples", "dup_count": "Duplication count"},
        lambda row: {
            f"{TESTS[test].label} p": format_p(row[name]) for name, test in PRINTED.items()
        },
    )
