"""Tables of the canary sets: every test on every set, and what the paper prints (Oren, Table 1)."""

from typing import Any

import pandas as pd

from contamination.audit.battery import TESTS
from contamination.results.tables import format_p, lay_out

PRINTED = {"permutation_p": "permutation", "sharded_p": "sharded_t"}  # column of Table 1 -> test


def canary_layout(canaries: pd.DataFrame, model: str, alpha: float) -> pd.DataFrame:
    """Lay out Table 1 for one model: a row for each set, a column for each test.

    `canaries` comes from `canary_table`. Beside the exact test stands its p-value after Holm's
    correction over the sets, bold where that is at most `alpha`. The clean model has read no set,
    so its duplication count is 0.
    """

    def cells(row: dict[str, Any]) -> dict[str, str]:
        label = TESTS[row["test"]].label
        shown = {label: format_p(row["p"], row["log10_p"])}
        if row["test"] == "sharded_exact":
            shown[f"{label}, Holm"] = format_p(row["holm_p"], bold=row["holm_p"] <= alpha)
        return shown

    rows = canaries[canaries["model"] == model].sort_values(["dup_count", "dataset"], kind="stable")
    return lay_out(
        rows.assign(dup_count=0) if model == "clean" else rows,
        {"dataset": "Set", "examples": "Examples", "dup_count": "Duplication count"},
        cells,
    )


def published_layout(table1: pd.DataFrame) -> pd.DataFrame:
    """Lay out Table 1 as printed: a row for each set, a column for each of the paper's tests."""
    return lay_out(
        table1,
        {"dataset": "Set", "size": "Examples", "dup_count": "Duplication count"},
        lambda row: {
            f"{TESTS[test].label} p": format_p(row[name]) for name, test in PRINTED.items()
        },
    )
