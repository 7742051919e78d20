"""The documentation site: built without a warning or a network, with no dead end in it."""

import gc
import html
import logging
import re
import shutil
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import furo
import nbformat.v4
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from sphinx.cmd.build import main as build
from sphinx.domains.python import PythonDomain
from sphinx.pycode.parser import Parser
from sphinx.search import IndexBuilder
from sphinx.util.docutils import new_document

from contamination.tables import to_markdown
from fakes.browser import Browser
from fakes.data_fixtures import ROOT

DOCS = ROOT / "docs"
# Thousands, of Sphinx; each would be written down and sent to the process that reports.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),
]
TABLE = re.compile(r"\|:?--")  # as Markdown writes it
BARE = {"genindex", "py-modindex", "search"}  # pages that the builder makes


WIDE = pd.DataFrame({f"a long heading, number {i}": [f"**cell {i}**"] for i in range(30)})


def navigate_once_a_folder(patch: pytest.MonkeyPatch) -> None:
    """Give the first page of each folder the list of all pages, which the others repeat."""
    navigation = furo._compute_navigation_tree
    folders = set()

    def compute(context):
        folder = Path(context["pagename"]).parent
        if folder in folders:
            return ""
        folders.add(folder)
        return navigation(context)

    patch.setattr(furo, "_compute_navigation_tree", compute)


def index_no_words(patch: pytest.MonkeyPatch) -> None:
    """Give the index of the search pages without a word: no test searches."""
    feed = IndexBuilder.feed

    def feed_title(index, docname, filename, title, doctree):
        feed(index, docname, filename, title, new_document(""))

    patch.setattr(IndexBuilder, "feed", feed_title)


def locate_no_definitions(patch: pytest.MonkeyPatch) -> None:
    """Do not look for the lines of definitions, which no page shows: it takes a second parser."""
    patch.setattr(Parser, "parse_definition", lambda _: None)


def look_up_names_once(patch: pytest.MonkeyPatch) -> None:
    """Look among all objects once for each name: a type is not documented here, and named often."""
    patch.setattr(PythonDomain, "find_obj", cache(PythonDomain.find_obj))


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """Build the site once; a warning is an error, and no address can be reached."""
    directory = tmp_path_factory.mktemp("site")
    shutil.copytree(
        DOCS, directory / "docs", ignore=shutil.ignore_patterns("reference", "notebooks")
    )
    for name in ("results", "notebooks", "data", "src", "README.md"):
        (directory / name).symlink_to(ROOT / name)
    (directory / "executed").mkdir()
    v4 = nbformat.v4
    outputs = [
        v4.new_output("stream", name="stderr", text="a progress bar"),
        v4.new_output("stream", name="stdout", text="a printed line\n"),
        v4.new_output("execute_result", data={"text/html": "<table><td>a cell</td></table>"}),
        v4.new_output("display_data", data={"text/markdown": to_markdown(WIDE)}),
    ]
    text = "# 01 · As it was run\n\n[MMLU](../docs/mmlu.md), [05](05_beyond_the_paper.ipynb)"
    cells = [v4.new_markdown_cell(text), v4.new_code_cell("show()", outputs=outputs)]
    notebook = v4.new_notebook(cells=cells, metadata={"language_info": {"name": "python"}})
    nbformat.write(notebook, directory / "executed/01_canary_eval.ipynb")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("http_proxy", "https_proxy", "ALL_PROXY"):
            patch.setenv(name, "http://127.0.0.1:9")
        navigate_once_a_folder(patch)
        index_no_words(patch)
        locate_no_definitions(patch)
        look_up_names_once(patch)
        options = ["-D", "executed_notebooks=../executed", "-D", "smartquotes=0"]
        options += ["-d", str(directory / "doctrees")]
        places = [str(directory / "docs"), str(directory / "html")]
        logging.disable(logging.DEBUG)  # a line for each step, which nobody reads
        gc.disable()  # pages are no garbage, and it would walk through them for seconds
        try:
            # Here, where most of what the reference describes is imported already.
            assert build(["-W", "--keep-going", "-q", "-b", "html", *options, *places]) == 0
        finally:
            gc.enable()
            logging.disable(logging.NOTSET)
    return directory / "html"


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def _page(path: Path) -> BeautifulSoup:
    return BeautifulSoup(_text(path), "html.parser")


