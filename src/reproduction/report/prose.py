"""Numbers as the report's prose writes them."""

import re
from collections.abc import Iterable
from typing import Any

import pandas as pd

from contamination.tables import MISSING, format_estimate

Texts = dict[str, str]


def rounded(value: float, *, digits: int) -> str:
    """Write a number with its digits after the point; a dash for NaN."""
    return format_estimate(value, digits=digits, interval=False)


def count_text(value: Any) -> str:
    """Write a count with its thousands, truth values as the count of true ones, NaN as a dash."""
    if isinstance(value, str):
        return value
    if isinstance(value, pd.Series):
        value = value.sum()
    if pd.isna(value):
        return MISSING
    return f"{value:,}"


def texts(**values: Any) -> Texts:
    """Write values as `count_text` does, by name."""
    return {name: count_text(value) for name, value in values.items()}


def percent(share: float) -> str:
    """Write a share in percent, without a zero after the point; a dash for NaN."""
    return rounded(100 * share, digits=1).removesuffix(".0")


def escape_markdown(text: str) -> str:
    """Escape `text` for variables.yml, whose values are one line of markdown.

    Use it for text that this project did not write, such as the name of a processor.
    """
    return re.sub(r"([\\`*_{}\[\]<>#@$^~|!\"'])", r"\\\1", " ".join(text.split()))


def listed(items: Iterable[Any]) -> str:
    """Join as in prose: a, b and c."""
    escaped = [escape_markdown(str(item).strip()) for item in items]
    if not escaped:
        return ""
    *first, last = escaped
    if not first:
        return last
    return f"{', '.join(first)} and {last}"
