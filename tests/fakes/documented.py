"""The commands and the Python of the README and of the documentation, taken out of their fences."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

from fakes.data_fixtures import ROOT

DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "data" / "README.md",
    # Pages of notebooks are made when the site is built.
    *sorted(p for p in (ROOT / "docs").rglob("*.md") if "notebooks" not in p.parts),
]
INLINE = re.compile(r"(make|(\.venv/bin/)?contamination) \S.*")


@dataclass(frozen=True)
class Block:
    """What stands between two fences: its language, text and the line above."""

    document: Path
    language: str
    text: str
    line: int

    @property
    def where(self) -> str:
        return f"{self.document.relative_to(ROOT).as_posix()}:{self.line}"


def blocks(document: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a document in their order."""
    for token in MarkdownIt().parse(document.read_text(encoding="utf-8")):
        if token.type == "fence":
            assert token.map is not None
            yield Block(document, token.info.strip(), token.content, token.map[0] + 1)


def commands(block: Block) -> list[str]:
    """Return the commands of a block of shell, one a line, without comments and continuations."""
    lines = block.text.replace("\\\n", " ").splitlines()
    bare = (re.sub(r"(^|\s)#\s.*", "", line) for line in lines)
    return [" ".join(line.split()) for line in bare if line.strip()]


def inline(document: Path) -> list[str]:
    """Return the commands between backticks in the text of a document."""
    tables = MarkdownIt().enable("table")
    found = []
    for token in tables.parse(document.read_text(encoding="utf-8")):
        children = token.children or []
        found += [child.content for child in children if child.type == "code_inline"]
    return [text for text in found if INLINE.fullmatch(text)]


def words(command: str) -> tuple[dict[str, str], list[str]]:
    """Split a command into the variables set before it and its words."""
    variables, rest = {}, shlex.split(command)
    while rest and re.match(r"[A-Z_]+=", rest[0]):
        name, _, value = rest.pop(0).partition("=")
        variables[name] = value
    return variables, rest
