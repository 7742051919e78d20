"""The report and the slides: `paper/*.qmd` with the numbers, tables and figures of one run.

The documents run no code. Sources and results are staged side by side, every reference is checked
with file and line, Quarto renders the documents where it is installed and pandoc with typst where
it is not, and every page is checked again before it replaces the previous one.

Pandoc, typst and reveal.js come from wheels. Pandoc reads a document after its shortcodes were
expanded, and `quarto.lua` gives figures, tables, equations and sections the meaning that
Quarto gives them. The options are those of `_quarto.yml` and of the document's front matter, so
that there is one place to change them.
"""

import errno
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata, resources
from pathlib import Path
from typing import Any

import pypandoc
import typst

from contamination.errors import InputError
from contamination.files import read_json, replacing
from reproduction.report.check import check_contrast, check_html, check_pdf
from reproduction.report.source import Document, Stage, read_document

# Pages of every document by their format, in the words of pandoc and Quarto; those of a run on
# released models, whose sections stand in files named after their notebooks.
DOCUMENTS = {
    "report.qmd": {"html": "report.html", "typst": "report.pdf"},
    "slides.qmd": {"revealjs": "slides.html"},
}
RELEASED = {"open.qmd": {"html": "report.html", "typst": "report.pdf"}}
SECTION = re.compile(r"^\{\{< include _(\d\d_\w+)\.qmd >\}\}$", re.MULTILINE)
REHEARSAL = "run.rehearsal"  # variable with what every page has to say, if it is there

# 1.5 is the first Quarto with the div syntax for tables and citeproc in typst output.
OLDEST_QUARTO = (1, 5)

FILTER = Path(__file__).with_name("quarto.lua")
# Options of _quarto.yml that are pandoc's own: in a defaults file, its metadata, or variables of
# its templates; settings of reveal.js, and how pandoc's template calls them; those of Quarto alone.
_OPTIONS = {"citeproc", "css", "embed-resources", "html-math-method", "include-in-header"}
_OPTIONS |= {"number-sections", "slide-level", "toc", "toc-depth"}
_METADATA = {"bibliography", "lang", "link-citations"}
_VARIABLES = {"fontsize", "mainfont", "margin", "papersize", "section-numbering", "toc-title"}
_SLIDES = {name: name for name in ("width", "height", "margin", "center", "hash", "transition")}
_SLIDES["slide-number"] = "slideNumber"
_IGNORED = {"anchor-sections", "appendix-style", "auto-stretch", "format"}
_IGNORED |= {"project", "tbl-colwidths", "theme"}

_REVEAL = {"revealjs-url": "reveal", "theme": "none"}
_REVEAL_FILES = ["dist/reset.css", "dist/reveal.css", "dist/reveal.js"]
_REVEAL_FILES += [f"plugin/{name}/{name}.js" for name in ("notes", "search", "zoom")]


def render_report(
    paper: Path,
    results: Path,
    *,
    documents: Mapping[str, Mapping[str, str]] = DOCUMENTS,
    quarto: str | None = None,
) -> list[Path]:
    """Render report.html, report.pdf and slides.html into `results`/report/; return their paths.

    A section of a notebook that the run has not executed is left out. Raises InputError if a result
    is missing, a reference unresolved, a colour hard to read, or if a page fails its checks; what
    was rendered before is as it was.

    Parameters
    ----------
    paper : directory of report.qmd, slides.qmd, _quarto.yml, the bibliography and the styles.
    results : directory that a run filled: tables/, figures/ and variables.yml.
    documents : what to render: `DOCUMENTS`, or `RELEASED` of a run that trained nothing.
    quarto : as in `Quarto.find`.
    """
    found, reason = Quarto.find(quarto)
    renderer = found or Pandoc()
    with tempfile.TemporaryDirectory(prefix="report-") as temporary, out_of_space(Path(temporary)):
        stage = Stage.fill(paper, results, Path(temporary).resolve())
        for sheet in sorted(stage.root.glob("*.css")):
            check_contrast(sheet, shown=stage.origin(sheet.name))
        for name in documents:
            _leave_out_sections(stage, name)
        _mark_rehearsal(stage, documents)
        read = [read_document(stage, name) for name in documents]
        print(f"report: rendering with {renderer.describe()} ({reason})", flush=True)
        rendered = {}
        for document in read:
            for target, page in documents[document.name].items():
                renderer.render(stage, document, target)
                file = (stage.root / document.name).with_suffix(Path(page).suffix)
                rendered[results / "report" / page] = file
        for file in rendered.values():
            if not file.is_file():
                raise InputError(f"the renderer wrote no {file.name}: run it again with its log")
            check_pdf(file) if file.suffix == ".pdf" else check_html(file)
        for published, file in rendered.items():
            with replacing(published) as temporary_page:
                shutil.copyfile(file, temporary_page)
            print(f"report: {published}", flush=True)
        return list(rendered)


