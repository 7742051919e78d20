"""The paper's p-values beside ours, in the layout of its Table 2."""

import math

import pandas as pd

from reproduction.notebooks.open_models.tables import model_layout, paper_layout

HEADS = ["Set", "Examples", "Order", "Test"]
NO_VERDICT = {"verdict": None, "control": None, "control_p": math.nan}


def _row(model: str, dataset: str, p: float = math.nan, **fields: object) -> dict[str, object]:
    row = {"model": model, "dataset": dataset, "examples": 1319, "test": "sharded_t"}
    row |= {"p": p, "log10_p": math.log10(p), "holm_p": p * 2, "published_p": math.nan}
    row |= {"verdict": "quiet", "control": "compressor", "control_p": 0.5, "status": "ok"}
    return row | fields


def test_sets_stand_below_each_other_and_models_beside() -> None:
    rows = [
        _row("big", "gsm8k", 0.001, published_p=0.594),
        _row("big", "boolq", 0.04, published_p=0.421),
        _row("small", "gsm8k", 0.3, control_p=0.5),
        _row("small", "boolq", status="failed: no room; free some", **NO_VERDICT),
        _row("small", "boolq", 0.9, test="successor"),
    ]
    table = paper_layout(pd.DataFrame(rows).astype({"examples": "Int64"}), 0.05)
    assert table.loc[2, ["Set", "Test", "small"]].tolist() == ["boolq", "successor", "0.900"]
    assert list(table) == [*HEADS, "big", "big, paper", "small", "Compressor"]
    assert table[:2].to_numpy().tolist() == [
        ["gsm8k", "1319", "quiet", "sharded t", "**0.001**", "0.594", "0.300", "0.500"],
        ["boolq", "1319", "quiet", "sharded t", "0.040", "0.421", "failed", "0.500"],
    ]


def test_a_row_for_each_set_and_model() -> None:
    rows = [
        _row("big", "gsm8k", 0.001, published_p=0.594),
        _row("big", "gsm8k", 0.04, published_p=0.594, test="successor"),
        _row("small", "gsm8k", status="failed: no room; free some", **NO_VERDICT),
        _row("small", "gsm8k", 0.9, test="successor"),
    ]
    table = model_layout(pd.DataFrame(rows), 0.05)
    assert list(table) == ["Set", "Model", "Order", "Sharded t", "Paper", "Successor"]
    assert table.to_numpy().tolist() == [
        ["gsm8k", "big", "quiet", "**0.001**", "0.594", "0.040"],
        ["gsm8k", "small", "quiet", "failed", "—", "0.900"],
    ]
    alone = model_layout(pd.DataFrame(rows).assign(published_p=math.nan), 0.05)
    assert "Paper" not in alone
