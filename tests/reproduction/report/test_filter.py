"""The filter: numbers and references, the same in HTML and in typst."""

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import typst
from bs4 import BeautifulSoup

from fakes.made_up_run import FEATURES, PAPER
from reproduction.report.render import Pandoc
from reproduction.report.source import Stage, read_document


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
    box = page.select_one("#box-exact.box")
    assert box.get_text(" ", strip=True) == "Beware of Equation\xa01 : the body ."


def test_typst(render: Callable[[str], Path]) -> None:
    rendered = render("typst")
    text = (rendered / "report.typ").read_text(encoding="utf-8")
    for name in ("sec-second-a", "fig-a", "fig-b", "tbl-a", "tbl-b", "eq-a", "eq-b"):
        assert re.search(rf"(?<!\()<{name}>", text), f"no label {name}"
        assert f"#ref(<{name}>" in text or name == "sec-first", f"no reference to {name}"
    assert "#ref(<fig-a>, supplement: none)" in text
    assert 'image("figures/small.svg", width: 60%, alt: "A \\"falling\\" line.")' in text
    assert text.count('#math.equation(block: true, numbering: "(1)"') == 2
    assert re.search(r"#block\[\n#strong\[Beware\].*?\] <box-exact>", text, re.DOTALL)
    assert not re.search(r"columns: \(.*%", text), "columns must keep their natural widths"
    assert (rendered / "report.pdf").read_bytes().startswith(b"%PDF-")


# Headings by their labels, and captions, which move with their figures, by kind and number.
POSITIONS = """
#context [#metadata(query(selector(heading).or(figure.caption)).map(each => {
  let at = each.location().position()
  let named = each.func() == heading
  let label = if named { str(each.at("label", default: "none")) } else {
    repr(each.kind) + str(each.counter.at(each.location()).first())
  }
  (at.page, at.y.pt(), label)
})) <positions>]
#context [#metadata((
  query(table).map(each => each.location().page()),
  query(figure.caption.where(kind: table)).map(each => each.location().page()),
)) <pages>]
"""
KINDS = {"fig": "image", "tbl": "table"}  # as typst calls them


def test_tables_and_figures_stand_where_the_text_has_them(real_results: Path, tmp_path) -> None:
    """None slips below the next heading, nor above its own: as in the source, so on the pages."""
    (root := tmp_path / "stage").mkdir()
    stage = Stage.fill(PAPER, real_results, root)
    document = read_document(stage, "report.qmd")
    Pandoc().render(stage, document, "typst")
    file = root / "report.typ"
    file.write_text(file.read_text(encoding="utf-8") + POSITIONS, encoding="utf-8")
    found = json.loads(typst.query(str(file), "<positions>", root=str(root)))[0]["value"]
    places = {label: (page, y) for page, y, label in found}
    seen = Counter[str]()
    labels = []
    for kind, name in re.findall(r"\{#(sec|fig|tbl)-([\w-]+)", document.text):
        seen[kind] += 1
        labels.append(f"sec-{name}" if kind == "sec" else f"{KINDS[kind]}{seen[kind]}")
    assert len(labels) > 70
    assert [places[label] for label in labels] == sorted(places[label] for label in labels)
    tables, captions = json.loads(typst.query(str(file), "<pages>", root=str(root)))[0]["value"]
    assert tables == captions != [], "a caption stands on the page where its table begins"
