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
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import pypandoc
import typst
import yaml
from bs4 import BeautifulSoup

from contamination.errors import InputError
from contamination.files import replacing

# Page -> its document and its format, in the words of pandoc and Quarto; `RELEASED` are those of a
# run on released models, whose sections stand in files named after their notebooks.
DOCUMENTS = {
    "report.html": ("report.qmd", "html"),
    "report.pdf": ("report.qmd", "typst"),
    "slides.html": ("slides.qmd", "revealjs"),
}
RELEASED = {"report.html": ("open.qmd", "html"), "report.pdf": ("open.qmd", "typst")}
FILTER = Path(__file__).with_name("filter.lua")
_SHORTCODE = re.compile(r"\{\{<\s*(\w+)\s+(\S+)\s*>\}\}")
SECTION = re.compile(r"_(\d\d_\w+)\.qmd")  # of a notebook
_NOISE = re.compile(r"Error running.*?\n|\[WARNING\]|filter\.lua:")  # of pandoc
_LEFT = re.compile(r"\{\{<|\?@|\?var:|\ufffd")  # what a renderer leaves where it fails


def render_report(paper: Path, results: Path, *, quarto: str | None = None) -> list[Path]:
    """Render report.html, report.pdf and slides.html into `results`/report/; return their paths.

    A run that trained nothing has a report of its own, without slides, and no section of a notebook
    that it has not executed. Raises InputError if a result is missing or a reference unresolved;
    what was rendered before is as it was.

    Parameters
    ----------
    paper : directory of report.qmd, slides.qmd, _quarto.yml, the bibliography and the styles.
    results : directory that a run filled: tables/, figures/ and variables.yml.
    quarto : executable to render with, "" for pandoc; None looks for one beside the Python
        interpreter and on PATH.
    """
    if quarto is None:
        beside = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        quarto = shutil.which("quarto", path=beside)
    print(f"report: rendering with {quarto or 'pandoc and typst'}", flush=True)
    with tempfile.TemporaryDirectory(prefix="report-") as temporary:
        root = Path(temporary).resolve()
        pages: dict[Path, Path] = {}
        for page, (name, target) in stage(paper, results, root).items():
            try:
                file = _render(root / name, target, quarto)
            except (subprocess.CalledProcessError, RuntimeError) as error:
                said = _NOISE.sub("", getattr(error, "output", "") or str(error))
                raise InputError(f"{paper / name}: {target}: {' '.join(said.split())}") from error
            if file.suffix == ".html":
                _reach_tables(file)
                check_html(file)
            pages[results / "report" / page] = file
        for published, file in pages.items():
            with replacing(published) as unfinished:
                shutil.copyfile(file, unfinished)
            print(f"report: {published}", flush=True)
    return list(pages)


def stage(paper: Path, results: Path, root: Path) -> Mapping[str, tuple[str, str]]:
    """Write `DOCUMENTS`, or `RELEASED` of a run without a corpus, to `root`; return which it was.

    Shortcodes are replaced, and styles and figures lie beside them. The section of a notebook that
    was not executed is left out; a rehearsal says on every page that it is one. Raises InputError,
    with file and line, for what is not there.
    """
    written = results / "variables.yml"
    if not written.is_file():
        raise InputError(f"{written} is missing: run `make reproduce` for this profile first")
    variables = yaml.safe_load(written.read_text(encoding="utf-8"))
    documents = DOCUMENTS if "corpus" in variables else RELEASED
    names = list(dict.fromkeys(name for name, _ in documents.values()))

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
    options["project"]["render"] = names  # Quarto reads the includes of all it lists
    (root / "_quarto.yml").write_text(yaml.safe_dump(options, sort_keys=False), encoding="utf-8")
    notice = variables.get("run", {}).get("rehearsal")  # what every page has to say, if it is there
    for name in names:
        text = expanded(paper / name)
        if notice:
            text = text.replace("\n---\n", f"\n---\n\n::: {{.rehearsal}}\n{notice}\n:::\n", 1)
        (root / name).write_text(text, encoding="utf-8")
    if notice:
        shown = f'text(fill: rgb("#b3261e"), weight: "bold", {json.dumps(notice)})'
        with (root / "styles.typ").open("a", encoding="utf-8") as styles:
            styles.write(f"#set page(header: align(center, {shown}))\n")
    return documents


def _render(document: Path, target: str, quarto: str | None) -> Path:
    """Render a staged document beside it; return the page. The renderer's errors are raised."""
    page, folder = document.with_suffix(".pdf" if target == "typst" else ".html"), document.parent
    if quarto:
        command = [quarto, "render", document.name, "--to", target, "--no-execute"]
    else:
        defaults = folder / f"pandoc-{target}.yml"  # JSON is YAML, and pandoc reads it as such
        defaults.write_text(json.dumps(pandoc_defaults(document, target)), encoding="utf-8")
        command = [pypandoc.get_pandoc_path(), f"--defaults={defaults}", document.name]
    env = os.environ | {"NO_COLOR": "1"}
    subprocess.check_output(
        command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, text=True
    )
    if target == "typst" and not quarto:
        # The fonts in the wheel alone: the same pages on every machine.
        source, root = str(document.with_suffix(".typ")), str(folder)
        typst.compile(source, str(page), root=root, ignore_system_fonts=True)
    if not page.is_file():
        raise RuntimeError("no page was written")
    return page


def pandoc_defaults(document: Path, target: str) -> dict[str, Any]:
    """Options of pandoc for one format: those of `_quarto.yml`, then of the front matter."""
    project = yaml.safe_load(document.with_name("_quarto.yml").read_text(encoding="utf-8"))
    own = next(yaml.safe_load_all(document.read_text(encoding="utf-8").split("\n---\n")[0]))
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
        "output-file": str(document.with_suffix(".typ" if target == "typst" else ".html")),
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
