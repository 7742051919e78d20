"""What the report says of a run on released models: each count is planted, with decoys beside it.

What it says of a run that trains is recomputed from the reference (`test_manifest.py`).
"""

from pathlib import Path

import pandas as pd
import pytest

from contamination.membership.blind import FIELDS as BLIND
from contamination.tables import write_csv
from fakes.made_up_run import PAPER, variables_used
from reproduction.notebooks.assumptions.tables import WITHIN_COLUMNS
from reproduction.notebooks.checkpoints.tables import COLUMNS as TESTED
from reproduction.notebooks.checkpoints.tables import RATES as DETECTED
from reproduction.notebooks.mmlu.tables import FISHER_COLUMNS, SUBSET_COLUMNS
from reproduction.notebooks.open_models.tables import COLUMNS
from reproduction.notebooks.papers.measure import COLUMNS as PAPERS
from reproduction.notebooks.table import NOTEBOOKS
from reproduction.notebooks.wikimia.tables import FIELDS
from reproduction.report import readings


def table(columns: str, *rows: tuple[object, ...]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=columns.split())


@pytest.mark.parametrize("section", readings.RELEASED)
def test_every_variable_of_a_section_is_written_where_nothing_could_run(
    tmp_path: Path, section: str
) -> None:
    empty = {"open_models": COLUMNS, "mmlu_subsets": SUBSET_COLUMNS}
    empty |= {"mmlu_fisher": FISHER_COLUMNS, "wikimia": FIELDS, "papers": PAPERS}
    empty |= {"checkpoints": TESTED, "checkpoints_min_k": DETECTED}
    empty |= {"assumptions_within": WITHIN_COLUMNS, "assumptions_blind": BLIND}
    read, tables = readings.RELEASED[section]
    (notebook,) = (name for name, row in NOTEBOOKS.items() if row.package == section)
    written = []
    for name in tables.split():
        row = dict.fromkeys(empty[name], "") | {"status": "not run here: no way out"}
        written.append(pd.read_csv(write_csv(pd.DataFrame([row]), tmp_path, name)))
    found = read(*written)
    used = [n for n in variables_used(PAPER / f"_{notebook}.qmd") if not n.startswith("run.")]
    assert set(used) <= {f"{section}.{name}" for name in found}
    assert all(text for text in found.values())
    assert found["measured"] == "0"


def test_rejections_are_counted_as_the_table_has_them() -> None:
    rows = [
        ("a", "x", "ok", 0.01, "quiet"),
        ("a", "y", "ok", 0.04, "order carries information"),
        ("b", "x", "ok", 0.2, "quiet"),
        ("b", "y", "failed: no room", None, ""),
        ("control", "x", "ok", None, "quiet"),
        ("control", "y", "not run here: no way out", None, ""),
    ]
    found = readings.released_open_models(table("model dataset status holm_p verdict", *rows))
    counted = {"cells": "6", "measured": "4", "failed": "1", "not_run": "1", "not_asked": "0"}
    counted |= {"models": "3", "sets": "2", "audited": "3", "rejected": "2", "stand": "1"}
    assert found == counted


def test_sets_are_counted_that_texts_and_scores_find_and_clean_ones_apart() -> None:
    rows = [
        ("contaminated", "a", 7, "generated", 0.3),
        ("contaminated", "b", 16, "generated", 0.05),
        ("contaminated", "c", 64, "generated", 1e-4),
        ("clean", "c", 64, "generated", 0.04),
        ("clean", "a", 7, "log-probabilities", 0.02),
        ("contaminated", "a", 7, "log-probabilities", 0.06),
    ]
    found = readings.read_generated(table("model dataset dup_count access p", *rows))
    by_texts = {"texts": "2", "texts_fewest": "16", "texts_clean": "0.040"}
    by_scores = {"scores": "0", "scores_fewest": "—", "scores_clean": "0.020"}
    assert found == {"sets": "3"} | by_texts | by_scores


def test_planted_sets_and_controls_are_counted_apart() -> None:
    tested = [
        ("sharded_exact", 1, "ok", 0.6),
        ("sharded_exact", 10, "ok", 0.05),
        ("sharded_exact", 50, "ok", 1e-9),
        ("sharded_exact", 50, "failed: no room", None),
        ("sharded_exact", None, "ok", 0.01),  # nobody knows how often
        ("sharded_t", 1, "ok", 0.001),
        ("successor", 4, "ok", 0.06),
        ("successor", 0, "ok", 0.04),
        ("sharded_t", 0, "ok", 0.9),
        ("sharded_t", 0, "not run here: no way out", None),
    ]
    by_line = table("test dup_count status holm_p", *tested).assign(segmentation="line")
    by_record = by_line[:4].assign(segmentation="record")  # counted apart
    rates = [(1, "ok", 2.4), (10, "ok", 99.6), (50, "failed: no room", None), (0, "ok", 5.0)]
    found = readings.released_checkpoints(
        pd.concat([by_line, by_record]), table("dup_count status rate_percent", *rates)
    )
    counted = {"cells": "10", "measured": "8", "failed": "1", "not_run": "1", "not_asked": "0"}
    counted |= {"exact_planted": "3", "exact_rejected": "2", "exact_fewest": "10"}
    counted |= {"successor_planted": "1", "successor_rejected": "0", "successor_fewest": "—"}
    counted |= {"control_cells": "2", "control_rejected": "1"}
    counted |= {"record_planted": "3", "record_rejected": "2"}
    assert found == counted | {"min_k_planted": "2 to 100", "min_k_control": "5 to 5"}


def test_cells_of_a_model_and_a_domain_are_counted_and_scores_of_fu_alone() -> None:
    rows = [
        ("small", "Github", "loss", 49.0, 45.0, 53.0, "ok"),
        ("small", "Github", "mem_25", 56.0, 51.0, 61.0, "ok"),
        ("small", "Github", "min_k_5", 99.0, 98.0, 100.0, "ok"),  # none of theirs
        ("small", "mean", "loss", 90.0, 80.0, 99.0, "ok"),
        ("small", "FreeLaw", None, None, None, None, "not asked: no such texts"),
        ("large", "Github", None, None, None, None, "failed: no room"),
    ]
    baselines = [(0.4, 0.3, 0.5, "ok"), (0.9, 0.8, 1.0, "ok"), (None, None, None, "failed: gone")]
    found = readings.released_assumptions(
        table("model domain metric auc_percent auc_low auc_high status", *rows),
        table("auc auc_low auc_high status", *baselines),
    )
    counted = {"cells": "3", "measured": "1", "failed": "1", "not_run": "0", "not_asked": "1"}
    scores = {"aucs": "2", "off": "1", "lowest": "49.0", "highest": "56.0"}
    assert found == counted | scores | {"baselines": "2", "baselines_off": "1"}
