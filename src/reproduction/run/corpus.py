"""Documents: docstrings of packages or files of the data directory, and readers.

Oren (section 4.1) trains on Wikitext and injects canaries. Without a download there is
other English: the docstrings of the scientific stack that the lock file pins. They are
read from the sources with `ast`, never imported, so that one lock gives one corpus,
byte for byte.

Where only a part of the documents becomes the corpus, the rest is text of the same
sources that no model reads. The corpus stage keeps documents of both sides, members and
non-members: those whose first paragraph stands in no other document that was found.
This is decided before chance divides them, so that but for the training the two sides
are alike; near-copies of a document that was read are in neither.
"""

import ast
import gzip
import inspect
import json
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TypeVar

from contamination.errors import InputError
from contamination.files import write_text
from contamination.testsets.records import articles, read_text
from contamination.testsets.sources import data_file

T = TypeVar("T")
Document = tuple[str, str]  # (source: package or file, text)
Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef

# Written at build time or different from wheel to wheel, so not "same lock, same bytes".
GENERATED = re.compile(
    r"(^|/)(tests?|testing|_vendor|_pytest|externals?)/|(^|/)(_?version|__config__|_sysinfo)\.py$",
)
DOCUMENTS = "documents.jsonl"  # the whole corpus
MEMBERS = "members.jsonl"
NON_MEMBERS = "non_members.jsonl"
KEPT = 600  # documents of a source, on either side
MIN_CHARACTERS = 80
# share of letters and spaces below which a docstring is a table or a listing
MIN_LETTERS = 0.6


@dataclass(frozen=True)
class Docstring:
    """One docstring and where it was found."""

    package: str
    version: str  # as pinned
    path: str  # file inside the distribution, POSIX style
    name: str  # dotted, inside the file; empty for the module's own docstring
    signature: str  # names of the arguments, for functions and methods; else empty
    text: str  # dedented, with trailing blanks removed


def harvest(package: str) -> list[Docstring]:
    """Return all docstrings of an installed distribution, by file path and line.

    Raises InputError if it is not installed.
    """
    try:
        dist = distribution(package)
    except PackageNotFoundError as error:
        raise InputError(
            f"package {package!r} is not installed: run `make setup`, or take it out of the "
            "profile",
        ) from error
    files = {f.as_posix(): Path(str(f.locate())) for f in dist.files or [] if f.suffix == ".py"}
    installed = dist.version  # which reads the metadata of the distribution each time
    docstrings = []
    for path in sorted(files):
        # Python 3.11 lists files that were removed after the installation, 3.12 does
        # not.
        if GENERATED.search(path) or not files[path].is_file():
            continue
        # a template is not Python
        with warnings.catch_warnings(), suppress(SyntaxError):
            warnings.simplefilter("ignore")  # invalid escapes in other people's strings
            tree = ast.parse(files[path].read_text(encoding="utf-8", errors="replace"))
            for name, signature, text in _docstrings(tree):
                docstrings.append(
                    Docstring(
                        package=package,
                        version=installed,
                        path=path,
                        name=name,
                        signature=signature,
                        text=text,
                    ),
                )
    return docstrings


def _docstrings(
    node: ast.Module | Definition,
    name: str = "",
) -> Iterator[tuple[str, str, str]]:
    """Yield name, signature and docstring of a node and of all that it defines."""
    text = ast.get_docstring(node, clean=False)
    if text is not None:
        signature = ""
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            signature = _signature(node.args)
        lines = [line.rstrip() for line in inspect.cleandoc(text).splitlines()]
        yield name, signature, re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Definition):
            yield from _docstrings(child, f"{name}.{child.name}".lstrip("."))


def _signature(arguments: ast.arguments) -> str:
    names = [argument.arg for argument in arguments.posonlyargs]
    names += [argument.arg for argument in arguments.args]
    if arguments.vararg:
        names.append(f"*{arguments.vararg.arg}")
    names += [argument.arg for argument in arguments.kwonlyargs]
    if arguments.kwarg:
        names.append(f"**{arguments.kwarg.arg}")
    shown = [name for name in names if name not in ("self", "cls")]
    return f"({', '.join(shown)})"


