"""The documentation site: built without a warning or a network, with no dead end in it."""

import html
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import typer.main
from bs4 import BeautifulSoup

import contamination.statistics
from contamination.cli.main import app
from fakes.data_fixtures import ROOT

DOCS = ROOT / "docs"
SOURCES = ROOT / "src" / "contamination"
BARE = {"genindex", "py-modindex", "search"}  # pages that the builder makes


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """Build the site once; a warning is an error, and no address can be reached."""
    directory = tmp_path_factory.mktemp("site")
    shutil.copytree(DOCS, directory / "docs", ignore=shutil.ignore_patterns("generated"))
    nowhere = dict.fromkeys(("http_proxy", "https_proxy", "ALL_PROXY"), "http://127.0.0.1:9")
    shown = subprocess.run(
        [
            *(sys.executable, "-m", "sphinx", "-n", "-W", "--keep-going", "-q", "-b", "html"),
            *("-d", str(directory / "doctrees"), str(directory / "docs"), str(directory / "html")),
        ],
        env=os.environ | nowhere,
        capture_output=True,
        text=True,
    )
    assert shown.returncode == 0, shown.stderr
    return directory / "html"


@cache
def _page(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


@cache
def _anchors(path: Path) -> set[str]:
    return set(re.findall(r'\sid="([^"]+)"', path.read_text(encoding="utf-8")))


def _pages(site: Path) -> list[Path]:
    """Pages with contents of ours: one for each source, and those of the code."""
    return sorted(p for p in site.rglob("*.html") if p.stem not in BARE)


def test_every_source_is_a_page(site: Path) -> None:
    sources = {p.relative_to(DOCS).with_suffix(".html") for p in DOCS.rglob("*.md")}
    assert sources <= {p.relative_to(site) for p in _pages(site)}


def test_every_module_has_its_entry(site: Path) -> None:
    found = [p.relative_to(SOURCES.parent).with_suffix("").parts for p in SOURCES.rglob("*.py")]
    modules = {".".join(parts).removesuffix(".__init__") for parts in found}
    apart = re.compile(r"contamination(\.cli.*|\.statistics\..*)?")  # commands; what it exports
    wanted = {f"module-{name}" for name in modules if not apart.fullmatch(name)}
    assert len(wanted) > 50
    assert wanted <= set().union(*map(_anchors, _pages(site)))


def test_internal_links_lead_somewhere(site: Path) -> None:
    broken = []
    for path in _pages(site):
        text = path.read_text(encoding="utf-8")
        for link in set(re.findall(r'\shref="([^"]*)"', text)):
            address = urlsplit(html.unescape(link))
            if address.scheme or address.netloc:
                continue
            target = (path.parent / unquote(address.path)).resolve() if address.path else path
            if not target.is_file():
                broken.append(f"{path.relative_to(site)}: {link}")
                continue
            wanted = unquote(address.fragment) if target.suffix == ".html" else ""
            if wanted and wanted not in _anchors(target):
                broken.append(f"{path.relative_to(site)}: {link}")
    assert not broken


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    for path in _pages(site):
        for tag in _page(path).find_all(["script", "img", "iframe", "link"]):
            address = str(tag.get("src") or tag.get("href") or "")
            assert not urlsplit(address).netloc, f"{path.relative_to(site)}: {address}"


def test_images_have_a_text_and_exist(site: Path) -> None:
    found = [(path, tag) for path in _pages(site) for tag in _page(path).find_all("img")]
    assert found
    for path, tag in found:
        assert len(str(tag.get("alt", ""))) > 20, f"{path.relative_to(site)}: {tag}"
        assert (path.parent / unquote(str(tag["src"]).partition("?")[0])).is_file()


def test_headings_are_in_order(site: Path) -> None:
    for source in DOCS.rglob("*.md"):
        page = _page(site / source.relative_to(DOCS).with_suffix(".html"))
        article = page.find("article")
        levels = [int(tag.name[1]) for tag in article.find_all(re.compile(r"h[1-6]"))]
        assert levels.count(1) == 1, source
        assert levels[0] == 1, source
        assert all(after <= before + 1 for before, after in pairwise(levels)), source


def test_nothing_is_left_of_the_markup(site: Path) -> None:
    for source in DOCS.rglob("*.md"):
        article = _page(site / source.relative_to(DOCS).with_suffix(".html")).find("article")
        assert not article.find_all(class_=["system-message", "problematic"])
        for code in article.find_all(["pre", "code"]):
            code.extract()
        left = re.search(r"(?<!\w)(\{[a-z:-]+\}`|:[a-z]+:`|``|<!--|@@)", article.get_text())
        assert left is None, f"{source}: {left}"
        _page.cache_clear()  # this test has taken the page apart


def test_every_statistic_has_its_entry(site: Path) -> None:
    page = site / "reference" / "generated" / "contamination.statistics.html"
    public = set(contamination.statistics.__all__) - {"Weights"}  # a type
    assert {f"contamination.statistics.{name}" for name in public} <= _anchors(page)


def test_every_command_has_its_entry_with_its_options(site: Path) -> None:
    article = _page(site / "reference" / "command-line.html").find("article")
    shown = {heading.find("code").get_text() for heading in article.find_all(["h2", "h3"])}
    code = {tag.get_text().partition(" ")[0] for tag in article.find_all("code")}

    def check(command: object, name: str) -> None:
        for own, below in getattr(command, "commands", {}).items():
            assert f"{name} {own}" in shown
            check(below, f"{name} {own}")
        for parameter in getattr(command, "params", []):
            assert {option for option in parameter.opts if option.startswith("--")} <= code

    check(typer.main.get_command(app), "contamination")