def documents_of(results: Path) -> Mapping[str, Mapping[str, str]]:
    """What to render of a run: `RELEASED` if it trained nothing, as its manifest says."""
    return DOCUMENTS if "corpus" in read_json(results / "manifest.json") else RELEASED


def _leave_out_sections(stage: Stage, name: str) -> None:
    """Drop from a staged document the sections of notebooks that were not executed."""
    executed = stage.results / "notebooks"

    def kept(include: re.Match[str]) -> str:
        return include[0] if (executed / f"{include[1]}.ipynb").is_file() else ""

    (stage.root / name).write_text(SECTION.sub(kept, stage.read(name)), encoding="utf-8")


def _mark_rehearsal(stage: Stage, names: Iterable[str]) -> None:
    """Make every page of the staged documents say in red that it is a rehearsal, if it is one."""
    notice = stage.variables().get(REHEARSAL)
    if notice is None:
        return
    for name in names:
        front, body = re.split(r"(?<=\n---)\n", stage.read(name), maxsplit=1)
        text = f"{front}\n\n::: {{.rehearsal}}\n{notice}\n:::\n\n{body}"
        (stage.root / name).write_text(text, encoding="utf-8")
    shown = f'text(fill: rgb("#b3261e"), weight: "bold", {json.dumps(notice)})'
    with (stage.root / "styles.typ").open("a", encoding="utf-8") as styles:
        styles.write(f"#set page(header: align(center, {shown}))\n")


