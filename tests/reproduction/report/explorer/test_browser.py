"""The page as a reader meets it, in a headless Chromium, opened from disk."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contamination.statistics import fisher
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


def click(tab: Browser, table: str, first: str, *, ctrl: bool = False) -> None:
    """Click the row whose first cell is `first`."""
    tab.run(
        f"[...document.querySelectorAll('#{table} tbody td:first-child')]"
        f".find((c) => c.innerText === {json.dumps(first)})"
        f".dispatchEvent(new MouseEvent('click', {{bubbles: true, ctrlKey: {str(ctrl).lower()}}}))"
    )


def search(tab: Browser, table: str, words: str) -> None:
    """Type into the search field of a table."""
    tab.run(f"document.querySelector('#{table}_wrapper input[type=search]').focus()")
    tab.press(words)


def shown_fisher(mmlu: dict[str, Any], model: str, names: list[str]) -> str:
    p = [each["p"][model] for each in mmlu["subsets"] if each["title"] in names]
    return f"{10 ** fisher(log10_p=[each for each in p if each is not None]).log10_p:.3f}"


def test_fishers_method_is_the_librarys(tab: Browser) -> None:
    rng = np.random.default_rng(3)
    lists = [np.log10(rng.random(n)) * rng.choice([1, 10]) for n in (1, 2, 5, 43, 57)]
    lists += [np.full(13, -38.0), np.array([-2_000.0, -0.3]), np.zeros(4)]
    found = tab.run(f"{json.dumps([each.tolist() for each in lists])}.map(fisher)")
    expected = [fisher(log10_p=each).log10_p for each in lists]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_the_subsets_shown_are_combined(tab: Browser, mmlu: dict[str, Any]) -> None:
    assert [row[:3] for row in cells(tab, "fisher")[:3]] == [
        ["LLaMA2-7B", "43", "0.015"],
        ["Mistral-7B", "43", "0.011"],
        ["Pythia-1.4B", "43", "0.362"],
    ]
    search(tab, "subsets", "high school")
    tab.choose("only", "kept")
    names = [row[0] for row in cells(tab, "subsets")]
    assert len(names) == 7
    assert all(name.startswith("High School") for name in names)
    expected = shown_fisher(mmlu, "LLaMA2-7B", names)
    assert cells(tab, "fisher")[0][:3] == ["LLaMA2-7B", "7", expected]
    assert tab.run("document.querySelectorAll('#ecdf .mark-line path').length")


def test_every_scored_set_under_every_test(tab: Browser) -> None:
    assert tab.text("#title") == "tiny"
    # What was set in advance, the default test and the smallest p come first and are selected.
    rows = cells(tab, "results")
    assert rows[0][:6] == ["reader", "planted", "Made up", "Successor", "2", "in advance"]
    assert "order is no evidence here: p = " in tab.text("#reading")
    assert {row[5] for row in rows} == {"in advance"}
    tab.run("document.getElementById('usual').click()")
    search(tab, "results", "stranger unread exact")
    assert sorted(row[4] for row in cells(tab, "results")) == ["4", "6"]
    click(tab, "results", "stranger")
    assert "no evidence: p = " in tab.text("#reading")
    assert len(cells(tab, "diagnostics")) >= 8


def test_hostile_text_is_shown_as_text(tab: Browser) -> None:
    search(tab, "examples", "onerror")
    assert [row[3] for row in cells(tab, "examples")] == [HOSTILE]
    assert tab.run("document.querySelectorAll('main img').length") == 0
    search(tab, "subsets", "virology")  # of which nothing was scored
    click(tab, "subsets", "Virology")
    assert [row[3] for row in cells(tab, "examples")] == ["Q 1", "Q 2"]
