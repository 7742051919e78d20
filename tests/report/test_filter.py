"""The filter: numbers, references and callouts, the same in HTML and in typst."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from contamination.report.render import Pandoc
from contamination.report.source import Stage, read_document
from fakes.made_up_run import FEATURES


@pytest.fixture
def render(project, tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that renders FEATURES to one target, and returns the stage."""

    def make(target: str) -> Path:
        (root := tmp_path / "stage").mkdir()
        stage = Stage.fill(*project(FEATURES), root)
        Pandoc().render(stage, read_document(stage, "report.qmd"), target)
        return root

    return make


def test_html(render: Callable[[str], Path]) -> None:
    file = render("html") / "report.html"
    page = BeautifulSoup(file.read_text(encoding="utf-8"), "html.parser")
    assert page.find(id="sec-second-a").get_text(" ", strip=True) == "2.1 Part"
    links = [
        (link["href"], link.get_text().replace("\xa0", " "))
        for link in page.select("a.quarto-xref")
    ]
    assert links[:6] == [
        ("#sec-second-a", "Section 2.1"),
        ("#fig-b", "Figure 2"),
        ("#tbl-b", "Table 2"),
        ("#eq-b", "Equation 2"),
        ("#fig-a", "1"),
        ("#fig-a", "Figure 1"),
    ]
    assert ("#eq-a", "Equation 1") in links
    figure = page.find(id="fig-a")
    assert figure.img["alt"] == 'A "falling" line.'
    assert figure.figcaption.get_text() == "Figure\xa01: One, beside Table\xa01"
    assert page.find("img", alt="A picture without number.").find_parent("figure") is None
    assert [title.get_text() for title in page.find_all("h1")] == ["T"]
    assert page.select_one("#TOC a[href='#sec-second-a']"), "two levels of contents"
    assert not page.select("col"), "columns must keep their natural widths"
    table = page.find(id="tbl-b")
    assert table.figcaption.get_text().strip().startswith("Table\xa02: Table of two, see (Shi")
    assert table.find("div", class_="table-scroll").table is not None
    assert "(2)" in page.find(id="eq-b").get_text()
    assert [box["class"] for box in page.select(".callout")] == [
        ["callout", "callout-warning"],
        ["callout", "callout-tip"],
        ["callout", "callout-note"],
    ]
    titles = [title.get_text().strip() for title in page.select(".callout-title")]
    assert titles == ["Beware of Equation\xa01", "Heading as title", "Note"]
    assert page.select_one(".callout-warning .callout-content em").get_text() == "body"


def test_typst(render: Callable[[str], Path]) -> None:
    rendered = render("typst")
    text = (rendered / "report.typ").read_text(encoding="utf-8")
    for name in ("sec-second-a", "fig-a", "fig-b", "tbl-a", "tbl-b", "eq-a", "eq-b"):
        assert re.search(rf"(?<!\()<{name}>", text), f"no label {name}"
        assert f"#ref(<{name}>" in text or name == "sec-first", f"no reference to {name}"
    assert "#ref(<fig-a>, supplement: none)" in text
    assert 'image("figures/small.svg", width: 60%, alt: "A \\"falling\\" line.")' in text
    assert text.count('#math.equation(block: true, numbering: "(1)"') == 2
    assert text.count("#block(width: 100%, inset: 9pt") == 3
    assert not re.search(r"columns: \(.*%", text), "columns must keep their natural widths"
    assert (rendered / "report.pdf").read_bytes().startswith(b"%PDF-")
