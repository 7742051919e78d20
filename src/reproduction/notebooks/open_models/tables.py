"""Oren's Tables 1 and 2: every cell tested, with controls and corrections.

A negative control is a model that cannot be contaminated (Oren, section 4.3). Beside every p-value
stand a verdict on the order of the records, the p-value of a control, and what the command would
conclude (`contamination.audit.decision`). The last row of an audit has all sets of a model and a
test in one p-value: a set that was read once shows next to nothing alone, but the exact test adds
the shards of all sets, and what all show a little they show together.
"""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from contamination.audit.controls.options import diagnose_arrangements
from contamination.audit.controls.records import diagnose_order
from contamination.audit.controls.zlib import zlib_option_test, zlib_scores
from contamination.audit.decision import ZLIB_BASELINE as NO_MODEL
from contamination.audit.decision import Evidence, decide, log10_floor
from contamination.audit.registry import ITEM_TESTS, TESTS
from contamination.audit.request import Request
from contamination.scoring.models import ModelEntry
from contamination.scoring.status import OK
from contamination.scoring.store import open_store
from contamination.scoring.store_format import Header
from contamination.statistics import adjust, pooled_exact_test, sharded_exact_test
from contamination.tables import POOLED, SIGNIFICANT, format_p, lay_out, outcome_row
from contamination.testsets.example_set import ExampleSet
from reproduction.notebooks.open_models import measure
from reproduction.notebooks.open_models.settings import Settings
from reproduction.output.published import published_p
from reproduction.run.experiment import Experiment
from reproduction.run.grid import Row, attempt, p_or_status
from reproduction.run.null_calibration import COUNTS as REDRAWN
from reproduction.run.null_calibration import null_calibration_counts, with_rates

FEWEST = 2  # sets to pool
CONTROL = "negative_control"  # role of a model
ZLIB_BASELINE = "compressor"
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


def pooled_rows(rows: Sequence[Row]) -> list[Row]:
    """Return a row for each model and test that several sets were put to.

    `rows` have their controls, and where they are done `texts`, their examples, and `scores` and
    `control_scores`: functions that return the scores of all shards, (r, m + 1). Tests that take
    the best of several statistics have no such scores and no row, nor have those of options, which
    test no order of records. All others are pooled by
    `contamination.statistics.pooled_exact_test`, the paper's t-test among them; H0 is that of every
    set, whose orders are independent draws given the model.

    `pooled` counts the sets that went in, `left_out` names the others: without a p-value, with an
    order that is not quiet, with an example of a set before (the draws are independent without
    one), or with a control that rejects at 0.05 after Holm's correction over the sets. Without that
    correction one quiet set in twenty would be lost to chance, and the control, which is that of
    the same sets, pooled, would be reassuring for having lost its smallest p-values.
    """
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row["test"] not in ITEM_TESTS:
            groups.setdefault((row["model"], row["test"]), []).append(row)
    pooled = [_pooled(group) for group in groups.values() if len(group) >= FEWEST]
    return [row for row in pooled if row["status"] != OK or "p" in row]


def _pooled(group: Sequence[Row]) -> Row:
    """Return the pooled row of a model and test, without a p-value if the test has no scores."""
    chosen, left_out = _chosen(group)
    row = {name: group[0][name] for name in ("model", "role", "test", "model_id", "model_revision")}
    row["dataset"] = POOLED
    row["pooled"] = len(chosen)
    row["status"] = OK
    row["left_out"] = "; ".join(f"{name} ({why})" for name, why in left_out.items())
    if len(chosen) < FEWEST:
        row["status"] = f"not pooled: {len(chosen)} of {len(group)} sets are left"
        return row

    def compute() -> Row:
        scores = [set_row["scores"]() for set_row in chosen]
        if any(of_set.ndim != 2 for of_set in scores):
            return {}
        result = outcome_row(pooled_exact_test(scores))
        result["test"] = row["test"]
        result["examples"] = sum(set_row["examples"] for set_row in chosen)
        result["tokens_scored"] = sum(set_row["tokens_scored"] for set_row in chosen)
        result["verdict"] = "quiet"
        result["control"] = "several"
        controls = {set_row["control"] for set_row in chosen}
        if len(controls) == 1:
            control_scores = [set_row["control_scores"]() for set_row in chosen]
            result["control"] = controls.pop()
            result["control_p"] = pooled_exact_test(control_scores).p
        return result

    return attempt(row, compute)


def _chosen(group: Sequence[Row]) -> tuple[list[Row], dict[str, str]]:
    """Return the rows that are pooled, and for each other set the reason why it is not."""
    chosen: list[Row] = []
    reasons: dict[str, str] = {}
    for row, control_p in zip(group, _corrected_control_p(group), strict=True):
        reason = _reason_against(row, control_p, chosen)
        if reason is None:
            chosen.append(row)
        else:
            reasons[row["dataset"]] = reason
    return chosen, reasons


