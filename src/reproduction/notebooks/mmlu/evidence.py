"""All evidence on MMLU in one table: Table 4 of Oren, and what was measured here.

The table joins three sources. The paper prints p-values of five models. The profile
`pocket` asked a released model. Two small models, which were trained here and never
read MMLU, took the same tests in `benchmarks`; a run that measured MMLU itself replaces
their numbers.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from contamination.audit.registry import TESTS
from contamination.errors import InputError
from contamination.scoring.status import OK
from contamination.tables import SIGNIFICANT
from reproduction.notebooks.mmlu.measure import subset_names
from reproduction.notebooks.mmlu.tables import published_subsets
from reproduction.output.published import AUDITED, CONTROLS, MEASURED, load_published

TABLES = ("mmlu_subsets", "mmlu_lines")  # of notebook 04
TABLE4, TABLE2 = "oren2024_table4_mmlu", "oren2024_table2_open_models"
COMBINED = "MMLU (Fisher)"  # the row of Table 2
# the paper's rule of exclusion; others are named after their test
PUBLISHED_RULE = "published"
# "contaminated" is a model that has read ten other test sets: here it would be
# misunderstood.
OWN_MODELS = {"contaminated": "our canary model", "clean": "our clean model"}
COLUMNS = (
    "curve",
    "model",
    "test",
    "rule",
    "subset",
    "log10_p",
    "excluded",
    "reason",
    "control",
)


@dataclass(frozen=True, eq=False)
class MmluEvidence:
    """The p-values of every subset, and what its order gives away.

    Attributes
    ----------
    p_values
        A row for each model, test and subset, `COLUMNS`. `curve` is the name of model
        and test for readers; `rule` says who decides which subsets are kept; `control`
        is true of a model that cannot have read MMLU and decides itself.
    lines
        Rows of `reproduction.notebooks.mmlu.lines.line_table`.
    table2
        Curve -> the number that Table 2 prints for Fisher's method.
    source
        Origin of the measured numbers, as a sentence.
    most_records
        Largest number of records of a subset that were measured.
    """

    p_values: pd.DataFrame
    lines: pd.DataFrame
    table2: pd.Series
    source: str
    most_records: int

    def audited(self) -> pd.DataFrame:
        """Return the rows of models that are no controls."""
        return self.p_values[~self.p_values["control"]]

    def of_subset(self, subset: str) -> pd.DataFrame:
        """Return the rows of one subset; raise InputError for an unknown one."""
        check_subset(subset)
        return self.p_values[self.p_values["subset"] == subset]


def check_subset(subset: str) -> None:
    """Raise InputError if MMLU has no subset of this name."""
    if subset not in subset_names():
        names = ", ".join(subset_names())
        raise InputError(f"{subset!r} is no subset of MMLU: choose one of {names}")


def shown_model(model: str) -> str:
    """Return the name of a measured model for readers, without its number format."""
    return OWN_MODELS.get(model, model.partition(",")[0])


def curve_of(model: str, test: str) -> str:
    """Return the name of the curve of a measured model under one test."""
    return f"{shown_model(model)}, {TESTS[test].label.lower()}"


def load_evidence(
    published: Path | str,
    measurements: Path | str,
    released: Path | str,
    results: Path | str,
) -> MmluEvidence:
    """Read all p-values of the subsets of MMLU.

    Parameters
    ----------
    published
        Directory of the papers' tables.
    measurements
        Directory of the measurements that stand in where the run has none.
    released
        Results of the profile `pocket`, which audits a released model.
    results
        Results of the run.

    Raises
    ------
    InputError
        If a table is missing.
    """
    own = _own_tables(results)
    subsets, lines = own or _read_tables(measurements)
    silent = set(lines["model"].dropna())
    pieces = [
        _published_rows(load_published(published, TABLE4)),
        _measured_rows(load_published(Path(released) / "tables", TABLES[0]), set()),
        _measured_rows(subsets, silent),
    ]
    p_values = pd.concat(pieces, ignore_index=True)
    # A run's own numbers stand last, and hold.
    p_values = p_values.drop_duplicates(["curve", "subset"], keep="last")
    most = int(lines.loc[lines["segmentation"] == "record", "examples"].max())
    where = "in this run" if own else "for docs/mmlu.md, not in this run"
    return MmluEvidence(
        p_values=p_values,
        lines=lines,
        table2=_printed_combination(published),
        source=f"Measured {where}; at most {most} records of a subset.",
        most_records=most,
    )


def _own_tables(results: Path | str) -> tuple[pd.DataFrame, pd.DataFrame] | None:
    """Return the tables of a run, or None if it has not measured MMLU."""
    directory = Path(results) / "tables"
    if not all((directory / f"{name}.csv").is_file() for name in TABLES):
        return None
    subsets, lines = _read_tables(directory)
    if lines.empty:
        return None
    return subsets, lines


def _read_tables(directory: Path | str) -> tuple[pd.DataFrame, pd.DataFrame]:
    subsets = load_published(directory, TABLES[0])
    lines = load_published(directory, TABLES[1])
    return subsets, lines


def _published_rows(table4: pd.DataFrame) -> pd.DataFrame:
    rows = published_subsets(table4, SIGNIFICANT)
    rows = rows.assign(
        curve=rows["model"],
        rule=PUBLISHED_RULE,
        log10_p=np.log10(rows["published_p"]),
        control=rows["model"].isin(CONTROLS.values()),
    )
    return rows[list(COLUMNS)]


def _measured_rows(subsets: pd.DataFrame, silent: set[str]) -> pd.DataFrame:
    """Return what was measured; models named by `silent` are controls."""
    rows = subsets[(subsets["source"] == MEASURED) & (subsets["status"] == OK)]
    models = [shown_model(model) for model in rows["model"]]
    curves = [curve_of(*pair) for pair in zip(rows["model"], rows["test"], strict=True)]
    rule = rows["test"] if silent else PUBLISHED_RULE
    rows = rows.assign(
        curve=curves,
        model=models,
        rule=rule,
        reason=rows["reason"].fillna(""),
        excluded=rows["excluded"].astype(bool),
        control=rows["model"].isin(silent),
    )
    return rows[list(COLUMNS)]


def _printed_combination(published: Path | str) -> pd.Series:
    table = load_published(published, TABLE2).set_index("dataset")
    return table.loc[COMBINED, list(AUDITED)].rename(AUDITED)
