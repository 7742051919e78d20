"""The check of the rendered page, by planted faults."""

import base64
from pathlib import Path

import pytest

from contamination.errors import InputError
from contamination.report import check_html, check_pdf
from fakes.made_up_run import SVG

IMAGE = "data:image/svg+xml;base64," + base64.b64encode(SVG.encode()).decode()
PAGE = '<!DOCTYPE html><html lang="en"><head><title>T</title></head><body>{}</body></html>'
SOUND = f"""
<h1 id="top">A</h1><h2>B</h2><h3>C</h3><h2 id="ä">D</h2>
<p><a href="#top">up</a> <a href="#%C3%A4">D</a> <a href="https://example.org">out</a></p>
<img alt="a line" src="{IMAGE}"><br/><img alt="later" data-src="{IMAGE}"> <a href="#/top">up</a>
<table><tr><th>a</th></tr><tr><td><table><tr><th>b</th></tr></table></td></tr></table>
<script>if (a ?@ b) {{}} // {{{{< not text >}}}}</script>
<span class="citation">(<strong>Bold</strong> 1999)</span>
"""

FAULTS = {
    "dangling link": ('<a href="#nowhere">x</a>', "link to #nowhere"),
    "local link": ('<a href="other.html">x</a>', "link to other.html"),
    "empty link": ('<a href="">x</a>', "link to nothing"),
    "no alt": (f'<img src="{IMAGE}">', "image without alt text"),
    "file image": ('<img alt="x" src="figures/a.svg">', r"\(x\) is not embedded: figures/a.svg"),
    "broken svg": ('<img alt="x" src="data:image/svg+xml;base64,PHN2Zz4=">', "does not load"),
    "broken png": ('<img alt="x" src="data:image/png;base64,PHN2Zz4=">', "is not image/png"),
    "empty image": ('<img alt="x" src="data:image/webp;base64,">', "is empty"),
    "style sheet": ('<link rel="stylesheet" href="styles.css">', "<link> loads styles.css"),
    "script": ('<script src="https://example.org/a.js"></script>', "<script> loads https"),
    "crossref": ("<p>See <strong>?@fig-x</strong></p>", r"unresolved .*\?@fig-x"),
    "variable": ("<p><strong>?var:run.seed</strong></p>", r"unresolved .*\?var:run\.seed"),
    "shortcode": ("<p>{{&lt; var a &gt;}}</p>", "unresolved"),
    "citation": (
        '<span class="citation">(<strong>nobody?</strong>)</span>',
        "unresolved citation nobody",
    ),
    "headings": ("<h3>x</h3>", "heading <h3> follows level 1"),
    "lost character": ("<p>a\ufffdb</p>", "unresolved reference or shortcode"),
    "table": ("<table><tr><td>1</td></tr></table>", "table without headers"),
    "empty headers": ("<table><tr><th> </th></tr></table>", "table without headers"),
    "second table": (
        "<table><tr><th>a</th></tr></table> <table><tr><td>1</td></tr></table>",
        "table without headers",
    ),
    "slide that is not there": ('<a href="#/nowhere">x</a>', "link to #nowhere"),
    "image to come": ('<img alt="x" data-src="a.svg">', r"\(x\) is not embedded: a\.svg"),
    "same name twice": ('<p id="a"></p><p id="a"></p>', "identifier a is used twice"),
}


def write(path: Path, body: str) -> Path:
    path.write_text(PAGE.replace("{}", body), encoding="utf-8")
    return path


def test_a_sound_page_passes(tmp_path: Path) -> None:
    check_html(write(tmp_path / "page.html", SOUND))


@pytest.mark.parametrize(("body", "message"), FAULTS.values(), ids=FAULTS.keys())
def test_fault(tmp_path: Path, body: str, message: str) -> None:
    with pytest.raises(InputError, match=rf"^page\.html:2: .*{message}"):
        check_html(write(tmp_path / "page.html", f"<h1>A</h1>\n{body}"))


def test_several_faults_are_counted(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\(and 1 more problem\)"):
        check_html(write(tmp_path / "page.html", '<h1><a href="#a">x</a><a href="#b">x</a></h1>'))


def test_title_and_language(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<html><title> </title><h1>A</h1></html>", encoding="utf-8")
    with pytest.raises(InputError, match=r"page does not name its language.* \(and 1 more"):
        check_html(page)


def test_a_page_has_a_heading(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"page\.html:1: the page has no heading"):
        check_html(write(tmp_path / "page.html", "<p>x</p>"))


def test_pdf(tmp_path: Path) -> None:
    file = tmp_path / "a.pdf"
    for content in (b"", b"%PDF-1.7 cut off", b"%%EOF"):
        file.write_bytes(content)
        with pytest.raises(InputError, match="not a whole PDF"):
            check_pdf(file)
