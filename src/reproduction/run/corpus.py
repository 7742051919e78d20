"""Training documents: docstrings of the pinned packages, or files of the data directory.

Oren (section 4.1) trains on Wikitext and injects canaries. Without a download there is other
English: the docstrings of the scientific stack that the lock file pins. They are read from the
sources with `ast`, never imported, so that one lock gives one corpus, byte for byte.
"""

import ast
import inspect
import json
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from contamination.errors import InputError
from contamination.testsets.records import articles, read_text
from contamination.testsets.sources import data_file

Document = tuple[str, str]  # (source: package or file, text)
Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef

# Written at build time or different from wheel to wheel, so not "same lock, same bytes".
GENERATED = re.compile(
    r"(^|/)(tests?|testing|_vendor|_pytest|externals?)/|(^|/)(_?version|__config__|_sysinfo)\.py$"
)
MIN_CHARACTERS = 80
MIN_LETTERS = 0.6  # share of letters and spaces below which a docstring is a table or a listing


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
    """Return all docstrings of an installed distribution, in the order of file path and line.

    Raises InputError if it is not installed.
    """
    try:
        dist = distribution(package)
    except PackageNotFoundError as error:
        raise InputError(
            f"package {package!r} is not installed: run `make setup`, or take it out of the profile"
        ) from error
    return [
        Docstring(package, dist.version, path, name, signature, text)
        for path, source in _sources(dist)
        for name, signature, text in _docstrings(_parse(source, path))
    ]


def _sources(dist: Distribution) -> Iterator[tuple[str, str]]:
    """Yield (path inside the distribution, source) of every Python file, sorted by path."""
    files = {f.as_posix(): Path(str(f.locate())) for f in dist.files or [] if f.suffix == ".py"}
    for path in sorted(files):
        # Python 3.11 lists files that were removed after the installation, 3.12 does not.
        if not GENERATED.search(path) and files[path].is_file():
            yield path, files[path].read_text(encoding="utf-8", errors="replace")


def _parse(source: str, path: str) -> ast.Module:
    """Parse a module; a template, which is not Python, counts as an empty module."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes in other people's strings
        try:
            return ast.parse(source, filename=path)
        except SyntaxError:
            return ast.Module(body=[], type_ignores=[])


def _docstrings(node: ast.Module | Definition, name: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield (dotted name, signature, cleaned docstring) of a node and all that it defines."""
    text = ast.get_docstring(node, clean=False)
    if text is not None:
        signature = "" if isinstance(node, ast.Module | ast.ClassDef) else _signature(node)
        yield name, signature, _clean(text)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Definition):
            yield from _docstrings(child, f"{name}.{child.name}".lstrip("."))


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    arguments = node.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    names += [f"*{arguments.vararg.arg}"] if arguments.vararg else []
    names += [a.arg for a in arguments.kwonlyargs]
    names += [f"**{arguments.kwarg.arg}"] if arguments.kwarg else []
    return f"({', '.join(n for n in names if n not in ('self', 'cls'))})"


def _clean(text: str) -> str:
    lines = (line.rstrip() for line in inspect.cleandoc(text).splitlines())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def is_prose(text: str) -> bool:
    """Whether a docstring is long enough, and made enough of words, to be a training document."""
    letters = sum(c.isalpha() or c == " " for c in text)
    return len(text) >= MIN_CHARACTERS and letters >= MIN_LETTERS * len(text)


def build_corpus(packages: Iterable[str]) -> list[Docstring]:
    """Prose docstrings of the packages in the order given, each distinct text kept once."""
    seen: set[str] = set()
    documents = []
    for package in packages:
        for document in harvest(package):
            key = " ".join(document.text.lower().split())
            if is_prose(document.text) and key not in seen:
                seen.add(key)
                documents.append(document)
    return documents


def read_file(name: str) -> Iterator[Document]:
    """Yield the documents of a file: the `text` fields of a .jsonl, else WikiText's articles."""
    path = data_file(name)
    if path.suffix == ".jsonl":
        with path.open(encoding="utf-8") as file:
            yield from read_texts(file, name, path)
    else:
        for article in articles(read_text(path)):
            yield name, article


def read_texts(lines: Iterable[str], source: str, path: Path) -> Iterator[Document]:
    """Yield the `text` field of every line; InputError names the line of `path` without one."""
    for number, line in enumerate(lines, start=1):
        try:
            yield source, json.loads(line)["text"].strip()
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f'{path}, line {number}: write {{"text": "..."}}, one object a line'
            ) from error