def _corrected_control_p(group: Sequence[Row]) -> np.ndarray:
    """Return the p-values of the controls after Holm's correction over the sets; NaN of none."""
    p = np.array([row.get("control_p", math.nan) for row in group], dtype=float)
    known = ~np.isnan(p)
    if known.any():
        p[known] = adjust(np.log10(p[known]), method="holm").p
    return p


def _reason_against(row: Row, control_p: float, chosen: Sequence[Row]) -> str | None:
    """Return why a set is not pooled with those chosen before it; None if it is."""
    if row["status"] != OK:
        return "no p-value"
    if row["verdict"] != "quiet":
        return f"order: {row['verdict']}"
    if control_p <= SIGNIFICANT:
        return f"{row['control']} rejects"
    for other in chosen:
        if set(row["texts"]) & set(other["texts"]):
            return f"has examples of {other['dataset']}"
    return None


class Controls:
    """Facts about the sets of an audit that need no model, computed once for each set.

    Attributes
    ----------
    sets : by their names in the audit.
    """

    def __init__(self, sets: Mapping[str, ExampleSet]) -> None:
        self.sets = sets
        self._cached: dict[tuple[Any, ...], Any] = {}

    def order_verdict(self, name: str, header: Header) -> str:
        """Return the verdict on the order of records within the shards of a store."""
        key = ("order", name, header.shards, header.seed)
        if key not in self._cached:
            diagnosis = diagnose_order(self.sets[name], shards=header.shards, seed=header.seed)
            self._cached[key] = diagnosis.verdict
        return str(self._cached[key])

    def compressor_scores(self, name: str, header: Header, permutations: int) -> np.ndarray:
        """Return the compressor's scores of the orderings of a store, (r, m + 1)."""
        key = ("compressor", name, header.shards, header.seed, header.kind, permutations)
        if key not in self._cached:
            self._cached[key] = zlib_scores(
                self.sets[name],
                shards=header.shards,
                seed=header.seed,
                kind=header.kind,
                permutations=permutations,
            )
        return np.asarray(self._cached[key])

    def of_options(self, name: str, *, arrangements: int, seed: int) -> Row:
        """Return the verdict on the arrangements of a set, and the compressor's p-value."""
        key = ("options", name, arrangements, seed)
        if key not in self._cached:
            request = Request(axis="options", arrangements=arrangements, seed=seed)
            test_set = self.sets[name]
            diagnosis = diagnose_arrangements(test_set, seed=request.seed, keep=request.keep)
            p = zlib_option_test(request.option_variants(test_set)).p
            self._cached[key] = {"verdict": diagnosis.verdict, "compressor_p": p}
        return dict(self._cached[key])


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
    experiment : the run.
    cells : the table of `measure`.
    settings : those of `measure`.
    published : directory of the papers' tables.
    alpha : level of the conclusions.
    redrawn : canonical orders of each set that are drawn anew, for null calibration; 0 for none.

    Returns
    -------
    audit
        A row for each model, set and test, those that failed included, and at the end one for each
        model and test with all sets pooled, see `pooled_rows`. `holm_p`, `bh_p` (FDR) and
        `conclusion` are those of `judged`, `published_p` that of
        `reproduction.output.published.published_p`, `verdict` that of
        `contamination.audit.controls.records` on the records. `dup_count` says how often the set
        was planted, where that is known. `control_p` is the same test under the first negative
        control of the audit, or the exact test under a compressor; `control` says which. Null
        calibration adds the columns of `reproduction.run.null_calibration`.
    """
    entries = {entry.name: entry for entry in measure.entries_of(experiment, settings.models)}
    opened = measure.open_sets(experiment, settings)
    sets = {name: found for name, found in opened.items() if not isinstance(found, str)}
    controls = Controls(sets)
    rows: list[Row] = []
    for cell in tqdm(cells.to_dict("records"), desc="audit", unit="p", disable=None):
        row = _describe(cell, entries[cell["model"]], opened[cell["asked"]], published)
        compute = partial(_test_cell, experiment, controls, cell, alpha=alpha, redrawn=redrawn)
        rows.append(attempt(row, compute))
    add_controls(rows)
    table = judged([*rows, *pooled_rows(rows)], alpha)
    if redrawn:
        counts = pd.DataFrame(rows).reindex(columns=[*REDRAWN, "redrawn_alpha"])
        table = with_rates(table.join(counts.astype(dict.fromkeys(REDRAWN, "Int64"))))
    return table


def _describe(cell: Row, entry: ModelEntry, opened: ExampleSet | str, published: Path | str) -> Row:
    """Return the columns that describe a cell; its status says if the set is unavailable."""
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
    experiment: Experiment, controls: Controls, cell: Row, *, alpha: float, redrawn: int
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
    result = outcome_row(test.result(store, permutations))
    result["tokens_scored"] = store.tokens_read(permutations)
    if test.kind == "alternatives":
        arrangements = permutations + 1
        return result | controls.of_options(name, arrangements=arrangements, seed=store.header.seed)
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
    result["control_scores"] = partial(controls.compressor_scores, name, store.header, permutations)
    result["verdict"] = controls.order_verdict(name, store.header)
    return result


def add_controls(rows: Sequence[Row]) -> None:
    """Add to each row with a p-value that of the first negative control.

    Of a row without such a control it is that of a compressor: `compressor_p`, or the exact test
    of `control_scores`, where it reads what the model has read.
    """
    done = [row for row in rows if row["status"] == OK]
    controls: dict[tuple[str, str], Row] = {}
    for row in done:
        if row["role"] == CONTROL:
            controls.setdefault((row["dataset"], row["test"]), row)
    for row in tqdm(done, desc="controls", unit="p", leave=False):
        control = controls.get((row["dataset"], row["test"]))
        if control is not None and control["model"] != row["model"]:
            row["control"] = control["model"]
            row["control_p"] = control["p"]
            row["control_scores"] = control.get("scores")
            continue
        scores = row.get("control_scores")
        row["control"] = ZLIB_BASELINE
        row["control_p"] = sharded_exact_test(scores()).p if scores else row["compressor_p"]


def judged(rows: Sequence[Row], alpha: float) -> pd.DataFrame:
    """Return the table, with two corrections and the verdict on every audited model and set.

    The corrections, Holm's and that of Benjamini and Hochberg, are over all that the table shows as
    evidence: every test of every cell, and the pooled rows; those of negative controls count for
    nothing and get none. `conclusion` is that of `contamination audit` at `alpha`, from all tests.
    """
    table = pd.DataFrame(rows, columns=list(COLUMNS)).astype(dict.fromkeys(COUNTS, "Int64"))
    table["holm_p"] = math.nan
    table["bh_p"] = math.nan
    table["conclusion"] = None
    index = table.index[(table["status"] == OK) & (table["role"] != CONTROL)]
    log10_p = table.loc[index, "log10_p"].tolist()
    if log10_p:
        table.loc[index, "holm_p"] = adjust(log10_p=log10_p, method="holm").p
        table.loc[index, "bh_p"] = adjust(log10_p=log10_p, method="benjamini_hochberg").p
    for _, group in table.loc[index].groupby(["model", "dataset"]):
        evidence = [_evidence(row, tests=len(index)) for row in group.itertuples()]
        table.loc[group.index, "conclusion"] = decide(evidence, alpha=alpha).conclusion
    return table


def _evidence(row: Any, *, tests: int) -> Evidence:
    """Return the evidence of a row, given the number of tests in the table."""
    control = NO_MODEL if row.control == ZLIB_BASELINE else row.control
    return Evidence(
        test=row.test,
        p=row.holm_p,
        floor=min(1.0, tests * 10 ** log10_floor(row)),
        order=row.verdict,
        controls={control: row.control_p},
        ordering_bias=row.test in ITEM_TESTS,
    )


def paper_layout(rows: pd.DataFrame, alpha: float) -> pd.DataFrame:
    """Lay out an audit as the paper does: a row for each set and test, models side by side.

    Order is the verdict on the records. A model's p-value is bold where Holm's correction leaves
    p <= alpha, or says "failed" or "not run here". After it come the paper's value, the verdict
    on an audited model (on all tests of a set), and last the compressor where it is the control.
    """
    printed = set(rows.loc[rows["published_p"].notna(), "model"])
    compressor_p = rows["control_p"].where(rows["control"] == ZLIB_BASELINE)
    has_compressor = compressor_p.notna().any()
    groups = rows.assign(compressor_p=compressor_p).groupby(["dataset", "test"])
    rows = rows.assign(
        examples=groups["examples"].transform(_same_count),
        verdict=groups["verdict"].transform("first"),
        test=[TESTS[name].label.lower() for name in rows["test"]],
        compressor_p=groups["compressor_p"].transform("min"),  # of several models, the same
    )

    def cells(row: Row) -> dict[str, str]:
        shown = {row["model"]: p_or_status(row, bold=row["holm_p"] <= alpha)}
        if row["model"] in printed:
            shown[f"{row['model']}, paper"] = format_p(row["published_p"])
        if pd.notna(row["conclusion"]):
            shown[f"{row['model']}, verdict"] = row["conclusion"]
        if has_compressor:
            shown["Compressor"] = format_p(row["compressor_p"])
        return shown

    keys = {"dataset": "Set", "examples": "Examples", "verdict": "Order", "test": "Test"}
    table = lay_out(rows, keys, cells)
    if has_compressor:
        table["Compressor"] = table.pop("Compressor")  # the last column
    return table


def _same_count(counts: pd.Series) -> Any:
    """Return the examples of a set and test; nothing where models pool different sets."""
    return counts.max() if counts.nunique() == 1 else pd.NA


def model_layout(rows: pd.DataFrame, alpha: float) -> pd.DataFrame:
    """Lay out an audit with a row for each set and model, tests side by side: narrow, for print.

    As `paper_layout`; where the order of records within the shards of one test is judged otherwise
    than within those of another, both are named.
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
