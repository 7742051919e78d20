"""The document before rendering: staged beside its results, expanded, its references checked.

The document says ``tables/canaries.md`` and ``figures/duplication_power.svg`` whatever the profile
of the run: the stage is the directory where these names meet the files of one run. Renderers turn
what they cannot resolve into a warning and a question mark in the page. Here it is an error that
names the line, raised before a renderer starts and the same under each of them.
"""

import re
import shutil
from bisect import bisect_right
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from contamination.errors import InputError

VARIABLES = "_variables.yml"
# What is staged; links to results and pages that Quarto left beside the sources stay behind.
_SOURCES = (".qmd", ".yml", ".bib", ".css", ".typ")
_RESULTS = {"tables": (".md",), "figures": (".svg", ".png")}

NUMBERED = ("fig", "tbl", "sec", "eq")
# Prefixes that Quarto numbers and the filter for pandoc does not.
_FOREIGN = re.compile("lst|thm|lem|cor|prp|cnj|def|exm|exr|sol|rem|alg|nte|tip|wrn|imp|cau")

_SHORTCODE = re.compile(r"\{\{<\s*(.*?)\s*>\}\}")
_KEY = r"[A-Za-z0-9_](?:\w|[:.#$%&+?<>~/-](?=\w))*"
_REFERENCE = re.compile(rf"(?<![\w\\@])@\{{?({_KEY})")
_FIGURE = re.compile(
    r"!\[(?P<caption>(?:[^\[\]]|\[[^\[\]]*\])*)\]\((?P<path>[^()\s]*)\)(?P<attributes>\{[^{}]*\})?"
)
_IDENTIFIER = re.compile(r"\{[^{}\n]*?#([A-Za-z][\w:.-]*)")
_LOCAL_LINK = re.compile(r"\]\(#([^()\s]+)\)")
_HIDDEN = [
    re.compile(r"\A---\n.*?\n---[ \t]*$", re.DOTALL | re.MULTILINE),  # front matter
    re.compile(r"^(```+|~~~+)[^\n]*\n.*?^\1[ \t]*$", re.DOTALL | re.MULTILINE),
    re.compile(r"<!--.*?-->", re.DOTALL),
    re.compile(r"(?<![`\\])(`+)(?!`).+?(?<!`)\1(?!`)"),
    re.compile(r"(?<!\\)\$\$.+?\$\$", re.DOTALL),
    re.compile(r"(?<![\\$])\$(?=\S)[^$\n]*?(?<=\S)\$(?![\d$])"),
]