def is_prose(text: str) -> bool:
    """Return whether a docstring is long enough, and of words, to be trained on."""
    if len(text) < MIN_CHARACTERS:
        return False
    letters = sum(character.isalpha() or character == " " for character in text)
    return letters >= MIN_LETTERS * len(text)


def build_corpus(packages: Iterable[str]) -> list[Docstring]:
    """Return the prose docstrings of the packages in this order, each text once."""
    by_text: dict[str, Docstring] = {}
    for package in packages:
        for docstring in harvest(package):
            if is_prose(docstring.text):
                normalised = " ".join(docstring.text.lower().split())
                by_text.setdefault(normalised, docstring)
    return list(by_text.values())


def read_file(name: str) -> Iterator[Document]:
    """Yield the documents of a file: `text` of a .jsonl, else WikiText's articles."""
    path = data_file(name)
    if path.suffix == ".jsonl":
        return read_documents(path, name)
    return ((name, article) for article in articles(read_text(path)))


def read_documents(path: Path, source: str = "") -> Iterator[Document]:
    """Yield (source, text) of every line of a .jsonl or .jsonl.gz: its `text`, stripped.

    Files of the corpus stage name the source in every line. Raises InputError, which
    names the line, for one without text.
    """
    open_file = gzip.open if path.suffix == ".gz" else open
    with open_file(path, "rt", encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            try:
                record = json.loads(line)
                yield source or record["source"], record["text"].strip()
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                message = f'{path}, line {number}: write {{"text": "..."}}, one object a line'
                raise InputError(message) from error


def write_comparable(
    read: Sequence[Document],
    unread: Sequence[Document],
    corpus: Path,
) -> None:
    """Write members and non-members: the first `KEPT` documents of each source.

    Left out are documents whose first paragraph stands in another one, on either side.

    Parameters
    ----------
    read
        The documents of the corpus.
    unread
        All other documents that were found, in random order.
    corpus
        The folder that gets the two files.
    """
    times = Counter(first_paragraph(text) for _, text in (*read, *unread))
    for name, documents in ((MEMBERS, read), (NON_MEMBERS, unread)):
        written: Counter[str] = Counter()
        lines = []
        for source, text in documents:
            if times[first_paragraph(text)] == 1 and written[source] < KEPT:
                written[source] += 1
                lines.append(document_line(source, text))
        write_text(corpus / name, "".join(lines))


def is_divided(corpus: Path) -> bool:
    """Return whether members and non-members were kept."""
    return all((corpus / name).is_file() for name in (MEMBERS, NON_MEMBERS))


def members(corpus: Path) -> Iterator[Document]:
    """Yield documents that the models read: those kept, else all."""
    name = MEMBERS if is_divided(corpus) else DOCUMENTS
    return read_documents(corpus / name)


def non_members(corpus: Path) -> Iterator[Document]:
    """Yield documents that no model reads; none where the corpus was taken whole."""
    if not is_divided(corpus):
        return iter(())
    return read_documents(corpus / NON_MEMBERS)


def sample_by_source(
    documents: Iterable[Document],
    cut: Callable[[str], T | None],
    *,
    most: int | None = None,
    sources: int | None = None,
) -> dict[str, list[T]]:
    """Return pieces of the first documents of each source.

    Reading ends when enough sources are full, since a corpus may be larger than memory.

    Parameters
    ----------
    documents
        Read in their order.
    cut
        Takes the text of a document and returns the piece, or None to leave the
        document out.
    most
        Pieces of a source; None for all.
    sources
        Number of sources with `most` pieces after which reading ends; None to read all.
    """
    pieces: dict[str, list[T]] = {}
    full = 0
    for source, text in documents:
        own = pieces.get(source, [])
        if len(own) == most:
            continue
        piece = cut(text)
        if piece is None:
            continue
        pieces.setdefault(source, own).append(piece)
        if len(own) == most:
            full += 1
        if full == sources:
            break
    return pieces


def document_line(source: str, text: str) -> str:
    """Return a line of a file that `read_documents` reads."""
    return json.dumps({"source": source, "text": text}, ensure_ascii=False) + "\n"


def first_paragraph(text: str) -> str:
    """Return the text up to the first empty line, in lower case and with single blanks."""
    return " ".join(text.partition("\n\n")[0].lower().split())
