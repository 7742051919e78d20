"""The page of an audit as a reader meets it, in a headless Chromium, opened from disk."""

import datetime
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contamination.audit.leaderboard import leaderboard
from contamination.audit.many import COLUMNS
from fakes.browser import Browser
from fakes.made_up_sets import HOSTILE

ENTER = "\ue007"
BESIDE = {"alpha": 0.05, "version": "1", "seed": 3, "order": "quiet", "compressor": 0.5}


def row(model: str, p: float, log10_p: float, **others: Any) -> dict[str, Any]:
    found = {"set": "s", "axis": "order", "test": "successor", "verdict": "no evidence"}
    numbers = {"p": p, "log10 p": log10_p, "p (Holm)": min(1.0, 3 * p), "tokens": 1_000}
    stored = {"precision": "float32", "reason": "why", "store": "ab" * 32}
    named = {"model": model, **found, **numbers, **BESIDE, **stored}
    return dict.fromkeys(COLUMNS) | named | others


ROWS = [
    row("m-160", 0.25, -0.6, tokens=12_000),
    dict.fromkeys(COLUMNS)
    | BESIDE
    | {"model": "gone", "set": HOSTILE, "verdict": "failed", "reason": HOSTILE},
    row("m-70", 2.2e-308, -400.0, verdict="proven", tokens=900, set="long" * 40),
    row("m-1000", 3e-9, -8.5, verdict="proven", store="cd" * 32),
]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "audit.html"
    path.write_text(leaderboard(ROWS, date=datetime.date(2026, 1, 2)), encoding="utf-8")
    return path


@pytest.fixture(params=[1280, 400])
def tab(browser: Browser, page: Path, request: pytest.FixtureRequest) -> Iterator[Browser]:
    browser.screen(request.param, 900)
    browser.open(page)
    yield browser
    assert browser.problems() == []
    assert browser.requested() == [page.resolve().as_uri()]
    width = browser.run("document.documentElement.scrollWidth")
    assert width == request.param  # what is wider scrolls in a box of its own


def models(tab: Browser) -> list[str]:
    return tab.run("[...document.querySelectorAll('td:first-child')].map((c) => c.textContent)")


def sorts(tab: Browser) -> dict[str, str]:
    """Which headings say that they sort, and how."""
    return tab.run(
        "Object.fromEntries([...document.querySelectorAll('[aria-sort]')]"
        ".map((h) => [h.textContent, h.getAttribute('aria-sort')]))"
    )


def focus(tab: Browser, title: str) -> None:
    buttons = "[...document.querySelectorAll('th button')]"
    tab.run(f"{buttons}.find((b) => b.textContent === {json.dumps(title)}).focus()")


@pytest.mark.parametrize(
    ("title", "up"),
    [
        ("Model", ["m-70", "m-160", "m-1000"]),  # numbers in names count as numbers
        ("p (Holm)", ["m-70", "m-1000", "m-160"]),
        ("log10 p", ["m-70", "m-1000", "m-160"]),
        ("Tokens", ["m-70", "m-1000", "m-160"]),
        ("Store", ["m-70", "m-160", "m-1000"]),
    ],
)
def test_a_heading_sorts_up_and_down_and_what_is_unknown_stays_last(tab, title, up) -> None:
    assert models(tab) == ["m-70", "m-1000", "m-160", "gone"]
    assert sorts(tab) == {"p": "ascending"}
    focus(tab, title)
    tab.press(ENTER)
    assert sorts(tab) == {title: "ascending"}
    known = [name for name in models(tab) if name != "gone"]
    assert known if title == "Store" else known == up
    tab.press(" ")
    assert sorts(tab) == {title: "descending"}
    if title != "Model":
        assert models(tab)[-1] == "gone"


def test_names_are_text_and_numbers_are_those_of_the_command(tab) -> None:
    assert tab.run("document.querySelectorAll('td img, td b').length") == 0
    shown = tab.run("[...document.querySelectorAll('tbody tr')].map((r) => r.innerText)")
    assert HOSTILE in shown[3] and "—" in shown[3]
    assert all(text in shown[0] for text in ("2.2e-308", "-400.0", "proven", "records: quiet"))
    assert tab.run("document.querySelector('code[title]').title") == "ab" * 32
    facts = tab.text(".facts")
    assert "2026-01-02" in facts and "all 3 p-values" in facts and "seed 3" in facts
    labels = "[...document.querySelectorAll('tr:last-child td')].map((c) => c.dataset.label)"
    titles = "[...document.querySelectorAll('th')].map((c) => c.textContent)"
    assert tab.run(labels) == tab.run(titles)
