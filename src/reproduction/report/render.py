"""The report and the slides: `paper/*.qmd` with the results of one run.

The documents run no code. They are staged beside the results, their shortcodes are
replaced by what the run measured, and one renderer makes the pages: Quarto where it is
installed, else pandoc with typst, from wheels, so that a reader without Quarto has the
same text as HTML and as PDF. For pandoc, `filter.lua` numbers figures, tables,
equations and sections; the options are those of `_quarto.yml` and of a document's front
matter. Each page is checked (`page_checks`) before it replaces the last.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pypandoc
import typst
import yaml

from contamination.errors import InputError
from contamination.files import replacing
from reproduction.report.page_checks import check_html, check_typst
from reproduction.report.prose import escape_markdown

# Page -> its document and its format, in the words of pandoc and Quarto; `RELEASED` are
# those of a run on released models, whose sections stand in files named after their
# notebooks.
DOCUMENTS = {
    "report.html": ("report.qmd", "html"),
    "report.pdf": ("report.qmd", "typst"),
    "slides.html": ("slides.qmd", "revealjs"),
}
RELEASED = {"report.html": ("open.qmd", "html"), "report.pdf": ("open.qmd", "typst")}
FILTER = Path(__file__).with_name("filter.lua")
_SHORTCODE = re.compile(r"\{\{<\s*(\w+)\s+(\S+)\s*>\}\}")
SECTION = re.compile(r"_(\d\d_\w+)\.qmd")  # of a notebook
# What scrolls in a narrow window: a figure, and the box of a table under Quarto.
_SCROLLS = re.compile(r'<figure(?=[^>]*(?:id="fig-|float-fig))|<div(?= aria-describedby="tbl-)')
_NOISE = re.compile(r"Error running.*?\n|\[WARNING\]|filter\.lua:")  # of pandoc


def render_report(
    paper: Path,
    results: Path,
    *,
    quarto: str | None = None,
) -> list[Path]:
    """Render report.html, report.pdf and slides.html into `results`/report/; return their paths.

    A run that trained nothing has a report of its own, without slides, and no section
    of a notebook that it has not executed.

    Parameters
    ----------
    paper
        Directory of report.qmd, slides.qmd, _quarto.yml, the bibliography and the
        styles.
    results
        Directory that a run filled: tables/, figures/ and variables.yml.
    quarto
        Executable to render with, "" for pandoc; None looks for one next to the Python
        interpreter and on PATH.

    Raises
    ------
    InputError
        If a result is missing or a reference unresolved; what was rendered before is as
        it was.
    """
    if quarto is None:
        quarto = _find_quarto()
    renderer = _name_of(quarto)
    print(f"report: rendering with {renderer}", flush=True)
    with tempfile.TemporaryDirectory(prefix="report-") as temporary:
        root = Path(temporary).resolve()
        pages: dict[Path, Path] = {}
        documents = write_documents(paper, results, root, renderer=renderer)
        for page, (name, target) in documents.items():
            try:
                file = _render(root / name, target, quarto)
            except (subprocess.CalledProcessError, RuntimeError) as error:
                output = getattr(error, "output", "") or str(error)
                message = " ".join(_NOISE.sub("", output).split())
                raise InputError(f"{paper / name}: {target}: {message}") from error
            if file.suffix == ".html":
                _reach_boxes(file)
                check_html(file)
            else:
                check_typst(file.with_suffix(".typ"))
            pages[results / "report" / page] = file
        for published, file in pages.items():
            with replacing(published) as unfinished:
                shutil.copyfile(file, unfinished)
            print(f"report: {published}", flush=True)
    return list(pages)


def _find_quarto() -> str | None:
    """Return the Quarto next to the Python interpreter, else that on PATH."""
    folder = Path(sys.executable).parent
    return shutil.which(
        "quarto",
        path=f"{folder}{os.pathsep}{os.environ.get('PATH', '')}",
    )


def _name_of(quarto: str | None) -> str:
    """Return the name and the version of what renders."""
    if not quarto:
        return f"pandoc {pypandoc.get_pandoc_version()} and typst {version('typst')}"
    shown = subprocess.run(
        [quarto, "--version"], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    return f"Quarto {shown.stdout.strip()}".strip()


@dataclass(frozen=True)
class Source:
    """The documents of a report, and the results that their shortcodes name.

    Attributes
    ----------
    paper
        Directory of the documents.
    results
        Directory that a run filled.
    variables
        Variables of the run, by group and name.
    """

    paper: Path
    results: Path
    variables: Mapping[str, Mapping[str, str]]

    def expanded(self, path: Path) -> str:
        """Return a document with every shortcode replaced.

        Raises InputError, with file and line, for a shortcode that names nothing.
        """
        text = path.read_text(encoding="utf-8")

        def value(shortcode: re.Match[str]) -> str:
            kind, name = shortcode.groups()
            replacement = None
            if kind == "include":
                replacement = self._included(name)
            elif kind == "var":
                replacement = self._variable(name)
            if replacement is None:
                line = text.count("\n", 0, shortcode.start()) + 1
                raise InputError(
                    f"{path}:{line}: {shortcode[0]}: no such {kind} in {self.results}; correct it",
                )
            return replacement

        return _SHORTCODE.sub(value, text)

    def _included(self, name: str) -> str | None:
        """Return a section or a table; empty without its notebook."""
        section = SECTION.fullmatch(name)
        if section is None:
            file = self.results / name
        elif (self.results / "notebooks" / f"{section[1]}.ipynb").is_file():
            file = self.paper / name
        else:
            return ""
        if not file.is_file():
            return None
        return self.expanded(file).rstrip("\n")

    def _variable(self, name: str) -> str | None:
        """Return the text of a variable, "group.name"."""
        group, _, key = name.partition(".")
        text = self.variables.get(group, {}).get(key)
        return text if isinstance(text, str) else None


def write_documents(
    paper: Path, results: Path, root: Path, *, renderer: str
) -> Mapping[str, tuple[str, str]]:
    """Write the documents of a run to a folder, with all that a renderer needs.

    A run without a corpus has the documents `RELEASED`, another one `DOCUMENTS`.
    Shortcodes are replaced, and styles and figures lie in the same folder. The section
    of a notebook that was not executed is left out; a rehearsal says on every page that
    it is one.

    Parameters
    ----------
    paper
        Directory of the documents.
    results
        Directory that a run filled.
    root
        Folder to write to.
    renderer
        Its name, which the documents print.

    Returns
    -------
    documents : page -> its document and its format.

    Raises
    ------
    InputError
        With file and line, for a shortcode that names nothing.
    """
    variables_file = results / "variables.yml"
    if not variables_file.is_file():
        raise InputError(
            f"{variables_file} is missing: run `make reproduce` for this profile first"
        )
    variables = yaml.safe_load(variables_file.read_text(encoding="utf-8"))
    variables.setdefault("report", {"renderer": escape_markdown(renderer)})
    source = Source(paper=paper, results=results, variables=variables)
    documents = DOCUMENTS if "corpus" in variables else RELEASED
    names = list(dict.fromkeys(name for name, _ in documents.values()))
    for file in paper.iterdir():
        if file.suffix in {".bib", ".css", ".typ"}:
            shutil.copyfile(file, root / file.name)
    if (results / "figures").is_dir():
        shutil.copytree(results / "figures", root / "figures")
    options = yaml.safe_load((paper / "_quarto.yml").read_text(encoding="utf-8"))
    options["project"].pop("pre-render", None)  # asks for the results, which are here
    options["project"]["render"] = names  # Quarto reads the includes of all it lists
    (root / "_quarto.yml").write_text(
        yaml.safe_dump(options, sort_keys=False),
        encoding="utf-8",
    )
    for name in names:
        (root / name).write_text(source.expanded(paper / name), encoding="utf-8")
    notice = variables.get("run", {}).get("rehearsal")
    if notice:
        _print_on_every_page(notice, root, names)
    return documents


def _print_on_every_page(notice: str, root: Path, names: Sequence[str]) -> None:
    """Put a notice at the head of staged documents, and of every printed page."""
    for name in names:
        text = (root / name).read_text(encoding="utf-8")
        text = text.replace(
            "\n---\n",
            f"\n---\n\n::: {{.rehearsal}}\n{notice}\n:::\n",
            1,
        )
        (root / name).write_text(text, encoding="utf-8")
    shown = f'text(fill: rgb("#b3261e"), weight: "bold", {json.dumps(notice)})'
    with (root / "styles.typ").open("a", encoding="utf-8") as styles:
        styles.write(f"#set page(header: align(center, {shown}))\n")


def _render(document: Path, target: str, quarto: str | None) -> Path:
    """Render a staged document in its folder; return the page."""
    folder = document.parent
    page = document.with_suffix(".pdf" if target == "typst" else ".html")
    if quarto:
        command = [quarto, "render", document.name, "--to", target, "--no-execute"]
    else:
        # JSON is YAML, and pandoc reads it as such
        defaults = folder / f"pandoc-{target}.yml"
        defaults.write_text(
            json.dumps(pandoc_defaults(document, target)),
            encoding="utf-8",
        )
        command = [pypandoc.get_pandoc_path(), f"--defaults={defaults}", document.name]
    subprocess.check_output(
        command,
        cwd=folder,
        env=os.environ | {"NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if target == "typst" and not quarto:
        # The fonts in the wheel alone: the same pages on every machine.
        typst.compile(
            str(document.with_suffix(".typ")),
            str(page),
            root=str(folder),
            ignore_system_fonts=True,
        )
    if not page.is_file():
        raise RuntimeError("no page was written")
    return page


def pandoc_defaults(document: Path, target: str) -> dict[str, Any]:
    """Return pandoc's options for a format, of `_quarto.yml` and the front matter."""
    options = _options(document, target)
    writer = "html5" if target == "html" else target
    suffix = ".typ" if target == "typst" else ".html"
    defaults = {
        "from": "markdown",
        "to": writer,
        "output-file": str(document.with_suffix(suffix)),
        "standalone": True,
        "fail-if-warnings": True,
        # no widths that pandoc guesses: every output lays columns out itself
        "columns": 10_000,
        "filters": [str(FILTER), "citeproc"],
        "embed-resources": True,
        "html-math-method": {"method": "mathml"},
        "number-sections": options["number-sections"],
    }
    if target == "html":
        # The title is the heading of the first level.
        defaults |= {"toc": True, "toc-depth": 3, "shift-heading-level-by": 1}
    defaults["metadata"] = {
        name: options[name] for name in ("bibliography", "lang", "link-citations")
    }
    if target == "revealjs":
        defaults["variables"] = _slide_variables(options)
    else:
        # Its styles are those of the style sheet alone.
        defaults["variables"] = options | {"document-css": False}
    for name in ("css", "include-in-header"):
        if name in options:
            defaults[name] = [options[name]]
    return defaults


