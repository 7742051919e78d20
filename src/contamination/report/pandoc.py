"""Rendering through pandoc and typst, both from wheels, where there is no Quarto.

Pandoc reads the document after its shortcodes were expanded; `quarto.lua` gives figures, tables,
equations, sections and callouts the meaning that Quarto gives them. The options are those of
`_quarto.yml`, so that there is one place to change them.
"""

import json
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import pypandoc
import typst

from contamination.errors import InputError
from contamination.report.source import Document
from contamination.report.stage import Stage

FILTER = Path(__file__).with_name("quarto.lua")

# Options of _quarto.yml that are pandoc's own: in a defaults file, or variables of its templates.
_OPTIONS = {
    "citeproc",
    "css",
    "embed-resources",
    "html-math-method",
    "include-in-header",
    "number-sections",
    "toc",
    "toc-depth",
}
_METADATA = {"bibliography", "lang", "link-citations"}
_VARIABLES = {
    "fontsize",
    "linestretch",
    "mainfont",
    "margin",
    "papersize",
    "section-numbering",
    "toc-title",
}
# Options that concern Quarto alone.
_IGNORED = {"anchor-sections", "appendix-style", "callout-icon", "format", "project"}
_IGNORED |= {"tbl-colwidths", "theme"}


def describe() -> str:
    """Name the programs that render, with their versions."""
    try:
        version = pypandoc.get_pandoc_version()
    except OSError as error:
        raise InputError("no pandoc found: install the wheel pypandoc_binary") from error
    return f"pandoc {version} and typst {metadata.version('typst')}"


def render(stage: Stage, document: Document) -> list[Path]:
    """Render the expanded document to HTML and, through typst, to PDF."""
    source = stage.root / Path(document.name).with_suffix(".md").name
    source.write_text(document.text, encoding="utf-8")
    page, typeset = source.with_suffix(".html"), source.with_suffix(".typ")
    _pandoc(stage, document, source, page, "html")
    _pandoc(stage, document, source, typeset, "typst")
    printed = source.with_suffix(".pdf")
    try:
        # The fonts in the wheel alone: the same pages on every machine.
        typst.compile(str(typeset), str(printed), root=str(stage.root), ignore_system_fonts=True)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{stage.origin(document.name)}: typst: {reason}") from error
    return [page, printed]


def options(settings: dict[str, Any], target: str, shown: Path) -> dict[str, Any]:
    """Translate the settings of `_quarto.yml` for one format into a pandoc defaults mapping."""
    chosen = settings.get("format", {}).get(target, {})
    result: dict[str, Any] = {
        "from": "markdown",
        "to": {"html": "html5"}.get(target, target),
        "standalone": True,
        "fail-if-warnings": True,
        "wrap": "none",
        "filters": [str(FILTER)],
        "metadata": {},
        # The style sheet stands alone; pandoc's own would mix with it.
        "variables": {"document-css": False} if target == "html" else {},
    }
    for key, value in {**settings, **chosen}.items():
        if key in _OPTIONS:
            result[key] = value
        elif key in _METADATA:
            result["metadata"][key] = value
        elif key in _VARIABLES:
            result["variables"][key] = value
        elif key not in _IGNORED:
            raise InputError(
                f"{shown}: option {key} is not known to the renderer without Quarto: remove it, "
                "or teach contamination.report.pandoc about it"
            )
    for key in ("css", "include-in-header"):
        if isinstance(result.get(key), str):
            result[key] = [result[key]]
    if result.pop("citeproc", False):
        result["filters"].append("citeproc")
    if isinstance(result.get("html-math-method"), str):
        result["html-math-method"] = {"method": result["html-math-method"]}
    return result


def _pandoc(stage: Stage, document: Document, source: Path, output: Path, target: str) -> None:
    defaults = options(stage.settings(), target, stage.origin("_quarto.yml"))
    file = stage.root / f"pandoc-{target}.yml"
    # JSON is YAML, and pandoc reads it as such.
    file.write_text(json.dumps(defaults, indent=2), encoding="utf-8")
    command = [pypandoc.get_pandoc_path(), f"--defaults={file}", f"--output={output}", str(source)]
    done = subprocess.run(
        command,
        cwd=stage.root,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        raise InputError(f"{stage.origin(document.name)}: pandoc: {_reason(done.stderr)}")


def _reason(said: str) -> str:
    """Reduce what pandoc wrote to the line that matters."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    for mark in ("quarto.lua: ", "[WARNING] "):
        for line in lines:
            if mark in line:
                return line.partition(mark)[2]
    return " ".join(lines) or "it failed without a word"
