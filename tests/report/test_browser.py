"""What a reader sees: no page is wider than its window, no slide taller, no text too pale."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from contamination.report import DOCUMENTS, render_report
from fakes.browser import Browser, find_chromium
from fakes.made_up_run import PAPER, fill_results

PROGRAM = find_chromium()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium here")

LOADED = """new Promise((done) => {
  const look = () => document.readyState === "complete" && (!window.Reveal || Reveal.isReady())
    ? done(true) : setTimeout(look, 5);
  look();
})"""

# What reaches over the edges of the slide (of 1280 by 720); scripts and notes are not shown.
OVER = """(() => {
  const slide = Reveal.getCurrentSlide(), found = [];
  for (const each of slide.querySelectorAll("*")) {
    const box = each.getBoundingClientRect();
    if (each.closest("aside") || !box.width) continue;
    if (box.left < 0 || box.top < 0 || box.right > innerWidth || box.bottom > innerHeight)
      found.push(`${slide.id}: ${each.tagName} ${each.textContent.slice(0, 30)}`);
  }
  return found;
})()"""

# Texts whose colour is too near that of what lies behind them (WCAG 2, AA).
PALE = """(() => {
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => numbers(colour).slice(0, 3).map((value) => value / 255)
    .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const colour = getComputedStyle(node).backgroundColor;
      if ((numbers(colour)[3] ?? 1) === 1) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const found = [], texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || node.closest("script, style, aside, annotation"))
      continue;
    const colour = getComputedStyle(node).color;
    const [low, high] = [light(colour), light(behind(node))].sort((a, b) => a - b);
    if ((high + 0.05) / (low + 0.05) < 4.5)
      found.push(`${colour} on ${behind(node)}: ${texts.currentNode.data.trim().slice(0, 30)}`);
  }
  return found;
})()"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(PROGRAM or "", tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return the pages of a run whose numbers are as long as real ones."""
    results = tmp_path_factory.mktemp("results")
    fill_results(results, *(PAPER / name for name in DOCUMENTS), value="12,345")
    return render_report(PAPER, results, quarto="")


def show(browser: Browser, page: Path, width: int, height: int, *, dark: bool = False) -> None:
    browser.screen(width, height, dark=dark)
    browser.problems.clear()
    browser.requested.clear()
    browser.call("Page.navigate", url=page.resolve().as_uri())
    browser.run(LOADED)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_report_fits_and_is_legible(
    browser: Browser, pages: list[Path], width: int, dark: bool
) -> None:
    show(browser, pages[0], width, 800, dark=dark)
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run(PALE) == []


def test_no_slide_reaches_over_its_edges(browser: Browser, pages: list[Path]) -> None:
    show(browser, pages[2], 1280, 720)
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


@pytest.mark.parametrize("width", [390, 1280])
def test_the_slides_need_no_scrolling_sideways(
    browser: Browser, pages: list[Path], width: int
) -> None:
    show(browser, pages[2], width, 720)
    assert browser.run("document.documentElement.scrollWidth") <= width


def test_pages_load_nothing_from_elsewhere(browser: Browser, pages: list[Path]) -> None:
    for page in (pages[0], pages[2]):
        show(browser, page, 1280, 720)
        assert browser.problems == []
        inside = ("data:", "blob:", page.resolve().as_uri())
        assert [url for url in browser.requested if not url.startswith(inside)] == []


def test_an_overflow_and_a_pale_text_are_seen(browser: Browser, pages: list[Path]) -> None:
    show(browser, pages[2], 1280, 720)
    browser.run("Reveal.slide(1)")
    browser.run("Reveal.getCurrentSlide().querySelector('h2').style.width = '1400px'")
    browser.run("Reveal.getCurrentSlide().querySelector('h2').style.color = '#aaaaaa'")
    assert browser.run(OVER)[0].startswith("test-sets-leak: H2 Test sets leak")
    assert browser.run(PALE) == ["rgb(170, 170, 170) on rgb(255, 255, 255): Test sets leak"]
