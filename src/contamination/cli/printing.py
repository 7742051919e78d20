"""The one table that commands print for people."""

from collections.abc import Collection, Iterable, Sequence

from rich.console import Console
from rich.table import Table


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str | None = None,
    text: Collection[str] = (),
) -> None:
    """Print a table; the first column and those named in `text` to the left, numbers to the right.

    Columns without a name have no header.
    """
    table = Table(title=title, show_header=any(columns))
    for index, column in enumerate(columns):
        left = index == 0 or column in text
        table.add_column(column, justify="left" if left else "right", no_wrap=index == 0)
    for row in rows:
        table.add_row(*row)
    Console().print(table, highlight=False)