@contextmanager
def out_of_space(where: Path) -> Iterator[None]:
    """Report a full disk under `where` in one line."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise InputError(
                f"no space left on the disk that holds {where}: free some, or point TMPDIR to "
                "another disk, and run the same command again"
            ) from error
        raise


def _run(command: Sequence[str | Path], stage: Stage) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=stage.root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )


@dataclass(frozen=True)
class Quarto:
    """One working Quarto executable."""

    executable: str
    version: str

    def describe(self) -> str:
        """Name the program with its version."""
        return f"Quarto {self.version}"

    @classmethod
    def find(cls, wanted: str | None = None) -> tuple["Quarto | None", str]:
        """Return the Quarto to use, or None, and the reason in words.

        `wanted` names an executable, which must then work; None looks for one beside the Python
        interpreter and on PATH, and passes over one that does not work; the empty string does
        without.
        """
        if wanted == "":
            return None, "Quarto not asked for"
        beside = str(Path(sys.executable).parent)
        executable = shutil.which(wanted or "quarto", path=None if wanted else beside)
        executable = executable or shutil.which(wanted or "quarto")
        if executable is None:
            if wanted:
                raise InputError(f"{wanted}: no such executable; give the path of quarto")
            return None, "no quarto beside the Python interpreter or on PATH"
        version, problem = _version(executable)
        if problem is None:
            return cls(executable, version), f"found {executable}"
        if wanted:
            raise InputError(f"{executable} {problem}: install quarto-cli >= 1.6, or do without")
        return None, f"{executable} {problem}"

    def render(self, stage: Stage, document: Document, target: str) -> None:
        """Render the staged document; Quarto expands its shortcodes by itself."""
        done = _run(
            [self.executable, "render", document.name, "--to", target, "--no-execute"], stage
        )
        if done.returncode != 0:
            sys.stderr.write(done.stdout)
            said = [line for line in done.stdout.splitlines() if "ERROR" in line]
            reason = said[0].strip() if said else f"exit status {done.returncode}"
            raise InputError(
                f"{stage.origin(document.name)}: quarto render --to {target} failed "
                f"({reason}): see its output above, or render without Quarto"
            )
        if re.search("warn", done.stdout, re.IGNORECASE):
            sys.stderr.write(done.stdout)


def _version(executable: str) -> tuple[str, str | None]:
    """Return the version and what is wrong with the executable, if anything."""
    try:
        done = subprocess.run(
            [executable, "--version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", f"does not run ({error})"
    version = done.stdout.strip()
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if done.returncode != 0 or numbers is None:
        return "", f"does not print its version (exit status {done.returncode})"
    if (int(numbers[1]), int(numbers[2])) < OLDEST_QUARTO:
        return version, f"is version {version}, older than 1.5"
    return version, None


class Pandoc:
    """Pandoc, with typst for PDF and reveal.js for slides."""

    def describe(self) -> str:
        """Name the programs that render, with their versions."""
        try:
            version = pypandoc.get_pandoc_version()
        except OSError as error:
            raise InputError("no pandoc found: install the wheel pypandoc_binary") from error
        return f"pandoc {version} and typst {metadata.version('typst')}"

    def render(self, stage: Stage, document: Document, target: str) -> None:
        """Render the expanded document."""
        shown = stage.origin(document.name)
        source = (stage.root / document.name).with_suffix(".md")
        source.write_text(document.text, encoding="utf-8")
        output = source.with_suffix(".typ" if target == "typst" else ".html")
        if target == "revealjs":
            _stage_reveal(stage.root / "reveal")
        project, own = stage.settings(), stage.front_matter(document.name)
        defaults = pandoc_defaults(
            target,
            (project, stage.origin("_quarto.yml")),
            (project.get("format", {}).get(target, {}), stage.origin("_quarto.yml")),
            (own.get("format", {}).get(target, {}), shown),
        )
        file = stage.root / f"pandoc-{target}.yml"
        # JSON is YAML, and pandoc reads it as such.
        file.write_text(json.dumps(defaults, indent=2), encoding="utf-8")
        command = [pypandoc.get_pandoc_path(), f"--defaults={file}", f"--output={output}", source]
        done = _run(command, stage)
        if done.returncode != 0:
            raise InputError(f"{shown}: pandoc: {_reason(done.stdout)}")
        if target == "typst":
            try:
                # The fonts in the wheel alone: the same pages on every machine.
                typst.compile(
                    str(output),
                    str(output.with_suffix(".pdf")),
                    root=str(stage.root),
                    ignore_system_fonts=True,
                )
            except RuntimeError as error:
                raise InputError(f"{shown}: typst: {' '.join(str(error).split())}") from error


def pandoc_defaults(target: str, *settings: tuple[dict[str, Any], Path]) -> dict[str, Any]:
    """Translate settings for one format into a pandoc defaults mapping; later ones win.

    Each comes with the file that it was read from, for messages.
    """
    result: dict[str, Any] = {
        "from": "markdown",
        "to": {"html": "html5"}.get(target, target),
        "standalone": True,
        "fail-if-warnings": True,
        "wrap": "none",
        "filters": [str(FILTER)],
        "metadata": {},
        # The style sheet stands alone; pandoc's own would mix with it.
        "variables": {"html": {"document-css": False}, "revealjs": dict(_REVEAL)}.get(target, {}),
    }
    for mapping, shown in settings:
        for key, value in mapping.items():
            if key in _OPTIONS:
                result[key] = value
            elif key in _METADATA:
                result["metadata"][key] = value
            elif target == "revealjs" and key in _SLIDES:
                # The template writes them into a script.
                word = json.dumps(value) if key == "slide-number" else str(value)
                result["variables"][_SLIDES[key]] = word.lower() if value in (True, False) else word
            elif key in _VARIABLES:
                result["variables"][key] = value
            elif key not in _IGNORED:
                raise InputError(
                    f"{shown}: option {key} is not known to the renderer without Quarto: remove "
                    "it, or add it to the options in reproduction.report.render"
                )
    for key in ("css", "include-in-header"):
        if isinstance(result.get(key), str):
            result[key] = [result[key]]
    if result.pop("citeproc", False):
        result["filters"].append("citeproc")
    if isinstance(result.get("html-math-method"), str):
        result["html-math-method"] = {"method": result["html-math-method"]}
    if target == "html":
        # The filter makes room for the title, the one heading of the first level.
        result["toc-depth"] = result.get("toc-depth", 3) + 1
    return result


def _stage_reveal(folder: Path) -> None:
    """Copy from the wheel sphinx-revealjs what pandoc's template loads."""
    try:
        wheel = resources.files("sphinx_revealjs") / "_static" / "revealjs"
    except ModuleNotFoundError as error:
        raise InputError("no reveal.js found: install the wheel sphinx-revealjs") from error
    with resources.as_file(wheel) as source:
        for name in _REVEAL_FILES:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, folder / name)
    # The style sheet of the slides is all of their theme.
    theme = folder / "dist" / "theme" / f"{_REVEAL['theme']}.css"
    theme.parent.mkdir(exist_ok=True)
    theme.write_text(":root {}\n", encoding="utf-8")


def _reason(said: str) -> str:
    """Reduce what pandoc wrote to the line that matters."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    for mark in ("quarto.lua: ", "[WARNING] "):
        for line in lines:
            if mark in line:
                return line.partition(mark)[2]
    return " ".join(lines) or "it failed without a word"
