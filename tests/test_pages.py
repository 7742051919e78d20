"""Pages quote what is so: numbers of the reference run, of measurements, files that are there."""

import re
from pathlib import Path

import detection_size
import numpy as np
import pandas as pd
import pytest
import readme

from fakes.data_fixtures import ROOT
from reproduction.notebooks.table import NOTEBOOKS, outputs


@pytest.mark.parametrize("path", readme.PAGES, ids=lambda p: p.name)
def test_numbers_and_tables_are_those_of_the_reference(path) -> None:
    page = path.read_text(encoding="utf-8")
    assert readme.NUMBER.search(page)
    assert readme.renewed(page) == page, "run python scripts/readme.py"
    with pytest.raises(KeyError):
        readme.renewed("<!-- results.gone -->8<!-- -->")


# --- tables of pages that link docs/measurements/*.csv --------------------------------------------
# A page is found out where a measurement was renewed and its tables were not. One number that was
# mistyped may meet another one of the files by chance; twenty old ones do not.

DOCS = ROOT / "docs"
LINK = re.compile(r"\]\(([^)]*measurements/\w+\.csv)\)")
NUMBER = re.compile(r"(?<![\w.])[−-]?\d[\d,]*\.\d+(?![\w.])")
UNITS = (1, -1, 100, 1 / 60, 1e-3)  # as written, a loss as a gain, percent, minutes, thousands
COMPUTED = {
    # of keys of their own
    "seal-a-benchmark.md": {
        "0.819",
        "0.894",
        "0.751",
        "0.242",
        "0.726",
        "0.685",
        "0.781",
    },
}
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
    own = readme.TABLE.sub("", page.read_text(encoding="utf-8"))  # without those of the reference
    found = unknown(own, np.unique(values[np.isfinite(values)]))
    assert set(found) == COMPUTED.get(page.name, set())


def test_every_figure_of_the_report_leads_to_its_notebook_and_a_table_of_it() -> None:
    made = {name: outputs(ROOT / "notebooks" / f"{name}.ipynb") for name in NOTEBOOKS}
    for document in (ROOT / "paper").glob("*.qmd"):
        for words, figure in re.findall(r"!\[(.+)\]\((figures/.+?)\)", document.read_text("utf-8")):
            name, table = re.findall(r"\(\.\./(?:notebooks/(\w+)|(tables/\w+.csv))", words)
            assert {figure, table[1]} <= {*made[name[0]]}, (document.name, figure)


def test_the_figure_of_model_sizes_is_drawn_from_what_was_measured() -> None:
    made = detection_size.table()
    written = pd.read_csv(DOCS / "measurements" / "detection_size.csv")
    pd.testing.assert_frame_equal(made, written, check_dtype=False)
