"""The report on released models: each count is planted, with decoys around it.

What it says of a run that trains is recomputed from the reference (`test_manifest.py`).
"""

from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from contamination.membership.blind import FIELDS as BLIND
from contamination.tables import read_csv, write_csv
from fakes.data_fixtures import ROOT
from fakes.made_up_run import PAPER, variables_used
from reproduction.notebooks.assumptions.tables import WITHIN_COLUMNS
from reproduction.notebooks.min_k.held_out_tables import FURTHER
from reproduction.notebooks.mmlu.columns import FISHER_COLUMNS, SUBSET_COLUMNS
from reproduction.notebooks.open_models.tables import COLUMNS
from reproduction.notebooks.papers.measure import COLUMNS as PAPERS
from reproduction.notebooks.table import NOTEBOOKS
from reproduction.notebooks.wikimia.tables import FIELDS
from reproduction.report import readings_released, readings_trained


def table(columns: str, *rows: tuple[object, ...]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=columns.split())


@pytest.mark.parametrize("section", readings_released.RELEASED)
def test_every_variable_of_a_section_is_written_where_nothing_could_run(
    tmp_path: Path, section: str
) -> None:
    empty = {"open_models": COLUMNS, "mmlu_subsets": SUBSET_COLUMNS}
    empty |= {"mmlu_fisher": FISHER_COLUMNS, "wikimia": FIELDS, "papers": PAPERS}
    empty |= {"assumptions_within": WITHIN_COLUMNS, "assumptions_blind": BLIND}
    (notebook,) = (name for name, row in NOTEBOOKS.items() if row.package == section)
    for name in {table for table, _ in readings_released.RELEASED[section].values()}:
        row = dict.fromkeys(empty[name], "") | {"status": "not run here: no way out"}
        write_csv(pd.DataFrame([row]), tmp_path, name)
    found = readings_released.numbers_of_section(section, partial(read_csv, tmp_path))
    used = [n for n in variables_used(PAPER / f"_{notebook}.qmd") if not n.startswith("run.")]
    assert set(used) <= {f"{section}.{name}" for name in found}
    assert all(text for text in found.values())
    assert found["measured"] == "0"


def test_p_values_of_mmlu_are_counted_of_one_test_the_papers_if_it_was_asked() -> None:
    rows = [("published", "sharded_t", "x", "ok", 0.5), ("measured", "successor", "x", "ok", 0.01)]
    for more, expected in (
        ([], "successor"),
        ([("measured", "sharded_t", "x", "ok", 1.0)], "sharded t"),
    ):
        tables = table("source test subset status p", *rows, *more).assign(excluded=False)
        found = readings_released.numbers_of_section("mmlu", lambda name, cells=tables: cells)
        assert found["test"] == expected
        assert found["rejected"] == str(int(not more))


def test_sets_that_held_out_twins_show_are_counted_by_model_and_after_holm() -> None:
    rows = [
        ("contaminated", 0.01, 0.2, "proven"),
        ("contaminated", 0.01, 0.01, "sides are no evidence here"),
        ("contaminated", 0.5, 0.01, "no evidence"),
        (FURTHER, 0.01, 0.5, "evidence"),
        (FURTHER, 0.2, 0.5, "no evidence"),
        ("clean", 0.01, 0.5, "sides are no evidence here"),
    ]
    cells = table("model holm_p order_holm_p verdict", *rows)
    found = readings_trained.numbers_of_held_out(cells, alpha=0.05)
    assert (found["sets"], found["found"], found["order"]) == ("3", "2", "2")
    scattered = [found[f"scattered_{name}"] for name in ("sets", "found", "order")]
    assert scattered == ["2", "1", "0"]
    assert (found["clean_sets"], found["clean_found"], found["clean_order"]) == ("1", "1", "0")
    assert found["refused"] == "1"


