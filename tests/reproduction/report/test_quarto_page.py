"""The style sheets on pages as Quarto 1.10 writes them, which cannot be run here.

The pages are made by hand, after Quarto's templates, filters and style rules: `theme: none` has no
sections around headings, tables and their captions in figures, and paragraphs in cells with a
variable. Quarto's own rules stand before ours, as in its pages; only those are here that touch the
same properties.
"""

from pathlib import Path

import pytest

from fakes.browser import INDENTS, Browser
from fakes.made_up_run import PAPER

REPORT_RULES = """
.quarto-figure-center > figure > div { text-align: center }
figure.quarto-float-tbl figcaption.quarto-float-caption-top
  { margin-top: 0.5rem; margin-bottom: 0.25rem; text-align: center }
table { margin-top: 0.5rem; margin-bottom: 0.5rem }
div.hanging-indent { margin-left: 1.5em; text-indent: -1.5em }
"""
REPORT = """
<header id="title-block-header"><h1 class="title">Title</h1><p class="author">Author</p></header>
<nav id="TOC" role="doc-toc"><h2 id="toc-title">Contents</h2>
  <ul><li><a href="#one">One</a></li></ul></nav>
<h1 class="unnumbered" id="abstract">Abstract</h1><p>Words.</p>
<h1 data-number="1" id="one"><span class="header-section-number">1</span> One</h1>
<h2 data-number="1.1" id="two"><span class="header-section-number">1.1</span> Two</h2>
<div id="box-exact" class="box"><p><strong>Statement.</strong> Words.</p></div>
<div id="box-reading" class="box"><p><strong>Reading.</strong> Words.</p></div>
<div id="fig-a" class="quarto-float quarto-figure quarto-figure-center">
  <figure class="quarto-float quarto-float-fig figure"><div aria-describedby="fig-a-caption">
    <img src="data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'/>" alt="A line.">
  </div><figcaption class="quarto-float-caption-bottom quarto-float-caption quarto-float-fig"
    id="fig-a-caption">Figure 1: Line</figcaption></figure></div>
<div id="tbl-a" class="quarto-float">
  <figure class="quarto-float quarto-float-tbl figure">
  <figcaption class="quarto-float-caption-top quarto-float-caption quarto-float-tbl"
    id="tbl-a-caption">Table 1: Numbers</figcaption>
  <div aria-describedby="tbl-a-caption"><table class="caption-top">
    <thead><tr><th>a</th></tr></thead>
    <tbody><tr id="plain"><td>1</td></tr><tr id="variable"><td><p>2</p></td></tr></tbody></table>
  </div></figure></div>
<div id="refs" class="references csl-bib-body hanging-indent" role="list">
  <div id="ref-a" class="csl-entry" role="listitem">LONG</div></div>
"""
SLIDE_RULES = """
#title-slide { text-align: center }
#title-slide .subtitle { margin-bottom: 2.5rem }
.reveal .quarto-title-block .quarto-title-authors { display: flex; justify-content: center }
.reveal .quarto-title-block .quarto-title-authors .quarto-title-author { padding: 0 0.5em }
.reveal .slides section.smaller { font-size: 0.7em }
.reveal .slides section.smaller h2 { font-size: calc(1.6em / 0.7) }
.reveal p { margin: 12px 0 }
div.hanging-indent { margin-left: 1.5em; text-indent: -1.5em }
"""
SLIDES = """
<div class="reveal"><div class="slides">
<section id="title-slide" class="quarto-title-block"><h1 class="title">Title</h1>
  <p class="subtitle">Subtitle</p><div class="quarto-title-authors">
  <div class="quarto-title-author"><div class="quarto-title-author-name">Author</div></div></div>
</section>
<section id="run" class="slide level2"><h2>Run</h2><table class="caption-top"><tbody>
  <tr id="plain"><td>1</td></tr><tr id="variable"><td><p>2</p></td></tr></tbody></table></section>
<section id="references" class="slide level2 smaller scrollable"><h2>References</h2>
  <div id="refs" class="references csl-bib-body hanging-indent">
  <div class="csl-entry">LONG</div></div></section>
</div></div>
"""
PAGE = """<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>T</title>
<style>{rules}</style><style>{ours}</style><body>{body}</body></html>"""


def show(browser: Browser, folder: Path, body: str, rules: str, sheet: str) -> None:
    page = folder / "page.html"
    ours = (PAPER / sheet).read_text(encoding="utf-8")
    body = body.replace("LONG", "Somebody 2024. " * 40)
    page.write_text(PAGE.format(rules=rules, ours=ours, body=body), encoding="utf-8")
    browser.screen(1280, 720)
    browser.open(page)


def style(browser: Browser, selector: str, name: str) -> str:
    return browser.run(f"getComputedStyle(document.querySelector('{selector}')).{name}")


def size(browser: Browser, selector: str) -> float:
    return float(style(browser, selector, "fontSize").removesuffix("px"))


def box(browser: Browser, selector: str, side: str) -> float:
    return browser.run(f"document.querySelector('{selector}').getBoundingClientRect().{side}")


@pytest.fixture
def report(browser: Browser, tmp_path: Path) -> Browser:
    show(browser, tmp_path, REPORT, REPORT_RULES, "styles.css")
    return browser


@pytest.fixture
def slides(browser: Browser, tmp_path: Path) -> Browser:
    show(browser, tmp_path, SLIDES, SLIDE_RULES, "slides.css")
    return browser


def test_subsections_are_smaller_than_sections(report: Browser) -> None:
    assert size(report, "h1.title") > size(report, "#one") > size(report, "#two") > 16
    assert size(report, "#abstract") == size(report, "#one")


def test_captions_of_tables_stand_as_those_of_figures(report: Browser) -> None:
    captions = ("#fig-a figcaption", "#tbl-a figcaption")
    assert [style(report, each, "textAlign") for each in captions] == ["start", "start"]


def test_boxes_keep_their_colours(report: Browser) -> None:
    colours = [style(report, f"#box-{n}", "borderInlineStartColor") for n in ("exact", "reading")]
    assert colours == ["rgb(31, 111, 235)", "rgb(179, 38, 30)"]
    page = style(report, "body", "backgroundColor")
    assert style(report, "#box-exact", "backgroundColor") != page


def test_a_variable_makes_no_row_taller(report: Browser) -> None:
    rows = [box(report, f"#{name}", "height") for name in ("variable", "plain")]
    assert rows[0] == pytest.approx(rows[1], abs=1)


def test_references_are_indented_once(report: Browser) -> None:
    first, others = report.run(INDENTS)
    assert first == pytest.approx(0, abs=1)
    assert others == pytest.approx(1.6, abs=0.1)


def test_the_author_of_the_slides_stands_below_the_title(slides: Browser) -> None:
    left = box(slides, "#title-slide h1", "left")
    for selector in (".subtitle", ".quarto-title-author-name"):
        assert box(slides, selector, "left") == left
    below = box(slides, ".quarto-title-author-name", "top") - box(slides, ".subtitle", "bottom")
    assert below < 20


def test_slides_have_even_rows_and_headings(slides: Browser) -> None:
    rows = [box(slides, f"#{name}", "height") for name in ("variable", "plain")]
    assert rows[0] == pytest.approx(rows[1], abs=1)
    assert size(slides, "#references h2") == size(slides, "#run h2")
    first, others = slides.run(INDENTS)
    assert first == pytest.approx(0, abs=1)
    assert others == pytest.approx(1.3, abs=0.1)
