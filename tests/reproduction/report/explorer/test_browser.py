"""The page as a reader meets it, in a headless Chromium, opened from disk."""

import re
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pytest
from selenium.webdriver import Keys

from contamination.audit.battery import TESTS
from contamination.scoring.store import open_store
from fakes.browser import PALE, READY, Browser
from fakes.made_up_sets import HOSTILE, make_set
from reproduction.report.explorer.page import Frame, format_plain_p
from reproduction.report.explorer.scored import ScoredSets, view_sets

PLANTED = {"model": "reader", "group": "Made up", "set": "planted"}


def at(**parts: object) -> str:
    return "#" + urlencode(PLANTED | parts)


STRANGER = at(model="stranger", set="unread", test="sharded_exact", shards=6)
NOWHERE = at(model="nobody", test="sharded_exact", shards=99, b="many")


def expected_p(found: ScoredSets, model: str, name: str, test: str, shards: int) -> str:
    (scored,) = [s for s in found.sets if (s.model, s.test_set.name) == (model, name)]
    stores = {(s.header.kind, s.header.shards): s for s in map(open_store, scored.stores)}
    result = TESTS[test].result(stores[TESTS[test].kind, shards], 9)
    return f"p = {format_plain_p(result.log10_p)}"


@pytest.fixture
def tab(browser: Browser, page: Path):
    browser.screen(1280, 900)
    assert browser.open(page, at()) == "ready"
    yield browser
    assert browser.problems() == []
    assert {url.partition("#")[0] for url in browser.requested()} == {page.resolve().as_uri()}


def test_a_set_at_first_sight(tab: Browser, found: ScoredSets) -> None:
    chosen = tab.run("['model', 'test'].map((id) => document.getElementById(id).value)")
    assert chosen == ["reader", "successor"]
    assert tab.text("#p") == expected_p(found, "reader", "planted", "successor", 2)
    assert tab.text("#verdict") == "The model prefers the published order."
    assert tab.text("#title") == "tiny"
    assert "24 examples" in tab.text("#about")


@pytest.mark.parametrize(
    ("model", "name", "test", "shards"),
    [
        ("stranger", "unread", "sharded_exact", 4),
        ("reader", "unread", "boundary", 6),
        ("stranger", "planted", "permutation", 1),
        ("reader", "planted", "sharded_t", 4),
    ],
)
def test_choosing_by_the_controls(tab: Browser, found, model, name, test, shards) -> None:
    tab.choose("model", model)
    tab.choose("set", "0" if name == "planted" else "1")
    tab.choose("test", test)
    tab.choose("shards", str(shards))
    assert tab.text("#p") == expected_p(found, model, name, test, shards)
    assert tab.run("document.querySelectorAll('#shards-chart rect.shard').length") == shards
    assert len(tab.texts("#questions > details")) == shards
    colour = tab.run("getComputedStyle(document.documentElement).getPropertyValue('--test')")
    assert colour == TESTS[test].colour
    assert name in tab.text("#about")
    # What is chosen stands in the address, and the address leads back to it.
    address = tab.run("location.hash")
    tab.choose("model", "reader" if model == "stranger" else "stranger")
    tab.run(f"(location.hash = {address!r}, new Promise((done) => setTimeout(done)))")
    assert tab.text("#p") == expected_p(found, model, name, test, shards)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        (STRANGER, ("stranger", "unread", "sharded_exact", 6)),
        (NOWHERE, ("reader", "planted", "sharded_exact", 6)),
        ("#set=planted", ("reader", "planted", "successor", 2)),
        ("#model=stranger", ("stranger", "planted", "successor", 2)),
    ],
)
def test_the_address_chooses_the_closest_there_is(browser, page, found, address, shown) -> None:
    browser.open(page, address)
    assert browser.text("#p") == expected_p(found, *shown)


def test_b_is_kept_over_sets_and_marked_where_it_was_set_in_advance(tab: Browser) -> None:
    assert tab.texts("#b option") == ["8", "16", "32 •"]
    assert "set in advance. Whoever" in tab.text("#choice")
    tab.choose("b", "8")
    assert "This is not what was set in advance" in tab.text("#choice")
    tab.choose("set", "1")
    assert tab.run("document.getElementById('b').value") == "8"
    tab.choose("test", "boundary")
    assert tab.texts("#b option") == ["8", "16 •", "32", "all"]
    assert tab.run("document.getElementById('b').value") == "16"  # another test, another default
    tab.choose("test", "sharded_exact")
    assert tab.run("document.getElementById('b').disabled")


