"""Oren's Tables 1 and 2: every cell tested, with controls and corrections.

Every p-value has a verdict on the order of the records, the p-value of a control
(`controls`), and what the command would conclude (`contamination.audit.decision`). The
last row of an audit has all sets of a model and a test in one p-value (`pooling`).
"""

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from contamination.audit.decision import decide, log10_floor
from contamination.audit.objections import ZLIB_BASELINE as NO_MODEL
from contamination.audit.objections import Evidence
from contamination.audit.registry import ITEM_TESTS, TESTS
from contamination.scoring.models import ModelEntry
from contamination.scoring.status import OK
from contamination.scoring.store import open_store
from contamination.statistics import adjust
from contamination.statistics.results import outcome_row
from contamination.tables import format_p, lay_out
from contamination.testsets.example_set import ExampleSet
from reproduction.notebooks.open_models import measure
from reproduction.notebooks.open_models.controls import (
    CONTROL,
    ZLIB_BASELINE,
    Controls,
    add_controls,
)
from reproduction.notebooks.open_models.pooling import pooled_rows
from reproduction.notebooks.open_models.settings import Settings
from reproduction.output.published import published_p
from reproduction.run.experiment import Experiment
from reproduction.run.grid import Row, attempt, p_or_status
from reproduction.run.null_calibration import COUNTS as REDRAWN
from reproduction.run.null_calibration import null_calibration_counts, with_rates

COLUMNS = (
    "model",
    "role",
    "dataset",
    "examples",
    "test",
    "shards",
    "permutations",
    "statistic",
    "p",
    "log10_p",
    "holm_p",
    "bh_p",
    "published_p",
    "dup_count",
    "verdict",
    "control",
    "control_p",
    "status",
    "tokens_scored",
    "model_id",
    "model_revision",
    "dataset_revision",
    "pooled",
    "left_out",
    "conclusion",
)
COUNTS = ("examples", "shards", "permutations", "dup_count", "tokens_scored", "pooled")
BASELINE_P = "p, zlib baseline"  # a heading


def audit_models(
    experiment: Experiment,
    cells: pd.DataFrame,
    settings: Settings,
    *,
    published: Path | str,
    alpha: float,
    redrawn: int = 0,
) -> pd.DataFrame:
    """Test every cell of `reproduction.notebooks.open_models.measure`.

    Parameters
    ----------
    experiment
        The run.
    cells
        The table of `measure`.
    settings
        The settings of `measure`.
    published
        Directory of the papers' tables.
    alpha
        Level of the conclusions.
    redrawn
        Number of redrawn canonical orders of each set, for null calibration; 0 for
        none.

    Returns
    -------
    audit
        A row for each model, set and test, those that failed included, and at the end
        one for each model and test with all sets pooled, see `pooled_rows`. `holm_p`,
        `bh_p` (FDR) and `conclusion` are those of `judged`, `published_p` that of
        `reproduction.output.published.published_p`, `verdict` that of
        `contamination.audit.controls.records` on the records. `dup_count` says how
        often the set was planted, where that is known. `control_p` is the same test
        under the first negative control of the audit, or the exact test under the
        zlib baseline; `control` says which. Null calibration adds the columns of
        `reproduction.run.null_calibration`.
    """
    entries = {entry.name: entry for entry in measure.entries_of(experiment, settings.models)}
    opened = measure.open_sets(experiment, settings)
    sets = {}
    for name, test_set in opened.items():
        if not isinstance(test_set, str):
            sets[name] = test_set
    controls = Controls(sets)
    rows: list[Row] = []
    for cell in tqdm(cells.to_dict("records"), desc="audit", unit="p", disable=None):
        row = _describe(cell, entries[cell["model"]], opened[cell["asked"]], published)
        compute = partial(
            _test_cell,
            experiment,
            controls,
            cell,
            alpha=alpha,
            redrawn=redrawn,
        )
        rows.append(attempt(row, compute))
    add_controls(rows)
    table = judged([*rows, *pooled_rows(rows)], alpha)
    if redrawn:
        counts = pd.DataFrame(rows).reindex(columns=[*REDRAWN, "redrawn_alpha"])
        table = with_rates(table.join(counts.astype(dict.fromkeys(REDRAWN, "Int64"))))
    return table


