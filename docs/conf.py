"""The documentation site: pages by hand, notebooks as they were run, the reference from docstrings.

Sphinx asks no network. Notebooks are those of the last run, or the sources where none has run.
"""

import json
import re
import shutil
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

import typer
from docutils import nodes
from numpy.typing import ArrayLike
from sphinx.application import Sphinx
from sphinx.util.typing import stringify_annotation
from typer.cli import get_docs_for_click

from contamination.audit.registry import described_tests
from contamination.cli.main import application

ROOT = Path(__file__).resolve().parents[1]

project = "contamination"
author = "The contamination developers"
project_copyright = "2026, the contamination developers"
version = release = installed("contamination")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon"]

# --- pages ----------------------------------------------------------------------------------------

myst_heading_anchors = 3
myst_enable_extensions = ["deflist", "html_image"]
nb_execution_mode = "off"
nb_output_stderr = "remove"  # progress bars
nb_render_markdown_format = "myst"  # tables, which plain CommonMark has not
highlight_language = "text"
smartquotes_action = "qe"  # quotes and ellipses; an option keeps its two hyphens

# --- docstrings -----------------------------------------------------------------------------------

add_module_names = False
autodoc_member_order = "bysource"
autodoc_mock_imports = ["inspect_ai"]  # of an extra, with packages that the lock has not
autodoc_typehints_format = "short"
autodoc_use_type_comments = False  # there are none, and it would parse each function
autodoc_default_options = {"members": True}
napoleon_google_docstring = False
napoleon_use_param = False  # "seed : of the orderings" says what it is, and is no type to link
napoleon_custom_sections = [("Attributes", "params_style")]  # which may name several in one item
napoleon_use_rtype = False  # "ndarray, shape (m+1,)" would be taken apart into names to link
default_role = "py:obj"

# What Sphinx sees of a type alias is what the alias stands for.
ARRAY = re.compile(r"~numpy\.ndarray\[tuple\[~typing\.Any, \.\.\.\], ~numpy\.dtype\[(.*?)\]\]")
ARRAY_LIKE = stringify_annotation(ArrayLike, "smart")

# --- HTML -----------------------------------------------------------------------------------------

html_theme = "furo"
html_title = "contamination"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_search_scorer = str(Path(__file__).with_name("scorer.js"))
html_show_search_summary = False  # a page that is opened as a file may fetch no other

# `sphinx-build -b linkcheck docs build/docs-links` asks the addresses of other sites. It needs a
# network, so no test does it.
linkcheck_timeout = 20
linkcheck_ignore = [r"http://localhost.*"]


def _copy_notebooks(app: Sphinx) -> None:
    """Copy each numbered notebook, executed if a run has left it, its links leading to pages."""
    pages = Path(app.srcdir, "notebooks")
    for made in (pages, Path(app.srcdir, "reference")):  # a page of what is gone is an error
        shutil.rmtree(made, ignore_errors=True)
    pages.mkdir()
    for source in sorted((ROOT / "notebooks").glob("[0-9]*.ipynb")):
        executed = Path(app.srcdir, app.config.executed_notebooks, source.name)
        text = source.read_text(encoding="utf-8")
        if executed.is_file():
            text = executed.read_text(encoding="utf-8")
        else:
            text = _without_outputs(text)
        text = text.replace("](../docs/", "](../").replace(
            "](seminar.ipynb", "](../seminar-guide.md"
        )
        (pages / source.name).write_text(text, encoding="utf-8")


def _without_outputs(text: str) -> str:
    """Return a notebook whose first cell says, below its heading, why it shows no figures."""
    notebook = json.loads(text)
    first = notebook["cells"][0]
    note = (
        "\n\n*Without outputs: run `make reproduce` before `make docs`, or read the figures in the "
        "report.*"
    )
    first["source"] = ["".join(first["source"]).rstrip() + note]
    return json.dumps(notebook)


# On the site, a Markdown file outside of docs/ is no page but a file to download.
OUTSIDE = re.compile(r"\[([^\]]*)\]\(((?:\.\./)+(?:results|data)/[^)#]*\.md)(?:#[^)]*)?\)")


def _adapt(app: Sphinx, name: str, source: list[str]) -> None:
    """Lead links that are right on GitHub to pages; describe every command in the reference."""
    text = OUTSIDE.sub(r"{download}`\1 <\2>`", source[0])
    source[0] = text.replace("](../notebooks/", "](notebooks/")
    if name == "reference":
        command = typer.main.get_command(application())
        context = typer.Context(command)
        described = get_docs_for_click(obj=command, ctx=context, name="contamination", indent=1)
        source[0] = source[0].replace("<!-- commands -->", described.partition("\n")[2])
        source[0] = source[0].replace("<!-- tests -->", _list_of_tests())


def _write_dashes(app: Sphinx, page: nodes.document) -> None:
    """Write dashes after the names of exceptions."""
    for text in list(page.findall(nodes.Text)):
        if text == HYPHENS:
            text.parent.replace(text, nodes.Text(" – "))


def _list_of_tests() -> str:
    """Return what `--test` can name, as a list in Markdown."""
    lines = []
    for heading, tests in described_tests().items():
        lines.append(f"- on {heading}:")
        lines += [f"    - `{name}`: {described}" for name, described in tests.items()]
    return "\n".join(lines)


# What napoleon and Sphinx write between a name and its text.
HYPHENS = " -- "
AFTER_NAME = re.compile(rf"(?<=\*\*|\*\)){HYPHENS}")
# A string that quotes of print would make unreadable.
EMPTY_STRING = re.compile(r'(?<![\w"`])""(?![\w"`])')


def _typeset(*arguments: Any) -> None:
    """Write dashes after names, and empty strings as code, in the lines of a docstring."""
    lines = arguments[-1]
    for number, line in enumerate(lines):
        lines[number] = EMPTY_STRING.sub('``""``', AFTER_NAME.sub(" – ", line))


def _shorten(*arguments: Any) -> tuple[str, str | None] | None:
    """Write the names of type aliases in place of what they stand for."""
    signature, returned = (
        text and ARRAY.sub(r"NDArray[\1]", text).replace(ARRAY_LIKE, "ArrayLike")
        for text in arguments[-2:]
    )
    return (signature, returned) if signature else None


def setup(app: Sphinx) -> None:
    """Connect what fills in pages."""
    app.add_config_value("executed_notebooks", "../results/notebooks", "env")
    app.connect("builder-inited", _copy_notebooks, priority=0)
    app.connect("source-read", _adapt)
    app.connect("doctree-read", _write_dashes)
    app.connect("env-get-outdated", lambda *_: ["reference"])
    app.connect("autodoc-process-docstring", _typeset, priority=900)  # after napoleon
    app.connect("autodoc-process-signature", _shorten)
