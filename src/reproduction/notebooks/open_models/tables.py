"""Oren's Table 2: every cell tested, with controls and corrections beside its p-value.

A negative control is a model that cannot be contaminated (Oren, section 4.3). Beside every p-value
stand a verdict on the order of the records and the p-value of a compressor, which has seen no test
set.
"""

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from contamination.audit.battery import TESTS
from contamination.errors import InputError
from contamination.scoring.models import ModelEntry
from contamination.scoring.status import FAILURES, OK, status_of
from contamination.scoring.store import open_store
from contamination.statistics import adjust
from contamination.tables import POOLED, format_p, lay_out, outcome_row
from reproduction.notebooks.open_models.measure import (
    SetName,
    model_entries,
    open_sets,
    set_names,
)
from reproduction.notebooks.open_models.pooled import WithoutModel, pooled_rows
from reproduction.output.published import AUDITED, CONTROLS, published_p
from reproduction.run.experiment import Experiment

CONTROL = "negative_control"  # role of a model
COMPRESSOR = "compressor"
COLUMNS = (
    *("model", "role", "dataset", "examples", "test", "shards", "permutations", "statistic", "p"),
    *("log10_p", "holm_p", "bh_p", "published_p", "dup_count", "verdict", "control", "control_p"),
    *("status", "tokens_scored", "model_id", "model_revision", "dataset_revision"),
    *("pooled", "left_out"),
)
COUNTS = ("examples", "shards", "permutations", "dup_count", "tokens_scored", "pooled")

Row = dict[str, Any]  # of the table, with `name` (SetName) and, where done, `store` besides


def audit_models(
    cells: pd.DataFrame,
    models: Sequence[str | ModelEntry],
    sets: Sequence[str],
    *,
    directory: Path | str,
    max_records: int | None = None,
    experiment: Experiment | None = None,
    published: Path | str | None = None,
) -> pd.DataFrame:
    """Test every cell of `reproduction.notebooks.open_models.measure.score_models`.

    A row for each model, set and test, those that failed included, and at the end one for each
    model and test with all sets pooled but those that a control rejects, see `pooled_rows`.
    `holm_p` and `bh_p` (FDR) correct each test over all cells but those of negative controls, which
    have none; pooled rows are corrected among themselves. `published_p`
    is the paper's sharded t-test whatever our test, `dup_count` how often the set was planted,
    where that is known, `verdict` that of `contamination.audit.diagnostics` on the records.
    `control_p` is the same test under the first negative control of the audit, or the exact test
    under a compressor; `control` says which. `tokens_scored` is what the model had to read for the
    test, now or before.

    Parameters
    ----------
    cells, models, sets, directory, max_records, experiment : what was scored, and how.
    published : directory of the papers' tables; None leaves `published_p` empty.
    """
    entries = {entry.name: entry for entry in model_entries(models, experiment)}
    names = {name.asked: name for name in set_names(sets, experiment)}
    sets_or_why = open_sets(list(names.values()), experiment, max_records)
    opened = WithoutModel({n: s for n, s in sets_or_why.items() if not isinstance(s, str)})
    rows: list[Row] = []
    for cell in tqdm(cells.to_dict("records"), desc="audit", unit="p", disable=None):
        entry, name = entries[cell["model"]], names[cell["asked"]]
        examples = opened.opened.get(name)
        row: Row = {
            "name": name,
            "model": entry.name,
            "role": entry.role,
            "dataset": name.label,
            "examples": len(examples.examples) if examples else None,
            "test": cell["test"],
            "published_p": published_p(entry, name.asked, published),
            "dup_count": entry.dup_count(name.asked),
            "model_id": entry.id,
            "model_revision": cell["model_revision"],
            "dataset_revision": examples.revision if examples else "",
            "status": cell["status"],
        }
        if row["status"] == OK:
            try:
                if examples is None:
                    raise InputError(str(sets_or_why[name]).partition(": ")[2])
                row |= _result(cell, name, opened, Path(directory), experiment)
            except FAILURES as error:
                row["status"] = status_of(error)
        rows.append(row)
    add_controls(rows, opened)
    return corrected([*rows, *pooled_rows(rows, opened)])


def _result(
    cell: Row, name: SetName, sets: WithoutModel, directory: Path, experiment: Experiment | None
) -> Row:
    test, permutations = TESTS[cell["test"]], cell["permutations"]
    if not cell["store"] and experiment is not None and name.canary is not None:
        store, permutations = experiment.store_for(cell["model"], name.canary, test)
    else:
        store = open_store(directory / cell["store"])
    header = store.header
    return outcome_row(test.result(store, permutations)) | {
        "store": {
            "kind": header.kind,
            "shards": header.shards,
            "permutations": permutations,
            "seed": header.seed,
        },
        "scores": partial(test.scores, store, permutations),
        "verdict": sets.verdict(name, header.shards, header.seed),
        "tokens_scored": header.tokens_of(permutations),
    }


