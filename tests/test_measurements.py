"""Pages that quote docs/measurements/*.csv: numbers of their tables are numbers of those files.

A page is found out where a measurement was renewed and its tables were not. One number that was
mistyped may meet another one of the files by chance; twenty old ones do not.
"""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fakes.data_fixtures import ROOT

DOCS = ROOT / "docs"
LINK = re.compile(r"\]\(([^)]*measurements/\w+\.csv)\)")
NUMBER = re.compile(r"(?<![\w.])[−-]?\d[\d,]*\.\d+(?![\w.])")
UNITS = (1, -1, 100, 1 / 60, 1e-3)  # as written, a loss as a gain, percent, minutes, thousands
COMPUTED = {"throughput.md": {"9.7", "3.7"}}  # a ratio and hours
OTHERS = {"fidelity.md"}  # quotes the papers


def quoted(page: Path) -> list[Path]:
    """Files of measurements that a page links."""
    return [page.parent / link for link in LINK.findall(page.read_text(encoding="utf-8"))]


def unknown(text: str, values: np.ndarray) -> list[str]:
    """Decimal numbers in the tables of a page that are none of the values, however rounded."""
    found = []
    for line in text.splitlines():
        timed = " minutes" in line or "`make " in line  # of a run, or computed by that command
        for number in NUMBER.findall(line) if line.startswith("|") and not timed else []:
            plain = number.replace("−", "-").replace(",", "")
            half = 0.5 * 10.0 ** -len(plain.partition(".")[2]) + 1e-9
            if all(np.abs(unit * values - float(plain)).min() > half for unit in UNITS):
                found.append(number)
    return found


PAGES = [p for p in sorted(DOCS.rglob("*.md")) if quoted(p) and p.name not in OTHERS]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_tables_of_a_page_are_those_of_its_measurements(page: Path) -> None:
    tables = [pd.read_csv(f, low_memory=False).select_dtypes("number") for f in quoted(page)]
    values = np.concatenate([table.to_numpy(dtype=float).ravel() for table in tables])
    found = unknown(page.read_text(encoding="utf-8"), np.unique(values[np.isfinite(values)]))
    assert set(found) == COMPUTED.get(page.name, set())


def test_a_number_that_was_not_measured_is_found() -> None:
    values = np.array([-1.234, 0.056, 90.0])
    text = "0.99\n| a1.99 | −1.23 | 5.6 | 0.09 | 7 |\n| 1.24 | 0.057 |"
    assert unknown(text, values) == ["1.24", "0.057"]
