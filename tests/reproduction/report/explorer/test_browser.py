"""The page as a reader meets it, in a headless Chromium, opened from disk and within a notebook."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat.v4
import pytest
from nbconvert import HTMLExporter
from selenium.webdriver import Keys

from contamination.files import write_text
from fakes.browser import READY, Browser
from fakes.made_up_sets import HOSTILE
from reproduction.notebooks.mmlu.evidence import MmluEvidence
from reproduction.notebooks.mmlu.subset import leave_one_out
from reproduction.report.explorer.page import frame

WIDTHS = (400, 1200)
ANATOMY = "#mmlu/anatomy"


@pytest.fixture
def blank(browser: Browser, page: Path) -> Iterator[Browser]:
    """Return a tab in which a test opens the page, and nothing but the page is loaded."""
    browser.screen(1280, 900)
    yield browser
    assert browser.problems() == []
    assert {url.partition("#")[0] for url in browser.requested()} == {page.resolve().as_uri()}


@pytest.fixture
def tab(blank: Browser, page: Path) -> Browser:
    """Return a tab in which the page is open."""
    assert blank.open(page) == "ready"
    return blank


def cells(tab: Browser, table: str) -> list[list[str]]:
    """Rows of the body of a table, as they are shown."""
    return tab.run(
        f"[...document.querySelectorAll('#{table} tbody tr')].map((r) => "
        "[...r.children].map((c) => c.innerText))"
    )


def click(tab: Browser, table: str, first: str) -> None:
    """Click the row whose first cell is `first`."""
    tab.run(
        f"[...document.querySelectorAll('#{table} tbody td:first-child')]"
        f".find((c) => c.innerText === {json.dumps(first)}).click()"
    )


def search(tab: Browser, table: str, words: str) -> None:
    """Type into the search field of a table, over what stands there."""
    tab.run(f"document.querySelector('#{table}_wrapper input[type=search]').select()")
    tab.press(words)


def tick(tab: Browser, name: str) -> None:
    """Click the box of a subset that the table shows."""
    tab.run(f"document.querySelector('#subsets a[href=\"#mmlu/{name}\"]').previousSibling.click()")


def combined(tab: Browser) -> dict[str, list[float]]:
    """log10 of Fisher's p with the open subset and without it, by model, as the browser has it."""
    rows = tab.run(
        "[...document.querySelectorAll('#leave-out tbody tr')].map((r) => [r.cells[0].innerText, "
        "...[...r.cells].slice(-2).map((c) => Number(c.dataset.log10P))])"
    )
    return {name: values for name, *values in rows}


def test_the_kept_subsets_are_combined_and_drawn(tab: Browser, mmlu: dict[str, Any]) -> None:
    assert cells(tab, "fisher")[0] == ["LLaMA2-7B", "43", "0.014", "0.015", "43", "0.015"]
    curves = tab.run("document.querySelectorAll('#ecdf .mark-line path').length")
    assert curves == len(mmlu["curves"]) + 1  # and the uniform law
    search(tab, "subsets", "high school")
    assert all(row[0].startswith("High School") for row in cells(tab, "subsets"))


def test_all_rows_are_printed_and_the_screen_is_as_before(
    tab: Browser, mmlu: dict[str, Any]
) -> None:
    tab.run("document.querySelector('#subsets_wrapper [data-dt-idx=\"2\"]').click()")
    before = cells(tab, "subsets")
    assert len(before) == 10
    tab.run("dispatchEvent(new Event('beforeprint'))")
    assert len(cells(tab, "subsets")) == len(mmlu["names"])
    assert len(cells(tab, "results")) > 10
    tab.run("dispatchEvent(new Event('afterprint'))")
    assert cells(tab, "subsets") == before
    assert len(cells(tab, "results")) == 10


def test_every_scored_set_under_every_test(tab: Browser) -> None:
    assert tab.text("#title") == "tiny"
    # The default test and the smallest p come first and are selected.
    rows = cells(tab, "results")
    assert rows[0][:6] == [
        "reader",
        "planted",
        "Made up",
        "Successor",
        "2",
        "order carries information",
    ]
    assert "order is no evidence here: p over all sets = " in tab.text("#reading")
    search(tab, "results", "stranger unread exact")
    assert sorted(row[4] for row in cells(tab, "results")) == ["6"]
    click(tab, "results", "stranger")
    assert "no evidence: p over all sets = " in tab.text("#reading")
    assert tab.text("#reasons")


def test_hostile_text_is_shown_as_text(tab: Browser) -> None:
    search(tab, "examples", "onerror")
    assert [row[3] for row in cells(tab, "examples")] == [HOSTILE]
    assert tab.run("document.querySelectorAll('main img').length") == 0


def test_examples_at_hand_are_shown_and_others_can_be_fetched(tab: Browser) -> None:
    search(tab, "subsets", "virology")  # of which nothing was scored
    click(tab, "subsets", "Virology")
    assert [row[3] for row in cells(tab, "examples")] == ["Q 1", "Q 2"]
    assert tab.text("#first-example") == "Q 1"
    search(tab, "subsets", "anatomy")
    click(tab, "subsets", "Anatomy")
    assert tab.text("#fetch") == "contamination data fetch mmlu/anatomy"
    assert "mmlu/anatomy" in tab.text("#audit")


