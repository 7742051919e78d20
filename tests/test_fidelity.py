"""The page on the three papers, item by item, names files that exist or that a run makes."""

import itertools
import re
from importlib import import_module

import pytest

from fakes.data_fixtures import ROOT
from reproduction.output.published import load_published

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


def test_what_the_text_of_shi_says_is_quoted_as_it_stands_in_its_file() -> None:
    text = load_published(ROOT / "data" / "published", "shi2023_text").set_index("key")["value"]
    rows = {row.split("|")[1].strip(): row for row in ITEMS}
    quoted = {
        "section 5, Figure 4, Table 2: contamination rates": "books",
        "section 7.2.1, Figures 6 and 7: chunks and stories": "chunks|completions",
        "section 7.2.2: questions": "questions|recall",
    }
    for item, keys in quoted.items():
        said = re.search(r"Theirs: (.*?) \|$", rows[item])
        assert said is not None, item
        found = re.findall(r"(?<!\w)\d[\d,]*(?:\.\d+)?", said[1])
        numbers = {float(number.rstrip(",").replace(",", "")) for number in found}
        known = set(text[text.index.str.match(keys)])
        assert numbers - {50} <= known, item  # 50%: the rate that is asked, not a result
        assert len(numbers & known) >= 3
    # Prose of the report and of the notebooks takes them from there.
    prose = [ROOT / "paper" / "report.qmd", *(ROOT / "notebooks").glob("1[01]_*.ipynb")]
    for path in prose:
        typed = re.search(r"\b(188|103|5\.3%|0\.23|(about|nearly) 90%)", path.read_text("utf-8"))
        assert typed is None, (path, typed)


def test_the_notation_and_the_works_on_risks_are_whole_and_name_what_there_is() -> None:
    page = (ROOT / "docs" / "explanation" / "assumptions.md").read_text("utf-8")
    notation, risks = (
        re.search(rf"## {title}.*?\n\|---.*?\n(.*?)\n\n", page, re.S)[1].splitlines()
        for title in ("Their notation", "Risks and remedies")
    )
    assert len(notation) == 17
    works = re.findall(r"\w+ et al\. \(\d{4}a?\)", " ".join(risks))
    assert len(works) == len(set(works)) == 10
    for module, name in re.findall(r"`(\w+)\.(\w+)`", " ".join(notation)):
        found = import_module(f"contamination.membership.{module}")
        assert callable(getattr(found, name)), name
