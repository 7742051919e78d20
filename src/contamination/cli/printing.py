"""Tables: printed for people, written as CSV, and as rows for JSON."""

import math
import re
import sys
from collections.abc import Collection, Iterable, Sequence
from numbers import Integral
from pathlib import Path
from textwrap import TextWrapper
from typing import TYPE_CHECKING, Any, Literal

import typer

from contamination.errors import csv_text, printable
from contamination.files import replacing

if TYPE_CHECKING:
    import pandas as pd

    from contamination.audit.power import Power

# Between words, after the marks in a name, and before a capital in the middle of a word.
SEAM = re.compile(r"(\s+)|(?<=[\w][_/.-])(?=[^\W\d_])|(?<=[a-z])(?=[A-Z])")


def say(*lines: str, wrap: bool = True) -> None:
    """Print lines for people, in which names are no markup and no escapes.

    Lines break between words alone, so that a path can be copied; the rest of an indented
    line is indented further.
    """
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    for line in lines:
        shown = printable(line)
        console.print(_in_width(shown, console.width) if wrap else shown)


def _in_width(line: str, width: int) -> str:
    """Return a line broken between words; a word that is longer than the width stays whole."""
    indent = line[: len(line) - len(line.lstrip(" "))]
    wrapper = TextWrapper(
        width=width,
        initial_indent=indent,
        subsequent_indent=2 * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return wrapper.fill(line.strip())


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

    The first column stands left, and so do those that `text` names; numbers stand
    right. There is no header if no column has a name. A table that is wider than the
    terminal breaks texts between words and names at their seams, and a number nowhere:
    one that is cut short is another number. What then still finds no room is printed
    row by row.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    title = None if title is None else printable(title)
    left = [index == 0 or column in text for index, column in enumerate(columns)]
    cells = [list(map(_shown, row)) for row in rows]
    console = Console()
    room = console.width - 1 - 3 * len(columns)  # without what is drawn between cells
    widths = _widths(columns, cells, left, room=room)
    if sum(widths) > room:
        _print_rows(columns, cells, title)
        return
    table = Table(title=None if title is None else Text(title), show_header=any(columns))
    for column, is_left, width in zip(columns, left, widths, strict=True):
        header = _broken(column, width)
        justify: Literal["left", "right"] = "left" if is_left else "right"
        table.add_column(header, justify=justify, overflow="fold", min_width=width)
    for row in cells:
        broken = [_broken(cell, width) for cell, width in zip(row, widths, strict=True)]
        table.add_row(*map(Text, broken))
    console.print(table, highlight=False)


def _shown(cell: object) -> str:
    """Return the text of a cell."""
    return printable(f"{cell:,}" if isinstance(cell, Integral) else str(cell))


def _print_rows(columns: Sequence[str], rows: Iterable[Sequence[str]], title: str | None) -> None:
    """Print each row under its first cell, with the names of its cells; empty ones are left out."""
    if title is not None:
        say(title)
    for first, *others in rows:
        named = []
        for column, cell in zip(columns[1:], others, strict=True):
            value = " ".join(cell.split()).removeprefix(f"{column} ")
            if value:
                named.append(f"{column} {value}".strip())
        say(f"{columns[0]} {first}".strip())
        if named:
            say(f"  {'; '.join(named)}")


def _widths(
    columns: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[bool], *, room: int
) -> list[int]:
    """Return the width of each column, so that together they take no more than `room` if possible.

    The widest column gives way first, down to its longest word; then those of names, down to the
    longest piece of a name.
    """
    cells = list(zip(columns, *rows, strict=True))
    widths = [_longest(column, re.compile(r"\n")) for column in cells]
    words = [_longest(column, re.compile(r"\s+")) for column in cells]
    pieces = []
    for column, word, is_left in zip(cells, words, left, strict=True):
        pieces.append(_longest(column, SEAM) if is_left else word)
    for least in (words, pieces):
        while sum(widths) > room:
            wide = [index for index, width in enumerate(widths) if width > least[index]]
            if not wide:
                break
            widest = max(wide, key=widths.__getitem__)
            widths[widest] -= 1
    return widths


def _longest(cells: Iterable[str], between: "re.Pattern[str]") -> int:
    """Return the length of the longest piece of cells."""
    lengths = [0]
    for cell in cells:
        for piece in between.split(cell):
            lengths.append(len(piece or ""))
    return max(lengths)


class _Wrapper(TextWrapper):
    """Breaks lines between words and at the seams of names."""

    wordsep_re = SEAM


def _broken(cell: str, width: int) -> str:
    """Return a cell in lines of a width."""
    lines: list[str] = []
    for line in cell.split("\n"):
        lines += _Wrapper(max(1, width)).wrap(line) or [""]
    return "\n".join(lines)


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
    title = f"Estimated power of {first.test} for a set of your size ({first.records:,} records)"
    print_table(
        ("copies", "probability", f"records for {WANTED:.0%}", "studies", "of models"),
        rows,
        title=f"{title}, assuming memorisation as in our studies (unverified)",
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
    texts = {value for value in column if isinstance(value, str)}  # each is looked at once
    shown = {text: csv_text(text) for text in texts}
    cells = [shown[value] if isinstance(value, str) else value for value in column]
    return pd.Series(cells, index=column.index, dtype=object)


def json_rows(table: "pd.DataFrame") -> list[dict[str, Any]]:
    """Return rows for JSON, with every digit; None for NaN and infinity, which JSON has not."""
    finite = table.replace([math.inf, -math.inf], math.nan)
    cells = finite.astype(object).where(finite.notna(), None)
    rows: list[dict[str, Any]] = cells.to_dict("records")
    return rows
