"""The released model that the profile `pocket` asked about MMLU, in runs that do not."""

from typing import Any

import pandas as pd

from contamination.audit.registry import TESTS
from contamination.scoring.status import OK
from contamination.tables import Layout, format_p, lay_out
from reproduction.notebooks.mmlu.measure import title
from reproduction.output.published import MEASURED

NAMED = "run of profile pocket"


def released_rows(subsets: pd.DataFrame) -> pd.DataFrame:
    """Return the measured p-values of a run: a row for each subset and test.

    The model has its name without its number format, such as Q4_1.
    """
    rows = subsets[(subsets["source"] == MEASURED) & (subsets["status"] == OK)]
    names = rows["model"].str.partition(",")[0]
    return rows.assign(model=names, excluded=rows["excluded"].astype(bool))


def released_panels(rows: pd.DataFrame) -> dict[str, dict[str, pd.Series]]:
    """Return panels of `plot_ecdf`: p-values of the subsets that the filter keeps."""
    panels = {}
    for test, of_test in rows[~rows["excluded"]].groupby("test", sort=False):
        title = f"{TESTS[test].label}, {NAMED}"
        panels[title] = dict(list(of_test.groupby("model", sort=False)["p"]))
    return panels


def released_layout(rows: pd.DataFrame) -> Layout:
    """Lay out the p-values: a row for each subset, a column for each model and test.

    Bold: the paper's filter excludes the subset.
    """

    def cell(row: dict[Any, Any]) -> dict[str, str]:
        test = TESTS[row["test"]].label.lower()
        heading = f"{row['model']}, {test} ({NAMED})"
        return {heading: format_p(row["p"], row["log10_p"], bold=row["excluded"])}

    index = {"subset": "Subset", "examples": "Records"}
    return lay_out(rows.assign(subset=rows["subset"].map(title)), index, cell)
