"""Pages of a MediaWiki export: read as a stream, without entities, and without markup.

An export has all revisions of a page, or its latest one alone. The day of creation is
that of the first revision. Where the export lacks the first revision, a page is known
to have existed before its oldest revision there, and nothing else is known.
"""

import html
import re
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any
from xml.parsers import expat

from contamination.errors import InputError
from contamination.testsets.pages import Page, parse_day

LATER_REVISION = "the export lacks the first revision, so the day of creation is not known"
ARTICLES = "0"  # the namespace of articles
COLLECTED = ("title", "ns", "timestamp", "text", "parentid")
MOST_NESTED = 30  # templates, tables and links within each other

# What is removed whole: comments, and elements that hold no prose.
NO_PROSE = re.compile(
    r"<!--.*?-->|<ref[^<>]*/>"
    r"|<(ref|gallery|math|timeline|syntaxhighlight|score|imagemap)\b[^<>]*>.*?</\1\s*>",
    re.DOTALL | re.IGNORECASE,
)
INNERMOST = (re.compile(r"\{\{[^{}]*\}\}"), re.compile(r"\{\|[^{}]*\|\}"))
LINK = re.compile(r"\[\[([^\[\]]*)\]\]")
NO_LINK = re.compile(r"\s*(file|image|category)\s*:", re.IGNORECASE)
ADDRESS = re.compile(r"\[(?:https?:)?//[^\s\]]+ ?([^\]]*)\]")
HEADING = re.compile(r"^=[^\n]*=[ \t]*$", re.MULTILINE)
REST = re.compile(r"<[^<>]*>|'{2,}|^[*#:;]+", re.MULTILINE)


def read_export(path: Path, cutoff: date) -> list[Page]:
    """Read the articles of an export, in the order of the file; redirects are left out.

    The text of a page that existed before `cutoff` is that of its last revision before
    then: what a model may have read. That of any other page is its latest one.

    Raises
    ------
    InputError
        If the file is no MediaWiki export, declares a document type or entities, or has
        a page without revisions or a time stamp that is none.
    """
    reader = _Reader(path, cutoff)
    try:
        with path.open("rb") as file:
            reader.parser.ParseFile(file)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise InputError(
            f"{path}, line {error.lineno}: not XML ({reason}); export the pages again"
        ) from error
    return reader.pages


def plain_text(wikitext: str) -> str:
    """Return the prose of a page: without templates, tables, notes, headings and other markup.

    Examples
    --------
    >>> plain_text("{{Infobox|a={{b}}}} The '''Battle''' of [[Ayn|Ein]].<ref>c</ref>")
    'The Battle of Ein.'
    """
    text = NO_PROSE.sub("", wikitext)
    for pattern in INNERMOST:
        text = _without(pattern, text)
    for _ in range(MOST_NESTED):
        text, replaced = LINK.subn(_words_of_link, text)
        if not replaced:
            break
    text = ADDRESS.sub(r"\1", text)
    text = HEADING.sub("", text)
    text = REST.sub("", text)
    return " ".join(html.unescape(text).split())


def _without(pattern: re.Pattern[str], text: str) -> str:
    """Remove what a pattern matches, from the innermost to the outermost."""
    for _ in range(MOST_NESTED):
        text, removed = pattern.subn("", text)
        if not removed:
            break
    return text


def _words_of_link(link: re.Match[str]) -> str:
    """Return the words that a link shows; pictures and categories show none."""
    if NO_LINK.match(link[1]):
        return ""
    return link[1].rpartition("|")[2]


@dataclass
class _Revisions:
    """The revisions of one page, of which two texts are kept."""

    line: int  # at which the page starts in the file
    title: str = ""
    is_article: bool = True  # it is in the namespace of articles, and no redirect
    # Revisions are ordered by their time stamps, whatever their order in the export.
    first: tuple[date, str] = (date.max, "")  # day and time stamp of the oldest revision
    has_earlier: bool = False  # that revision has a parent, which the export lacks
    before: tuple[str, str] = ("", "")  # time stamp and text of the last before the cutoff
    latest: tuple[str, str] = ("", "")  # time stamp and text of the last revision


@dataclass
class _Reader:
    """Takes the elements of an export as the parser meets them."""

    path: Path
    cutoff: date
    pages: list[Page] = field(default_factory=list)
    page: _Revisions | None = None
    revision: dict[str, str] = field(default_factory=dict)
    words: list[str] | None = None  # of the element that is collected
    depth: int = 0

    def __post_init__(self) -> None:
        """Make the parser, which refuses every document type, and with it every entity."""
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.collect
        self.parser.StartDoctypeDeclHandler = self.refuse

    def refuse(self, *_: Any) -> None:
        """Raise InputError: entities of a document type can grow without bound."""
        raise InputError(
            f"{self.path}, line {self.parser.CurrentLineNumber}: declares a document type, which "
            "no MediaWiki export has; remove it"
        )

    def start(self, name: str, _: dict[str, str]) -> None:
        """Open an element."""
        if self.depth == 0 and name != "mediawiki":
            raise InputError(f"{self.path}: the root is <{name}>; give a MediaWiki export")
        self.depth += 1
        if name == "page":
            self.page = _Revisions(line=self.parser.CurrentLineNumber)
        elif name == "revision":
            self.revision = {}
        elif name == "redirect" and self.page is not None:
            self.page.is_article = False
        elif name in COLLECTED:
            self.words = []

    def collect(self, text: str) -> None:
        """Keep the text of an element that is collected."""
        if self.words is not None:
            self.words.append(text)

    def end(self, name: str) -> None:
        """Close an element."""
        self.depth -= 1
        text = "".join(self.words or ())
        self.words = None
        if self.page is None:
            return
        if name == "title":
            self.page.title = text
        elif name == "ns":
            self.page.is_article = self.page.is_article and text == ARTICLES
        elif name in COLLECTED:
            self.revision[name] = text
        elif name == "revision":
            self.take_revision(self.page)
        elif name == "page":
            self.take_page(self.page)
            self.page = None

    def take_revision(self, page: _Revisions) -> None:
        """Add the revision to its page."""
        where = f"{self.path}, line {self.parser.CurrentLineNumber}, page {page.title!r}"
        stamp = self.revision.get("timestamp", "")
        day = parse_day(stamp, where)
        text = self.revision.get("text", "")
        if (day, stamp) < page.first:
            page.first = (day, stamp)
            page.has_earlier = self.revision.get("parentid", "0") != "0"
        if day < self.cutoff and stamp >= page.before[0]:
            page.before = (stamp, text)
        if stamp >= page.latest[0]:
            page.latest = (stamp, text)

    def take_page(self, page: _Revisions) -> None:
        """Add the page, if it is an article."""
        if not page.is_article:
            return
        created, _ = page.first
        if created == date.max:
            raise InputError(
                f"{self.path}, line {page.line}, page {page.title!r}: no revision, and so no date; "
                "export the pages with their revisions"
            )
        existed = created < self.cutoff
        is_unknown = page.has_earlier and not existed
        _, text = page.before if existed else page.latest
        self.pages.append(
            Page(
                title=page.title,
                text=plain_text(text),
                created=created,
                unknown=LATER_REVISION if is_unknown else "",
            )
        )