def test_corrected_p_values_stand_beside_every_choice(tab: Browser) -> None:
    joint = re.search(
        r"p = (.+) over every exact choice .*, p = (.+) over all 2", tab.text("#choice")
    )
    assert joint is not None
    rows = tab.run(
        "[...document.querySelectorAll('#overview tbody tr')].map("
        "(r) => [...r.children].map((c) => c.textContent))"
    )
    assert rows[0] == ["planted", joint[1], joint[2]]
    assert [row[0] for row in rows] == ["planted", "unread"]


def test_examples_stand_in_order(tab: Browser) -> None:
    tab.choose("test", "sharded_exact")
    tab.choose("shards", "4")
    summaries = tab.texts("#questions summary")
    assert [s.partition(":")[0] for s in summaries] == [
        f"Shard {i + 1}, examples {6 * i + 1}–{6 * i + 6}" for i in range(4)
    ]
    assert len(tab.texts("#questions li")) == 6  # only the first shard is built
    tab.run("document.querySelectorAll('#questions details').forEach((d) => { d.open = true; })")
    tab.run("new Promise((done) => setTimeout(done, 50))")
    texts = tab.texts("#questions li .text")
    assert texts == [text.rstrip("\n") for text in make_set("planted").examples]
    assert tab.texts("#questions li .place") == [str(i + 1) for i in range(24)]


def test_hostile_text_is_shown_as_text(tab: Browser) -> None:
    assert tab.texts("#questions li .text")[3] == HOSTILE
    assert tab.run("document.querySelectorAll('img, b:not([id])').length") == 0
    assert tab.texts("#left-out li") == [""]  # closed
    tab.run("document.getElementById('left-out').open = true")
    assert tab.texts("#left-out li") == ["somewhere: <i>no store</i>"]


def test_search(tab: Browser) -> None:
    tab.run("document.getElementById('search').focus()")
    tab.press("ANSWER: 1")
    assert tab.texts("#questions li .place") == ["2", *(str(i) for i in range(11, 21))]
    assert tab.text("#found") == "11 of 24 examples"
    tab.run("document.getElementById('search').value = ''")
    tab.press(Keys.BACKSPACE)
    tab.run("document.getElementById('search').dispatchEvent(new Event('input'))")
    assert len(tab.texts("#questions > details")) == 2


def test_charts_say_in_words_and_tables_what_they_draw(tab: Browser) -> None:
    labels = tab.run("[...document.querySelectorAll('svg[role=img]')].map((s) => s.ariaLabel)")
    assert len(labels) == 2
    canonical = re.search(r"published order has z = (\S+)", labels[0])
    assert canonical is not None
    assert canonical[1].rstrip("0") in tab.text("#null-chart")
    tab.run("document.getElementById('null-numbers').open = true")
    counts = tab.texts("#null-numbers td.number")
    assert len(counts) == 41
    assert sum(map(int, counts)) == 10_000


@pytest.mark.parametrize("index", [0, 2])  # planted, under the reader and under the stranger
def test_the_mark_stands_where_the_canonical_value_is(tab: Browser, found, index: int) -> None:
    scored = found.sets[index]
    (outcome,) = [
        o
        for o in view_sets([scored])[0].outcomes
        if (o.test, o.result.shards) == ("token_standardised", 6)
    ]
    edges = np.linspace(outcome.null.low, outcome.null.high, len(outcome.null.counts) + 1)
    begins = edges[:-1][outcome.null.counts > 0]
    tab.choose("model", scored.model)
    tab.choose("test", "token_standardised")
    tab.choose("shards", "6")
    left = "(node) => node.getBoundingClientRect().x"
    bars = tab.run(f"[...document.querySelectorAll('#null-chart rect.null')].map({left})")
    mark = tab.run(f"({left})(document.querySelector('#null-chart line.canonical'))")
    pixels_per_unit = (bars[-1] - bars[0]) / (begins[-1] - begins[0])
    expected = bars[0] + pixels_per_unit * (outcome.canonical - begins[0])
    assert mark == pytest.approx(expected, abs=2)  # the line is 3 pixels wide


