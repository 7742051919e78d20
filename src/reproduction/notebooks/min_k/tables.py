"""Oren's Table 5 laid out: shares of spans that scores detect, beside p-values of the tests."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from contamination.audit.battery import TESTS
from contamination.tables import format_p, lay_out

BESIDE = ("sharded_t", "sharded_exact", "successor")  # tests that stand beside the heuristics


def beside_the_tests(
    table: pd.DataFrame, canaries: pd.DataFrame, model: str, labels: Mapping[str, str], alpha: float
) -> pd.DataFrame:
    """Lay out Oren's Table 5 as text: a row per set, shares detected and p-values of one model.

    `table` comes from `min_k_baseline`, `canaries` is notebook 01's, `labels` head the scores. The
    duplication count is 0 under the clean model. A share is "13%"; the p-value of each test of
    `BESIDE` is bold where Holm's correction over the sets leaves at most `alpha`.
    """
    keys = ["dataset", "dup_count", "spans"]
    shares = table[(table["model"] == model) & table["score"].isin(list(labels))]
    tested = canaries[(canaries["model"] == model) & canaries["test"].isin(BESIDE)]
    sets = shares[keys].drop_duplicates()
    rows = pd.concat([shares, sets.merge(tested[["dataset", "test", "p", "log10_p", "holm_p"]])])

    def cells(row: dict[Any, Any]) -> dict[str, str]:
        if row["score"] in labels:
            return {labels[row["score"]]: f"{row['share_detected']:.0%}"}
        p = format_p(row["p"], row["log10_p"], bold=row["holm_p"] <= alpha)
        return {TESTS[row["test"]].label: p}

    return lay_out(
        rows.assign(dup_count=rows["dup_count"] * (model != "clean")),
        {"dataset": "Set", "dup_count": "Duplication count", "spans": "Spans"},
        cells,
        columns_first=[*labels.values(), *(TESTS[name].label for name in BESIDE)],
    )
