"""The page on the three papers, item by item, names files that exist or that a run makes."""

import itertools
import re

import pytest

from fakes.data_fixtures import ROOT

PAGE = ROOT / "docs" / "fidelity.md"
ROWS = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
ITEMS = [row for row in ROWS if not row.startswith("| item |")]
MADE = (ROOT / "Makefile").read_text("utf-8")


@pytest.mark.parametrize("row", ITEMS, ids=lambda row: row.split("|")[1].strip())
def test_each_item_says_where_it_is_or_why_it_is_not(row: str) -> None:
    _, item, here, differs, _ = (cell.strip() for cell in row.split("|"))
    assert item
    assert here
    named = re.findall(r"`([^`]+/[^`]+)`", here) + re.findall(r"\]\(([^)#]+)", here)
    assert named or (here.startswith("not here") and differs) or "`" in here, row
    for name in named:
        if name.startswith("results/"):
            # A run makes it: the Makefile names it in full, or a figure without its ending.
            made = name.rsplit("/", 1)[1].removesuffix(".svg")
            assert re.search(rf"\b{re.escape(made)}\b", MADE), name
        else:
            assert (ROOT / name).exists() or (PAGE.parent / name).exists(), name


def test_every_table_and_figure_of_the_papers_has_a_row() -> None:
    page = PAGE.read_text("utf-8")
    starts = [page.index(f"## {name}") for name in ("Oren", "Shi", "Fu", "Slips")]
    oren, shi, fu = (page[a:b] for a, b in itertools.pairwise(starts))
    for text, tables, figures in ((oren, 5, 4), (shi, 9, 7), (fu, 15, 20)):
        assert _numbered(text, "Table") == set(range(1, tables + 1))
        assert _numbered(text, "Figure") == set(range(1, figures + 1))


def _numbered(text: str, kind: str) -> set[int]:
    """Numbers that items name: "Tables 3 and 7 to 15" names 3, and 7 to 15."""
    found: set[int] = set()
    for row in text.splitlines():
        item = row.split("|")[1] if row.startswith("| ") else ""
        numbers = r"\d+[a-c]?(?:(?:, | and | to )\d+[a-c]?)*"
        for named in re.findall(rf"{kind}s? ({numbers})", item):
            for first, last in re.findall(r"(\d+)[a-c]?(?: to (\d+))?", named):
                found |= set(range(int(first), int(last or first) + 1))
    return found
