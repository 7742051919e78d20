"""MMLU as a reader meets it: the list, what it comes to, and the page of a subset."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from selenium.webdriver import Keys

from contamination.audit.battery import TESTS
from contamination.files import write_text
from contamination.scoring.store import open_store
from contamination.statistics import dkw_band, fisher
from fakes.browser import Browser
from fakes.data_fixtures import ROOT
from fakes.made_up_sets import make_set, make_store
from reproduction.notebooks.mmlu.subsets import title
from reproduction.notebooks.mmlu.tables import fisher_table
from reproduction.output.published import AUDITED, CONTROLS, load_published
from reproduction.report.explorer.mmlu import Mmlu
from reproduction.report.explorer.page import format_plain_p, payload, render
from reproduction.report.explorer.scored import find_sets, view_sets

TABLE2 = load_published(ROOT / "data" / "published", "oren2024_table2_open_models")
SETTLED = "new Promise((done) => setTimeout(done))"


@pytest.fixture
def tab(browser: Browser, page: Path):
    browser.screen(1280, 900)
    assert browser.open(page) == "ready"
    yield browser
    assert browser.problems() == []
    assert {url.partition("#")[0] for url in browser.requested()} == {page.resolve().as_uri()}


def cells(tab: Browser, table: str) -> list[list[str]]:
    """Rows of the body of a table, as they are shown."""
    return tab.run(
        f"[...document.querySelectorAll({json.dumps(f'{table} tbody tr')})].map((r) => "
        "[...r.children].map((c) => c.innerText.replace(/\\s+/g, ' ').trim()))"
    )


def names(tab: Browser) -> list[str]:
    return tab.texts("#subsets tbody a")


def combined(mmlu: Mmlu, shown: list[str]) -> dict[str, tuple[int, str]]:
    """Subsets kept and Fisher's p of the subsets of these titles, by the library."""
    subsets = pd.concat([mmlu.published, mmlu.measured])
    chosen = subsets[subsets["subset"].map(title).isin(shown)]
    audited = {"contaminated": None}
    table = fisher_table(chosen, TABLE2, audited)
    label = {"sharded_t": "sharded t", "successor": "successor"}
    return {
        row.model if row.source == "published" else f"{row.model}, {label[row.test]}": (
            row.subsets_kept,
            "—" if np.isnan(row.p) else format_plain_p(row.log10_p),
        )
        for row in table.itertuples()
    }


def shown_fisher(tab: Browser) -> dict[str, tuple[int, str]]:
    return {
        name: (int(kept), p.replace(" ", "\u00a0")) for name, kept, p, _ in cells(tab, "#fisher")
    }


# --- statistics -----------------------------------------------------------------------------------


def test_fishers_method_is_the_librarys(tab: Browser) -> None:
    rng = np.random.default_rng(3)
    lists = [np.log10(rng.random(n)) * rng.choice([1, 10]) for n in (1, 2, 5, 43, 57)]
    lists += [np.full(13, -38.0), np.array([-2_000.0, -0.3]), np.zeros(4)]
    found = tab.run(f"{json.dumps([each.tolist() for each in lists])}.map(fisher)")
    expected = [fisher(log10_p=each).log10_p for each in lists]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_p_values_are_written_as_in_the_tables(tab: Browser) -> None:
    grid = [*np.linspace(-4, 0, 101), -37.4, -38.0, -299.97, -300.2, -1234.5]
    grid += [float(np.log10(p)) for p in (0.001, 0.00099949, 0.0009996, 0.05, 9.96e-5)]
    found = tab.run(f"{json.dumps(grid)}.map(formatP)")
    assert found == [format_plain_p(log10_p) for log10_p in grid]


# --- the list -------------------------------------------------------------------------------------


