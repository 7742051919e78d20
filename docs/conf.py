"""The documentation site: MyST pages by hand, the reference from docstrings, no network.

The gallery is that of README.md, and notebooks are shown as the last run left them.
"""

import re
import shutil
import sys
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

import typer
from numpy.typing import ArrayLike
from sphinx.application import Sphinx
from sphinx.util.typing import stringify_annotation
from typer.cli import get_docs_for_click

import contamination
from contamination.cli.main import app as command_line

ROOT = Path(contamination.__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from notebook_pages import write_pages, write_tables  # noqa: E402

project = "contamination"
author = "The contamination developers"
project_copyright = "2026, the contamination developers"
version = release = installed("contamination")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
]
nitpicky = True
# A name of this package must resolve, but for constants, which have no entry. Types of other
# packages, and words in the place of a type, are text.
nitpick_ignore_regex = [("py:.*", r"(?!contamination\.).*|.*\.[A-Z_]+")]

# --- pages ----------------------------------------------------------------------------------------

myst_heading_anchors = 3
myst_enable_extensions = ["deflist", "html_image"]
highlight_language = "text"  # of what a notebook prints
smartquotes_action = "qe"  # quotes and ellipses; an option keeps its two hyphens

# --- docstrings -----------------------------------------------------------------------------------

templates_path = ["_templates"]
# Made anew whenever the site is built: a page of a module that is gone would be an error.
shutil.rmtree(Path(__file__).parent / "reference" / "generated", ignore_errors=True)
add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
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
exclude_patterns = ["_templates"]

# `sphinx-build -b linkcheck docs build/docs-links` asks the addresses of other sites. It needs a
# network, so no test does it.
linkcheck_timeout = 20
linkcheck_ignore = [r"http://localhost.*"]


def _short(signature: str) -> str:
    return ARRAY.sub(r"NDArray[\1]", signature).replace(ARRAY_LIKE, "ArrayLike")


def _gallery() -> tuple[str, list[Path]]:
    """Return the gallery of README.md, its links leading to pages of this site, and its tables."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    gallery = readme.partition("<!-- gallery -->")[2].partition("<!-- end of gallery -->")[0]
    tables = re.findall(r"\]\((results/reference/tables/\w+\.md)\)", gallery)
    gallery = re.sub(r"\]\((notebooks/\w+)\.ipynb\)", r"](\1.md)", gallery)
    gallery = re.sub(r"\]\(results/reference/(tables/\w+\.md)\)", r"](notebooks/\1)", gallery)
    gallery = gallery.replace("results/reference/", "../results/reference/")
    return gallery, [ROOT / table for table in tables]


def setup(app: Sphinx) -> None:
    """Fill in the commands and the gallery, write pages of notebooks and short names of types."""
    command = typer.main.get_command(command_line)
    described = get_docs_for_click(obj=command, ctx=typer.Context(command), name="contamination")
    described = described.partition("\n")[2]  # the page has a heading of its own
    gallery, tables = _gallery()
    filled = {
        "reference/command-line": ("<!-- commands -->", described),
        "gallery": ("<!-- gallery -->", gallery),
    }

    def fill_in(_: Sphinx, name: str, source: list[str]) -> None:
        if name in filled:
            source[0] = source[0].replace(*filled[name])

    def write_notebooks(app: Sphinx) -> None:
        executed = Path(app.srcdir, app.config.executed_notebooks)
        pages = Path(app.srcdir, "notebooks")
        write_pages(ROOT / "notebooks", executed, pages)
        write_tables(tables, pages / "tables")

    def shorten(*arguments: Any) -> tuple[str, str | None] | None:
        signature, returned = arguments[-2:]
        return (_short(signature), returned and _short(returned)) if signature else None

    app.add_config_value("executed_notebooks", "../results/notebooks", "env")
    app.connect("builder-inited", write_notebooks)
    app.connect("source-read", fill_in)
    app.connect("env-get-outdated", lambda *_: list(filled))
    app.connect("autodoc-process-signature", shorten)