def test_rates_of_redrawn_orders_stand_in_the_report_where_there_are_any() -> None:
    audits = read_csv(ROOT / "results" / "reference" / "pocket", "open_models")
    rows = audits[audits["redrawn_orders"].notna()]
    found = readings_released.numbers_of_section("open_models", lambda name: audits)["redrawn"]
    for _, group in rows.groupby("test"):
        rate = 100 * group["redrawn_rejections"].sum() / group["redrawn_orders"].sum()
        assert f" {rate:.1f} (" in found
    assert found.startswith(f"of {int(group['redrawn_orders'].sum()):,} ")
    none = audits.drop(columns="redrawn_orders")
    assert (
        readings_released.numbers_of_section("open_models", lambda name: none)["redrawn"]
        == "none in this run"
    )


def test_cells_are_counted_as_the_table_has_them() -> None:
    rows = [
        ("a", "x", "ok", 0.001, 0.05, 49.0, 45.0, 49.9),
        ("a", "y", "ok", 0.001, 0.06, 56.0, 51.0, 61.0),
        ("b", "x", "ok", 0.001, None, 50.0, 45.0, 55.0),
        ("b", "y", "failed: no room", None, None, None, None, None),
        ("b", "z", "not run here: no way out", None, None, None, None, None),
    ]
    columns = "model dataset status p holm_p auc_percent auc_low auc_high"
    found = readings_released.numbers_of_cells(table(columns, *rows))
    counted = {"cells": "5", "measured": "3", "failed": "1", "not_run": "1", "not_asked": "0"}
    counted |= {"models": "2", "sets": "2", "tested": "2", "rejected": "1"}
    assert found == counted | {"values": "3", "lowest": "49.0", "highest": "56.0", "off": "2"}


def test_rows_are_those_that_a_section_names() -> None:
    tables = {
        "papers": table(
            "status unit ours published",
            ("ok", "log10 p", -2.0, -1.4),
            ("ok", "log10 p", -1.0, -1.4),
            ("ok", "AUC", 0.5, 0.5),
        ),
    }
    found = readings_released.numbers_of_section("papers", tables.__getitem__)
    assert {"cells": "3", "verdict_cells": "2", "same_cells": "1"}.items() <= found.items()


def test_sets_are_counted_that_texts_and_scores_find_and_clean_ones_apart() -> None:
    rows = [
        ("contaminated", "a", 7, "generated", 0.3),
        ("contaminated", "b", 16, "generated", 0.05),
        ("contaminated", "c", 64, "generated", 1e-4),
        ("clean", "c", 64, "generated", 0.04),
        ("clean", "a", 7, "log-probabilities", 0.02),
        ("contaminated", "a", 7, "log-probabilities", 0.06),
    ]
    found = readings_trained.numbers_of_generated(table("model dataset dup_count access p", *rows))
    by_texts = {"texts": "2", "texts_fewest": "16", "texts_clean": "0.040"}
    by_scores = {"scores": "0", "scores_fewest": "—", "scores_clean": "0.020"}
    assert found == {"sets": "3"} | by_texts | by_scores


def test_intervals_off_chance_are_counted_apart_for_texts_read_and_for_the_control() -> None:
    cells = table(
        "source variant auc auc_low auc_high",
        ("read here", "original", 0.7, 0.6, 0.8),
        ("read here", "original", 0.55, 0.5, 0.6),
        ("read here", "paraphrased", 0.7, 0.6, 0.8),
        ("read here", "original", float("nan"), float("nan"), float("nan")),
        ("control", "original", 0.3, 0.2, 0.4),
        ("wikimia", "original", 0.9, 0.8, 1.0),
    )
    found = readings_trained.numbers_of_wikimia(cells)
    assert found == {"values": "2", "off": "1", "control_values": "1", "control_off": "1"}


def test_doses_are_those_of_outliers_from_the_smallest_text_on() -> None:
    doses = table(
        "corpus_tokens contaminant share",
        (200, "outlier", 0.07),
        (100, "outlier", 0.536),
        (100, "in-distribution", 0.9),
        (150, "outlier", 0.2),
    )
    assert readings_trained.numbers_of_doses(doses) == {"outlier_shares": "54%, 20% and 7%"}