def test_first_sight(tab: Browser, mmlu: Mmlu) -> None:
    assert tab.run("document.getElementById('mmlu-view').hidden") is False
    rows = {row[0]: row[1:] for row in cells(tab, "#subsets")}
    assert len(rows) == 57
    assert rows["Astronomy excluded"][:6] == ["152", "0.550", "0.657", "0.050", "0.050", "0.003"]
    assert rows["Professional Law not in Table 4"][:3] == ["1,534", "—", "—"]
    assert rows["Econometrics excluded"][6:] == ["0.424", "5.4 × 10⁻⁴", "2.5"]
    bold = tab.texts("#subsets tbody tr:nth-child(3) td.small")
    assert bold == ["0.003"]  # 0.050 is not below 0.05
    expected = combined(mmlu, names(tab))
    assert shown_fisher(tab) == expected
    assert [row[3] for row in cells(tab, "#fisher")] == ["0.014", "0.011", "0.362", "—", "—"]
    count = tab.text("#count")
    assert count.startswith("57 of 57 subsets shown, 13 of them excluded by the paper's rule, 43")
    assert all(f"{name} {expected[name][1]}" in count for name in AUDITED.values())


@pytest.mark.parametrize(
    ("only", "find", "count"),
    [
        ("kept", "", 43),
        ("excluded", "", 13),
        ("kept", "HIGH school", 7),
        ("all", "us_", 2),
        ("small", "", None),
        ("lines", "", None),
        ("cut", "", None),
        ("all", "no such subset", 0),
    ],
)
def test_fisher_follows_the_selection(tab: Browser, mmlu: Mmlu, only, find, count) -> None:
    tab.choose("only", only)
    tab.run("document.getElementById('find').focus()")
    tab.press(find)
    shown = names(tab)
    assert count is None or len(shown) == count
    assert {*shown} < {title(name) for name in mmlu.lines["subset"]}
    expected = combined(mmlu, shown)
    assert {name: pair for name, pair in shown_fisher(tab).items() if pair[0]} == {
        name: pair for name, pair in expected.items() if pair[0]
    }
    # The address leads back to the selection.
    address = tab.run("location.hash")
    tab.run(f"(location.hash = '#view=mmlu', {SETTLED})")
    assert len(names(tab)) == 57
    tab.run(f"(location.hash = {json.dumps(address)}, {SETTLED})")
    assert names(tab) == shown


def test_filters_are_what_they_say(tab: Browser, mmlu: Mmlu) -> None:
    kept = mmlu.published[~mmlu.published["excluded"]]
    audited = kept[kept["model"].isin(AUDITED.values())]
    lines = mmlu.lines[mmlu.lines["test"] == "successor"]
    small = lines.assign(small=lines["log10_p"] < np.log10(0.05))
    wide = small.pivot(index="subset", columns="segmentation", values="small")
    expected = {
        "small": audited.loc[audited["published_p"] < 0.05, "subset"],
        "lines": mmlu.lines.loc[mmlu.lines["spanning"] > 0, "subset"],
        "cut": wide.index[wide["line"] & ~wide["record"]],
    }
    for only, subsets in expected.items():
        tab.choose("only", only)
        assert set(names(tab)) == set(map(title, subsets)), only
        assert names(tab)


def test_a_heading_sorts_and_sorts_back(tab: Browser, mmlu: Mmlu) -> None:
    printed = mmlu.published[mmlu.published["model"] == "Mistral-7B"]
    p = printed.set_index(printed["subset"].map(title))["published_p"]
    heading = "#subsets thead th:nth-child(4) button"
    for ascending, said in ((True, "ascending"), (False, "descending")):
        tab.run(f"document.querySelector('{heading}').focus()")
        tab.press(Keys.ENTER)
        shown = names(tab)
        assert shown[-1] == "Professional Law"  # without a p-value there
        assert p[shown[:-1]].tolist() == sorted(p, reverse=not ascending)
        assert tab.run("document.querySelector('#subsets th[aria-sort]').ariaSort") == said
        assert tab.run("document.activeElement.textContent") == "Mistral-7B"
    tab.choose("sort", "name")
    assert names(tab)[0] == "World Religions"  # still the other way round


