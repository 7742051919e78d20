"""The documents, rendered without Quarto from a made-up run, and by a stand-in for Quarto."""

import sys
from pathlib import Path

import pytest

from contamination.errors import InputError
from fakes.browser import Browser
from fakes.made_up_run import FEATURES, PAPER, read_page, whole_page
from reproduction.report.page_checks import check_html, check_typst
from reproduction.report.prose import escape_markdown
from reproduction.report.render import render_report

# --- the real documents ---------------------------------------------------------------------------


def test_the_real_documents_arrive_with_every_variable_table_and_figure(
    real_pages: list[Path],
) -> None:
    assert [page.name for page in real_pages] == ["report.html", "report.pdf", "slides.html"]
    assert sorted(real_pages[0].parent.iterdir()) == real_pages
    assert real_pages[1].read_bytes().startswith(b"%PDF-")
    for index, document in ((0, "report.qmd"), (2, "slides.qmd")):
        page = whole_page(real_pages[index], PAPER / document)
        assert len(page.find_all("math")) > 20, "formulas need no script"


# --- what a reader sees in a browser --------------------------------------------------------------


LOCKED = """[...document.querySelectorAll("body *")].filter((node) => node.tabIndex < 0
  && node.scrollWidth > node.clientWidth && getComputedStyle(node).overflowX === "auto").length"""


@pytest.mark.parametrize("width", [390, 1280])
def test_the_report_fits_its_window_and_is_whole(
    browser: Browser, real_pages: list[Path], width: int
) -> None:
    page = real_pages[0]
    browser.screen(width, 800)
    browser.open(page)
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run(LOCKED) == 0, "what scrolls is reached by keys"
    assert browser.problems() == []
    inside = ("data:", "blob:", page.resolve().as_uri())
    assert [url for url in browser.requested() if not url.startswith(inside)] == []


OUTSIDE = """[...document.querySelectorAll(".slides > section")].flatMap((slide, index) => {
  Reveal.slide(index, 0, 99);
  return [...slide.querySelectorAll(":not(aside, aside *, math *)")].filter((node) => {
    const box = node.getBoundingClientRect();
    return box.width && (box.left < 64 || box.right > 1216 || box.bottom > 720);
  }).map((node) => `${slide.id}: ${node.tagName}`);
})"""


def test_every_slide_is_whole_on_its_screen(browser: Browser, real_pages: list[Path]) -> None:
    browser.screen(1280, 720)
    browser.open(real_pages[2])
    outside = browser.run(OUTSIDE)
    assert browser.run("Reveal.getCurrentSlide().id") == "references"
    assert outside == []


# --- all that the filter numbers, refers to or draws ----------------------------------------------