def test_a_bar_opens_its_shard(tab: Browser) -> None:
    tab.choose("test", "sharded_exact")
    tab.choose("shards", "6")
    tab.run(
        "document.querySelectorAll('#shards-chart rect.shard')[4]"
        ".dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    )
    assert tab.run("document.querySelectorAll('#questions details')[4].open")
    assert tab.run("document.activeElement.textContent").startswith("Shard 5, examples 17–20")


def test_by_keyboard_alone(tab: Browser, found: ScoredSets) -> None:
    """Tab reaches every control in the order of the page; arrows choose."""
    reached = []
    for _ in range(12):
        tab.press(Keys.TAB)
        reached.append(tab.run("document.activeElement.id || document.activeElement.tagName"))
    assert reached[:8] == ["SUMMARY", "A", "A", "model", "set", "test", "shards", "b"]
    tab.run("document.getElementById('set').focus()")
    tab.press(Keys.ARROW_DOWN)
    assert tab.text("#p") == expected_p(found, "reader", "unread", "successor", 2)
    assert tab.run("document.activeElement.id") == "set"
    assert tab.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_labels_and_live_result(tab: Browser) -> None:
    unlabelled = "[...document.querySelectorAll('select, input')].filter((n) => !n.labels.length)"
    assert tab.run(f"{unlabelled}.length") == 0
    assert tab.run("document.getElementById('card').ariaLive") == "polite"
    assert tab.run("document.documentElement.lang") == "en"
    current = tab.texts("#tests tr[aria-current=true]")
    assert len(current) == 1
    assert current[0].startswith("Successor •")


@pytest.mark.parametrize("address", [STRANGER, "", "#set=econometrics", "#view=scored"])
@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_nothing_is_wider_than_the_screen(
    browser: Browser, page: Path, width: int, address: str
) -> None:
    browser.screen(width, 740)
    browser.open(page, address)
    browser.run("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert browser.run("document.documentElement.scrollWidth") == width
    texts = "[...document.querySelectorAll('svg')].map((s) => s.viewBox.baseVal.width)"
    assert all(drawn <= width for drawn in browser.run(texts))  # text keeps its size
    assert browser.problems() == []


@pytest.mark.parametrize("address", [at(), "", "#set=econometrics", "#view=scored"])
@pytest.mark.parametrize("dark", [False, True])
def test_text_stands_out_in_both_schemes(
    browser: Browser, page: Path, dark: bool, address: str
) -> None:
    browser.screen(1280, 900, dark=dark)
    browser.open(page, address)
    browser.run("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    ground = browser.run("getComputedStyle(document.body).backgroundColor")
    assert (ground != "rgb(255, 255, 255)") is dark
    assert browser.run(PALE) == []


def test_a_page_that_cannot_be_read_says_so(browser: Browser, page: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.html"
    text = page.read_text(encoding="utf-8")
    broken.write_text(re.sub(r'(id="data">)[^<]+', r"\1H4sIAAAA", text), encoding="utf-8")
    assert browser.open(broken) == "failed"
    assert "could not be read" in browser.text("#problem")


def test_a_notebook_shows_the_page_in_a_frame(
    browser: Browser, html: str, found: ScoredSets, tmp_path: Path
) -> None:
    """Its links work there as well, where no address bar shows where they lead."""
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<!doctype html>{Frame(html)._repr_html_()}", encoding="utf-8")
    browser.open(notebook)
    browser.driver.switch_to.frame(0)
    assert browser.run(READY) == "ready"
    browser.follow("Econometrics")
    assert browser.text("#status") == "Excluded"
    browser.follow("Scored by this run")
    browser.follow("unread")
    assert browser.text("#p") == expected_p(found, "reader", "unread", "successor", 2)
    browser.choose("model", "stranger")
    browser.choose("test", "sharded_exact")
    assert browser.text("#p") == expected_p(found, "stranger", "unread", "sharded_exact", 6)
    assert browser.problems() == []