def _options(document: Path, target: str) -> dict[str, Any]:
    """Return the options of `_quarto.yml`, of the format, and of the front matter."""
    project = yaml.safe_load(
        document.with_name("_quarto.yml").read_text(encoding="utf-8"),
    )
    front_matter = document.read_text(encoding="utf-8").split("\n---\n")[0]
    own = next(yaml.safe_load_all(front_matter))
    options = dict(project)
    for settings in (project, own):
        options |= settings.get("format", {}).get(target, {})
    return options


def _slide_variables(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables of slides as JSON, which the template needs in a script."""
    scripted = {}
    for name, value in options.items():
        if name not in ("css", "lang"):
            scripted[name] = value
    variables = {name: json.dumps(value) for name, value in scripted.items()}
    reveal = resources.files("sphinx_revealjs") / "_static" / "revealjs"
    variables["revealjs-url"] = str(reveal)
    variables["theme"] = "../reset"  # the style sheet is all of the theme
    variables["slideNumber"] = json.dumps(options.get("slide-number", True))
    variables["transition"] = options.get("transition", "none")
    return variables


def _reach_boxes(page: Path) -> None:
    """Let the keyboard scroll figures, and the boxes of Quarto's tables."""
    text = page.read_text(encoding="utf-8")
    reachable = _SCROLLS.sub(r'\g<0> tabindex="0"', text)
    page.write_text(reachable, encoding="utf-8")
