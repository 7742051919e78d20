"""The documents, rendered without Quarto from a made-up run, and by a stand-in for Quarto."""

import json
import re
import sys
from collections import Counter
from pathlib import Path

import pytest
import typst
from bs4 import BeautifulSoup

from contamination.errors import InputError
from fakes.made_up_run import FEATURES, PAPER, made_up_value, variables_used
from reproduction.report.render import _pandoc, check_html, render_report, stage
from reproduction.report.variables import escape_markdown


def read_page(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


# --- the real documents ---------------------------------------------------------------------------


def test_there_are_three_files_and_nothing_else(real_pages: list[Path], real_results: Path) -> None:
    names = ["report.html", "report.pdf", "slides.html"]
    assert real_pages == [real_results / "report" / name for name in names]
    assert sorted(file.name for file in (real_results / "report").iterdir()) == names
    assert real_pages[1].read_bytes().startswith(b"%PDF-")


@pytest.mark.parametrize(("index", "document"), [(0, "report.qmd"), (2, "slides.qmd")])
def test_every_variable_table_and_figure_arrives(
    real_pages: list[Path], index: int, document: str
) -> None:
    page = read_page(real_pages[index])
    text = page.get_text()
    for name in variables_used(PAPER / document):
        assert made_up_value(name) in text, name
    source = (PAPER / document).read_text(encoding="utf-8")
    assert len(page.find_all("table")) >= source.count("{{< include tables/")
    assert len(page.find_all("img")) == source.count("](figures/")
    assert len(page.find_all("math")) > 20, "formulas need no script"


def test_floats_are_numbered_in_order_and_referred_to(real_pages: list[Path]) -> None:
    page = read_page(real_pages[0])
    captions = [caption.get_text().strip() for caption in page.find_all("figcaption")]
    for name in ("Figure", "Table"):
        found = [re.match(rf"{name}\xa0(\d+): \S", caption) for caption in captions]
        numbers = [int(match[1]) for match in found if match]
        assert numbers == list(range(1, len(numbers) + 1)) != []
    linked = {link["href"] for link in page.select("body a") if link.get("href")}
    for element in page.find_all(id=re.compile("^(fig|tbl)-")):
        assert f"#{element['id']}" in linked, element["id"]
    bibliography = (PAPER / "references.bib").read_text(encoding="utf-8")
    entries = set(re.findall(r"^@\w+\{(\w+),", bibliography, re.MULTILINE))
    assert {f"ref-{entry}" for entry in entries} == {e["id"] for e in page.select(".csl-entry")}


def test_every_slide_has_one_heading_and_notes_of_45_minutes(real_pages: list[Path]) -> None:
    page = read_page(real_pages[2])
    title, *slides = page.select(".slides section")
    assert title["id"] == "title-slide"
    assert len(slides) > 25
    for slide in slides:
        assert len(slide.find_all(re.compile("^h[1-6]$"))) == 1
    notes = [slide.select_one("aside.notes").get_text(strip=True) for slide in slides]
    minutes = [int(m[1]) for note in notes if (m := re.match(r"(\d) minutes?\b", note))]
    assert len(notes) - len(minutes) == 2, "the hand-out slides take no time"
    assert sum(minutes) == 45


# --- all that the filter numbers, refers to or draws ----------------------------------------------


def test_features_in_html(project) -> None:
    page = read_page(render_report(*project(FEATURES), quarto="")[0])
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
    figure = page.find(id="fig-a")
    assert figure.img["alt"] == 'A "falling" line.'
    assert figure.figcaption.get_text() == "Figure\xa01: One, beside Table\xa01"
    assert page.find("img", alt="A picture without number.").find_parent("figure") is None
    assert [title.get_text() for title in page.find_all("h1")] == ["T"]
    assert page.select_one("#TOC a[href='#sec-second-a']"), "two levels of contents"
    assert not page.select("col"), "columns must keep their natural widths"
    table = page.find(id="tbl-b")
    assert table.figcaption.get_text().strip().startswith("Table\xa02: Table of two, see (Shi")
    assert "(2)" in page.find(id="eq-b").get_text()
    box = page.select_one("#box-exact.box")
    assert box.get_text(" ", strip=True) == "Beware of Equation\xa01 : the body ."


# Headings by their labels, and captions by their first two words; where tables and captions stand.
POSITIONS = """
#context [#metadata(query(selector(heading).or(figure.caption)).map(each => {
  let at = each.location().position()
  let named = each.func() == heading
  let label = if named { str(each.at("label", default: "none")) } else { repr(each.body) }
  (at.page, at.y.pt(), label)
})) <positions>]
#context [#metadata((
  query(table).map(each => each.location().page()),
  query(figure.caption.where(kind: table)).map(each => each.location().page()),
)) <pages>]
"""


def test_tables_and_figures_of_the_pdf_stand_where_the_text_has_them(
    real_results: Path, tmp_path: Path
) -> None:
    """None slips below the next heading, nor above its own: as in the source, so on the pages."""
    stage(PAPER, real_results, tmp_path, ["report.qmd"])
    assert _pandoc(tmp_path, "report.qmd", "typst") is None
    file = tmp_path / "report.typ"
    file.write_text(file.read_text(encoding="utf-8") + POSITIONS, encoding="utf-8")
    found = json.loads(typst.query(str(file), "<positions>", root=str(tmp_path)))[0]["value"]
    caption = re.compile(r"(Figure|Table)\W+(\d+)")
    places = {}
    for page, y, label in found:
        named = caption.search(label)
        places[f"{named[1]} {named[2]}" if named else label] = (page, y)
    seen = Counter[str]()
    labels = []
    source = (tmp_path / "report.qmd").read_text(encoding="utf-8")
    for kind, name in re.findall(r"\{#(sec|fig|tbl)-([\w-]+)", source):
        seen[kind] += 1
        kinds = {"fig": f"Figure {seen[kind]}", "tbl": f"Table {seen[kind]}"}
        labels.append(kinds.get(kind, f"sec-{name}"))
    assert len(labels) > 70
    assert [places[label] for label in labels] == sorted(places[label] for label in labels)
    tables, captions = json.loads(typst.query(str(file), "<pages>", root=str(tmp_path)))[0]["value"]
    assert tables == captions != [], "a caption stands on the page where its table begins"


def test_the_same_sources_give_the_same_bytes(project) -> None:
    paper, results = project(f"{FEATURES}\n\nSeed {{{{< var run.seed >}}}}.")
    first = [file.read_bytes() for file in render_report(paper, results, quarto="")]
    assert [file.read_bytes() for file in render_report(paper, results, quarto="")] == first


def test_plain_text_survives_as_a_variable(project) -> None:
    name = "Xeon_8488C @2.4GHz *fast* <b> $5 ~x~ #1"
    paper, results = project("On {{< var run.seed >}} we ran.")
    (results / "variables.yml").write_text(
        f"run:\n  seed: '{escape_markdown(name)}'\n", encoding="utf-8"
    )
    assert f"On {name} we ran." in read_page(render_report(paper, results, quarto="")[0]).get_text()


# --- faults ---------------------------------------------------------------------------------------

FIGURE = '![Caption](figures/small.svg){#fig-a fig-alt="What it shows."}'
FAULTS = {
    "missing include": (
        "{{< include tables/none.md >}}",
        r":5: .*tables/none\.md .*no such include",
    ),
    "missing variable": ("One\n\n{{< var run.none >}}", r":7: .*run\.none .*no such var"),
    "unknown shortcode": ("{{< video x.mp4 >}}", ":5: .*video"),
    "open shortcode": ("{{< var run.seed", r"unresolved: .*\{\{<"),
    "missing reference": ("See @fig-none.", "@fig-none points nowhere"),
    "missing citation": ("As [@nobody1999].", "nobody1999 not found"),
    "missing figure": ('![C](figures/none.svg){#fig-a fig-alt="x"}', r"figures/none\.svg"),
    "missing alt text": ("![C](figures/small.svg){#fig-a}", r"small\.svg has no alt text"),
    "broken link": ("See [there](#nowhere).", "link to #nowhere"),
    "label used twice": (f"{FIGURE}\n\n{FIGURE}", "fig-a is used twice"),
    "no caption": (
        "::: {#tbl-a}\n\n{{< include tables/small.md >}}\n\n:::",
        "tbl-a has no caption",
    ),
    "no table": ("::: {#tbl-a}\n\nWords.\n:::", "tbl-a contains no table"),
    "formula": (r"$$ \nonsense{ $$", "report.qmd: html: .*nonsense"),
}


@pytest.mark.parametrize(("body", "message"), FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_is_one_line_and_keeps_the_pages_there_were(project, body, message) -> None:
    paper, results = project(body)
    (results / "report").mkdir()
    (results / "report" / "report.html").write_text("previous", encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        render_report(paper, results, quarto="")
    assert "\n" not in str(caught.value)
    assert (results / "report" / "report.html").read_text(encoding="utf-8") == "previous"


def test_what_a_renderer_leaves_behind_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    for body, message in (
        ("See <strong>?@fig-x</strong>", "unresolved"),
        ('<img alt="x" src="figures/a.svg">', "not inside the page"),
        ('<img src="data:image/png;base64,AA">', "without alt text"),
        ('<a href="#/nowhere">x</a><a href="#a">x</a>', r"link to #/nowhere.*\(problem 1 of 2\)"),
    ):
        page.write_text(f"<p>{body}</p><script>'{{{{<'</script>", encoding="utf-8")
        with pytest.raises(InputError, match=message):
            check_html(page)


def test_results_of_no_run_are_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"variables\.yml is missing: run `make reproduce`"):
        render_report(PAPER, tmp_path, quarto="")
    with pytest.raises(InputError, match=r"nowhere/_quarto\.yml is missing"):
        render_report(tmp_path / "nowhere", tmp_path, quarto="")


# --- Quarto ---------------------------------------------------------------------------------------

STAND_IN = f"""#!{sys.executable}
import pathlib, sys
assert sys.argv[1] == "render" and sys.argv[3] == "--to" and sys.argv[5] == "--no-execute"
document, target = pathlib.Path(sys.argv[2]), sys.argv[4]
assert pathlib.Path("_quarto.yml").is_file() and pathlib.Path("tables/small.md").is_file()
if target == "typst":
    document.with_suffix(".pdf").write_bytes(b"%PDF-1.7")
else:
    document.with_suffix(".html").write_text("by Quarto: " + document.read_text())
"""


def test_quarto_on_path_renders_the_expanded_documents(
    project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executable = tmp_path / "bin" / "quarto"
    executable.parent.mkdir()
    executable.write_text(STAND_IN, encoding="utf-8")
    executable.chmod(0o755)
    monkeypatch.setenv("PATH", str(executable.parent))
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    page, printed, slides = render_report(*project("Seed {{< var run.seed >}}."))
    assert "Seed 17." in page.read_text(encoding="utf-8")
    assert printed.read_bytes() == b"%PDF-1.7"
    assert slides.read_text(encoding="utf-8").startswith("by Quarto: ")


@pytest.mark.parametrize(
    ("script", "message"),
    [("echo ERROR; exit 1", "html: ERROR"), ("exit 0", "no page was written")],
)
def test_a_quarto_that_fails_is_reported(project, tmp_path: Path, script, message) -> None:
    executable = tmp_path / "quarto"
    executable.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    executable.chmod(0o755)
    with pytest.raises(InputError, match=message):
        render_report(*project("Text."), quarto=str(executable))


def test_the_plain_commands_of_quarto_find_results(real_results: Path, tmp_path: Path) -> None:
    """`cd paper && quarto render` resolves names from `paper`, through its links to results/."""
    for link in ("tables", "figures", "_variables.yml"):
        target = (PAPER / link).readlink()
        assert target == Path("..", "results", link.removeprefix("_"))
        assert (real_results / target.name).exists()