def test_features_in_html(project) -> None:
    page = read_page(render_report(*project(FEATURES), quarto="")[0])
    assert page.find(id="sec-second-a").get_text(" ", strip=True) == "2.1 Part"
    links = page.select("a.quarto-xref")[:6]
    assert [(link["href"], link.get_text().replace("\xa0", " ")) for link in links] == [
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


def test_the_same_sources_give_the_same_bytes(project) -> None:
    paper, results = project(f"{FEATURES}\n\nSeed {{{{< var run.seed >}}}}.")
    first = [file.read_bytes() for file in render_report(paper, results, quarto="")]
    assert [file.read_bytes() for file in render_report(paper, results, quarto="")] == first


def test_plain_text_survives_as_a_variable(project) -> None:
    name = "Xeon_8488C @2.4GHz *fast* <b> $5 ~x~ #1"
    paper, results = project("On {{< var run.seed >}} we ran.")
    (results / "variables.yml").write_text(
        f"corpus: {{}}\nrun:\n  seed: '{escape_markdown(name)}'\n", encoding="utf-8"
    )
    assert f"On {name} we ran." in read_page(render_report(paper, results, quarto="")[0]).get_text()


# --- faults ---------------------------------------------------------------------------------------

FIGURE = '![Caption](figures/small.svg){#fig-a fig-alt="What it shows."}'
TABLE = "::: {#tbl-a}\n\n{{< include tables/small.md >}}"
FAULTS = {
    "missing include": ("{{< include tables/a.md >}}", r":5: .*tables/a\.md .*no such include"),
    "missing variable": ("One\n\n{{< var run.none >}}", r":7: .*run\.none .*no such var"),
    "open shortcode": ("{{< var run.seed", r"unresolved: .*\{\{<"),
    "missing reference": ("See @fig-none.", "@fig-none points nowhere"),
    "missing alt text": ("![C](figures/small.svg){#fig-a}", r"small\.svg has no alt text"),
    "label used twice": (f"{FIGURE}\n\n{FIGURE}", "fig-a is used twice"),
    "no caption": (f"{TABLE}\n\n:::", "tbl-a has no caption"),
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
        (r"<span>$$ p = \Bigl( $$</span>", "unresolved"),
        ('<img alt="x" src="figures/a.svg">', "not inside the page"),
        ('<img src="data:image/png;base64,AA">', "without alt text"),
        ('<a href="#/nowhere">x</a><a href="#a">x</a>', r"link to #/nowhere.*\(problem 1 of 2\)"),
    ):
        page.write_text(f"<p>{body}</p><script>'{{{{<'</script>", encoding="utf-8")
        with pytest.raises(InputError, match=message):
            check_html(page)


@pytest.mark.parametrize("left", [r"?\@fig-x", r"\$\$ p = \\Bigl( \$\$", "{{< var a >}}"])
def test_what_a_renderer_leaves_behind_in_a_pdf_is_found(tmp_path: Path, left: str) -> None:
    source = tmp_path / "page.typ"
    source.write_text(f"= Title\n\nSee {left}.\n", encoding="utf-8")
    with pytest.raises(InputError, match="unresolved"):
        check_typst(source)


# --- Quarto ---------------------------------------------------------------------------------------

# Like Quarto, it looks up the includes of every document that the project lists.
STAND_IN = f"""#!{sys.executable}
import pathlib, re, sys, yaml
assert sys.argv[1] == "render" and sys.argv[3] == "--to" and sys.argv[5] == "--no-execute"
document, target = pathlib.Path(sys.argv[2]), sys.argv[4]
for name in yaml.safe_load(open("_quarto.yml"))["project"]["render"]:
    for included in re.findall("{{{{< include (.*) >}}}}", open(name).read()):
        open(included)
if target == "typst":
    document.with_suffix(".pdf").write_bytes(b"%PDF-1.7")
else:
    text = document.read_text() + '<div aria-describedby="tbl-small-caption"><table></table></div>'
    document.with_suffix(".html").write_text("by Quarto: " + text)
"""


def executable(folder: Path, text: str) -> Path:
    folder.mkdir()
    file = folder / "quarto"
    file.write_text(text, encoding="utf-8")
    file.chmod(0o755)
    return file


def test_quarto_on_path_renders_the_expanded_documents_and_reads_no_other(
    project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PATH", str(executable(tmp_path / "bin", STAND_IN).parent))
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    paper, results = project("{{< include tables/small.md >}}\n\nSeed {{< var run.seed >}}.")
    page, printed, slides = render_report(paper, results)
    assert "numpy ufuncs" in page.read_text(encoding="utf-8")
    assert "Seed 17." in page.read_text(encoding="utf-8")
    assert read_page(page).select("div[tabindex='0'] > table")  # what scrolls is reached by keys
    assert printed.read_bytes() == b"%PDF-1.7"
    assert "report: rendering with Quarto" in capsys.readouterr().out
    assert slides.read_text(encoding="utf-8").startswith("by Quarto: ")


def test_a_quarto_that_fails_is_reported(project, tmp_path: Path) -> None:
    quarto = executable(tmp_path / "bin", "#!/bin/sh\necho ERROR; exit 1\n")
    with pytest.raises(InputError, match="html: ERROR"):
        render_report(*project("Text."), quarto=str(quarto))