@pytest.mark.parametrize("width", WIDTHS)
def test_a_click_opens_a_subset_at_every_width(blank: Browser, page: Path, width: int) -> None:
    tab = blank
    tab.screen(width, 900)
    assert tab.open(page) == "ready"
    click(tab, "subsets", "Anatomy")
    assert tab.text("#subset-title") == "Anatomy"
    assert tab.run("location.hash") == ANATOMY
    assert tab.run("document.querySelector('#subset').getBoundingClientRect().top") < 900
    # Nothing is out of sight: neither a column of p-values nor a part of the page.
    assert tab.run("document.documentElement.scrollWidth") <= width
    hidden = tab.run(
        "[...document.querySelectorAll('#subsets td, #leave-out td, #ways td')].filter((c) => "
        "c.getBoundingClientRect().right > innerWidth).length"
    )
    assert hidden == 0


def test_the_panel_draws_every_model_and_its_places(tab: Browser, evidence: MmluEvidence) -> None:
    click(tab, "subsets", "Anatomy")
    rows = evidence.p_values.query("subset == 'anatomy'")
    places = evidence.audited().query("subset == 'anatomy'")
    points = "document.querySelectorAll('#{} .mark-symbol.role-mark path').length"
    assert tab.run(points.format("subset-p")) == len(rows)
    assert tab.run(points.format("subset-place")) == len(places)


@pytest.mark.parametrize("name", ["anatomy", "high_school_european_history", "professional_law"])
def test_the_browser_leaves_one_out_as_the_tables_do(
    blank: Browser, page: Path, evidence: MmluEvidence, name: str
) -> None:
    assert blank.open(page, f"#mmlu/{name}") == "ready"
    table = leave_one_out(evidence, name).set_index("curve")
    shown = combined(blank)
    assert list(shown) == list(table.index)
    for curve, values in shown.items():
        expected = table.loc[curve, ["log10_p_with", "log10_p_without"]]
        assert values == pytest.approx(list(expected), rel=1e-9)


def test_a_tick_moves_the_combination(blank: Browser, page: Path, evidence: MmluEvidence) -> None:
    tab = blank
    tab.open(page, ANATOMY)
    tick(tab, "astronomy")  # which the paper excludes
    with_it, without_it = combined(tab)["LLaMA2-7B"]
    table = leave_one_out(evidence, "astronomy").set_index("curve")
    assert with_it == pytest.approx(table.loc["LLaMA2-7B", "log10_p_with"], rel=1e-9)
    assert cells(tab, "fisher")[0][4] == "44"
    tab.run("document.querySelector('#reset').click()")
    assert cells(tab, "fisher")[0][4] == "43"
    assert combined(tab)["LLaMA2-7B"] != [with_it, without_it]


def test_an_address_opens_the_panel(blank: Browser, page: Path) -> None:
    tab = blank
    assert tab.open(page, "#mmlu/high_school_us_history") == "ready"
    assert tab.text("#subset-title") == "High School US History"
    current = "document.querySelector('#subsets tr[aria-current] a').innerText"
    assert tab.run(current) == "High School US History"  # on the page of the table where it stands
    assert tab.open(page, "#mmlu/nothing") == "ready"
    assert tab.run("document.querySelector('#subset').hidden")


def test_the_keyboard_reaches_a_subset_and_leads_back(tab: Browser) -> None:
    tab.run("document.querySelector('#subsets tbody a').focus()")
    tab.press(Keys.ARROW_DOWN)
    tab.press(Keys.ENTER)
    assert tab.text("#subset-title") == "Anatomy"
    assert tab.run("document.activeElement.id") == "subset-title"
    tab.press(Keys.ESCAPE)
    assert tab.run("document.querySelector('#subset').hidden")
    assert tab.run("document.activeElement.innerText") == "Anatomy"


def test_the_page_runs_in_the_frame_of_a_notebook(
    browser: Browser, html: str, tmp_path: Path
) -> None:
    """Open a notebook as nbconvert writes it; the frame's scripts must have their own hashes."""
    v4 = nbformat.v4
    shown = v4.new_output("display_data", data={"text/html": frame(html)._repr_html_()})
    notebook = v4.new_notebook(cells=[v4.new_code_cell("frame(page)", outputs=[shown])])
    path = tmp_path / "notebook.html"
    write_text(path, HTMLExporter(template_name="basic").from_notebook_node(notebook)[0])
    browser.screen(1200, 900)
    browser.open(path)
    driver = browser.driver
    driver.switch_to.frame(driver.find_element("tag name", "iframe"))
    try:
        assert browser.run(READY) == "ready"
        tab = browser
        click(tab, "subsets", "Anatomy")
        assert tab.text("#subset-title") == "Anatomy"
        assert tab.run("document.querySelectorAll('#subset-p .mark-symbol path').length") > 0
    finally:
        driver.switch_to.default_content()
    assert browser.problems() == []
