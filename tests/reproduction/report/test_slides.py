"""The real paper/slides.qmd: 45 minutes, notes on every slide, one file that opens offline."""

import re
from copy import copy
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from contamination.errors import InputError
from fakes.made_up_run import PAPER, made_up_value, variables_used
from reproduction.report import render
from reproduction.report.render import render_report

SLIDES = PAPER / "slides.qmd"


@pytest.fixture(scope="module")
def page(real_pages: list[Path]) -> BeautifulSoup:
    return BeautifulSoup(real_pages[2].read_text(encoding="utf-8"), "html.parser")


def test_every_slide_has_one_heading_and_notes(page: BeautifulSoup) -> None:
    title, *slides = page.select(".slides section")
    assert title["id"] == "title-slide"
    assert len(page.find_all("h1")) == 1
    for slide in slides:
        assert len(slide.find_all(re.compile("^h[1-6]$"))) == 1
        assert slide.select_one("aside.notes").get_text(strip=True), slide["id"]


def test_the_minutes_add_up(page: BeautifulSoup) -> None:
    notes = [note.get_text() for note in page.select("aside.notes")]
    minutes = [int(m[1]) for note in notes if (m := re.match(r"\s*(\d) minutes?\b", note))]
    assert len(notes) - len(minutes) == 2, "the hand-out slides take no time"
    assert sum(minutes) == 45


def test_numbers_tables_and_figures_arrive(page: BeautifulSoup) -> None:
    text = page.get_text()
    for name in variables_used(SLIDES):
        assert made_up_value(name) in text, name
    assert len(page.find_all("img")) == SLIDES.read_text(encoding="utf-8").count("](figures/")


def test_few_words_a_slide(page: BeautifulSoup) -> None:
    for slide in map(copy, page.select(".slides section:not(#references)")):
        for hidden in slide.select("aside, table, math"):
            hidden.extract()
        assert len(slide.get_text().split()) <= 90, slide["id"]


def test_formulas_need_no_script_and_reveal_is_inside(page: BeautifulSoup, real_pages) -> None:
    assert len(page.find_all("math")) > 20
    text = real_pages[2].read_text(encoding="utf-8")
    assert "mathjax" not in text.lower()
    assert re.search(r"slideNumber: \"c/t\"", text)
    assert re.search(r"center: false", text)
    assert re.search(r"width: 1280", text)
    assert len(text) < 4_000_000


def test_a_fault_in_the_slides_keeps_all_pages(project) -> None:
    paper, results = project("Text.")
    (results / "report").mkdir()
    for name in ("report.html", "slides.html"):
        (results / "report" / name).write_text("previous", encoding="utf-8")
    text = (paper / "slides.qmd").read_text(encoding="utf-8")
    (paper / "slides.qmd").write_text(f"{text}\n#### Too deep\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"slides\.html:\d+: heading .* a level is skipped"):
        render_report(paper, results, quarto="")
    for name in ("report.html", "slides.html"):
        assert (results / "report" / name).read_text(encoding="utf-8") == "previous"


def test_no_reveal_is_reported(project, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Path:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(render.resources, "files", missing)
    with pytest.raises(InputError, match="install the wheel sphinx-revealjs"):
        render_report(*project("Text."), quarto="")


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("slides.qmd", "css:", "logo: a.png\n    css:", r"slides\.qmd: option logo is not known"),
        ("_quarto.yml", "lang:", "code-fold: 1\nlang:", r"quarto\.yml: option code-fold"),
        ("slides.css", "--muted: #575d66", "--muted: #b0b0b0", r"paper/slides\.css:2: --muted #b0"),
    ],
)
def test_options_and_colours_are_named_by_their_file(project, name, old, new, message) -> None:
    paper, results = project("Text.")
    text = (paper / name).read_text(encoding="utf-8")
    assert old in text
    (paper / name).write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        render_report(paper, results, quarto="")
