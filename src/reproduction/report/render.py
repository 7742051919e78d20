"""The report and the slides: `paper/*.qmd` with the numbers, tables and figures of one run.

The documents run no code. They are staged beside the results, their shortcodes are replaced by
what the run measured, and one renderer makes the pages: Quarto where it is installed, else pandoc
with typst, from wheels, so that a reader without Quarto has the same text as HTML and as PDF. For
pandoc, `filter.lua` numbers figures, tables, equations and sections; the options are those of
`_quarto.yml` and of a document's front matter. Each page is checked before it replaces the last.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import pypandoc
import typst
import yaml
from bs4 import BeautifulSoup

from contamination.errors import InputError
from contamination.files import read_json, replacing

# Pages of every document by their format, in the words of pandoc and Quarto; those of a run on
# released models, whose sections stand in files named after their notebooks.
DOCUMENTS = {
    "report.qmd": {"html": "report.html", "typst": "report.pdf"},
    "slides.qmd": {"revealjs": "slides.html"},
}
RELEASED = {"open.qmd": {"html": "report.html", "typst": "report.pdf"}}
FILTER = Path(__file__).with_name("filter.lua")
_SHORTCODE = re.compile(r"\{\{<\s*(\w+)\s+(\S+)\s*>\}\}")
SECTION = re.compile(r"_(\d\d_\w+)\.qmd")  # of a notebook
_LEFT = re.compile(r"\{\{<|\?@|\?var:|\ufffd")  # what a renderer leaves where it fails


def documents_of(results: Path) -> Mapping[str, Mapping[str, str]]:
    """What to render of a run: `RELEASED` if it trained nothing, as its manifest says."""
    return DOCUMENTS if "corpus" in read_json(results / "manifest.json") else RELEASED


def render_report(
    paper: Path,
    results: Path,
    *,
    documents: Mapping[str, Mapping[str, str]] = DOCUMENTS,
    quarto: str | None = None,
) -> list[Path]:
    """Render report.html, report.pdf and slides.html into `results`/report/; return their paths.

    A section of a notebook that the run has not executed is left out. Raises InputError if a result
    is missing or a reference unresolved; what was rendered before is as it was.

    Parameters
    ----------
    paper : directory of report.qmd, slides.qmd, _quarto.yml, the bibliography and the styles.
    results : directory that a run filled: tables/, figures/ and variables.yml.
    documents : what to render: `DOCUMENTS`, or `RELEASED` of a run that trained nothing.
    quarto : executable to render with, "" for pandoc; None looks for one beside the Python
        interpreter and on PATH.
    """
    if quarto is None:
        beside = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        quarto = shutil.which("quarto", path=beside)
    print(f"report: rendering with {quarto or 'pandoc and typst'}", flush=True)
    with tempfile.TemporaryDirectory(prefix="report-") as temporary:
        root = Path(temporary).resolve()
        stage(paper, results, root, documents)
        pages: dict[Path, Path] = {}
        for name, targets in documents.items():
            for target, page in targets.items():
                if quarto:
                    problem = _run([quarto, "render", name, "--to", target, "--no-execute"], root)
                else:
                    problem = _pandoc(root, name, target)
                file = (root / name).with_suffix(Path(page).suffix)
                if problem or not file.is_file():
                    problem = problem or "no page was written"
                    raise InputError(f"{paper / name}: {target}: {problem}")
                if file.suffix == ".html":
                    _reach_tables(file)
                    check_html(file)
                pages[results / "report" / page] = file
        for published, file in pages.items():
            with replacing(published) as unfinished:
                shutil.copyfile(file, unfinished)
            print(f"report: {published}", flush=True)
    return list(pages)


def stage(paper: Path, results: Path, root: Path, documents: Iterable[str]) -> None:
    """Write the documents to `root`, shortcodes replaced, beside styles and figures.

    The section of a notebook that was not executed is left out; a rehearsal says on every page that
    it is one. Raises InputError, with file and line, for what is not there.
    """
    written = results / "variables.yml"
    if not written.is_file():
        raise InputError(f"{written} is missing: run `make reproduce` for this profile first")
    variables = yaml.safe_load(written.read_text(encoding="utf-8"))

    def expanded(path: Path) -> str:
        text = path.read_text(encoding="utf-8")

        def value(shortcode: re.Match[str]) -> str:
            kind, wanted = shortcode.groups()
            if kind == "include":
                section = SECTION.fullmatch(wanted)
                if section and not (results / "notebooks" / f"{section[1]}.ipynb").is_file():
                    return ""
                included = paper / wanted if section else results / wanted
                if included.is_file():
                    return expanded(included).rstrip("\n")
            elif kind == "var":
                group, _, key = wanted.partition(".")
                if isinstance(found := variables.get(group, {}).get(key), str):
                    return found
            line = text.count("\n", 0, shortcode.start()) + 1
            raise InputError(
                f"{path}:{line}: {shortcode[0]}: no such {kind} in {results}; correct it"
            )

        return _SHORTCODE.sub(value, text)

    for file in (f for f in paper.iterdir() if f.suffix in {".bib", ".css", ".typ"}):
        shutil.copyfile(file, root / file.name)
    if (results / "figures").is_dir():
        shutil.copytree(results / "figures", root / "figures")
    options = yaml.safe_load((paper / "_quarto.yml").read_text(encoding="utf-8"))
    options["project"]["render"] = list(documents)  # Quarto reads the includes of all it lists
    (root / "_quarto.yml").write_text(yaml.safe_dump(options, sort_keys=False), encoding="utf-8")
    notice = variables.get("run", {}).get("rehearsal")  # what every page has to say, if it is there
    for name in documents:
        text = expanded(paper / name)
        if notice:
            text = text.replace("\n---\n", f"\n---\n\n::: {{.rehearsal}}\n{notice}\n:::\n", 1)
        (root / name).write_text(text, encoding="utf-8")
    if notice:
        shown = f'text(fill: rgb("#b3261e"), weight: "bold", {json.dumps(notice)})'
        with (root / "styles.typ").open("a", encoding="utf-8") as styles:
            styles.write(f"#set page(header: align(center, {shown}))\n")


def _run(command: list[str | Path], folder: Path) -> str | None:
    """Run a program; what it says on a failure, in one line."""
    plain: dict[str, Any] = {
        "capture_output": True,
        "text": True,
        "env": os.environ | {"NO_COLOR": "1"},
    }
    said = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, check=False, **plain)
    text = re.sub(r"Error running.*?\n|\[WARNING\]|filter\.lua:", "", said.stdout + said.stderr)
    return " ".join(text.split()) or "it failed" if said.returncode else None


def _pandoc(root: Path, name: str, target: str) -> str | None:
    """Render the staged document; return what pandoc or typst says if it fails."""
    output = (root / name).with_suffix(".typ" if target == "typst" else ".html")
    defaults = root / f"pandoc-{target}.yml"  # JSON is YAML, and pandoc reads it as such
    defaults.write_text(json.dumps(pandoc_defaults(root, name, target)), encoding="utf-8")
    command = [pypandoc.get_pandoc_path(), f"--defaults={defaults}", f"--output={output}", name]
    if (problem := _run(command, root)) or target != "typst":
        return problem
    pdf = str(output.with_suffix(".pdf"))
    try:
        # The fonts in the wheel alone: the same pages on every machine.
        typst.compile(str(output), pdf, root=str(root), ignore_system_fonts=True)
    except RuntimeError as error:
        return " ".join(str(error).split())
    return None


def pandoc_defaults(root: Path, name: str, target: str) -> dict[str, Any]:
    """Options of pandoc for one format: those of `_quarto.yml`, then of the front matter."""
    project = yaml.safe_load((root / "_quarto.yml").read_text(encoding="utf-8"))
    own = next(yaml.safe_load_all((root / name).read_text(encoding="utf-8").split("\n---\n")[0]))
    options = dict(project)
    for settings in (project, own):
        options |= settings.get("format", {}).get(target, {})
    variables: dict[str, Any] = options | {"document-css": False}  # of the style sheet alone
    if target == "revealjs":
        # The template writes them into a script; the style sheet is all of the theme.
        reveal = resources.files("sphinx_revealjs") / "_static" / "revealjs"
        variables = {key: json.dumps(value) for key, value in options.items() if key != "css"} | {
            "revealjs-url": str(reveal),
            "theme": "../reset",
            "slideNumber": json.dumps(options.get("slide-number", True)),
            "transition": options.get("transition", "none"),
        }
    return {
        "from": "markdown",
        "to": {"html": "html5"}.get(target, target),
        "standalone": True,
        "fail-if-warnings": True,
        "columns": 10_000,  # no widths that pandoc guesses: every output lays columns out itself
        "filters": [str(FILTER), "citeproc"],
        "embed-resources": True,
        "html-math-method": {"method": "mathml"},
        "number-sections": options["number-sections"],
        # The title is the heading of the first level.
        **({"toc": True, "toc-depth": 3, "shift-heading-level-by": 1} if target == "html" else {}),
        "metadata": {key: options[key] for key in ("bibliography", "lang", "link-citations")},
        "variables": variables,
        **{key: [options[key]] for key in ("css", "include-in-header") if key in options},
    }


def _reach_tables(page: Path) -> None:
    """Let the keyboard scroll the boxes of Quarto's tables, which it cannot reach by themselves."""
    text = page.read_text(encoding="utf-8")
    box = '<div aria-describedby="tbl-'
    page.write_text(text.replace(box, box.replace("<div", '<div tabindex="0"')), encoding="utf-8")


def check_html(path: Path) -> None:
    """Check that a page is whole: references and local links resolved, images inside and described.

    Raises InputError with the first problem and how many more there are.
    """
    page = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
    text = page.get_text()  # without scripts
    problems = [
        f"unresolved: {' '.join(text[found.start() - 20 : found.end() + 40].split())}"
        for found in _LEFT.finditer(text)
    ]
    links = {str(link["href"]) for link in page.find_all("a", href=re.compile("^#."))}
    problems += [
        f"link to {link}: nothing has that name"
        for link in sorted(links)
        if not page.find(id=link.removeprefix("#").removeprefix("/"))
    ]
    for image in page.find_all("img"):
        source = str(image.get("src") or image.get("data-src"))
        if not source.startswith("data:image/"):
            problems.append(f"image {source[:60]} is not inside the page")
        if not image.get("alt"):
            problems.append(f"image without alt text: {source[:60]}")
    if problems:
        raise InputError(f"{path.name}: {problems[0]} (problem 1 of {len(problems)})")
