"""Cells and tables of the page, as DataTables takes them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from contamination.tables import format_p


def p_cell(log10_p: float) -> dict[str, Any]:
    """Return the cell of a p-value: "—" for NaN; its logarithm is given, so it has no floor."""
    value = 1.0 if np.isnan(log10_p) else float(log10_p)  # unknown ones are sorted last
    return {"text": format_p(10.0**log10_p, log10_p), "value": value}


def layout(
    titles: Sequence[str],
    p_values: Sequence[str],
    rows: list[list[Any]],
    last: Sequence[str] = (),
) -> dict[str, Any]:
    """Return a table of the page: columns of text, of `p_cell`, and of text again.

    Parameters
    ----------
    titles
        Titles of the first columns, of text.
    p_values
        Titles of the columns of `p_cell`.
    rows
        Rows of cells.
    last
        Titles of columns of text after these.
    """
    render = {"_": "text", "sort": "value", "type": "value"}
    columns: list[dict[str, Any]] = [{"title": title} for title in titles]
    columns += [{"title": title, "render": render} for title in p_values]
    columns += [{"title": title} for title in last]
    return {"columns": columns, "rows": rows}
