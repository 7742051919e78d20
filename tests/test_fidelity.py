"""The page on the three papers, item by item, names files that exist or that a run makes."""

import itertools
import re

from fakes.data_fixtures import ROOT
from reproduction.notebooks.table import NOTEBOOKS
from reproduction.output.published import load_published

PAGE = ROOT / "docs" / "fidelity.md"
ITEMS = [
    row.split("|")[1:4]
    for row in PAGE.read_text("utf-8").splitlines()
    if row.startswith("| ") and not row.startswith("| item |")
]


def test_each_item_says_where_it_is_or_why_it_is_not() -> None:
    made = {f"results/{name}" for each in NOTEBOOKS.values() for name in each.outputs}
    for item, here, differs in ITEMS:
        named = re.findall(r"`([^`]+/[^`]+)`", here) + re.findall(r"\]\(([^)#]+)", here)
        assert named or (here.strip() == "not here" and differs.strip()), item
        for name in named:
            if name.startswith("results/"):  # a run makes it, of whatever profile
                assert name.replace("results/open/", "results/") in made, name
            else:
                assert (ROOT / name).exists() or (PAGE.parent / name).exists(), name


def test_every_table_and_figure_of_the_papers_has_a_row() -> None:
    page = PAGE.read_text("utf-8")
    starts = [page.index(f"## {name}") for name in ("Oren", "Shi", "Fu", "Slips")]
    parts = [page[a:b] for a, b in itertools.pairwise(starts)]
    for text, tables, figures in zip(parts, (5, 9, 15), (4, 7, 20), strict=True):
        assert _numbered(text, "Table") == set(range(1, tables + 1))
        assert _numbered(text, "Figure") == set(range(1, figures + 1))


def _numbered(text: str, kind: str) -> set[int]:
    """Numbers that items name: "Tables 3 and 7 to 15" names 3, and 7 to 15."""
    found: set[int] = set()
    for item in (row.split("|")[1] for row in text.splitlines() if row.startswith("| ")):
        numbers = r"\d+[a-c]?(?:(?:, | and | to )\d+[a-c]?)*"
        for named in re.findall(rf"{kind}s? ({numbers})", item):
            for first, last in re.findall(r"(\d+)[a-c]?(?: to (\d+))?", named):
                found |= set(range(int(first), int(last or first) + 1))
    return found


def test_what_the_text_of_shi_says_is_quoted_as_it_stands_in_its_file() -> None:
    text = load_published(ROOT / "data" / "published", "shi2023_text").set_index("key")["value"]
    for keys, start in (
        ("books", "section 5, Figure 4"),
        ("chunks|completions", "section 7.2.1"),
        ("questions|recall", "section 7.2.2"),
    ):
        (said,) = (differs for item, _, differs in ITEMS if item.strip().startswith(start))
        found = re.findall(r"(?<!\w)\d[\d,]*(?:\.\d+)?", said.partition("Theirs:")[2])
        numbers = {float(number.rstrip(",").replace(",", "")) for number in found}
        assert numbers - {50} <= set(text[text.index.str.match(keys)])  # 50%: what is asked
        assert len(numbers) >= 3
