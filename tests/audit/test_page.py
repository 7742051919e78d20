"""The page of an audit as a reader meets it, in a headless Chromium, opened from disk."""

import datetime
import json

import pytest

from contamination.audit.comparison import ASSUMPTION
from contamination.audit.page import html_page
from contamination.audit.recompute_sides import AXIS
from contamination.audit.rows import COLUMNS
from fakes.made_up_sets import HOSTILE

ABOUT = dict.fromkeys(COLUMNS) | {"alpha": 0.05, "version": "1", "set": HOSTILE, "reason": HOSTILE}
FOUND = {"axis": "order", "test": "successor", "order": "quiet", "seed": 3, "precision": "float32"}
ROWS = [
    ABOUT | {"model": model, "verdict": verdict, **(numbers and FOUND | numbers)}
    for model, verdict, numbers in (
        (
            "m-160",
            "no evidence",
            {"p": 0.25, "log10 p": -0.6, "tokens": 12_000, "store": "cd" * 32}
            | {"power": "small: 1x 0.21, 8x 0.99; large: 1x 0.5"},
        ),
        ("gone", "failed", {}),
        ("m-70", "proven", {"p": 2.2e-308, "log10 p": -400.0, "tokens": 900, "store": "ab" * 32}),
        ("m-1000", "proven", {"p": 3e-9, "log10 p": -8.5, "tokens": 1_000, "store": "ef" * 32}),
    )
]
MODELS = "[...document.querySelectorAll('td:first-child')].map((c) => c.textContent)"
SORTED = "[...document.querySelectorAll('[aria-sort]')].map((h) => [h.textContent, h.ariaSort])"


@pytest.mark.parametrize("axis", ["order", AXIS])
def test_the_assumption_of_held_out_records_stands_above_their_rows(axis) -> None:
    rows = [*ROWS, ROWS[0] | {"axis": axis}]
    page = html_page(rows, date=datetime.date(2026, 1, 2))
    assert (ASSUMPTION in page) == (axis == AXIS)


@pytest.fixture(params=[1280, 400])
def tab(browser, tmp_path, request):
    path = tmp_path / "audit.html"
    path.write_text(html_page(ROWS, date=datetime.date(2026, 1, 2)), encoding="utf-8")
    browser.screen(request.param, 900)
    browser.open(path)
    yield browser
    assert browser.problems() == []
    assert browser.requested() == [path.resolve().as_uri()]
    # What is wider scrolls in a box of its own.
    assert browser.run("document.documentElement.scrollWidth") == request.param


def test_a_heading_sorts_up_and_down_and_what_is_unknown_stays_last(tab) -> None:
    assert tab.run(MODELS) == ["m-70", "m-1000", "m-160", "gone"]
    assert tab.run(SORTED) == [["p", "ascending"]]
    for title, up in {
        "Model": ["gone", "m-70", "m-160", "m-1000"],  # numbers in names count as numbers
        "Tokens": ["m-70", "m-1000", "m-160", "gone"],
        "Store": ["m-70", "m-160", "m-1000", "gone"],
    }.items():
        buttons = "[...document.querySelectorAll('button')]"
        tab.run(f"{buttons}.find((b) => b.textContent === {json.dumps(title)}).focus()")
        tab.press("\ue007")  # Enter
        assert tab.run(MODELS) == up
        assert tab.run(SORTED) == [[title, "ascending"]]
        tab.press(" ")
        known = [name for name in up if title == "Model" or name != "gone"]
        down = [*reversed(known), *(name for name in up if name not in known)]
        assert tab.run(MODELS) == down
        assert tab.run(SORTED) == [[title, "descending"]]


def test_every_number_of_a_row_is_in_sight(tab) -> None:
    """On a wide screen in its column, on a narrow one in its card."""
    last = "(c) => c.getBoundingClientRect().right"
    cells = "[...document.querySelectorAll('td')].filter((c) => c.checkVisibility())"
    assert tab.run(f"Math.max(...{cells}.map({last})) <= window.innerWidth")
    rows = "[...document.querySelectorAll('tbody tr')]"
    assert tab.run(f"Math.max(...{rows}.map((r) => r.offsetHeight))") < 600
    assert tab.run("document.querySelectorAll('td[data-label=Verdict] strong').length") == 4


def test_paper_shows_what_a_click_or_a_pointer_would(tab) -> None:
    seen = "document.querySelector('details small').checkVisibility()"
    shown = "getComputedStyle(document.querySelector('code[title]'), '::after').content"
    assert not tab.run(seen)
    tab.medium("print")
    assert tab.run(seen)
    assert tab.run(shown) == json.dumps("ab" * 32)
    tab.medium("")


def test_the_table_tells_its_columns_to_a_screen_reader(tab) -> None:
    scopes = "[...document.querySelectorAll('th')].map((h) => h.scope)"
    assert set(tab.run(scopes)) == {"col"}
    assert tab.text("caption")


def test_the_page_names_the_bound_of_a_proof(tab) -> None:
    words = (
        "[...document.querySelectorAll('dt')].map((d) => [d.textContent, d.nextSibling.innerText])"
    )
    meanings = dict(tab.run(words))
    assert "0.001" in meanings["Proven"]
    assert "0.001" in meanings["Evidence"]
    assert "control model" in meanings["Proven"]


def test_names_are_text_and_numbers_are_those_of_the_command(tab) -> None:
    assert tab.run("document.querySelectorAll('td img, td b').length") == 0
    tab.run("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    shown = tab.run("[...document.querySelectorAll('tbody tr')].map((r) => r.innerText)")
    assert HOSTILE in shown[3]
    tokens = "document.querySelectorAll('td[data-label=Tokens]')[3].textContent"
    assert tab.run(tokens) == "—"
    assert all(text in shown[0] for text in ("2.2e-308", "-400.0", "proven", "records: quiet"))
    assert "small: 1x 0.21, 8x 0.99\nlarge: 1x 0.5" in shown[2]
    assert tab.run("document.querySelector('code[title]').title") == "ab" * 32
    facts = tab.text(".facts")
    assert all(text in facts for text in ("2026-01-02", "all 3 p-values", "seed 3"))


def test_a_long_name_breaks_after_its_signs() -> None:
    rows = [ROWS[0] | {"model": "gpt2-xl", "set": "mmlu/high_school <b>"}]
    page = html_page(rows, date=datetime.date(2026, 1, 2))
    assert '<td data-label="Model">gpt2-<wbr>xl</td>' in page
    assert '<td data-label="Set">mmlu/<wbr>high_<wbr>school &lt;b&gt;</td>' in page
