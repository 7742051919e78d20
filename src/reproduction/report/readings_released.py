"""Numbers of the report on models that others have released: a section for each notebook."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from contamination.audit.registry import TESTS
from contamination.scoring.status import OK
from contamination.tables import POOLED, SIGNIFICANT
from reproduction.notebooks.assumptions.tables import CHANCE, MEAN
from reproduction.output.published import MEASURED
from reproduction.report.prose import Texts, count_text, rounded, texts
from reproduction.run.null_calibration import (
    format_null_rejections,
    pooled_null_calibration,
)

TableReader = Callable[[str], pd.DataFrame]  # opens a table of the run by its name
# column -> what it names
KINDS = {"model": "models", "dataset": "sets", "subset": "subsets"}
VALUES = {"auc": 2, "auc_percent": 1}  # column -> digits of its range


def numbers_of_cells(cells: pd.DataFrame) -> Texts:
    """Count the rows of a table, the measured ones, and their small p-values.

    `tested` have a p-value (after Holm's correction, if there is one), and `rejected`
    are at most 0.05 of these; `off` are intervals that leave out chance, `lowest` and
    `highest` the ends of the range of `values`.
    """
    measured = cells[cells["status"] == OK]
    variables = texts(cells=len(cells), measured=len(measured))
    for beginning in ("failed", "not run", "not asked"):
        is_such = cells["status"].str.startswith(beginning)
        variables[beginning.replace(" ", "_")] = count_text(is_such)
    for column, word in KINDS.items():
        if column in cells:
            variables[word] = count_text(measured[column].nunique())
    p_column = next((name for name in ("holm_p", "p") if name in cells), None)
    if p_column is not None:
        p_values = measured[p_column].dropna()
        variables |= texts(tested=len(p_values), rejected=p_values <= SIGNIFICANT)
    for column, digits in VALUES.items():
        if column in cells:
            values = measured[column].dropna()
            variables |= texts(
                values=len(values),
                lowest=rounded(values.min(), digits=digits),
                highest=rounded(values.max(), digits=digits),
            )
    if "auc_low" in cells:
        chance = CHANCE if "auc_percent" in cells else 0.5
        is_off = (measured["auc_low"] > chance) | (measured["auc_high"] < chance)
        variables["off"] = count_text(is_off)
    return variables


LEVEL = np.log10(SIGNIFICANT)
COMPARED = "status == 'ok' and unit == 'log10 p'"
SUBSETS = "source == 'measured' and test == @test"  # of `counted_test`
# Section of the report, called as the package of its notebook -> beginning of the names
# of its facts -> the table that they are read from, and which of its rows.
RELEASED: dict[str, dict[str, tuple[str, str]]] = {
    "open_models": {
        "": ("open_models", f"dataset != '{POOLED}'"),
        "quiet_": ("open_models", f"dataset != '{POOLED}' and verdict == 'quiet'"),
    },
    "mmlu": {
        "": ("mmlu_subsets", SUBSETS),
        "dropped_": ("mmlu_subsets", f"{SUBSETS} and excluded == True"),
        "fisher_": ("mmlu_fisher", "source == 'measured'"),
    },
    "wikimia": {"": ("wikimia", "")},
    "assumptions": {
        "": ("assumptions_within", f"domain != '{MEAN}'"),
        "blind_": ("assumptions_blind", ""),
    },
    "papers": {
        "": ("papers", ""),
        "verdict_": ("papers", COMPARED),
        "same_": (
            "papers",
            f"{COMPARED} and (ours <= {LEVEL}) == (published <= {LEVEL})",
        ),
    },
}


def numbers_of_section(section: str, table: TableReader) -> Texts:
    """Read the facts of a section; `table` opens a table of the run by its name."""
    variables: Texts = {}
    for prefix, (name, query) in RELEASED[section].items():
        cells = table(name)
        if "@test" in query:
            test = counted_test(cells)
            variables["test"] = TESTS[test].label.lower()
        rows = cells.query(query) if query else cells
        for key, text in numbers_of_cells(rows).items():
            variables[f"{prefix}{key}"] = text
    if section == "open_models":
        variables["redrawn"] = _null_calibration_of_tests(cells)
    return variables


def _null_calibration_of_tests(cells: pd.DataFrame) -> str:
    """Write the percent of redrawn orders that each test rejects, if the run has drawn any."""
    none = "none in this run"
    if "redrawn_orders" not in cells:
        return none
    pooled = pooled_null_calibration(cells)
    if pooled.empty:
        return none
    rates = []
    for _, row in pooled.iterrows():
        rates.append(f"{TESTS[row['test']].label} {format_null_rejections(row)}")
    orders = int(pooled["redrawn_orders"].max())
    return f"of {orders:,} in each test, percent rejected: {'; '.join(rates)}"


def counted_test(subsets: pd.DataFrame) -> str:
    """Name the test whose p-values of MMLU are counted: the paper's, or the first of the run."""
    tests = subsets.loc[subsets["source"] == MEASURED, "test"].unique()
    if "sharded_t" in tests or not len(tests):
        return "sharded_t"
    return str(tests[0])
