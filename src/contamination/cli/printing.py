"""Tables: printed for people, written as CSV, and as rows for JSON."""

import json
import sys
from collections.abc import Collection, Iterable, Sequence
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from contamination.errors import csv_text, printable
from contamination.files import replacing

if TYPE_CHECKING:
    import pandas as pd

    from contamination.audit.power import Power


def say(*lines: str, wrap: bool = True) -> None:
    """Print lines for people, in which names are no markup and no escapes."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=not wrap)
    for line in lines:
        console.print(printable(line))


def fail(problems: Iterable[str]) -> None:
    """Print each problem as an error, and end with status 2 if there is one."""
    lines = [f"error: {printable(problem)}" for problem in problems]
    if lines:
        print(*lines, sep="\n", file=sys.stderr)
        raise typer.Exit(2)


def print_table(
    columns: Sequence[str],
    rows: Iterable[Iterable[object]],
    *,
    title: str | None = None,
    text: Collection[str] = (),
) -> None:
    """Print a table, with thousands separated in counts.

    Parameters
    ----------
    columns
        Their names; there is no header if no column has one.
    rows
        Rows of cells.
    title
        Title above the table.
    text
        Names of columns that stand left, as the first one does; numbers stand right.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=None if title is None else Text(printable(title)),
        show_header=any(columns),
    )
    for index, column in enumerate(columns):
        left = index == 0 or column in text
        # What does not fit goes on in the next line: a number cut short is another
        # number.
        table.add_column(column, justify="left" if left else "right", overflow="fold")
    for row in rows:
        cells = []
        for cell in row:
            shown = f"{cell:,}" if isinstance(cell, Integral) else str(cell)
            cells.append(Text(printable(shown)))
        table.add_row(*cells)
    Console().print(table, highlight=False)


def print_power(powers: "Sequence[Power]") -> None:
    """Print the power of a test for copies of a set; nothing if no study has any."""
    from contamination.audit.power import MOST_RECORDS, WANTED, shown_probability

    if not powers:
        return
    rows = []
    for power in powers:
        if power.records_needed is None:
            needed = f"over {MOST_RECORDS:,}"
        else:
            needed = f"{power.records_needed:,}"
        probability = shown_probability(power.probability)
        rows.append(
            (str(power.copies), probability, needed, str(power.studies), power.model),
        )
    first = powers[0]
    print_table(
        ("copies", "probability", f"records for {WANTED:.0%}", "studies", "of models"),
        rows,
        title=f"How likely {first.test} finds a set of your size ({first.records:,} records), if "
        "your model remembers as those of our studies, which nothing here shows",
        text=("of models",),
    )


def save_table(table: "pd.DataFrame | list[dict[str, Any]]", path: Path | None) -> None:
    """Write a table or its rows as CSV, complete or not at all, if there is a path."""
    if path is None:
        return
    import pandas as pd

    if isinstance(table, list):
        table = pd.DataFrame(table, dtype=object)  # counts stay whole where others fail
    table = table.apply(_text_cells)
    with replacing(path) as temporary:
        table.to_csv(temporary, index=False, lineterminator="\n", encoding="utf-8")


def _text_cells(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """Return a column in which no program takes a text for a formula."""
    import pandas as pd

    if column.dtype.kind != "O":
        return column
    cells = [csv_text(value) if isinstance(value, str) else value for value in column]
    return pd.Series(cells, index=column.index, dtype=object)


def json_rows(table: "pd.DataFrame") -> list[dict[str, Any]]:
    """Rows for JSON, which has no NaN: pandas writes null for what is no number."""
    rows: list[dict[str, Any]] = json.loads(
        table.to_json(orient="records", double_precision=15),
    )
    return rows
