"""What pages and style sheets must satisfy, whichever renderer wrote the pages.

A page is one file that contains all that it shows, its references are resolved, and its images are
legible on a machine without any particular font. Colours have the contrast of WCAG 2, level AA.

Beautiful Soup reads the pages: it is the parser of HTML that most of Python relies on, since 2004.
"""

import base64
import binascii
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from urllib.parse import unquote, unquote_to_bytes
from xml.etree import ElementTree

from bs4 import BeautifulSoup
from bs4.element import NavigableString, Tag

from contamination.errors import InputError
from reproduction.report.source import blank_out

_EXTERNAL = ("http://", "https://", "mailto:", "doi:", "data:")
_LEFTOVERS = re.compile(r"\{\{<|\?@|\?var:|\?meta:|\?invalid|\ufffd")
_LOADING = ["link", "script", "iframe", "source", "video", "audio", "object"]

_SIGNATURES = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
}
_GENERIC_FONT = re.compile(r"(?<![\w-])(serif|sans-serif|monospace|system-ui)(?![\w-])")
# Matplotlib names a glyph after its font and number. What no font has, a font of last resort draws;
# number 0 is the empty box of a font.
_NO_GLYPH = re.compile(r"#(LastResort[\w-]*|[A-Za-z][\w-]*-0)")

# Colours of a style sheet: variables of :root, and again where the reader prefers the dark.
TEXTS = ("--text", "--muted", "--link")
BACKGROUNDS = ("--page", "--soft")
LEAST_CONTRAST = 4.5  # of text of ordinary size; large text needs less
_ROOT = re.compile(r":root\s*\{([^}]*)\}")
_VARIABLE = re.compile(r"(--[\w-]+)\s*:\s*([^;]+);")
_PLAIN_COLOUR = re.compile(r"(?<![\w-])color\s*:\s*(#\w+|rgba?\(|hsla?\()")
_HEX = re.compile(r"#[0-9a-fA-F]{6}")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


