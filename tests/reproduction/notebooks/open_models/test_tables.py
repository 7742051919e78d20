"""The paper's p-values beside ours, in the layout of its Table 2."""

import math

import pandas as pd

from reproduction.notebooks.open_models.tables import concluded, model_layout, paper_layout

HEADS = ["Set", "Examples", "Order", "Test"]
NO_VERDICT = {"verdict": None, "control": None, "control_p": math.nan}


def _row(model: str, dataset: str, p: float = math.nan, **fields: object) -> dict[str, object]:
    row = {"model": model, "dataset": dataset, "examples": 1319, "test": "sharded_t"}
    row |= {"p": p, "log10_p": math.log10(p), "holm_p": p * 2, "published_p": math.nan}
    row |= {"verdict": "quiet", "control": "compressor", "control_p": 0.5, "status": "ok"}
    row |= {"statistic": 1.0, "shards": 10, "permutations": 25}
    return row | fields


def test_models_stand_beside_each_other_or_tests_do() -> None:
    rows = [
        _row("big", "gsm8k", 0.001, published_p=0.594),
        _row("big", "boolq", 0.04, published_p=0.421),
        _row("small", "gsm8k", 0.3, control_p=0.5),
        _row("small", "boolq", status="failed: no room; free some", **NO_VERDICT),
        _row("small", "boolq", 0.9, holm_p=math.nan, test="successor", verdict="suspicious"),
    ]
    audit = concluded(pd.DataFrame(rows).astype({"examples": "Int64"}), 0.05)
    table = paper_layout(audit, 0.05)
    assert list(table) == [
        *(*HEADS, "big", "big, paper", "big, verdict"),
        *("small", "small, verdict", "Compressor"),
    ]
    proven, no = "proven", "no evidence"
    assert table.to_numpy().tolist() == [
        ["gsm8k", "1319", "quiet", "sharded t", "**0.001**", "0.594", proven, "0.300", no, "0.500"],
        ["boolq", "1319", "quiet", "sharded t", "0.040", "0.421", no, "failed", "—", "0.500"],
        ["boolq", "1319", "suspicious", "successor", "—", "—", "—", "0.900", "—", "0.500"],
    ]
    table = model_layout(audit, 0.05)
    assert list(table) == ["Set", "Model", "Order", "Verdict", "Sharded t", "Paper", "Successor"]
    assert table.to_numpy().tolist() == [
        ["gsm8k", "big", "quiet", proven, "**0.001**", "0.594", "—"],
        ["boolq", "big", "quiet; suspicious", no, "0.040", "0.421", "—"],
        ["gsm8k", "small", "quiet", no, "0.300", "—", "—"],
        ["boolq", "small", "quiet; suspicious", "—", "failed", "—", "0.900"],
    ]
    assert "Paper" not in model_layout(audit.assign(published_p=math.nan), 0.05)


def test_the_verdict_is_that_of_the_command_over_all_tests_of_a_model_and_set() -> None:
    loud, heard = {"verdict": "suspicious"}, {"control": "gpt2", "control_p": 0.01}
    rows = [
        *(_row("m", "a", 1e-9, test="successor", **loud), _row("m", "a", 0.02)),
        _row("m", "b", 1e-9, **heard),
        *(_row("m", "c", 1e-9, **loud), _row("m", "c", 0.5, test="successor")),
        _row("m", "d", 0.4, verdict="too few records"),
        _row("m", "e", 0.4, test="permutation", shards=1, permutations=9),
    ]
    found = concluded(pd.DataFrame(rows), 0.05).groupby("dataset")["conclusion"].unique()
    no_evidence = ["order is no evidence here"]
    assert found.map(list).tolist() == [["proven"], no_evidence, no_evidence, *[["cannot say"]] * 2]
