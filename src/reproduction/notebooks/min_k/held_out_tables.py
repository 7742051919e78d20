"""The table of planted sets and their held-out twins, with the order test, and its layouts."""

from typing import Any

import pandas as pd

from contamination.statistics import adjust
from contamination.tables import Layout, format_p, lay_out
from reproduction.run.injection import PLANTINGS

ORDER = "successor"  # of the tests of order the one that needs the fewest tokens
FURTHER = "trained further"  # the clean model, after it has read the further sets
READERS = ("contaminated", FURTHER)  # models that have read the sets of their rows
COLUMNS = (
    "model",
    "dataset",
    "kind",
    "planting",
    "dup_count",
    "published",
    "held_out",
    "p",
    "log10_p",
    "holm_p",
    "score",
    "auc",
    "blind_p",
    "verdict",
    "order_p",
    "order_log10_p",
    "order_holm_p",
)
KEYS = ["model", "dataset"]


def with_order_tests(measured: pd.DataFrame, canaries: pd.DataFrame) -> pd.DataFrame:
    """Return the table with the order test of every set, and Holm's correction of it.

    Holm's correction goes over the sets that a model has read in one training, and under
    the clean model over the same sets.

    Parameters
    ----------
    measured
        `COLUMNS`, in which further sets have a p-value of the order test.
    canaries
        The table of notebook 01, which has that of the sets of the profile.
    """
    tested = canaries.loc[canaries["test"] == ORDER, [*KEYS, "p", "log10_p"]]
    tested = tested.set_index(KEYS)
    table = measured.set_index(KEYS)
    table["order_p"] = table["order_p"].astype(float).fillna(tested["p"])
    table["order_log10_p"] = table["order_log10_p"].astype(float).fillna(tested["log10_p"])
    table["order_holm_p"] = table["order_holm_p"].astype(float)
    table = table.reset_index()
    is_further = table["dataset"].isin(table.loc[table["model"] == FURTHER, "dataset"])
    for _, rows in table.groupby(["model", is_further], sort=False):
        holm = adjust(log10_p=rows["order_log10_p"].to_numpy(), method="holm").p
        table.loc[rows.index, "order_holm_p"] = holm
    return table[list(COLUMNS)]


def held_out_layout(table: pd.DataFrame, *, alpha: float) -> Layout:
    """Lay out a line for each set: records, both p-values, the verdict, and the controls.

    Parameters
    ----------
    table
        The table of `with_order_tests`.
    alpha
        A p-value is bold where Holm's correction leaves at most this.
    """
    shown = table.assign(
        rank=table["planting"].map({name: rank for rank, name in enumerate(PLANTINGS)}),
        is_read=table["model"].isin(READERS),
    )
    shown = shown.sort_values(["rank", "dup_count"], kind="stable")
    index = {
        "dataset": "Set",
        "planting": "Planted",
        "dup_count": "Copies",
        "published": "Published",
        "held_out": "Held out",
    }

    def cell(row: dict[Any, Any]) -> dict[str, str]:
        p = format_p(row["p"], row["log10_p"], bold=row["holm_p"] <= alpha)
        if not row["is_read"]:
            return {"Held-out p, clean model": p}
        order_p = format_p(
            row["order_p"],
            row["order_log10_p"],
            bold=row["order_holm_p"] <= alpha,
        )
        return {
            "Held-out p": p,
            "Verdict": row["verdict"],
            "Order p": order_p,
            "Blind p": format_p(row["blind_p"]),
        }

    columns = ["Held-out p", "Order p", "Held-out p, clean model", "Blind p", "Verdict"]
    return lay_out(shown, index, cell, columns_first=columns)


def found_by_planting(table: pd.DataFrame, *, alpha: float) -> pd.DataFrame:
    """Count the sets that each way finds after Holm's correction, by planting and copies.

    Parameters
    ----------
    table
        The table of `with_order_tests`.
    alpha
        Level.

    Returns
    -------
    model, planting, dup_count (0 under the clean model), sets, held_out: sets of which
    that p-value rejects, verdict: sets of which the verdict says "proven" or "evidence",
    order: sets of which the order test rejects.
    """
    rows = table.assign(
        dup_count=table["dup_count"].where(table["model"].isin(READERS), 0),
        by_held_out=table["holm_p"] <= alpha,
        by_verdict=table["verdict"].isin(["proven", "evidence"]),
        by_order=table["order_holm_p"] <= alpha,
    )
    groups = rows.groupby(["model", "planting", "dup_count"], sort=False)
    counts = groups.agg(
        sets=("dataset", "size"),
        held_out=("by_held_out", "sum"),
        verdict=("by_verdict", "sum"),
        order=("by_order", "sum"),
    )
    return counts.reset_index()
