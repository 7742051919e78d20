"""Oren's Tables 1 and 2: every cell tested, with controls and corrections beside its p-value.

A negative control is a model that cannot be contaminated (Oren, section 4.3). Beside every p-value
stand a verdict on the order of the records, the p-value of a control, and what the command would
conclude (`contamination.audit.conclusion`). The last row of an audit has all sets of a model and a
test in one p-value: a set that was read once shows next to nothing alone, but the exact test adds
the shards of all sets, and what all show a little they show together.
"""

import math
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from contamination.audit import conclusion
from contamination.audit.battery import ITEM_TESTS, TESTS
from contamination.audit.compressor import compressor_alternatives, compressor_scores
from contamination.audit.diagnostics import diagnose_arrangements, diagnose_order
from contamination.audit.request import Request
from contamination.scoring.status import OK
from contamination.scoring.store import open_store
from contamination.statistics import adjust, pooled_exact_test, sharded_exact_test
from contamination.tables import POOLED, SIGNIFICANT, format_p, lay_out, outcome_row
from reproduction.notebooks.open_models import measure
from reproduction.output.published import published_p
from reproduction.run.experiment import Experiment
from reproduction.run.grid import Row, attempt, p_or_status
from reproduction.run.null_calibration import COUNTS as REDRAWN
from reproduction.run.null_calibration import null_calibration_counts, with_rates

FEWEST = 2  # sets to pool
CONTROL = "negative_control"  # role of a model
COMPRESSOR = "compressor"
COLUMNS = (
    *("model", "role", "dataset", "examples", "test", "shards", "permutations", "statistic", "p"),
    *("log10_p", "holm_p", "bh_p", "published_p", "dup_count", "verdict", "control", "control_p"),
    *("status", "tokens_scored", "model_id", "model_revision", "dataset_revision"),
    *("pooled", "left_out", "conclusion"),
)
COUNTS = ("examples", "shards", "permutations", "dup_count", "tokens_scored", "pooled")