@dataclass(frozen=True)
class Stage:
    """The staging directory and where its files came from."""

    root: Path
    paper: Path
    results: Path

    @classmethod
    def fill(cls, paper: Path, results: Path, root: Path) -> "Stage":
        """Copy the sources in `paper` and the results that a document can use to `root`."""
        if not paper.is_dir():
            raise InputError(f"{paper} is not a directory: give the one that holds report.qmd")
        stage = cls(root, paper, results)
        variables = stage.origin(VARIABLES)
        if not variables.is_file():
            raise InputError(f"{variables} is missing: run `make reproduce` for this profile first")
        _copy_files(paper, root, _SOURCES)
        shutil.copyfile(variables, root / VARIABLES)
        for folder, suffixes in _RESULTS.items():
            (root / folder).mkdir()
            if (results / folder).is_dir():
                _copy_files(results / folder, root / folder, suffixes)
        return stage

    def origin(self, relative: str) -> Path:
        """Return the file that `relative`, a path below the stage, is or would be a copy of."""
        if relative == VARIABLES:
            return self.results / "variables.yml"
        if relative.partition("/")[0] in _RESULTS:
            return self.results / relative
        return self.paper / relative

    def holds(self, name: str) -> bool:
        """Whether `name`, a path below the stage, is a file there."""
        return not name.startswith(("/", "..")) and (self.root / name).is_file()

    def read(self, name: str) -> str:
        """Read the staged text file `name`; `InputError` names its origin."""
        shown = self.origin(name)
        try:
            return (self.root / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise InputError(f"{shown} is missing: restore it from the repository") from None
        except UnicodeDecodeError as error:
            raise InputError(f"{shown} is not UTF-8 ({error.reason}): save it as UTF-8") from error

    def settings(self) -> dict[str, Any]:
        """Read the project file `_quarto.yml`."""
        return _mapping(self.read("_quarto.yml"), self.origin("_quarto.yml"))

    def front_matter(self, name: str) -> dict[str, Any]:
        """Read the mapping between the dashes at the top of the document `name`."""
        found = re.match(r"---\n(.*?)\n---[ \t]*\n", self.read(name), re.DOTALL)
        return _mapping(found[1], self.origin(name)) if found else {}

    def variables(self) -> dict[str, str]:
        """Read the variables of the run as one flat mapping from dotted names to text."""
        shown = self.origin(VARIABLES)
        return dict(_flatten(_mapping(self.read(VARIABLES), shown), shown, ""))


def _copy_files(source: Path, target: Path, suffixes: tuple[str, ...]) -> None:
    for file in sorted(source.iterdir()):
        if file.suffix in suffixes and file.is_file() and not file.name.startswith("."):
            shutil.copyfile(file, target / file.name)


def _mapping(text: str, shown: Path) -> dict[str, Any]:
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InputError(f"{shown} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(value, dict):
        raise InputError(f"{shown} must be a mapping of names to values")
    return value


def _flatten(mapping: dict[str, Any], shown: Path, prefix: str) -> Iterator[tuple[str, str]]:
    for key, value in mapping.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            yield from _flatten(value, shown, f"{name}.")
        elif not isinstance(value, str) or not value.strip() or "\n" in value.strip():
            # Renderers print unquoted numbers and dates each in their own way.
            raise InputError(
                f"{shown}: variable {name} must be one line of text in quotes, not {value!r}"
            )
        else:
            yield name, value.strip()


@dataclass(frozen=True)
class Document:
    """One document with its shortcodes expanded; `where` names the origin of each line."""

    name: str
    lines: list[str] = field(default_factory=list)
    where: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The whole text, as pandoc is to read it."""
        return "\n".join(self.lines) + "\n"


def read_document(stage: Stage, name: str) -> Document:
    """Expand the shortcodes of the staged document `name` and check all its references."""
    document = Document(name)
    _expand(stage, name, stage.variables(), document, ())
    _check(stage, document)
    return document


def _expand(
    stage: Stage, name: str, variables: dict[str, str], document: Document, parents: tuple[str, ...]
) -> None:
    shown = stage.origin(name)
    if name in parents:
        raise InputError(f"{shown} includes itself: remove the include")
    text = stage.read(name)
    raw, visible = text.rstrip("\n").split("\n"), _mask(text).rstrip("\n").split("\n")
    for number, (line, seen) in enumerate(zip(raw, visible, strict=True), start=1):
        here = f"{shown}:{number}"
        include = re.fullmatch(r"\{\{<\s*include\s+(\S+)\s*>\}\}", line.strip())
        if include and seen.strip():
            target = (PurePosixPath(name).parent / include[1]).as_posix()
            if not stage.holds(target):
                raise InputError(
                    f"{here}: include {include[1]} not found: {stage.origin(target)} does not "
                    "exist; run the notebook that writes it, or correct the path"
                )
            _expand(stage, target, variables, document, (*parents, name))
            continue
        if re.search(r"fig-alt=\"[^\"]*\{\{<", line):
            raise InputError(f"{here}: shortcode in an alt text: describe the figure in words")
        for shortcode in _SHORTCODE.finditer(line):
            if seen[shortcode.start() : shortcode.start() + 3] != "{{<":
                raise InputError(
                    f"{here}: {shortcode[0]} stands in code, in a formula, in a comment or in the "
                    "front matter, where renderers disagree: move it into the text"
                )
        value = partial(_value, variables=variables, here=here, stage=stage)
        expanded = _SHORTCODE.sub(value, line)
        if "{{<" in expanded:
            raise InputError(f"{here}: shortcode without its end: write it whole on one line")
        document.lines.append(expanded)
        document.where.append(here)


def _value(match: re.Match[str], variables: dict[str, str], here: str, stage: Stage) -> str:
    words = match[1].split()
    if words[:1] == ["include"]:
        raise InputError(f"{here}: {match[0]} must stand alone on its line, with one path")
    if len(words) != 2 or words[0] != "var":
        raise InputError(
            f"{here}: unknown shortcode {match[0]}: only include and var are used here"
        )
    if words[1] not in variables:
        raise InputError(
            f"{here}: variable {words[1]} is not in {stage.origin(VARIABLES)}: correct the name, "
            "or run the step that writes it"
        )
    return variables[words[1]]


def blank_out(pattern: re.Pattern[str], text: str) -> str:
    """Replace what matches by blanks; all else keeps its line and column."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def _mask(text: str) -> str:
    """Blank out front matter, code, comments and formulas."""
    for pattern in _HIDDEN:
        text = blank_out(pattern, text)
    return text


def _check(stage: Stage, document: Document) -> None:
    """Check figures, identifiers, links, cross-references and citations, in this order."""
    text, visible = document.text, _mask(document.text)
    starts = [0, *accumulate(len(line) + 1 for line in document.lines)]

    def where(match: re.Match[str]) -> str:
        return document.where[bisect_right(starts, match.start()) - 1]

    for match in _FIGURE.finditer(visible):
        attributes = text[match.start("attributes") : match.end("attributes")]
        if problem := _figure_problem(stage, match["path"], match["caption"], attributes):
            raise InputError(f"{where(match)}: figure {problem}")
    identifiers: dict[str, str] = {}
    for match in _IDENTIFIER.finditer(visible):
        name = match[1]
        if name in identifiers:
            raise InputError(
                f"{where(match)}: identifier {name} is taken by {identifiers[name]}: rename one"
            )
        identifiers[name] = where(match)
    for match in _LOCAL_LINK.finditer(visible):
        if match[1] not in identifiers:
            raise InputError(
                f"{where(match)}: link to #{match[1]}, which nothing in the document is "
                f"named: add {{#{match[1]}}} or correct the link"
            )
    cited = set(_citation_keys(stage))
    for match in _REFERENCE.finditer(visible):
        if problem := _reference_problem(match[1], identifiers, cited):
            raise InputError(f"{where(match)}: {problem}")


def _figure_problem(stage: Stage, path: str, caption: str, attributes: str) -> str | None:
    if not path or not stage.holds(path):
        return (
            f"{path or '(no path)'} not found: {stage.origin(path)} does not exist; run the "
            "notebook that draws it, or correct the path"
        )
    if not re.search(r"\bfig-alt=\"[^\"]*\w[^\"]*\"", attributes):
        return f'{path} has no alt text: add fig-alt="..." that says what it shows'
    if caption.strip() and "#fig-" not in attributes:
        return f"{path} has no label: add {{#fig-...}}"
    return None


def _reference_problem(key: str, identifiers: Container[str], cited: Container[str]) -> str | None:
    kind = key.partition("-")[0] if "-" in key else ""
    if kind in NUMBERED:
        if key in identifiers:
            return None
        return f"cross-reference @{key} points nowhere: define {{#{key}}} or correct it"
    if _FOREIGN.fullmatch(kind):
        numbered = ", ".join(f"{name}-" for name in NUMBERED)
        return (
            f"cross-reference @{key}: only figures, tables, sections and equations are numbered "
            f"here ({numbered})"
        )
    if key not in cited:
        return f"citation @{key} is not in the bibliography: add it, or write \\@ for an at sign"
    return None


def _citation_keys(stage: Stage) -> Iterator[str]:
    names = stage.settings().get("bibliography", [])
    for name in [names] if isinstance(names, str) else names:
        if not stage.holds(name):
            raise InputError(
                f"{stage.origin('_quarto.yml')}: bibliography {name} not found in {stage.paper}"
            )
        yield from re.findall(r"^\s*@\w+\s*\{\s*([^,\s]+)\s*,", stage.read(name), re.MULTILINE)