def add_controls(rows: Sequence[Row], sets: WithoutModel) -> None:
    """Put beside each p-value that of the first negative control, else that of a compressor.

    The compressor reads what the model has read: `store` says kind, shards, permutations and seed.
    """
    done = [row for row in rows if row["status"] == OK]
    controls: dict[tuple[str, str], Row] = {}
    for row in done:
        if row["role"] == CONTROL:
            controls.setdefault((row["dataset"], row["test"]), row)
    for row in tqdm(done, desc="controls", unit="p", leave=False):
        control = controls.get((row["dataset"], row["test"]))
        if control is not None and control["model"] != row["model"]:
            row |= {"control": control["model"], "control_p": control["p"]}
        else:
            p = sets.compressor_p(row["name"], **row["store"])
            row |= {"control": COMPRESSOR, "control_p": p}


def corrected(rows: Sequence[Row]) -> pd.DataFrame:
    """Return the table, with Holm's and Benjamini and Hochberg's correction of each test.

    They count all cells that were tested but those of negative controls, which get none. Pooled
    rows repeat the cells of their sets: a family of their own.
    """
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    table["holm_p"] = table["bh_p"] = math.nan
    audited = table[(table["status"] == OK) & (table["role"] != CONTROL)]
    for _, cells in audited.groupby(["test", audited["dataset"] == POOLED]):
        log10_p = cells["log10_p"].to_numpy(dtype=float)
        table.loc[cells.index, "holm_p"] = adjust(log10_p=log10_p, method="holm").p
        table.loc[cells.index, "bh_p"] = adjust(log10_p=log10_p, method="benjamini_hochberg").p
    return table.astype(dict.fromkeys(COUNTS, "Int64"))


def paper_layout(rows: pd.DataFrame, alpha: float) -> pd.DataFrame:
    """Lay out an audit as the paper does: a row for each set and test, models side by side.

    Order is the verdict on the records. A model's p-value is bold where Holm's correction leaves
    p <= alpha; where it has none, its column says "failed" or "not run here". Beside it stands the
    paper's value where there is one, and last the compressor where it is the control.
    """
    printed = set(rows.loc[rows["published_p"].notna(), "model"])
    compressor_p = rows["control_p"].where(rows["control"] == COMPRESSOR)
    compressed = compressor_p.notna().any()
    groups = rows.assign(compressor_p=compressor_p).groupby(["dataset", "test"])
    rows = rows.assign(
        examples=groups["examples"].transform(_common),
        verdict=groups["verdict"].transform("first"),
        test=[TESTS[name].label.lower() for name in rows["test"]],
        compressor_p=groups["compressor_p"].transform("min"),  # of several models, the same
    )

    def cells(row: dict[str, Any]) -> dict[str, str]:
        ours = row["status"].partition(":")[0]
        if ours == OK:
            ours = format_p(row["p"], row["log10_p"], bold=row["holm_p"] <= alpha)
        shown = {row["model"]: ours}
        if row["model"] in printed:
            shown[f"{row['model']}, paper"] = format_p(row["published_p"])
        return shown | ({"Compressor": format_p(row["compressor_p"])} if compressed else {})

    keys = {"dataset": "Set", "examples": "Examples", "verdict": "Order", "test": "Test"}
    table = lay_out(rows, keys, cells)
    return table.assign(Compressor=table.pop("Compressor")) if compressed else table


def _common(known: pd.Series) -> Any:
    """The first that is known; nothing where models pool different sets."""
    return known.dropna().iloc[0] if known.nunique() == 1 else pd.NA


def model_layout(rows: pd.DataFrame, alpha: float) -> pd.DataFrame:
    """Lay out an audit with a row for each set and model, tests side by side: narrow, for print.

    p-values and what stands where there is none are as in `paper_layout`; Paper is the sharded
    t-test of Oren's Table 2.
    """
    printed = rows["published_p"].notna().any()

    def cells(row: dict[str, Any]) -> dict[str, str]:
        ours = row["status"].partition(":")[0]
        if ours == OK:
            ours = format_p(row["p"], row["log10_p"], bold=row["holm_p"] <= alpha)
        paper = {"Paper": format_p(row["published_p"])} if printed else {}
        return {TESTS[row["test"]].label: ours} | paper

    keys = {"dataset": "Set", "model": "Model", "verdict": "Order"}
    verdicts = rows.groupby("dataset")["verdict"].transform("first")
    return lay_out(rows.assign(verdict=verdicts), keys, cells)


def published_layout(table2: pd.DataFrame) -> pd.DataFrame:
    """Lay out Table 2 as printed: a row for each set, a column for each model."""
    return lay_out(
        table2.astype({"size": "Int64"}),
        {"dataset": "Set", "size": "Examples"},
        lambda row: {name: format_p(row[column]) for column, name in (AUDITED | CONTROLS).items()},
        columns_first=[*AUDITED.values(), "GPT-2 XL", "BioMedLM"],
    )