def _describe(
    cell: Row,
    entry: ModelEntry,
    opened: ExampleSet | str,
    published: Path | str,
) -> Row:
    """Return the columns that describe a cell, and whether its set is available."""
    name = cell["asked"]
    row: Row = {
        "dataset": measure.label(name),
        "role": entry.role,
        "model_id": entry.id,
        "model": cell["model"],
        "test": cell["test"],
        "model_revision": cell["model_revision"],
        "status": cell["status"],
        "published_p": published_p(entry, name, published, test=cell["test"]),
        "dup_count": entry.dup_count(name),
    }
    if not isinstance(opened, str):
        row["texts"] = opened.examples
        row["examples"] = len(opened.examples)
        row["dataset_revision"] = opened.revision
    elif row["status"] == OK:
        row["status"] = opened
    return row


def _test_cell(
    experiment: Experiment,
    controls: Controls,
    cell: Row,
    *,
    alpha: float,
    redrawn: int,
) -> Row:
    """Return the result of a cell, with its controls that need no model."""
    test = TESTS[cell["test"]]
    name = cell["asked"]
    if cell["store"]:
        permutations = cell["permutations"]
        store = open_store(experiment.build / measure.STORES / cell["store"])
    else:
        canary = controls.sets[name].name
        store, permutations = experiment.store_for(cell["model"], canary, test)
    tested = test.result(store, permutations)
    result = outcome_row(tested)
    result["log10_least"] = tested.log10_least
    result["tokens_scored"] = store.tokens_read(permutations)
    if test.kind == "alternatives":
        arrangements = permutations + 1
        return result | controls.of_options(
            name,
            arrangements=arrangements,
            seed=store.header.seed,
        )
    if redrawn:
        result |= null_calibration_counts(
            test,
            store,
            test.scores(store, permutations),
            result["p"],
            orders=redrawn,
            alpha=alpha,
        )
    result["scores"] = partial(test.scores, store, permutations)
    result["control_scores"] = partial(
        controls.compressor_scores,
        name,
        store.header,
        permutations,
    )
    result["verdict"] = controls.order_verdict(name, store.header)
    return result


def judged(rows: Sequence[Row], alpha: float) -> pd.DataFrame:
    """Return the table with two corrections and the verdict on every model and set.

    The corrections, Holm's and that of Benjamini and Hochberg, are over all that the
    table shows as evidence: every test of every cell, and the pooled rows; those of
    negative controls count for nothing and get none. `conclusion` is that of
    `contamination audit` at `alpha`, from all tests.
    """
    table = pd.DataFrame(rows, columns=list(COLUMNS)).astype(
        dict.fromkeys(COUNTS, "Int64"),
    )
    table["holm_p"] = math.nan
    table["bh_p"] = math.nan
    table["conclusion"] = None
    index = table.index[(table["status"] == OK) & (table["role"] != CONTROL)]
    log10_p = table.loc[index, "log10_p"].tolist()
    if log10_p:
        table.loc[index, "holm_p"] = adjust(log10_p=log10_p, method="holm").p
        table.loc[index, "bh_p"] = adjust(log10_p=log10_p, method="benjamini_hochberg").p
    for _, group in table.loc[index].groupby(["model", "dataset"]):
        evidence = []
        for row in group.itertuples():
            log10_least = rows[row.Index].get("log10_least")
            evidence.append(_evidence(row, log10_least, tests=len(index)))
        table.loc[group.index, "conclusion"] = decide(evidence, alpha=alpha).conclusion
    return table


