"""Result tables: CSV for programs, Markdown for the report, p-values readable in both."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from contamination.errors import InputError
from contamination.files import replacing, write_text

MISSING = "—"
POOLED = "all sets pooled"  # in place of the name of a set
SIGNIFICANT = 0.05  # the level that figures mark and the explorer reads by
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Layout(pd.DataFrame):  # type: ignore[misc]  # pandas has no types
    """A table of Markdown text: HTML of a data frame would show marks of bold text."""

    @property
    def _constructor(self) -> "type[Layout]":
        return Layout

    def _repr_html_(self) -> None:
        """Leave it to `_repr_markdown_`, which notebooks show where there is no HTML."""

    def _repr_markdown_(self) -> str:
        return to_markdown(self)


def write_csv(table: pd.DataFrame, results: Path | str, name: str) -> Path:
    """Write `results/tables/<name>.csv`, numbers in full precision; return its path.

    Parameters
    ----------
    table
        The table; its index is not written.
    results
        Directory of the results.
    name
        Name of the table.
    """
    path = Path(results) / "tables" / f"{name}.csv"
    with replacing(path) as temporary:
        table.to_csv(temporary, index=False, lineterminator="\n", encoding="utf-8")
    return path


def read_csv(results: Path | str, name: str) -> pd.DataFrame:
    """Read `results/tables/<name>.csv`. Raises InputError if no run has written it."""
    path = Path(results) / "tables" / f"{name}.csv"
    if not path.is_file():
        raise InputError(
            f"{path} is missing: run `make reproduce` for this profile first",
        )
    return pd.read_csv(path)


def lay_out(
    rows: pd.DataFrame,
    index: Mapping[str, str],
    cells: Callable[[dict[Any, Any]], Mapping[str, str | None]],
    *,
    rows_first: Sequence[str] = (),
    columns_first: Sequence[str] = (),
) -> Layout:
    """Return a table for readers: a line for each key, a column for each heading.

    The table holds text under its headings, "—" where nothing is known;
    `write_markdown` takes it without headers, and a notebook shows the same. Raises
    ValueError if two rows give different texts for one cell: then `index` does not tell
    them apart.

    Parameters
    ----------
    rows
        Tidy, one row for each measurement, in the order of the lines.
    index
        Column of `rows` -> its heading. Rows that agree in all of these columns share a
        line.
    cells
        Function that returns the cells of a row (a dict, by column of `rows`) as
        heading -> text. None leaves the cell to other rows.
    rows_first, columns_first
        Values of the first index column whose lines stand first, in this order, and
        headings of `cells`. Those that do not occur are left out.
    """
    lines: dict[tuple[str, ...], dict[str, str]] = {}
    headings = dict.fromkeys(index.values())
    for row in rows.to_dict("records"):
        keys = tuple(_key(row[name]) for name in index)
        line = lines.setdefault(keys, {})
        for heading, text in cells(row).items():
            headings.setdefault(heading)
            if text is not None and line.setdefault(heading, text) != text:
                raise ValueError(
                    f"{', '.join(keys)}: {line[heading]} and {text} in {heading}",
                )
    place = {value: order for order, value in enumerate(rows_first)}
    records: list[dict[str, str]] = []
    for keys in sorted(lines, key=lambda keys: place.get(keys[0], len(place))):
        records.append(dict(zip(index.values(), keys, strict=True)) | lines[keys])
    first = [name for name in columns_first if name in headings]
    columns = list(dict.fromkeys([*index.values(), *first, *headings]))
    filled: Layout = Layout(records, columns=columns, dtype=object).fillna(MISSING)
    return filled


def _key(value: Any) -> str:
    """Return the cell of a key: a number of records as 1,533, "—" for nothing."""
    if pd.isna(value):
        return MISSING
    return f"{value:,}" if isinstance(value, int) else str(value)


def to_markdown(table: pd.DataFrame, headers: Mapping[str, str] | None = None) -> str:
    """Write a table as a pipe table of Markdown.

    `headers` maps the columns to be shown to their headings; None shows all under their
    own names. Columns of text stand left, those of numbers and of text that starts with
    a digit, bold or not, right. Numbers get a true minus sign, whole ones a comma at
    each thousand, and the floats of a column equally many decimals, unless one of them
    is written with an exponent. "—" stands for what is missing.
    """
    headers = headers or {column: column for column in table}
    chosen = table[list(headers)].apply(_as_text)
    rules: list[str] = []
    for name in chosen:
        are_numbers = chosen[name].str.match(r"^(?:\*\*)?(?:−?\d|—)").all()
        rules.append("---:" if are_numbers else ":---")
    lines = [_markdown_line(headers.values()), f"|{'|'.join(rules)}|"]
    lines += [_markdown_line(row) for row in chosen.itertuples(index=False)]
    return "\n".join(lines) + "\n"


def _markdown_line(cells: Iterable[str]) -> str:
    """Return a line of a pipe table."""
    return f"| {' | '.join(cells)} |"


def write_markdown(
    table: pd.DataFrame,
    results: Path | str,
    name: str,
    headers: Mapping[str, str] | None = None,
) -> Path:
    """Write `results/tables/<name>.md`, as `to_markdown` lays it out; return its path.

    Parameters
    ----------
    table, headers
        Same as in `to_markdown`.
    results
        Directory of the results.
    name
        Name of the table.
    """
    path = Path(results) / "tables" / f"{name}.md"
    write_text(path, to_markdown(table, headers))
    return path


def _as_text(column: pd.Series) -> pd.Series:
    """Return a column as text, with true minus signs and equally many decimals."""
    # A bar ends a cell, a tag is HTML, {=typst} a program; names of models and sets may
    # hold any.
    active = r"(?<!\\)\||<(?=[A-Za-z/!])|\{(?= *=)"
    known = column.notna()
    text = column.astype(str).where(known, "")
    text = text.str.replace(active, r"\\\g<0>", regex=True)
    if pd.api.types.is_float_dtype(column) and not text.str.contains("e").any():
        digits = max(text.str.partition(".")[2].str.len(), default=0)
        text = column.map(lambda number: f"{number:.{digits}f}")
    if pd.api.types.is_integer_dtype(column):
        text = column.map(_key)
    return text.where(known, MISSING).str.replace(r"^(\*\*)?-(?=\d)", r"\1−", regex=True)


def format_p(p: float, log10_p: float | None = None, *, bold: bool = False) -> str:
    """Return a p-value as text: 0.034, and 3.4 × 10⁻¹² below 0.001.

    The blanks do not break. It is no formula, since a browser never shows one in bold,
    and a notebook shows its source.

    Parameters
    ----------
    p
        NaN becomes "—".
    log10_p
        Decimal logarithm, needed where p is below the smallest float.
    bold
        Whether to put the marks of bold text around it.

    Examples
    --------
    >>> format_p(0.0342), format_p(0.0, log10_p=-400.0, bold=True)
    ('0.034', '**1.0\\xa0×\\xa010⁻⁴⁰⁰**')
    """
    if math.isnan(p):
        return MISSING
    moved = 0
    if log10_p is not None and log10_p < -300:
        # Too small for a float: written with the same digits a long way up, then moved
        # down.
        moved = int(log10_p)
        p = 10 ** (log10_p - moved)
    mantissa, power = f"{p:.1e}".split("e")
    exponent = str(int(power) + moved).translate(_SUPERSCRIPTS)
    shown = f"{mantissa}\u00a0×\u00a010{exponent}"
    if p >= 0.001 and not moved:
        shown = f"{p:.3f}"
    return f"**{shown}**" if bold else shown


def format_estimate(
    value: float,
    low: float = math.nan,
    high: float = math.nan,
    *,
    null: float | None = None,
    digits: int = 2,
    interval: bool = True,
) -> str:
    """Return an estimate with its interval as Markdown: "0.61 (0.52 to 0.70)".

    It has a true minus sign, and none before a zero; "—" stands for a NaN.

    Parameters
    ----------
    value
        The estimate itself.
    low, high
        Limits of the interval.
    null
        The value is bold where the interval leaves this number out; None is never.
    digits
        Number of decimals.
    interval
        Whether the interval is shown.

    Examples
    --------
    >>> format_estimate(0.61, 0.52, 0.7, null=0.5)
    '**0.61** (0.52 to 0.70)'
    """
    shown = (value, low, high) if interval else (value,)
    if any(map(math.isnan, shown)):
        return MISSING
    texts = [f"{number:z.{digits}f}".replace("-", "−") for number in shown]
    if null is not None and (low > null or high < null):
        texts[0] = f"**{texts[0]}**"
    if not interval:
        return texts[0]
    return f"{texts[0]} ({texts[1]} to {texts[2]})"


def format_sides(row: Mapping[str, Any]) -> str:
    """Return how many members and non-members a row compares, as "100 + 100"."""
    return f"{int(row['members']):,} + {int(row['non_members']):,}"


def format_auc(row: Mapping[str, Any], *, interval: bool = True) -> str:
    """Render auc, with auc_low and auc_high, as `format_estimate` does.

    An AUC of 0.5 is chance.
    """
    low = row["auc_low"]
    high = row["auc_high"]
    return format_estimate(row["auc"], low, high, null=0.5, interval=interval)