def check_html(path: Path) -> None:
    """Check the HTML page at `path`: language, title, references, links, images, headings, tables,
    identifiers, and that it is all in one file.

    Raises InputError with the first problem, its line in the page, and how many more there are.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 ({error.reason})") from error
    page = BeautifulSoup(text, "html.parser")
    problems = [*_whole_page(page), *_elements(page), *_texts(page)]
    if problems:
        line, problem = min(problems)
        more = len(problems) - 1
        tail = f" (and {more} more problem{'s' if more > 1 else ''})" if more else ""
        raise InputError(f"{path.name}:{line}: {problem}{tail}")


def check_pdf(path: Path) -> None:
    """Check that the file at `path` is a whole PDF."""
    content = path.read_bytes()
    if not content.startswith(b"%PDF-") or b"%%EOF" not in content[-1024:]:
        raise InputError(f"{path.name} is not a whole PDF: render it again")


def _whole_page(page: BeautifulSoup) -> Iterator[tuple[int, str]]:
    if not (page.title and page.title.get_text(strip=True)):
        yield 1, "the page has no <title>"
    if not (page.html and _attribute(page.html, "lang")):
        yield 1, "the page does not name its language: set lang"
    headings = page.find_all(re.compile("^h[1-6]$"))
    if not headings:
        yield 1, "the page has no heading: give the document a title"
    before = 0
    for heading in headings:
        level = int(heading.name[1])
        if level > before + 1:
            yield _line(heading), f"heading <h{level}> follows level {before}: a level is skipped"
        before = level


def _elements(page: BeautifulSoup) -> Iterator[tuple[int, str]]:
    """Check identifiers, links, tables, images, and what an element loads."""
    names: dict[str, int] = {}
    for element in page.find_all(id=True):
        name = _attribute(element, "id")
        if name in names and not element.find_parent("math"):
            yield _line(element), f"identifier {name} is used twice (first on line {names[name]})"
        names.setdefault(name, _line(element))
    for link in page.find_all(["a", "area"], href=True):
        href = _attribute(link, "href")
        if href.startswith("#"):
            # In slides an address is a path: #/name.
            target = unquote(href[1:]).removeprefix("/")
            if href != "#" and target not in names:
                yield _line(link), f"link to #{target}, which is not in the page"
        elif not href.startswith(_EXTERNAL):
            problem = f"link to {href or 'nothing'}: a single file can link to itself or the web"
            yield _line(link), problem
    for element in page.find_all(_LOADING):
        source = str(element.get("src") or element.get("data") or element.get("href") or "")
        if source and not source.startswith("data:"):
            problem = f"<{element.name}> loads {source}: the page must contain all that it shows"
            yield _line(element), problem
    for table in page.find_all("table"):
        headers = [th for th in table.find_all("th") if th.find_parent("table") is table]
        if not any(th.get_text(strip=True) for th in headers):
            yield _line(table), "table without headers: name its columns"
    for image in page.find_all("img"):
        # Slides load their images when they are near: data-src.
        alt = _attribute(image, "alt")
        source = _attribute(image, "src") or _attribute(image, "data-src")
        if not alt.strip():
            yield _line(image), f"image without alt text: {source[:60]}"
        if broken := broken_image(source):
            yield _line(image), f"image ({alt[:40]}) {broken}"


def _texts(page: BeautifulSoup) -> Iterator[tuple[int, str]]:
    """Look for what a renderer leaves where it could not resolve something."""
    for text in page.find_all(string=True):
        # Scripts, styles and comments are strings of other types; formulas are kept as annotations.
        found = _LEFTOVERS.search(text) if type(text) is NavigableString else None
        if found and not text.find_parent("annotation"):
            start = max(0, found.start() - 20)
            context = " ".join(text[start : start + 70].split())
            yield _line(text.parent), f"unresolved reference or shortcode: {context}"
    for key in page.select("span.citation strong"):
        if (shown := key.get_text().strip()).endswith("?"):
            yield _line(key), f"unresolved citation {shown[:-1]}: add it to the bibliography"


def _line(element: Tag | None) -> int:
    return (element and element.sourceline) or 1


def _attribute(element: Tag, name: str) -> str:
    return str(element.get(name) or "")


def broken_image(source: str) -> str | None:
    """Say what is wrong with the image whose `src` is `source`; None if nothing is."""
    if not source.startswith("data:image/"):
        return f"is not embedded: {source[:60] or 'no source'}"
    head, _, body = source.removeprefix("data:").partition(",")
    kind, *options = head.split(";")
    try:
        content = base64.b64decode(body) if "base64" in options else unquote_to_bytes(body)
        if not content:
            return "is empty"
        if kind == "image/svg+xml":
            return _illegible(ElementTree.fromstring(content))
        if kind in _SIGNATURES and not content.startswith(_SIGNATURES[kind]):
            return f"is not {kind}"
    except (binascii.Error, ElementTree.ParseError) as error:
        return f"does not load: {error}"
    return None


def _illegible(drawing: ElementTree.Element) -> str | None:
    for element in drawing.iter():
        tag = str(element.tag).rpartition("}")[2]
        words = "".join(element.itertext()).strip() if tag == "text" else ""
        if "\ufffd" in words:
            return f"has a character that was lost: {words[:40]}"
        # Some font of the text or of the whole drawing must be on every machine.
        fonts = (e.get("font-family", "") + e.get("style", "") for e in (*element.iter(), drawing))
        if words and not _GENERIC_FONT.search(" ".join(fonts)):
            return f"has text in a font that may be missing: {words[:40]}; draw text as paths"
        link = element.get("{http://www.w3.org/1999/xlink}href") or element.get("href") or ""
        if tag == "use" and _NO_GLYPH.fullmatch(link):
            return "has a character that its font lacks: choose another character or font"
        if link and not link.startswith(("#", "data:")) and tag in ("image", "use"):
            return f"loads {link[:60]}: a figure must contain all that it shows"
    return None


def check_contrast(sheet: Path, *, shown: Path) -> None:
    """Check the colours of the style sheet at `sheet`, called `shown` in messages.

    Every text colour is held against every background of the same mode: light, dark and print.
    Raises InputError if one stands out too little or is set outside of `:root`, or if a colour of
    the page is missing or not written as six hexadecimal digits.
    """
    text = blank_out(_COMMENT, sheet.read_text(encoding="utf-8"))

    def where(match: re.Match[str]) -> str:
        return f"{shown}:{text.count(chr(10), 0, match.start()) + 1}"

    if plain := _PLAIN_COLOUR.search(text):
        raise InputError(f"{where(plain)}: name the text colour as a variable of :root")
    first: dict[str, str] = {}
    for block in _ROOT.finditer(text):
        colours = first | dict(_VARIABLE.findall(block[1]))
        first = first or colours
        for name in TEXTS + BACKGROUNDS:
            if not _HEX.fullmatch(colours.get(name, "")):
                raise InputError(f"{where(block)}: write {name} as a colour of the form #1c1e21")
        for front, back in product(TEXTS, BACKGROUNDS):
            if (found := contrast(colours[front], colours[back])) < LEAST_CONTRAST:
                raise InputError(
                    f"{where(block)}: {front} {colours[front]} on {back} {colours[back]} has a "
                    f"contrast of {found:.2f}, less than {LEAST_CONTRAST}: move them apart"
                )
    if not first:
        raise InputError(f"{shown}: no :root with the colours {', '.join(TEXTS + BACKGROUNDS)}")


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours written as #rrggbb, from 1 to 21."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    channels = (int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5))
    red, green, blue = (
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
