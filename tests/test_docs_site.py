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

import nbformat.v4
import pytest
import typer.main
from bs4 import BeautifulSoup

import contamination.statistics
from contamination.cli.main import app
from fakes.data_fixtures import ROOT

DOCS = ROOT / "docs"
SOURCES = ROOT / "src" / "contamination"
BARE = {"genindex", "py-modindex", "search"}  # pages that the builder makes
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9"
    "awAAAABJRU5ErkJggg=="
)
FRAME = """<div>
<style scoped>
    .dataframe tbody tr th {
        vertical-align: top;
    }

    .dataframe thead th {
        text-align: right;
    }
</style>
<table border="1" class="dataframe">
  <tbody>
    <tr>
      <th>0</th>
      <td>a cell</td>
    </tr>
  </tbody>
</table>
</div>"""


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """Build the site once; a warning is an error, and no address can be reached."""
    directory = tmp_path_factory.mktemp("site")
    made = shutil.ignore_patterns("generated", "notebooks")
    shutil.copytree(DOCS, directory / "docs", ignore=made)
    (directory / "results").symlink_to(ROOT / "results")
    (directory / "executed").mkdir()
    nbformat.write(_executed(), directory / "executed" / "01_canary_eval.ipynb")
    nowhere = dict.fromkeys(("http_proxy", "https_proxy", "ALL_PROXY"), "http://127.0.0.1:9")
    shown = subprocess.run(
        [
            *(sys.executable, "-m", "sphinx", "-n", "-W", "--keep-going", "-q", "-b", "html"),
            *("-D", "executed_notebooks=../executed", "-d", str(directory / "doctrees")),
            *(str(directory / "docs"), str(directory / "html")),
        ],
        env=os.environ | nowhere,
        capture_output=True,
        text=True,
    )
    assert shown.returncode == 0, shown.stderr
    return directory / "html"


def _executed() -> nbformat.NotebookNode:
    """Return a notebook with outputs of every kind that ours have."""
    v4 = nbformat.v4
    outputs = [
        v4.new_output("stream", name="stderr", text="a progress bar"),
        v4.new_output("stream", name="stdout", text="a printed line\n"),
        v4.new_output("execute_result", data={"text/html": FRAME, "text/plain": "a cell"}),
        v4.new_output("display_data", data={"image/png": PNG, "text/plain": "<Figure>"}),
    ]
    injected = {"tags": ["injected-parameters"]}
    return v4.new_notebook(
        cells=[
            v4.new_markdown_cell(
                "# 01 · As it was run\n\n[MMLU](../docs/mmlu.md), [05](05_beyond_the_paper.ipynb)"
            ),
            v4.new_code_cell("secret = '/a/path'", metadata=injected),
            v4.new_code_cell("show()", outputs=outputs),
        ]
    )


def _sources(site: Path) -> list[Path]:
    """Pages in Markdown, relative to docs/: ours, and those of notebooks and of their tables."""
    docs = site.parent / "docs"
    return sorted(p.relative_to(docs) for p in docs.rglob("*.md"))


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
    sources = {source.with_suffix(".html") for source in _sources(site)}
    assert Path("notebooks/11_unlearning_audit.html") in sources
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
    for source in _sources(site):
        page = _page(site / source.with_suffix(".html"))
        article = page.find("article")
        levels = [int(tag.name[1]) for tag in article.find_all(re.compile(r"h[1-6]"))]
        assert levels.count(1) == 1, source
        assert levels[0] == 1, source
        assert all(after <= before + 1 for before, after in pairwise(levels)), source


def test_nothing_is_left_of_the_markup(site: Path) -> None:
    for source in _sources(site):
        article = _page(site / source.with_suffix(".html")).find("article")
        assert not article.find_all(class_=["system-message", "problematic"])
        for code in article.find_all(["pre", "code"]):
            code.extract()
        left = re.search(r"(?<!\w)(\{[a-z:-]+\}`|:[a-z]+:`|``|<!--|@@)", article.get_text())
        assert left is None, f"{source}: {left}"
        _page.cache_clear()  # this test has taken the page apart


def test_a_notebook_is_shown_as_it_was_run(site: Path) -> None:
    article = _page(site / "notebooks" / "01_canary_eval.html").find("article")
    text = article.get_text()
    assert "As it was run" in text and "a printed line" in text and "show()" in text
    assert article.find("td").get_text() == "a cell"
    assert article.find("table").parent["class"][0] == "table-wrapper"  # which scrolls
    assert not article.find("style")
    (image,) = article.find_all("img")
    assert (site / "notebooks" / image["src"]).resolve().read_bytes()[1:4] == b"PNG"
    for left_out in ("progress bar", "secret", "<Figure>", "No run has executed"):
        assert left_out not in text
    assert {"../mmlu.html", "05_beyond_the_paper.html"} <= {
        a.get("href") for a in article.find_all("a")
    }


def test_a_notebook_that_was_not_run_says_how_to(site: Path) -> None:
    notebooks = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
    assert len(notebooks) >= 13
    for notebook in notebooks:
        article = _page(site / "notebooks" / f"{notebook.stem}.html").find("article")
        command = f"make results/notebooks/{notebook.name}"
        if notebook.stem[:2] in ("12", "13"):  # which the default profile leaves out
            command = f"make results/open/notebooks/{notebook.name} PROFILE=open"
        told = command in article.get_text()
        assert told == (notebook.stem != "01_canary_eval")


def test_the_gallery_is_that_of_the_front_page(site: Path) -> None:
    article = _page(site / "gallery.html").find("article")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    figures = re.findall(r"<img [^>]*src=\"results/reference/figures/(\w+\.svg)\"", readme)
    assert len(figures) == 12
    assert [Path(image["src"]).name for image in article.find_all("img")] == figures
    links = [str(link["href"]) for link in article.find_all("a", class_="reference")]
    assert len([link for link in links if re.fullmatch(r"notebooks/\d\w+\.html", link)]) == 24
    assert len([link for link in links if "tables/" in link or "_downloads/" in link]) == 12


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
