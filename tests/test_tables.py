"""Tables for programs and for the report."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from IPython.core.interactiveshell import InteractiveShell

from contamination.tables import (
    format_estimate,
    format_p,
    lay_out,
    to_markdown,
    write_csv,
    write_markdown,
)


@pytest.mark.parametrize(
    ("p", "log10_p", "expected"),
    [
        (float("nan"), None, "—"),
        (1e-3, -3.0, "0.001"),
        (9.99e-4, None, "1.0\u00a0×\u00a010⁻³"),
        (10**-300.0001, -300.0001, "1.0\u00a0×\u00a010⁻³⁰⁰"),  # where floats end
        # A p-value is held at 2.2e-308; only its logarithm still tells.
        (2.2e-308, -399.5, "3.2\u00a0×\u00a010⁻⁴⁰⁰"),
        (2.2e-308, -12345.25, "5.6\u00a0×\u00a010⁻¹²³⁴⁶"),
    ],
)
def test_format_p(p: float, log10_p: float | None, expected: str) -> None:
    assert format_p(p, log10_p) == expected
    assert format_p(p, log10_p, bold=True) in (f"**{expected}**", "—")


@pytest.mark.parametrize(
    ("numbers", "options", "expected"),
    [
        ((0.614, 0.52, 0.7), {}, "0.61 (0.52 to 0.70)"),
        ((0.614, 0.52, 0.7), {"null": 0.5}, "**0.61** (0.52 to 0.70)"),
        ((0.4, 0.3, 0.49), {"null": 0.5, "interval": False}, "**0.40**"),
        ((61.44, 52.0, 70.06), {"null": 70.06, "digits": 1}, "61.4 (52.0 to 70.1)"),
        ((-0.001, -0.004, 0.3), {}, "0.00 (0.00 to 0.30)"),
        ((float("nan"), 0.1, 0.2), {"interval": False, "null": 0.5}, "—"),
        ((0.1, float("nan"), float("nan")), {}, "—"),
    ],
)
def test_format_estimate(numbers, options, expected: str) -> None:
    assert format_estimate(*numbers, **options) == expected


@pytest.fixture
def measured() -> pd.DataFrame:
    rows = [("b", 2, "y", 0.5), ("b", 2, "x", 0.25), ("a", None, "x", 1.0), ("c", 3, "z", None)]
    return pd.DataFrame(rows, columns=["set", "size", "model", "auc"]).astype({"size": "Int64"})


def _auc(row: dict[str, float]) -> dict[str, str | None]:
    text = None if pd.isna(row["auc"]) else f"{row['auc']:.2f}"
    return {str(row["model"]): text}


def test_rows_and_columns_come_as_named_else_as_they_appear(
    measured: pd.DataFrame,
) -> None:
    table = lay_out(measured, {"set": "Set", "size": "Size"}, _auc)
    assert list(table) == ["Set", "Size", "y", "x", "z"]
    assert table.to_numpy().tolist() == [
        ["b", "2", "0.50", "0.25", "—"],
        ["a", "—", "—", "1.00", "—"],
        ["c", "3", "—", "—", "—"],  # a heading stays, also where no row has a text for it
    ]
    named = lay_out(
        measured,
        {"set": "Set"},
        _auc,
        rows_first=["c", "none", "a"],
        columns_first=["z", "w", "x"],
    )
    assert list(named) == ["Set", "z", "x", "y"]
    assert [*named["Set"]] == ["c", "a", "b"]


def test_rows_of_one_cell_must_agree(measured: pd.DataFrame) -> None:
    twice = pd.concat([measured, measured])
    pd.testing.assert_frame_equal(
        lay_out(twice, {"set": "Set"}, _auc), lay_out(measured, {"set": "Set"}, _auc)
    )
    with pytest.raises(ValueError, match=r"b: 0\.50 and 0\.40 in y"):
        lay_out(pd.concat([measured, measured.assign(auc=0.4)]), {"set": "Set"}, _auc)


def test_markdown(tmp_path: Path) -> None:
    half = format_p(0.5)
    small = format_p(1e-9)
    table = pd.DataFrame(
        {"name": ["a", "2nd", "c"], "count": [1, 20, 300], "p": [half, small, "—"]}
        | {"holm": [half, f"**{small}**", f"**{format_p(0.01)}**"], "hidden": [0, 0, 0]}
        | {"difference": [-1.5, 0.25, 3.0]}
    )
    headers = {"count": "Count", "name": "Name", "p": "p-value"}
    headers |= {"holm": "Holm", "difference": "Difference"}
    path = write_markdown(table, tmp_path, "mine", headers)
    assert path == tmp_path / "tables" / "mine.md"
    assert path.read_text(encoding="utf-8") == (
        "| Count | Name | p-value | Holm | Difference |\n"
        "|---:|:---|---:|---:|---:|\n"
        "| 1 | a | 0.500 | 0.500 | −1.50 |\n"
        "| 20 | 2nd | 1.0\u00a0×\u00a010⁻⁹ | **1.0\u00a0×\u00a010⁻⁹** | 0.25 |"
        "\n| 300 | c | — | **0.010** | 3.00 |\n"
    )


@pytest.mark.parametrize(
    ("column", "cells"),
    [
        ([0.25, np.nan, 0.5], ["0.25", "—", "0.50"]),
        ([1e-7, np.nan], ["1e-07", "—"]),
        ([np.nan], ["—"]),
        (["x", None], ["x", "—"]),
        (pd.array([1000, None], dtype="Int64"), ["1,000", "—"]),
    ],
)
def test_a_dash_stands_for_what_is_missing(column, cells: list[str]) -> None:
    lines = to_markdown(pd.DataFrame({"a": column})).splitlines()[2:]
    assert [line.strip("| ") for line in lines] == cells


def test_a_notebook_shows_a_layout_as_the_report_does(tmp_path: Path) -> None:
    """Bold text has no stars there: the front end gets Markdown, and no HTML beside it."""
    rows = pd.DataFrame({"set": ["a", "b"], "p": [0.011, 0.5]})
    table = lay_out(
        rows, {"set": "Set"}, lambda row: {"p": format_p(row["p"], bold=row["p"] < 0.05)}
    )
    for shown in (table, table[["Set", "p"]].head(2)):
        data, _ = InteractiveShell.instance().display_formatter.format(shown)
        assert set(data) == {"text/markdown", "text/plain"}
        path = write_markdown(shown, tmp_path, "shown")
        assert data["text/markdown"] == path.read_text(encoding="utf-8")
    assert "| a | **0.011** |" in data["text/markdown"]


def test_csv_is_full_precision_with_plain_line_ends(tmp_path: Path) -> None:
    table = pd.DataFrame({"set": ["a,b", "ä"], "p": [1 / 3, 2.2250738585072014e-308]})
    path = write_csv(table, tmp_path, "mine")
    assert path.read_bytes().decode("utf-8") == (
        'set,p\n"a,b",0.3333333333333333\nä,2.2250738585072014e-308\n'
    )
    pd.testing.assert_frame_equal(pd.read_csv(path), table)
    assert list(path.parent.iterdir()) == [path]


def test_a_name_is_neither_a_column_nor_a_tag_nor_a_program() -> None:
    names = ["a|b", "<img onerror=x>", "1 < 2", "`#panic()`{ =typst}", "{x}"]
    table = pd.DataFrame({"set": names, "p": ["0.5", "**0.1**", "—", "—", "—"]})
    assert [line.split(" | ")[0] for line in to_markdown(table).splitlines()[2:]] == [
        r"| a\|b",
        r"| \<img onerror=x>",
        "| 1 < 2",
        r"| `#panic()`\{ =typst}",
        "| {x}",
    ]


def test_whole_numbers_have_a_comma_at_each_thousand() -> None:
    rows = pd.DataFrame({"set": ["a", "b"], "records": [1533, 75], "p": [0.5, 0.25]})
    keys = {"set": "Set", "records": "Records"}
    laid_out = lay_out(rows, keys, lambda row: {"p": format_p(row["p"])})
    assert laid_out["Records"].tolist() == ["1,533", "75"]
    assert "| a | 1,533 | 0.50 |" in to_markdown(rows)