def test_the_curves_are_the_kept_p_values(tab: Browser, mmlu: Mmlu) -> None:
    tab.choose("only", "kept")
    kept = mmlu.published[~mmlu.published["excluded"]]
    expected = np.sort(kept.loc[kept["model"] == "LLaMA2-7B", "published_p"])
    path = tab.run("document.querySelector('#list-ecdf path.curve').getAttribute('d')")
    x0, y0 = map(float, re.match(r"M([\d.]+),([\d.]+)", path).groups())
    steps = np.array(re.findall(r"H([\d.]+)V([\d.]+)", path), dtype=float)
    end = float(path.rpartition("H")[2])
    np.testing.assert_allclose((steps[:, 0] - x0) / (end - x0), expected, atol=1e-6)
    heights = (y0 - steps[:, 1]) / (y0 - steps[-1, 1])
    np.testing.assert_allclose(heights, np.arange(1, 44) / 43, atol=1e-6)
    band = tab.run("document.querySelector('#list-ecdf polygon').getAttribute('points')")
    _, height = map(float, band.split(" ")[0].split(","))
    assert (y0 - height) / (y0 - steps[-1, 1]) == pytest.approx(dkw_band(40, 0.95), abs=0.01)


@pytest.mark.parametrize("width", [900, 1265, 1280, 1600])
def test_the_list_and_its_sum_stand_beside_each_other_or_below(
    browser: Browser, page: Path, width: int
) -> None:
    browser.screen(width, 900)
    browser.open(page)
    box = "(id) => { const b = document.querySelector(id).getBoundingClientRect(); "
    box += "return [b.left, b.top, b.right, b.bottom]; }"
    _, _, right, bottom = browser.run(f"({box})('#subsets')")
    left, top, end, _ = browser.run(f"({box})('[aria-labelledby=aggregate-heading]')")
    assert right < left or bottom < top
    assert max(right, end) <= width


@pytest.mark.parametrize(
    ("width", "beside"), [(390, []), (780, list((AUDITED | CONTROLS).values()))]
)
def test_where_room_is_short_the_chosen_column_stays(
    browser: Browser, page: Path, width: int, beside: list[str]
) -> None:
    """A phone shows one column beside the names, a notebook those of Table 4 as well."""
    browser.screen(width, 844)
    browser.open(page)
    seen = "[...document.querySelectorAll('#subsets thead th')].filter((n) => n.offsetWidth)"
    headings = f"{seen}.map((n) => n.textContent)"
    assert browser.run(headings) == ["Subset", *(beside or ["LLaMA2-7B"])]
    browser.choose("sort", "line")
    assert browser.run(headings) == ["Subset", *beside, "here, by line"]
    assert browser.run("document.documentElement.scrollWidth") == width


def test_by_keyboard_alone(tab: Browser) -> None:
    """Tab reaches search, filter and headings in the order of the page, then the subsets."""
    reached = []
    for _ in range(16):
        tab.press(Keys.TAB)
        reached.append(tab.run("document.activeElement.id || document.activeElement.textContent"))
    assert reached[3:7] == ["find", "only", "Subset", "Records"]
    assert reached[-1] == "Abstract Algebra"
    tab.press(Keys.ENTER)
    tab.run(SETTLED)
    assert tab.text("#subset-title") == "Abstract Algebra"
    assert tab.run("document.activeElement.id") == "subset-title"
    tab.press(Keys.TAB)
    assert tab.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"


# --- one subset -----------------------------------------------------------------------------------


def test_an_excluded_subset(tab: Browser, mmlu: Mmlu) -> None:
    tab.follow("Econometrics")
    assert tab.text("#status") == "Excluded"
    assert "p < 0.05 under BioMedLM" in tab.text("#status-why")
    assert cells(tab, "#printed-table") == [
        ["LLaMA2-7B", "0.616"],
        ["Mistral-7B", "0.761"],
        ["Pythia-1.4B", "0.540"],
        ["BioMedLM control", "0.035"],
        ["GPT-2 XL control", "0.508"],
    ]
    assert ["clean, successor", "by line", "28", "5.4 × 10⁻⁴"] in cells(tab, "#measured-table")
    assert len(cells(tab, "#measured-table")) == 6
    free = {row[0]: row[1:] for row in cells(tab, "#free-table")}
    assert free["Examples"] == ["114", "282"]
    assert free["Diagnostics of the order"] == ["quiet", "order carries information"]
    assert free["p of a compressor"] == ["0.269", "1.1 × 10⁻⁹"]
    assert tab.text("#free-facts").startswith("2.5 lines per record; 36% of the records span")
    assert "docs/mmlu.md, not in this run" in tab.text("#measured-source")
    assert "data fetch mmlu/" in tab.text("#no-examples")
    assert tab.run("document.getElementById('examples').hidden")
    assert tab.run("document.getElementById('stores').hidden")