def _evidence(row: Any, log10_least: float | None, *, tests: int) -> Evidence:
    """Return the evidence of a row.

    Parameters
    ----------
    row
        A row of the table.
    log10_least
        log10 of the least p of the row's test, if the test knows its scores; None takes
        the bound of `log10_floor`, by shards and permutations alone.
    tests
        Number of tests in the table.
    """
    if log10_least is None:
        log10_least = log10_floor(row)
    control = NO_MODEL if row.control == ZLIB_BASELINE else row.control
    return Evidence(
        test=row.test,
        p=row.holm_p,
        floor=min(1.0, tests * 10**log10_least),
        order=row.verdict,
        controls={control: row.control_p},
        ordering_bias=row.test in ITEM_TESTS,
    )


def paper_layout(rows: pd.DataFrame, alpha: float) -> pd.DataFrame:
    """Lay out an audit as the paper does: a row for each set and test.

    Order is the verdict on the records. A model's p-value is bold where Holm's
    correction leaves p <= alpha, or says "failed" or "not run here". After it come the
    paper's value, the verdict on an audited model (on all tests of a set, so in the first
    line of the set alone), and last the zlib baseline where it is the control.
    """
    printed = set(rows.loc[rows["published_p"].notna(), "model"])
    zlib_p = rows["control_p"].where(rows["control"] == ZLIB_BASELINE)
    has_zlib = zlib_p.notna().any()
    groups = rows.assign(zlib_p=zlib_p).groupby(["dataset", "test"])
    rows = rows.assign(
        examples=groups["examples"].transform(_same_count),
        verdict=groups["verdict"].transform("first"),
        test=[TESTS[name].label.lower() for name in rows["test"]],
        # of several models, the same
        zlib_p=groups["zlib_p"].transform("min"),
        repeated=rows.duplicated(["model", "dataset"]),
    )

    def cells(row: Row) -> dict[str, str]:
        model = row["model"]
        shown = {f"p, {model}": p_or_status(row, bold=row["holm_p"] <= alpha)}
        if model in printed:
            shown[f"p, {model}, paper"] = format_p(row["published_p"])
        if pd.notna(row["conclusion"]):
            shown[f"Verdict, {model}"] = "" if row["repeated"] else row["conclusion"]
        if has_zlib:
            shown[BASELINE_P] = format_p(row["zlib_p"])
        return shown

    keys = {"dataset": "Set", "examples": "Examples", "verdict": "Order", "test": "Test"}
    table = lay_out(rows, keys, cells)
    if has_zlib:
        table[BASELINE_P] = table.pop(BASELINE_P)  # the last column
    return table


def _same_count(counts: pd.Series) -> Any:
    """Return the examples of a set and test; nothing where models pool other sets."""
    return counts.max() if counts.nunique() == 1 else pd.NA


def model_layout(rows: pd.DataFrame, alpha: float) -> pd.DataFrame:
    """Lay out an audit with a row for each set and model: narrow, for print.

    As `paper_layout`; where the order of records within the shards of one test is
    judged otherwise than within those of another, both are named.
    """
    has_published = rows["published_p"].notna().any()

    def cells(row: Row) -> dict[str, str | None]:
        shown: dict[str, str | None] = {
            TESTS[row["test"]].label: p_or_status(row, bold=row["holm_p"] <= alpha)
        }
        if has_published:
            shown["Paper"] = format_p(row["published_p"])
        shown["Verdict"] = row["conclusion"] if pd.notna(row["conclusion"]) else None
        return shown

    def all_verdicts(verdicts: pd.Series) -> str:
        return "; ".join(verdicts.dropna().unique())

    keys = {"dataset": "Set", "model": "Model", "verdict": "Order"}
    orders = rows["verdict"].mask(rows["test"].isin(ITEM_TESTS)).groupby(rows["dataset"])
    rows = rows.assign(verdict=orders.transform(all_verdicts))
    return lay_out(rows, keys, cells, columns_first=["Verdict"])
