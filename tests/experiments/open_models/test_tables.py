"""The paper's p-values beside ours, in the layout of its Table 2."""

import math

import pandas as pd

from contamination.experiments.open_models.tables import paper_layout


def _row(model: str, dataset: str, p: float = math.nan, **fields: object) -> dict[str, object]:
    return {
        "model": model,
        "dataset": dataset,
        "examples": 1319,
        "test": "sharded_t",
        "p": p,
        "log10_p": math.log10(p),
        "holm_p": p * 2,
        "published_p": math.nan,
        "verdict": "quiet",
        "control": "compressor",
        "control_p": 0.5,
        "status": "ok",
        **fields,
    }


def test_sets_stand_below_each_other_and_models_beside() -> None:
    rows = pd.DataFrame(
        [
            _row("big", "gsm8k", 0.001, published_p=0.594),
            _row("big", "boolq", 0.04, published_p=0.421),
            _row("small", "gsm8k", 0.3, control_p=0.5),
            _row(
                *("small", "boolq"),
                status="failed: no room; free some",
                verdict=None,
                control=None,
                control_p=math.nan,
            ),
            _row("small", "boolq", 0.9, test="successor"),
        ]
    ).astype({"examples": "Int64"})
    table = paper_layout(rows, 0.05)
    assert table.loc[2, ["Set", "Test", "small"]].tolist() == ["boolq", "successor", "0.900"]
    assert table[:2].to_dict("records") == [
        {
            "Set": "gsm8k",
            "Examples": "1319",
            "Order": "quiet",
            "Test": "sharded t",
            "big": "**0.001**",
            "big, paper": "0.594",
            "small": "0.300",
            "Compressor": "0.500",
        },
        {
            "Set": "boolq",
            "Examples": "1319",
            "Order": "quiet",
            "Test": "sharded t",
            "big": "0.040",
            "big, paper": "0.421",
            "small": "failed",
            "Compressor": "0.500",
        },
    ]


def test_what_is_unknown_is_a_dash() -> None:
    gone = {"examples": None, "verdict": None, "control": None, "control_p": math.nan}
    rows = pd.DataFrame(
        [
            _row("m", "far", status="not run here: no network", published_p=0.7, **gone),
            _row("n", "far", status="not run here: no network", **gone),
        ]
    ).astype({"examples": "Int64"})
    (line,) = paper_layout(rows, 0.05).to_dict("records")
    assert line == {
        "Set": "far",
        "Examples": "—",
        "Order": "—",
        "Test": "sharded t",
        "m": "not run here",
        "m, paper": "0.700",
        "n": "not run here",
    }
