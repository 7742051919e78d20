"""How a notebook shows a data frame: whole texts, and numbers that can be read."""

import numpy as np
import pandas as pd

from contamination.tables import format_p

SMALL = 0.001  # below it a number is written with a power of ten


def show_frames() -> None:
    """Make pandas show texts uncut, and numbers as `number_text` writes them."""
    pd.set_option("display.max_colwidth", None)
    pd.set_option("display.float_format", number_text)


def number_text(value: float) -> str:
    """Return a number with three decimals at most, and a power of ten if it is tiny.

    >>> number_text(0.33582), number_text(1500.0), number_text(9.99e-41)
    ('0.336', '1,500', '1.0\\xa0×\\xa010⁻⁴⁰')
    """
    if not np.isfinite(value):
        return str(value)
    if 0 < abs(value) < SMALL:
        sign = "−" if value < 0 else ""
        return f"{sign}{format_p(abs(value))}"
    digits = f"{value:,.3f}".rstrip("0").rstrip(".")
    return digits.replace("-", "−")