def pooled_rows(rows: Sequence[Row]) -> list[Row]:
    """Return a row for each model and test that were asked of several sets.

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
    found = [_pooled(group) for group in groups.values() if len(group) >= FEWEST]
    return [row for row in found if row["status"] != OK or "p" in row]


def _pooled(group: Sequence[Row]) -> Row:
    """Return the row, without a p-value where the test has no scores to add."""
    chosen, left_out = _chosen(group)
    row = {name: group[0][name] for name in ("model", "role", "test", "model_id", "model_revision")}
    row |= {"dataset": POOLED, "pooled": len(chosen), "status": OK}
    row["left_out"] = "; ".join(f"{name} ({why})" for name, why in left_out.items())
    if len(chosen) < FEWEST:
        return row | {"status": f"not pooled: {len(chosen)} of {len(group)} sets are left"}

    def compute() -> Row:
        scores = [one["scores"]() for one in chosen]
        if any(each.ndim != 2 for each in scores):
            return {}
        found = outcome_row(pooled_exact_test(scores)) | {"test": row["test"]}
        found |= {name: sum(one[name] for one in chosen) for name in ("examples", "tokens_scored")}
        found |= {"verdict": "quiet", "control": "several"}
        if len(controls := {one["control"] for one in chosen}) == 1:
            p = pooled_exact_test([one["control_scores"]() for one in chosen]).p
            found |= {"control": controls.pop(), "control_p": p}
        return found

    return attempt(row, compute)


def _chosen(group: Sequence[Row]) -> tuple[list[Row], dict[str, str]]:
    """Return the rows that are pooled, and why the other sets are not."""
    kept: list[Row] = []
    p = np.array([row.get("control_p", math.nan) for row in group], dtype=float)
    if (known := ~np.isnan(p)).any():
        p[known] = adjust(np.log10(p[known]), method="holm").p
    reasons = {}
    for row, control_p in zip(group, p, strict=True):
        if row["status"] != OK:
            reasons[row["dataset"]] = "no p-value"
        elif row["verdict"] != "quiet":
            reasons[row["dataset"]] = f"order: {row['verdict']}"
        elif control_p <= SIGNIFICANT:
            reasons[row["dataset"]] = f"{row['control']} rejects"
        elif twice := [one for one in kept if {*row["texts"]} & {*one["texts"]}]:
            reasons[row["dataset"]] = f"has examples of {twice[0]['dataset']}"
        else:
            kept.append(row)
    return kept, reasons


def audit_models(
    experiment: Experiment,
    cells: pd.DataFrame,
    models: Sequence[str],
    sets: Sequence[str],
    *,
    max_records: int | None,
    published: Path | str,
    alpha: float,
    by_line: bool = False,
    redrawn: int = 0,
) -> pd.DataFrame:
    """Test every cell of `reproduction.notebooks.open_models.measure`.

    A row for each model, set and test, those that failed included, and at the end one for each
    model and test with all sets pooled, see `pooled_rows`. `holm_p`, `bh_p` (FDR) and `conclusion`
    are those of `judged`, `published_p` that of `reproduction.output.published.published_p`,
    `verdict` that of `contamination.audit.diagnostics` on the records. `dup_count` says how often
    the set was planted, where that is known. `control_p` is the same test under the first negative
    control of the audit, or the exact test under a compressor; `control` says which. Of so many
    canonical orders `redrawn` for each set, if any, there are the columns of
    `reproduction.run.null_calibration.null_calibration_counts` as well.

    Parameters are those of `measure`, whose table is `cells`; `published` is the directory of the
    papers' tables.
    """
    entries = {entry.name: entry for entry in measure.entries_of(experiment, models)}
    opened = measure.open_sets(experiment, sets, max_records, by_line=by_line)
    rows: list[Row] = []

    # Known of a set without a model, in the shards of a store, whoever has filled that: once each.
    known = {name: one for name, one in opened.items() if not isinstance(one, str)}
    verdict = cache(lambda name, **cut: diagnose_order(known[name], **cut).verdict)
    compressed = cache(lambda name, **store: compressor_scores(known[name], **store))

    @cache
    def on_options(name: str, **asked: Any) -> Row:
        request = Request(axis="options", **asked)
        diagnosis = diagnose_arrangements(known[name], seed=request.seed, keep=request.keep)
        p = compressor_alternatives(request.alternatives(known[name])).p
        return {"verdict": diagnosis.verdict, "compressor_p": p}

    def compute(cell: Row) -> Row:
        test, permutations, name = TESTS[cell["test"]], cell["permutations"], cell["asked"]
        if cell["store"]:
            store = open_store(experiment.build / measure.STORES / cell["store"])
        else:
            store, permutations = experiment.store_for(cell["model"], known[name].name, test)
        seed, tokens = store.header.seed, store.header.tokens_of(permutations)
        found = outcome_row(test.result(store, permutations)) | {"tokens_scored": tokens}
        if test.kind == "alternatives":
            return found | on_options(name, arrangements=permutations + 1, seed=seed)
        cut = {"shards": store.header.shards, "seed": seed}
        same = {"kind": store.header.kind, "permutations": permutations}
        if redrawn:
            drawn = test, store, test.scores(store, permutations), found["p"]
            found |= null_calibration_counts(*drawn, orders=redrawn, alpha=alpha)
        return found | {
            "scores": partial(test.scores, store, permutations),
            "control_scores": partial(compressed, name, **cut, **same),
            "verdict": verdict(name, **cut),
        }

    for cell in tqdm(cells.to_dict("records"), desc="audit", unit="p", disable=None):
        entry, name = entries[cell["model"]], cell["asked"]
        row: Row = {"dataset": measure.label(name), "role": entry.role, "model_id": entry.id}
        row |= {column: cell[column] for column in ("model", "test", "model_revision", "status")}
        row |= {"published_p": published_p(entry, name, published, test=cell["test"])}
        row["dup_count"] = entry.dup_count(name)
        if name in known:
            row |= {"texts": known[name].examples, "examples": len(known[name].examples)}
            row["dataset_revision"] = known[name].revision
        elif row["status"] == OK:
            row["status"] = opened[name]
        rows.append(attempt(row, partial(compute, cell)))
    add_controls(rows)
    table = judged([*rows, *pooled_rows(rows)], alpha)
    if redrawn:
        counts = pd.DataFrame(rows).reindex(columns=[*REDRAWN, "redrawn_alpha"])
        table = with_rates(table.join(counts.astype(dict.fromkeys(REDRAWN, "Int64"))))
    return table


def add_controls(rows: Sequence[Row]) -> None:
    """Put beside each p-value that of the first negative control.

    Of a row without such a control it is that of a compressor: `compressor_p`, or the exact test
    of `control_scores`, where it reads what the model has read.
    """
    done = [row for row in rows if row["status"] == OK]
    silent = [row for row in reversed(done) if row["role"] == CONTROL]
    first = {(row["dataset"], row["test"]): row for row in silent}
    for row in tqdm(done, desc="controls", unit="p", leave=False):
        control = first.get((row["dataset"], row["test"]), row)
        if control["model"] != row["model"]:
            row |= {"control": control["model"], "control_p": control["p"]}
            row["control_scores"] = control.get("scores")
        else:
            scores = row.get("control_scores")
            p = sharded_exact_test(scores()).p if scores else row["compressor_p"]
            row |= {"control": COMPRESSOR, "control_p": p}


def judged(rows: Sequence[Row], alpha: float) -> pd.DataFrame:
    """Return the table, with two corrections and the verdict on every audited model and set.

    The corrections, Holm's and that of Benjamini and Hochberg, are over all that the table shows as
    evidence: every test of every cell, and the pooled rows; those of negative controls count for
    nothing and get none. `conclusion` is that of `contamination audit` at `alpha`, from all tests.
    """
    table = pd.DataFrame(rows, columns=list(COLUMNS)).astype(dict.fromkeys(COUNTS, "Int64"))
    table["holm_p"] = table["bh_p"] = math.nan
    table["conclusion"] = None
    index = table.index[(table["status"] == OK) & (table["role"] != CONTROL)]
    if log10_p := table.loc[index, "log10_p"].tolist():
        table.loc[index, "holm_p"] = adjust(log10_p=log10_p, method="holm").p
        table.loc[index, "bh_p"] = adjust(log10_p=log10_p, method="benjamini_hochberg").p

    def evidence(row: Any) -> conclusion.Evidence:
        floor = min(1.0, len(index) * 10 ** conclusion.log10_floor(row))
        name = conclusion.COMPRESSOR if row.control == COMPRESSOR else row.control
        decides = row.test, row.holm_p, floor, row.verdict, {name: row.control_p}
        return conclusion.Evidence(*decides, habit=row.test in ITEM_TESTS)

    for _, group in table.loc[index].groupby(["model", "dataset"]):
        found = list(map(evidence, group.itertuples()))
        table.loc[group.index, "conclusion"] = conclusion.conclude(found, alpha=alpha).conclusion
    return table


def paper_layout(rows: pd.DataFrame, alpha: float) -> pd.DataFrame:
    """Lay out an audit as the paper does: a row for each set and test, models side by side.

    Order is the verdict on the records. A model's p-value is bold where Holm's correction leaves
    p <= alpha, or says "failed" or "not run here". Beside it stand the paper's value, the verdict
    on an audited model (on all tests of a set), and last the compressor where it is the control.
    """
    printed = set(rows.loc[rows["published_p"].notna(), "model"])
    compressor_p = rows["control_p"].where(rows["control"] == COMPRESSOR)
    compressed = compressor_p.notna().any()
    groups = rows.assign(compressor_p=compressor_p).groupby(["dataset", "test"])
    rows = rows.assign(
        # Nothing where models pool different sets.
        examples=groups["examples"].transform(lambda n: n.max() if n.nunique() == 1 else pd.NA),
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
        return shown | ({"Compressor": format_p(row["compressor_p"])} if compressed else {})

    keys = {"dataset": "Set", "examples": "Examples", "verdict": "Order", "test": "Test"}
    table = lay_out(rows, keys, cells)
    return table.assign(Compressor=table.pop("Compressor")) if compressed else table


def model_layout(rows: pd.DataFrame, alpha: float) -> pd.DataFrame:
    """Lay out an audit with a row for each set and model, tests side by side: narrow, for print.

    As `paper_layout`; where the order of records within the shards of one test is judged otherwise
    than within those of another, both are named.
    """
    printed = rows["published_p"].notna().any()

    def cells(row: Row) -> dict[str, str | None]:
        paper = {"Paper": format_p(row["published_p"])} if printed else {}
        judged = {"Verdict": row["conclusion"] if pd.notna(row["conclusion"]) else None}
        p = p_or_status(row, bold=row["holm_p"] <= alpha)
        return {TESTS[row["test"]].label: p} | paper | judged

    keys = {"dataset": "Set", "model": "Model", "verdict": "Order"}
    orders = rows["verdict"].mask(rows["test"].isin(ITEM_TESTS)).groupby(rows["dataset"])
    orders = orders.transform(lambda v: "; ".join(v.dropna().unique()))
    return lay_out(rows.assign(verdict=orders), keys, cells, columns_first=["Verdict"])