def _loading(path: Path) -> BeautifulSoup:
    """Return the tags of a page that load a file, without the rest of it."""
    tags = re.findall(r"<(?:script|img|iframe|link)\b[^>]*>", _text(path))
    closed = [f"{tag}</script>" for tag in tags]  # what follows a script's tag is its text
    return BeautifulSoup("".join(closed), "html.parser")


@cache
def _anchors(path: Path) -> set[str]:
    return set(re.findall(r'\sid="([^"]+)"', _text(path)))


def _pages(site: Path) -> list[Path]:
    return sorted(p for p in site.rglob("*.html") if p.stem not in BARE)


def test_links_and_anchors_lead_somewhere_and_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    broken = []
    sources = [p.relative_to(DOCS).with_suffix("") for p in DOCS.rglob("*.md")]
    sources += [Path("notebooks", p.stem) for p in (ROOT / "notebooks").glob("[0-9]*.ipynb")]
    assert {site / f"{source}.html" for source in sources} <= set(_pages(site))
    for path in _pages(site):
        for link in set(re.findall(r'\shref="([^"]*)"', _text(path))):
            address = urlsplit(html.unescape(link))
            if address.scheme or address.netloc:
                continue
            target = (path.parent / unquote(address.path)).resolve() if address.path else path
            wanted = unquote(address.fragment) if target.suffix == ".html" else ""
            if not target.is_file() or (wanted and wanted not in _anchors(target)):
                broken.append(f"{path.relative_to(site)}: {link}")
        for tag in _loading(path).find_all(["script", "img", "iframe", "link"]):
            address = urlsplit(str(tag.get("src") or tag.get("href") or ""))
            if address.netloc:
                broken.append(f"{path.relative_to(site)}: {tag}")
            if tag.name == "img":
                assert tag.get("alt"), tag
                assert (path.parent / unquote(address.path)).is_file(), tag
    assert not broken


def test_a_notebook_is_shown_as_it_was_run(site: Path) -> None:
    article = _page(site / "notebooks" / "01_canary_eval.html").find("article")
    for shown in ("As it was run", "a printed line", "show()", "a cell"):
        assert shown in article.get_text()
    assert "progress bar" not in article.get_text()
    links = {a.get("href") for a in article.find_all("a")}
    assert {"../mmlu.html", "05_beyond_the_paper.html"} <= links
    assert "Question." in _page(site / "notebooks" / "02_shard_permutation_ablation.html").text


def test_tables_that_notebooks_print_are_tables(site: Path) -> None:
    article = _page(site / "notebooks" / "01_canary_eval.html").find("article")
    cells = [cell.get_text(strip=True) for cell in article.find_all("td")]
    assert cells.count("cell 29") == 1  # and bold, without its stars
    for path in _pages(site):
        if not TABLE.search(_text(path)):
            continue
        shown = _page(path).find("article") or _page(path)
        prose = [text for text in shown.strings if not text.find_parent(["pre", "code"])]
        assert not [text for text in prose if TABLE.search(text)], path.name


def test_nothing_is_wider_than_a_narrow_screen(site: Path, browser: Browser) -> None:
    browser.screen(400, 900)
    for name in ("index", "mmlu", "tutorial", "notebooks/01_canary_eval"):
        browser.open(site / f"{name}.html")
        assert browser.run("document.documentElement.scrollWidth") <= 400, name


def test_the_first_page_has_a_picture_on_a_ground_of_its_own(site: Path, browser: Browser) -> None:
    browser.open(site / "index.html")
    ground = browser.run("getComputedStyle(document.querySelector('article img')).backgroundColor")
    assert ground == "rgb(255, 255, 255)"
