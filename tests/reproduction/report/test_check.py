"""The checks of pages, images and style sheets, by planted faults."""

import base64
from pathlib import Path
from urllib.parse import quote

import matplotlib.pyplot as plt
import pytest

from contamination.errors import InputError
from fakes.made_up_run import PAPER, SVG
from reproduction.report.check import broken_image, check_contrast, check_html, check_pdf, contrast

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
    "citation": ('<span class="citation">(<strong>no?</strong>)</span>', "unresolved citation no"),
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


def test_title_language_and_heading(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<html><title> </title><h1>A</h1></html>", encoding="utf-8")
    with pytest.raises(InputError, match=r"page does not name its language.* \(and 1 more"):
        check_html(page)
    with pytest.raises(InputError, match=r"page\.html:1: the page has no heading"):
        check_html(write(page, "<p>x</p>"))


def test_pdf(tmp_path: Path) -> None:
    file = tmp_path / "a.pdf"
    for content in (b"", b"%PDF-1.7 cut off", b"%%EOF"):
        file.write_bytes(content)
        with pytest.raises(InputError, match="not a whole PDF"):
            check_pdf(file)


# --- images ---------------------------------------------------------------------------------------


def svg(body: str) -> str:
    text = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
        f"{body}</svg>"
    )
    return "data:image/svg+xml;base64," + base64.b64encode(text.encode()).decode()


SOUND_IMAGES = {
    "paths": svg('<path d="M0 0"/>'),
    "glyphs": svg('<defs><path id="DejaVuSans-10" d="M0 0"/></defs><use href="#DejaVuSans-10"/>'),
    "generic font": svg('<text font-family="Verdana, sans-serif">a</text>'),
    "generic font in a style": svg('<text style="font: 10px monospace">a</text>'),
    "font of the drawing": svg('<g><text x="1"><tspan font-family="serif">a</tspan></text></g>'),
    "no words": svg("<text> </text>"),
    "not base64": "data:image/svg+xml," + quote(SVG),
}
IMAGE_FAULTS = {
    "one font": (svg('<text font-family="Helvetica Neue">a</text>'), "font that may be missing: a"),
    "not generic": (svg('<text font-family="my-serif">a</text>'), "font that may be missing"),
    "lost character": (svg('<text font-family="serif">a\ufffd</text>'), "character that was lost"),
    "box": (svg('<use xlink:href="#DejaVuSans-0"/>'), "character that its font lacks"),
    "file": (svg('<image href="a.png"/>'), "loads a.png"),
    "other drawing": (svg('<use href="http://example.org/a.svg#b"/>'), "loads http://example"),
}


@pytest.mark.parametrize("source", SOUND_IMAGES.values(), ids=SOUND_IMAGES.keys())
def test_a_sound_image_passes(source: str) -> None:
    assert broken_image(source) is None


@pytest.mark.parametrize(("source", "message"), IMAGE_FAULTS.values(), ids=IMAGE_FAULTS.keys())
def test_fault_of_an_image(source: str, message: str) -> None:
    assert message in str(broken_image(source))


@pytest.mark.filterwarnings("ignore:Glyph .* missing from font")
@pytest.mark.parametrize(("title", "found"), [("A → −", False), ("A 中", True)])
def test_what_matplotlib_draws_for_a_missing_glyph(tmp_path: Path, title: str, found: bool) -> None:
    figure, axes = plt.subplots()
    axes.set_title(title)
    figure.savefig(tmp_path / "a.svg")
    plt.close(figure)
    problem = broken_image("data:image/svg+xml," + quote((tmp_path / "a.svg").read_text("utf-8")))
    assert ("font lacks" in str(problem)) == found


# --- contrast -------------------------------------------------------------------------------------


SHEET = """/* :root { color: red } */
:root {
  --text: #222222; --muted: #555555; --link: #0b4f9e;
  --page: #ffffff; --soft: #f5f6f8;
}
@media (prefers-color-scheme: dark) {
  :root { --text: #eeeeee; --muted: #aaaaaa; --link: #86b7f5; --page: #16181c; --soft: #1f2228; }
}
p { color: var(--text); background-color: #ffffff; }
"""

SHEET_FAULTS = {
    "grey on white": ("--muted: #555555", "--muted: #909090", ":2: --muted #909090 on --page"),
    "on the other background": ("--soft: #f5f6f8", "--soft: #808080", r":2: --text .* on --soft"),
    "dark link": ("--link: #86b7f5", "--link: #0b4f9e", r":7: --link #0b4f9e on --page #16181c"),
    "half of the dark": ("--text: #eeeeee; ", "", r":7: --text #222222 on --page #16181c"),
    "other notation": ("--page: #ffffff", "--page: white", r":2: write --page as a colour"),
    "missing": ("--link: #0b4f9e;", "", r":2: write --link as a colour"),
    "colour in a rule": ("color: var(--text)", "color: #999", r":9: name the text colour"),
    "no variables": (":root {", "main {", r"no :root with the colours --text"),
}


def test_known_ratios_of_contrast() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#ffffff", "#ffffff") == 1
    # The darkest greys that fail and the lightest that pass on white, as WCAG tools print them.
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.005)
    assert contrast("#ffffff", "#777777") == pytest.approx(4.48, abs=0.005)
    assert contrast("#0000ff", "#ffffff") == pytest.approx(8.59, abs=0.005)


def test_a_sound_sheet_passes(tmp_path: Path) -> None:
    sheet = tmp_path / "a.css"
    sheet.write_text(SHEET, encoding="utf-8")
    check_contrast(sheet, shown=sheet)


@pytest.mark.parametrize(("old", "new", "message"), SHEET_FAULTS.values(), ids=SHEET_FAULTS.keys())
def test_fault_of_a_sheet(tmp_path: Path, old: str, new: str, message: str) -> None:
    sheet = tmp_path / "a.css"
    assert old in SHEET
    sheet.write_text(SHEET.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError, match=rf"^paper/b\.css:?.*{message}") as caught:
        check_contrast(sheet, shown=Path("paper/b.css"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", sorted(sheet.name for sheet in PAPER.glob("*.css")))
def test_our_style_sheets(name: str) -> None:
    check_contrast(PAPER / name, shown=PAPER / name)
