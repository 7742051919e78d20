"""The page on the three papers has a row for each of their items, and names files that exist."""

import re
from collections import Counter
from dataclasses import dataclass

import pytest

from fakes.data_fixtures import ROOT
from reproduction.notebooks.table import NOTEBOOKS, outputs

PAGE = ROOT / "docs" / "fidelity.md"
TEXT = PAGE.read_text(encoding="utf-8")
TESTED = "tested here"
RUN_HERE = ("works", TESTED, "wired, not run here")
STATUSES = (*RUN_HERE, "printed only", "not possible")
KIND = r"(Algorithm|Equation|Figure|Proposition|Table|Theorem)"
NUMBERED = re.compile(rf"{KIND}s? (\d+)([a-z]?)(?: (?:to|and) (\d+))?")
FILE = re.compile(r"`([^`\s]+/[^`\s]+)`|\]\(([^)#]+)[^)]*\)")


@dataclass(frozen=True)
class Row:
    """One row of the page."""

    paper: str
    item: str
    status: str
    where: str
    differs: str


def rows_of_page() -> list[Row]:
    """Read the tables of the papers."""
    rows = []
    for part in TEXT.split("\n## ")[1:]:
        for line in part.splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if line.startswith("| ") and len(cells) == 4 and cells[0] != "item":
                rows.append(Row(part.split()[0], *cells))
    return rows


ROWS = rows_of_page()


def numbered(kind: str, count: int) -> list[str]:
    """Name the items 1 to `count` of a kind."""
    return [f"{kind} {number}" for number in range(1, count + 1)]


# What the papers number. A figure in parts counts once for each part.
NUMBERED_ITEMS = {
    "Oren": [
        *numbered("Table", 5),
        *("Figure 1", "Figure 2", "Figure 3a", "Figure 3b", "Figure 4"),
        *("Algorithm 1", "Proposition 1", "Theorem 2"),
    ],
    "Shi": [
        *numbered("Table", 9),
        *("Figure 1", "Figure 2a", "Figure 2b", "Figure 3", "Figure 4"),
        *("Figure 5a", "Figure 5b", "Figure 5c", "Figure 6", "Figure 7"),
        *("Equation 1", "Algorithm 1"),
    ],
    "Fu": [*numbered("Table", 15), *numbered("Figure", 20), *numbered("Equation", 11)],
}


def names_numbered(item: str) -> set[str]:
    """Name the numbered items of a cell: "Tables 7 to 9" are three."""
    names = set()
    for kind, first, letter, last in NUMBERED.findall(item):
        for number in range(int(first), int(last or first) + 1):
            names.add(f"{kind} {number}{letter}")
    return names


@pytest.mark.parametrize("paper", NUMBERED_ITEMS)
def test_each_numbered_item_of_a_paper_has_a_row(paper: str) -> None:
    listed = set()
    for row in ROWS:
        if row.paper == paper:
            listed |= names_numbered(row.item)
    assert set(NUMBERED_ITEMS[paper]) - listed == set()


def test_rows_state_their_status_and_what_differs() -> None:
    wrong = []
    for row in ROWS:
        says_what_differs = row.differs not in ("", "–", "the same")
        has_file = row.status not in RUN_HERE or bool(FILE.search(row.where))
        if row.status not in STATUSES or not says_what_differs or not has_file:
            wrong.append(row.item)
    assert wrong == []


def test_a_claim_is_not_said_to_work_but_to_hold_or_not() -> None:
    wrong = []
    for row in ROWS:
        is_claim = row.item.startswith("claim: ")
        says_whether = row.differs.startswith(("Holds", "Does not hold"))
        if (is_claim and row.status == "works") or says_whether != (row.status == TESTED):
            wrong.append(row.item)
    assert wrong == []


def test_files_that_a_row_names_exist_or_are_made_by_a_notebook() -> None:
    made = set()
    for name in NOTEBOOKS:
        made.update(f"results/{file}" for file in outputs(ROOT / "notebooks" / f"{name}.ipynb"))
    lost = []
    for row in ROWS:
        for in_code, linked in FILE.findall(row.where):
            name = in_code or linked
            written = name.replace("results/checkpoints/", "results/")
            is_here = (ROOT / name).exists() or (PAGE.parent / name).exists()
            if not is_here and written not in made:
                lost.append(name)
    assert lost == []


def test_the_page_counts_its_rows() -> None:
    counts = Counter(row.status for row in ROWS)
    sentence = re.findall("Of the rows below, (.+)", TEXT)[0]
    numbers = [int(number) for number in re.findall(r"\d+", sentence)]
    assert numbers == [counts[status] for status in STATUSES]
