"""Ours, published and the difference in one table, and the summary of all tables."""

import math
from typing import Any

import pandas as pd
import pytest

from reproduction.notebooks.papers.measure import COLUMNS
from reproduction.notebooks.papers.tables import reasons, summary, table_layout

PAPER = "Oren et al. (2024)"
GATED = "failed: the model is gated"
AWAY = "not asked: profile made-up leaves out PIQA"


def cell(
    table: str, model: str, row: str, column: str, ours: float, published: float, **fields: Any
) -> dict[str, Any]:
    known = {"paper": PAPER, "table": table, "model": model, "row": row, "column": column}
    known |= {"ours": ours, "published": published, "difference": ours - published}
    return known | {"unit": "log10 p", "status": "ok", "note": ""} | fields


ROWS = pd.DataFrame(
    [
        cell("Table 1", "m", "MNLI", "permutation", -2.0, -2.0, difference=math.nan),
        cell("Table 1", "m", "MNLI", "sharded_t", -12.0, -10.0),
        cell("Table 1", "m", "BoolQ", "permutation", -0.25, -1.0),
        cell("Table 1", "m", "BoolQ", "sharded_t", math.nan, -1.0, status=GATED),
        cell("Table 2", "a", "PIQA", "sharded_t", -3.0, -0.5),
        cell("Table 2", "b", "PIQA", "sharded_t", math.nan, -0.5, status=AWAY),
        cell("Table 2", "c", "PIQA", "sharded_t", math.nan, -0.5, status=AWAY),
        cell("Table 2", "a", "GSM8K", "sharded_t", -1.0, -1.5),
        cell("Table 2", "b", "GSM8K", "sharded_t", math.nan, -0.5, status=GATED),
        cell("Table 2", "c", "GSM8K", "sharded_t", math.nan, -0.5, status=AWAY),
    ],
    columns=list(COLUMNS),
)


def test_two_columns_stand_side_by_side() -> None:
    table = table_layout(ROWS[ROWS["table"] == "Table 1"])
    assert table.to_numpy().tolist() == [
        ["MNLI", "0.010", "0.010", "—", "1.0\u00a0×\u00a010⁻¹²", "1.0\u00a0×\u00a010⁻¹⁰", "−2.0"],
        ["BoolQ", "0.562", "0.100", "0.8", "—", "0.100", "—"],
    ]


def test_more_columns_have_their_numbers_below_each_other() -> None:
    table = table_layout(ROWS[ROWS["table"] == "Table 2"])
    assert list(table) == ["", " ", "a", "b", "c"]
    assert table.to_numpy().tolist() == [
        ["PIQA", "ours", "0.001", "—", "—"],
        ["PIQA", "published", "0.316", "0.316", "0.316"],
        ["PIQA", "difference", "−2.5", "—", "—"],
        ["GSM8K", "ours", "0.100", "—", "—"],
        ["GSM8K", "published", "0.032", "0.316", "0.316"],
        ["GSM8K", "difference", "0.5", "—", "—"],
    ]


def test_the_summary_counts_each_table() -> None:
    first, second = summary(ROWS).to_dict("records")
    assert (first["cells"], first["measured"], first["not_measured"]) == (4, 3, 1)
    # |-2| and |0.75|; the floor has none.
    assert first["median_difference"] == pytest.approx(1.375)
    # -2 and -2, -12 and -10 reject both; -0.25 and -1 reject neither.
    assert (first["same_verdict"], first["verdicts"]) == (3, 3)
    assert first["reason"] == f"{GATED} (1)"
    # -3 rejects and -0.5 does not; -1 and -1.5: the paper's alone.
    assert (second["same_verdict"], second["verdicts"]) == (0, 2)
    assert second["reason"] == f"{AWAY} (3)"
    assert second["median_difference"] == pytest.approx(1.5)


def test_reasons_are_counted_the_commonest_first() -> None:
    assert reasons(ROWS).to_numpy().tolist() == [[PAPER, AWAY, 3], [PAPER, GATED, 2]]
