"""Table 1 laid out: methods in the paper's order, bold off chance, and what is absent."""

import pandas as pd

from fakes.data_fixtures import ROOT
from reproduction.notebooks.wikimia.tables import (
    FIELDS,
    absent,
    lengths_layout,
    published_layout,
    table1_layout,
)
from reproduction.output.published import load_published


def row(model: str, score: str, auc: float, **more: object) -> dict[str, object]:
    known = {"source": "wikimia", "variant": "original", "length": 64, "status": "ok"}
    measured = {"auc": auc, "auc_low": auc - 0.1, "auc_high": auc + 0.1}
    return {"model": model, "score": score, **known, **measured, **more}


def table(*rows: dict[str, object]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(FIELDS))


ROWS = [
    row("a", "min_k_20", 0.7),
    row("a", "loss", 0.55),
    row("a", "loss", 0.66, variant="paraphrased"),
    row("a", "loss", 0.9, length=32),
    row("b", "loss", 0.35),
    row("a", "loss", 0.45, source="control"),
    row("a", "zlib", float("nan"), status="failed: x"),
]


def test_table_1() -> None:
    shown = table1_layout(table(*ROWS), 64)
    assert list(shown) == ["Method", "a, Ori.", "a, Para.", "b, Ori.", "a, control", "Average"]
    assert shown.values.tolist() == [
        ["PPL", "0.55", "**0.66**", "**0.35**", "0.45", "0.52"],
        ["Min-20%", "**0.70**", "—", "—", "—", "0.70"],
    ]


def test_several_benchmarks_are_named_and_controls_of_them() -> None:
    rows = [
        row("a", "loss", 0.6),
        row("a", "loss", 0.7, source="mine"),
        row("c", "loss", 0.8, source="control (wikimia)"),
        row("c", "loss", 0.8, source="control (wikimia)", variant="paraphrased"),
    ]
    shown = table1_layout(table(*rows), 64)
    judged, controls = ["wikimia: a, Ori.", "mine: a, Ori."], "c, control (wikimia)"
    assert list(shown)[1:] == [*judged, controls, f"{controls}, Para.", "Average"]
    assert shown["Average"].tolist() == ["0.65"]


def test_every_length_and_their_mean() -> None:
    shown = lengths_layout(table(*ROWS))
    lengths = ["32, Ori.", "64, Ori.", "64, Para."]
    means = ["Mean, Ori.", "Mean, Para."]
    assert list(shown) == ["Texts", "Method", "Model", *lengths, *means]
    assert shown.values.tolist() == [
        ["wikimia", "PPL", "a", "**0.90**", "0.55", "**0.66**", "0.73", "0.66"],
        ["wikimia", "Min-20%", "a", "—", "**0.70**", "—", "0.70", "—"],
        ["wikimia", "PPL", "b", "—", "**0.35**", "—", "0.35", "—"],
        ["control", "PPL", "a", "—", "0.45", "—", "0.45", "—"],
    ]
    nothing = lengths_layout(table(*ROWS).assign(status="not run here: no way out"))
    assert (list(nothing), len(nothing)) == (["Texts", "Method", "Model"], 0)


def test_what_is_absent_and_why() -> None:
    rows = [
        row("", "", float("nan"), length=length, variant=variant, status="not run here: no hub")
        for variant in ("original", "paraphrased")
        for length in (32, 64)
    ]
    found = absent(table(*ROWS, *rows))
    assert found[["variant", "model", "lengths", "status"]].values.tolist() == [
        ["original", "a", "64", "failed: x"],
        ["original", "", "32, 64", "not run here: no hub"],
        ["paraphrased", "", "32, 64", "not run here: no hub"],
    ]
    assert len(absent(table(row("a", "loss", 0.6)))) == 0


def test_the_published_rows() -> None:
    shown = published_layout(load_published(ROOT / "data" / "published", "shi2023_headline"))
    assert list(shown) == [
        "Method",
        *("NeoX-20B, Ori.", "NeoX-20B, Para.", "OPT-66B, Ori.", "OPT-66B, Para."),
        *("Average, AUC", "Average, TPR@5%FPR"),
    ]
    rows = {name: list(values) for name, *values in shown.itertuples(index=False)}
    assert list(rows) == ["PPL", "Zlib", "Min-20%"]
    assert rows["Min-20%"] == ["0.76", "0.74", "0.71", "0.69", "0.72", "22.2%"]
    assert rows["Zlib"] == ["—"] * 5 + ["20.6%"]
