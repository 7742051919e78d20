"""Checks that a rendered page is whole before it replaces the last one."""

import re
from collections.abc import Iterator
from pathlib import Path

from bs4 import BeautifulSoup

from contamination.errors import InputError

_LEFT = re.compile(r"\{\{<|\?@|\?var:|\$\$|\ufffd")  # what a renderer leaves where it fails
_LEFT_IN_TYPST = re.compile(r"\{\{<|\?\\?@|\?var:|\\\$\\\$|\ufffd")  # the same, escaped


def check_html(path: Path) -> None:
    """Check that a page is whole: links resolved, images inside and described.

    Raises InputError with the first problem and how many more there are.
    """
    page = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
    problems = [*_unresolved(page), *_dead_links(page), *_incomplete_images(page)]
    if problems:
        raise InputError(f"{path.name}: {problems[0]} (problem 1 of {len(problems)})")


def check_typst(path: Path) -> None:
    """Check the source of a PDF for marks that a renderer leaves; InputError with the first one.

    A renderer that keeps no source is not checked.
    """
    if not path.is_file():
        return
    text = path.read_text(encoding="utf-8")
    mark = _LEFT_IN_TYPST.search(text)
    if mark is not None:
        around = text[max(0, mark.start() - 20) : mark.end() + 40]
        raise InputError(f"{path.name}: unresolved: {' '.join(around.split())}")


def _unresolved(page: BeautifulSoup) -> Iterator[str]:
    """Yield a problem for each mark that a renderer leaves where it fails."""
    text = page.get_text()  # without scripts
    for mark in _LEFT.finditer(text):
        around = text[max(0, mark.start() - 20) : mark.end() + 40]
        yield f"unresolved: {' '.join(around.split())}"


def _dead_links(page: BeautifulSoup) -> Iterator[str]:
    """Yield a problem for each link to a place that the page does not have."""
    links = {str(link["href"]) for link in page.find_all("a", href=re.compile("^#."))}
    places = {str(tag["id"]) for tag in page.find_all(id=True)}
    for link in sorted(links):
        if link.removeprefix("#").removeprefix("/") not in places:
            yield f"link to {link}: nothing has that name"


def _incomplete_images(page: BeautifulSoup) -> Iterator[str]:
    """Yield a problem for each image that is elsewhere, or that no text describes."""
    for image in page.find_all("img"):
        source = str(image.get("src") or image.get("data-src"))
        if not source.startswith("data:image/"):
            yield f"image {source[:60]} is not inside the page"
        if not image.get("alt"):
            yield f"image without alt text: {source[:60]}"
