"""The pretrained model in whose further training sets were planted (docs/power.md)."""

from typing import Any

import pandas as pd

from contamination.tables import Layout, lay_out

# Tests whose means are shown, with their shards, and their headings.
COLUMNS = {
    ("successor", 4): "Successor",
    ("sharded_t", 10): "Sharded t",
    ("sharded_exact", 10): "Sharded exact",
}
SEEDS = {"planted": "first", "planted-2": "second"}
PLANTINGS = {
    "whole": "whole, in canonical order",
    "shuffled": "whole, shuffled each time",
    "single": "single records, scattered",
}


def pretrained_layout(means: pd.DataFrame) -> Layout:
    """Lay out the means of `docs/measurements/planted_means.csv` of the contaminated model.

    A row for each planting, number of copies and seed: the number of sets, the mean
    log10 p of each test with the number of sets that it rejects in brackets, and the
    AUC of Min-20%.
    """

    def cell(row: dict[Any, Any]) -> dict[str, str]:
        heading = COLUMNS[row["test"], row["shards"]]
        log10_p = f"{row['log10_p']:.2f}".replace("-", "−")
        return {heading: f"{log10_p} ({row['proven']})", "AUC": f"{row['auc']:.2f}"}

    is_shown = pd.MultiIndex.from_frame(means[["test", "shards"]]).isin(list(COLUMNS))
    rows = means[is_shown & (means["model"] == "contaminated")]
    rows = rows.assign(
        planting=rows["planting"].map(PLANTINGS),
        profile=rows["profile"].map(SEEDS),
        place=rows["planting"].map(list(PLANTINGS).index),
    )
    rows = rows.sort_values(["place", "dup_count", "profile"], kind="stable")
    index = {
        "planting": "Planted",
        "dup_count": "Copies",
        "profile": "Seed",
        "sets": "Sets",
    }
    table = lay_out(rows, index, cell)
    table["AUC"] = table.pop("AUC")  # last, after what is log10 p
    return table
