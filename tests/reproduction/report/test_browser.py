"""What a reader sees: no page is wider than its window, no slide taller, no text too pale."""

from pathlib import Path

import pytest

from contamination.tables import format_p
from fakes.browser import PALE, Browser
from reproduction.report.render import render_report

# What reaches over the edges of the slide (of 1280 by 720), or below into its margin, where the
# number of the slide stands; notes are not shown, and a div shows nothing of its own.
OVER = """(() => {
  const slide = Reveal.getCurrentSlide(), found = [];
  for (const each of slide.querySelectorAll("*")) {
    const box = each.getBoundingClientRect();
    if (each.closest("aside") || each.tagName === "DIV" || !box.width) continue;
    if (box.left < 0 || box.top < 0 || box.right > innerWidth || box.bottom > innerHeight - 36)
      found.push(`${slide.id}: ${each.tagName} ${each.textContent.slice(0, 30)}`);
  }
  return found;
})()"""


def show(browser: Browser, page: Path, width: int, height: int, *, dark: bool = False) -> None:
    browser.screen(width, height, dark=dark)
    browser.open(page)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_report_fits_and_is_legible(
    browser: Browser, real_pages: list[Path], width: int, dark: bool
) -> None:
    show(browser, real_pages[0], width, 800, dark=dark)
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run(PALE) == []


def test_no_slide_reaches_over_its_edges(browser: Browser, real_pages: list[Path]) -> None:
    show(browser, real_pages[2], 1280, 720)
    slides = browser.run("Reveal.getTotalSlides()")
    assert slides > 25
    over = []
    for number in range(slides):
        browser.run(f"Reveal.slide({number}, 0, 99)")
        browser.run(
            "Promise.all([...document.querySelectorAll('.present img')].map((i) => i.decode()))"
        )
        over += browser.run(OVER)
    assert over == []
    assert browser.run(PALE) == []


def test_a_bold_p_value_is_bold(browser: Browser, project) -> None:
    paper, results = project(f"A p-value of {format_p(3.4e-12, bold=True)}.")
    show(browser, render_report(paper, results, quarto="")[0], 1280, 720)
    assert browser.texts("strong") == ["3.4\u00a0×\u00a010⁻¹²"]
    assert browser.run("document.querySelectorAll('strong math').length") == 0
    assert int(browser.run("getComputedStyle(document.querySelector('strong')).fontWeight")) >= 600


@pytest.mark.parametrize("width", [390, 1280])
def test_the_slides_need_no_scrolling_sideways(
    browser: Browser, real_pages: list[Path], width: int
) -> None:
    show(browser, real_pages[2], width, 720)
    assert browser.run("document.documentElement.scrollWidth") <= width


def test_pages_load_nothing_from_elsewhere(browser: Browser, real_pages: list[Path]) -> None:
    for page in (real_pages[0], real_pages[2]):
        show(browser, page, 1280, 720)
        assert browser.problems() == []
        inside = ("data:", "blob:", page.resolve().as_uri())
        assert [url for url in browser.requested() if not url.startswith(inside)] == []


def test_an_overflow_and_a_pale_text_are_seen(browser: Browser, real_pages: list[Path]) -> None:
    show(browser, real_pages[2], 1280, 720)
    browser.run("Reveal.slide(1)")
    browser.run("Reveal.getCurrentSlide().querySelector('h2').style.width = '1400px'")
    browser.run("Reveal.getCurrentSlide().querySelector('h2').style.color = '#aaaaaa'")
    assert browser.run(OVER)[0].startswith("test-sets-leak: H2 Test sets leak")
    assert browser.run(PALE) == ["rgb(170, 170, 170) on rgb(255, 255, 255): Test sets leak"]


def test_an_error_and_a_file_from_elsewhere_are_seen(browser: Browser, tmp_path: Path) -> None:
    page, other = tmp_path / "page.html", tmp_path / "other.svg"
    page.write_text('<img src="other.svg"><script>nonsense()</script>', encoding="utf-8")
    browser.open(page)
    assert browser.requested() == [page.as_uri(), other.as_uri()]
    problems = browser.problems()
    assert any("nonsense is not defined" in problem for problem in problems)
    assert any("other.svg" in problem for problem in problems)
