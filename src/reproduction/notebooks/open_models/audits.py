"""Audit of many models on many test sets (Oren, section 4.3 and Table 2).

`measure` has scored them; here every cell is tested. A cell that could not be scored says why.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pandas as pd
from tqdm import tqdm

from contamination.audit.battery import TESTS
from contamination.errors import InputError
from contamination.scoring.models import ModelEntry
from contamination.scoring.status import FAILURES, OK, status_of
from contamination.scoring.store import open_store
from contamination.tables import outcome_row
from reproduction.notebooks.open_models.cells import Cell, model_entries
from reproduction.notebooks.open_models.pooled import pooled_rows
from reproduction.notebooks.open_models.sets import ExampleSets, SetName, set_names
from reproduction.notebooks.open_models.tables import Row, add_controls, corrected
from reproduction.output.published import published_p
from reproduction.run.experiment import Experiment


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
    opened = ExampleSets(list(names.values()), experiment, max_records)
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
                row |= _result(cell, name, opened, Path(directory), experiment)
            except FAILURES as error:
                row["status"] = status_of(error)
        rows.append(row)
    add_controls(rows, opened)
    return corrected([*rows, *pooled_rows(rows, opened)])


def _result(
    cell: Cell, name: SetName, sets: ExampleSets, directory: Path, experiment: Experiment | None
) -> Row:
    if name not in sets.opened:
        raise InputError(sets.problems[name].partition(": ")[2])
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
