"""The front page: its numbers are those of the reference run, its gallery is whole and short."""

import re
import sys

import pytest
from bs4 import BeautifulSoup, Comment
from markdown_it import MarkdownIt

from fakes.data_fixtures import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import readme

PAGE = readme.PAGE.read_text(encoding="utf-8")
GALLERY = PAGE.partition("<!-- gallery -->")[2].partition("<!-- end of gallery -->")[0]
ELSEWHERE = {"00", "12", "13"}  # the first notebook, and two that need the hub
EXPERIMENTS = sorted(
    path.stem
    for path in (ROOT / "notebooks").glob("[0-9]*.ipynb")
    if path.stem[:2] not in ELSEWHERE
)


# --- numbers --------------------------------------------------------------------------------------


def test_numbers_and_summary_are_those_of_the_reference() -> None:
    assert readme.renewed_page() == PAGE, "run python scripts/readme.py"


def test_numbers_and_summary_are_put_in_their_places() -> None:
    page = (
        "Of <!-- a.b -->1<!-- --> sets <!-- a.c_d -->(2 to 3)<!-- -->.\n<!-- gallery -->\n"
        "<!-- summary -->\n```text\nold\nlines\n```\nafter\n```text\nkept\n```\n"
        "<!-- table some -->\n| old |\n<!-- end of table -->\nend\n"
    )
    variables = {"a": {"b": "4", "c_d": "\\5 (6 to 7)"}}
    assert readme.renewed(page, variables, "new\n", "| {} |\n".format) == (
        "Of <!-- a.b -->4<!-- --> sets <!-- a.c_d -->\\5 (6 to 7)<!-- -->.\n<!-- gallery -->\n"
        "<!-- summary -->\n```text\nnew\n```\nafter\n```text\nkept\n```\n"
        "<!-- table some -->\n| some |\n<!-- end of table -->\nend\n"
    )
    once = readme.renewed(page, variables, "", str)
    assert readme.renewed(once, variables, "", str) == once
    with pytest.raises(KeyError):
        readme.renewed("<!-- a.gone -->8<!-- -->", variables, "", str)


def test_other_numbers_of_the_findings_are_those_of_papers_and_notebooks() -> None:
    findings = PAGE.partition("\n1. ")[2].partition("\n## ")[0] + GALLERY
    text = readme.NUMBER.sub("", findings)
    text = re.sub(r"<[^>]*>|\]\([^)]*\)", "", text)  # tags and addresses
    text = re.sub(r"^(\d\. |\*\*\d\d · )", "", text, flags=re.MULTILINE)
    text = re.sub(r"(Tables?|Figures?|section) \d+((, | and | to )\d+)*|\w+-[\d.]+B", "", text)
    assert not re.findall(r".{20}\d.{20}", text)
    assert len(readme.NUMBER.findall(findings)) > 15


# --- gallery --------------------------------------------------------------------------------------


def _made(notebook: str) -> list[str]:
    """Words of the Makefile's line for a notebook: what it reads and writes."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (line,) = re.findall(rf"^{notebook} := (.*)$", makefile, re.MULTILINE)
    return line.split()


@pytest.mark.parametrize("notebook", EXPERIMENTS)
def test_every_experiment_has_a_figure_a_sentence_a_notebook_and_a_table(notebook: str) -> None:
    entries = GALLERY.strip().split("\n\n")
    assert len(entries) == len(EXPERIMENTS) == 12
    (entry,) = (entry for entry in entries if f"**{notebook[:2]} · " in entry)
    html = BeautifulSoup(MarkdownIt().render(entry), "html.parser")
    image = html.find("img")
    assert image.parent["href"] == f"notebooks/{notebook}.ipynb"
    assert len(image["alt"]) > 40
    figure = re.fullmatch(r"results/reference/figures/(\w+)\.svg", image["src"])
    links = [link["href"] for link in html.find_all("a") if link.get_text(strip=True) == "table"]
    (table,) = (re.fullmatch(r"results/reference/tables/([\w.]+)", link) for link in links)
    assert {figure[1], table[1]} <= set(_made(notebook))
    text = "".join(html.find_all(string=lambda part: not isinstance(part, Comment)))
    said = text.partition("). ")[2].partition(" Notebook, table.")[0]
    assert 40 < len(said) < 250
    assert said.count(". ") == 0 and said.endswith("."), "one sentence"


def test_what_the_page_shows_and_links_is_there() -> None:
    html = BeautifulSoup(MarkdownIt().render(PAGE), "html.parser")
    addresses = [tag.get("src") or tag["href"] for tag in html.find_all(["img", "a"])]
    ours = [address.partition("#")[0] for address in addresses if "://" not in address]
    assert len(ours) > 60
    assert [address for address in ours if not (ROOT / address).exists()] == []


def test_the_page_is_short_and_its_first_blocks_fit_a_terminal() -> None:
    assert PAGE.count("\n") < 185
    above = PAGE.partition("<!-- gallery -->")[0]
    blocks = re.findall(r"^```\w+\n(.*?)^```", above, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    lines = [line for block in blocks for line in block.splitlines()]
    assert [x for x in lines if len(x) > 80 and not x.startswith("beside ")] == []