@pytest.mark.parametrize("name", ["econometrics", "moral_disputes", "professional_medicine"])
def test_what_one_subset_adds(tab: Browser, mmlu: Mmlu, name: str) -> None:
    """Fisher's p without and with it, whether the paper keeps it or not."""
    tab.run(f"(location.hash = '#set={name}', {SETTLED})")
    found = {row[0]: row[1:] for row in cells(tab, "#subset-fisher")}
    for model in AUDITED.values():
        rows = mmlu.published[mmlu.published["model"] == model]
        others = rows[~rows["excluded"] & (rows["subset"] != name)]
        both = pd.concat([others, rows[rows["subset"] == name]])
        assert found[model] == [
            format_plain_p(fisher(each["published_p"]).log10_p).replace("\u00a0", " ")
            for each in (others, both)
        ]


def test_a_subset_that_table_4_lacks(tab: Browser) -> None:
    tab.follow("Professional Law")
    assert tab.text("#status") == "Not in Table 4"
    assert tab.run("document.getElementById('printed').hidden")
    assert len(cells(tab, "#measured-table")) == 6


def test_neighbours_follow_the_selection_and_back_leads_to_it(tab: Browser) -> None:
    tab.choose("only", "excluded")
    tab.choose("sort", "LLaMA2-7B")
    shown = names(tab)
    tab.follow(shown[1])
    assert tab.text("#previous") == f"← {shown[0]}"
    tab.follow(f"{shown[2]} →")
    assert tab.text("#subset-title") == shown[2]
    tab.follow("All subsets")
    assert len(names(tab)) == 13
    assert names(tab) == shown


SCORED = {name: make_set(name) for name in ("anatomy", "anatomy-by-line")}


@pytest.fixture(scope="module")
def scored_stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("stores")
    for test_set in SCORED.values():
        make_store(directory, "m", test_set, "successors", 2, tokens_per_example=32)
    return directory


@pytest.fixture(scope="module")
def scored_page(mmlu: Mmlu, scored_stores: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of a run with a subset scored by record and by line, another at hand."""
    found = find_sets(scored_stores, "MMLU", lambda name, _: SCORED[name])
    at_hand = replace(mmlu, examples={"virology": tuple(f"Question {i}?\n" for i in range(60))})
    path = tmp_path_factory.mktemp("results") / "explorer.html"
    write_text(path, render(payload(view_sets(found.sets), [], at_hand, "tiny")))
    return path


def test_a_subset_that_the_run_has_scored(
    browser: Browser, scored_page: Path, scored_stores: Path
) -> None:
    (path,) = (scored_stores / "m" / "anatomy").iterdir()
    expected = format_plain_p(TESTS["successor"].result(open_store(path), 0).log10_p)
    browser.screen(1280, 900)
    browser.open(scored_page)
    browser.choose("only", "scored")
    assert names(browser) == ["Anatomy"]
    browser.follow("Anatomy")
    assert browser.text("#status") == "Kept"
    assert browser.text("#p") == f"p = {expected}"
    assert browser.texts("#questions li .text")[0].startswith("anatomy example 0")
    assert browser.run("document.getElementById('no-examples').hidden")
    browser.follow("anatomy-by-line (MMLU by line) under m")
    assert browser.text("#subset-title") == "Anatomy"
    assert "anatomy-by-line, 24 examples" in browser.text("#about")
    assert "anatomy (MMLU) under m" in browser.text("#elsewhere")
    assert browser.problems() == []


def test_examples_at_hand_of_a_subset_that_was_not_scored(
    browser: Browser, scored_page: Path
) -> None:
    browser.screen(1280, 900)
    browser.open(scored_page, "#set=virology")
    assert browser.texts("#questions summary") == [
        "Examples 1–25",
        "Examples 26–50",
        "Examples 51–60",
    ]
    assert browser.texts("#questions li .text") == [f"Question {i}?" for i in range(25)]
    browser.run("document.getElementById('search').focus()")
    browser.press("question 5")
    assert browser.text("#found") == "11 of 60 examples"
    assert browser.run("document.getElementById('no-examples').hidden")
    assert browser.problems() == []
