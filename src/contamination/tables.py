"""Result tables: CSV for programs, Markdown for the report, p-values readable in both."""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from contamination.files import replacing, write_text


def write_csv(table: pd.DataFrame, results: Path | str, name: str) -> Path:
    """Write `results/tables/<name>.csv`, numbers in full precision."""
    path = Path(results) / "tables" / f"{name}.csv"
    with replacing(path) as temporary:
        table.to_csv(temporary, index=False, lineterminator="\n", encoding="utf-8")
    return path


def write_markdown(
    table: pd.DataFrame, results: Path | str, name: str, headers: Mapping[str, str]
) -> Path:
    """Write the columns named in `headers` as a pipe table, `results/tables/<name>.md`.

    Columns of text stand left, columns of numbers and p-values (already formatted text that starts
    with a digit) right.
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


def _is_numeric(column: pd.Series) -> bool:
    return bool(column.str.match(r"^([-−$]?\d|—)").all())


def format_p(p: float, log10_p: float | None = None) -> str:
    """Render a p-value as Markdown: three decimals down to 0.001, powers of ten below."""
    if p >= 0.001:
        return f"{p:.3f}"
    if log10_p is not None and log10_p < -300:
        exponent = int(log10_p // 1)
        return f"${10 ** (log10_p - exponent):.1f} \\times 10^{{{exponent}}}$"
    mantissa, power = f"{p:.1e}".split("e")
    return f"${mantissa} \\times 10^{{{int(power)}}}$"
