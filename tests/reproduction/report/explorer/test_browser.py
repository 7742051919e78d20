"""The page as a reader meets it, in a headless Chromium, opened from disk."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fakes.browser import Browser
from fakes.made_up_sets import HOSTILE


@pytest.fixture
def tab(browser: Browser, page: Path) -> Iterator[Browser]:
    browser.screen(1280, 900)
    assert browser.open(page) == "ready"
    yield browser
    assert browser.problems() == []
    assert {url.partition("#")[0] for url in browser.requested()} == {page.resolve().as_uri()}


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


def test_the_kept_subsets_are_combined_and_drawn(tab: Browser, mmlu: dict[str, Any]) -> None:
    assert cells(tab, "fisher")[0] == ["LLaMA2-7B", "43", "0.014", "0.015"]
    curves = tab.run("document.querySelectorAll('#ecdf .mark-line path').length")
    assert curves == len(mmlu["curves"]) + 1  # and the uniform law
    search(tab, "subsets", "high school")
    assert all(row[0].startswith("High School") for row in cells(tab, "subsets"))


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
    assert "order is no evidence here: p = " in tab.text("#reading")
    search(tab, "results", "stranger unread exact")
    assert sorted(row[4] for row in cells(tab, "results")) == ["6"]
    click(tab, "results", "stranger")
    assert "no evidence: p = " in tab.text("#reading")
    assert tab.text("#reasons")


def test_hostile_text_is_shown_as_text(tab: Browser) -> None:
    search(tab, "examples", "onerror")
    assert [row[3] for row in cells(tab, "examples")] == [HOSTILE]
    assert tab.run("document.querySelectorAll('main img').length") == 0
    search(tab, "subsets", "virology")  # of which nothing was scored
    click(tab, "subsets", "Virology")
    assert [row[3] for row in cells(tab, "examples")] == ["Q 1", "Q 2"]
