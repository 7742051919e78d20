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


@pytest.mark.parametrize(("width", "dark"), [(390, False), (1280, True)])
def test_the_report_fits_and_is_legible(
    browser: Browser, real_pages: list[Path], width: int, dark: bool
) -> None:
    page = real_pages[0]
    browser.screen(width, 800, dark=dark)
    browser.open(page)
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run(PALE) == []
    assert browser.problems() == []
    inside = ("data:", "blob:", page.resolve().as_uri())
    assert [url for url in browser.requested() if not url.startswith(inside)] == []


def test_no_slide_reaches_over_its_edges(browser: Browser, real_pages: list[Path]) -> None:
    browser.screen(1280, 720)
    browser.open(real_pages[2])
    over = []
    for number in range(browser.run("Reveal.getTotalSlides()")):
        browser.run(f"Reveal.slide({number}, 0, 99)")
        browser.run(
            "Promise.all([...document.querySelectorAll('.present img')].map((i) => i.decode()))"
        )
        over += browser.run(OVER)
    assert over == []
    assert browser.run(PALE) == []
    # Both would be seen.
    browser.run("Reveal.slide(1)")
    browser.run("Reveal.getCurrentSlide().querySelector('h2').style.width = '1400px'")
    browser.run("Reveal.getCurrentSlide().querySelector('h2').style.color = '#aaaaaa'")
    assert browser.run(OVER)[0].startswith("test-sets-leak: H2 Test sets leak")
    assert browser.run(PALE) == ["rgb(170, 170, 170) on rgb(255, 255, 255): Test sets leak"]


def test_a_bold_p_value_is_bold(browser: Browser, project) -> None:
    paper, results = project(f"A p-value of {format_p(3.4e-12, bold=True)}.")
    browser.open(render_report(paper, results, quarto="")[0])
    assert browser.texts("strong") == ["3.4\u00a0×\u00a010⁻¹²"]
    assert int(browser.run("getComputedStyle(document.querySelector('strong')).fontWeight")) >= 600
