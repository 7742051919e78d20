"""Result tables: CSV for programs, Markdown for the report, p-values readable in both."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from contamination.errors import InputError
from contamination.files import replacing, write_text
from contamination.statistics import TestResult


def write_csv(table: pd.DataFrame, results: Path | str, name: str) -> Path:
    """Write `results/tables/<name>.csv`, numbers in full precision."""
    path = Path(results) / "tables" / f"{name}.csv"
    with replacing(path) as temporary:
        table.to_csv(temporary, index=False, lineterminator="\n", encoding="utf-8")
    return path


def read_csv(results: Path | str, name: str) -> pd.DataFrame:
    """Read `results/tables/<name>.csv`; `InputError` if no run has written it."""
    path = Path(results) / "tables" / f"{name}.csv"
    if not path.is_file():
        raise InputError(f"{path} is missing: run `make reproduce` for this profile first")
    return pd.read_csv(path)


def write_markdown(
    table: pd.DataFrame, results: Path | str, name: str, headers: Mapping[str, str]
) -> Path:
    """Write the columns named in `headers` as a pipe table, `results/tables/<name>.md`.

    Columns of text stand left, columns of numbers and p-values (already formatted text that starts
    with a digit, bold or not) right.
    """
    chosen = table[list(headers)].astype(str)
    right = [_is_numeric(chosen[column]) for column in chosen]
    lines = [
        "| " + " | ".join(headers.values()) + " |",
        "|" + "|".join("---:" if r else ":---" for r in right) + "|",
        *("| " + " | ".join(row) + " |" for row in chosen.itertuples(index=False)),
    ]
    path = Path(results) / "tables" / f"{name}.md"
    write_text(path, "\n".join(lines) + "\n")
    return path


def outcome_row(result: TestResult) -> dict[str, Any]:
    """What a row of a table says of the result of a test."""
    return {
        "test": result.test,
        "shards": result.shards,
        "permutations": result.permutations,
        "statistic": result.statistic,
        "p": result.p,
        "log10_p": result.log10_p,
    }


def _is_numeric(column: pd.Series) -> bool:
    return bool(column.str.match(r"^(?:\*\*)?(?:[-−$]?\d|—)").all())


def format_p(p: float, log10_p: float | None = None) -> str:
    """Render a p-value as Markdown: three decimals down to 0.001, powers of ten below."""
    if p >= 0.001:
        return f"{p:.3f}"
    if log10_p is not None and log10_p < -300:
        # Too small for a float: written with the same digits a long way up, then moved down.
        whole = int(log10_p)
        mantissa, power = f"{10 ** (log10_p - whole):.1e}".split("e")
        return f"${mantissa} \\times 10^{{{int(power) + whole}}}$"
    mantissa, power = f"{p:.1e}".split("e")
    return f"${mantissa} \\times 10^{{{int(power)}}}$"


def format_estimate(
    value: float,
    low: float,
    high: float,
    *,
    null: float | None = None,
    digits: int = 2,
    interval: bool = True,
) -> str:
    """Render an estimate with its interval as Markdown: "0.61 (0.52 to 0.70)".

    Parameters
    ----------
    low, high : ends of the interval.
    null : the value is bold where the interval leaves this out.
    digits : decimals.
    interval : whether to show the interval.

    Returns
    -------
    str
        With a minus sign, none before a zero; "—" where a number to be shown is NaN.
    """
    if any(map(math.isnan, (value, low, high) if interval else (value,))):
        return "—"
    shown, *ends = (f"{one:z.{digits}f}".replace("-", "−") for one in (value, low, high))
    if null is not None and (low > null or high < null):
        shown = f"**{shown}**"
    return f"{shown} ({ends[0]} to {ends[1]})" if interval else shown
