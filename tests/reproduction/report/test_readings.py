"""What the report says of a run: each count is planted, with rows beside it that must not count."""

from pathlib import Path

import pandas as pd
import pytest

from contamination.membership.blind import FIELDS as BLIND
from contamination.tables import write_csv
from fakes import made_up_tables as made_up
from fakes.made_up_run import PAPER, variables_used
from reproduction.notebooks.assumptions.tables import WITHIN_COLUMNS
from reproduction.notebooks.checkpoints.tables import COLUMNS as TESTED
from reproduction.notebooks.checkpoints.tables import RATES as DETECTED
from reproduction.notebooks.mmlu.tables import FISHER_COLUMNS, SUBSET_COLUMNS
from reproduction.notebooks.open_models.tables import COLUMNS
from reproduction.notebooks.papers.measure import COLUMNS as PAPERS
from reproduction.notebooks.wikimia.tables import FIELDS
from reproduction.report import readings

READ = {
    "short prefixes": (
        readings.read_short_prefixes(made_up.REPLICATES),
        {"set": "same-start", "with_32": "−21.5", "with_8": "0.0"},
    ),
    "calibration": (
        readings.read_calibration(made_up.CALIBRATION),
        {"exact": "3", "exact_above": "1", "exact_below": "1", "anytime": "2.2", "t_low": "4.2"}
        | {"t_high": "6", "t_low_tails": "2.9", "t_high_tails": "2.9", "fewest_shards": "5"}
        | {"ddof_0": "7.1"},
    ),
    "failures": (
        readings.read_failures(made_up.FAILURES),
        {"orders": "3", "rejected": "1", "rejected_names": "near-duplicates in pairs"}
        | {"noticed": "2", "compressed": "2"},
    ),
    "min_k": (
        readings.read_min_k(made_up.MIN_K, made_up.CANARIES, 0.05),
        {"most_copies": "64", "share_at_most": "92.5", "heuristic_alone": "1", "tests_alone": "2"},
    ),
    "assumptions": (
        readings.read_assumptions(made_up.WITHIN),
        {"ppl_read_once": "51.2", "ppl_tuned": "—", "mem_tuned": "95.4"}
        | {"mem_off_by_one_tuned": "—", "metrics": "3", "near": "2"}
        | {"furthest": "Min 5% token", "furthest_auc": "43.0"},
    ),
    "books": (
        readings.read_books(made_up.BOOKS, made_up.BOOKS_VALIDATION),
        {"auc_same": "0.55", "auc_other": "0.76", "accused_same": "0", "accused_other": "2"}
        | {"unread": "2"},
    ),
    "options": (
        readings.read_options(made_up.OPTIONS),
        {"whole_records": "1.0\u00a0×\u00a010⁻⁵", "whole_options": "1.0\u00a0×\u00a010⁻⁹"}
        | {"shuffled_records": "0.250", "shuffled_options": "1.0\u00a0×\u00a010⁻⁸"}
        | {"single_records": "0.750", "single_options": "1.0\u00a0×\u00a010⁻⁴⁰⁰", "examples": "60"}
        | {"copies": "16", "controls": "8", "control_smallest": "0.060"},
    ),
    "unlearning": (
        readings.read_unlearning(made_up.DETECTION),
        {"chunks": "24", "suspicious": "5", "hits": "4", "untreated": "12", "missed": "8"}
        | {"low": "9.9", "high": "65.1", "auc_ratio": "0.87"},
    ),
}


@pytest.mark.parametrize(("found", "expected"), READ.values(), ids=READ)
def test_counts_of_a_run_that_trains(found: dict[str, str], expected: dict[str, str]) -> None:
    assert found == expected


def test_what_was_not_measured_is_a_dash() -> None:
    assert readings.read_failures(made_up.FAILURES.head(0))["rejected_names"] == "none"
    nothing = [
        readings.read_assumptions(made_up.WITHIN.head(0)),
        readings.read_unlearning(made_up.DETECTION.head(0)),
        readings.read_books(made_up.BOOKS.head(0), made_up.BOOKS_VALIDATION.head(0)),
    ]
    assert {text for each in nothing for text in each.values()} == {"—", "0"}


# --- of a run on released models ------------------------------------------------------------------


@pytest.mark.parametrize("section", readings.RELEASED)
def test_every_variable_of_a_section_is_written_where_nothing_could_run(
    tmp_path: Path, section: str
) -> None:
    empty = {"open_models": COLUMNS, "mmlu_subsets": SUBSET_COLUMNS}
    empty |= {"mmlu_fisher": FISHER_COLUMNS, "wikimia": FIELDS, "papers": PAPERS}
    empty |= {"checkpoints": TESTED, "checkpoints_min_k": DETECTED}
    empty |= {"assumptions_within": WITHIN_COLUMNS, "assumptions_blind": BLIND}
    notebook, tables, read = readings.RELEASED[section]
    written = []
    for name in tables:
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
    columns = ["model", "dataset", "status", "holm_p", "verdict"]
    found = readings.released_open_models(pd.DataFrame(rows, columns=columns))
    counted = {"cells": "6", "measured": "4", "failed": "1", "not_run": "1"}
    counted |= {"models": "3", "sets": "2", "audited": "3", "rejected": "2", "stand": "1"}
    assert found == counted


def test_verdicts_of_the_papers_are_compared_where_both_have_a_p_value() -> None:
    rows = [
        ("log10 p", -2.0, -38.0, "ok"),
        ("log10 p", -1.0, -2.0, "ok"),
        ("log10 p", -0.5, -0.1, "ok"),
        ("log10 p", None, -0.1, "failed: no room"),
        ("AUC", None, 0.7, "not run here: no way out"),
        ("AUC", None, 0.7, "not asked: profile open leaves out OPT-66B"),
        ("AUC", 0.7, 0.7, "ok"),
    ]
    columns = ["unit", "ours", "published", "status"]
    found = readings.released_papers(pd.DataFrame(rows, columns=columns))
    counted = {"cells": "7", "measured": "4", "failed": "1", "not_run": "1", "not_asked": "1"}
    assert found == counted | {"verdicts": "3", "same": "2"}


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
    rates = [(1, "ok", 2.4), (10, "ok", 99.6), (50, "failed: no room", None), (0, "ok", 5.0)]
    found = readings.released_checkpoints(
        pd.DataFrame(tested, columns=["test", "dup_count", "status", "holm_p"]),
        pd.DataFrame(rates, columns=["dup_count", "status", "rate_percent"]),
    )
    counted = {"cells": "10", "measured": "8", "failed": "1", "not_run": "1"}
    counted |= {"exact_planted": "3", "exact_rejected": "2", "exact_fewest": "10"}
    counted |= {"successor_planted": "1", "successor_rejected": "0", "successor_fewest": "—"}
    counted |= {"control_cells": "2", "control_rejected": "1"}
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
    columns = ["model", "domain", "metric", "auc_percent", "auc_low", "auc_high", "status"]
    baselines = [(0.4, 0.3, 0.5, "ok"), (0.9, 0.8, 1.0, "ok"), (None, None, None, "failed: gone")]
    found = readings.released_assumptions(
        pd.DataFrame(rows, columns=columns),
        pd.DataFrame(baselines, columns=["auc", "auc_low", "auc_high", "status"]),
    )
    counted = {"cells": "3", "measured": "1", "failed": "1", "not_run": "0", "not_asked": "1"}
    scores = {"aucs": "2", "off": "1", "lowest": "49.0", "highest": "56.0"}
    assert found == counted | scores | {"baselines": "2", "baselines_off": "1"}
