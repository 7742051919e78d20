"""The numbered notebooks, with their outputs if any, and tables as pages of the documentation site.

docs/conf.py writes them whenever the site is built; nbconvert does the work.
"""

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

import nbformat
from nbconvert import MarkdownExporter
from nbformat import NotebookNode

NUMBERED = "[0-9]*.ipynb"
NOT_EXECUTED = """
```{{note}}
No run has executed this notebook here. {command}
```
"""
OF_DEFAULT = (
    "`make results/notebooks/{name}.ipynb` does, or `make reproduce` all of them; `make docs` then "
    "shows it with its figures and tables."
)
OF_ANOTHER = "`make results/{profile}/notebooks/{name}.ipynb PROFILE={profile}` does."
# From notebooks/ to a page in docs/notebooks/.
LINKS = [
    (r"\]\(\.\./docs/", "](../"),
    (r"\]\(seminar\.ipynb", "](../seminar-guide.md"),
    (r"\]\((\d\w+)\.ipynb", r"](\1.md"),
]
# What pandas writes, in the classes that the theme knows, without rules of its own.
STYLE = re.compile(r"<style scoped>.*?</style>\s*", re.DOTALL)
TABLE = re.compile(r"<div>\s*<table[^>]*>")
STYLED = '<div class="table-wrapper docutils container">\n<table class="docutils align-default">'


def write_pages(sources: Path, executed: Path, pages: Path) -> None:
    """Write a page for each numbered notebook of `sources`, executed if `executed` has it."""
    shutil.rmtree(pages, ignore_errors=True)
    pages.mkdir(parents=True)
    for source in sorted(sources.glob(NUMBERED)):
        run = executed / source.name
        notebook = nbformat.read(run if run.is_file() else source, as_version=4)
        text, images = page(notebook, source.stem)
        for name, image in images.items():
            (pages / name).write_bytes(image)
        if not run.is_file():
            title, _, rest = text.lstrip().partition("\n")
            text = title + "\n" + _how_to_run(source) + rest
        (pages / f"{source.stem}.md").write_text(text, encoding="utf-8")


def _how_to_run(source: Path) -> str:
    """Say which command executes a notebook: it names the profile that it is for by default."""
    profile = re.search(r'profile = \\"\.\./profiles/([\w-]+)\.yaml', source.read_text("utf-8"))
    default = profile is None or profile[1] == "laptop"
    command = OF_DEFAULT if default else OF_ANOTHER
    names = {"name": source.stem, "profile": "" if profile is None else profile[1]}
    return NOT_EXECUTED.format(command=command.format(**names))


def write_tables(tables: Iterable[Path], pages: Path) -> None:
    """Write a page for each of these Markdown tables, which no page lists but the gallery links."""
    pages.mkdir(parents=True)
    for table in tables:
        text = f"---\norphan: true\n---\n\n# {table.stem}\n\n" + table.read_text(encoding="utf-8")
        (pages / table.name).write_text(text, encoding="utf-8")


def page(notebook: NotebookNode, name: str) -> tuple[str, dict[str, bytes]]:
    """Return a notebook as Markdown, and its images by file name."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for before, after in LINKS:
                cell.source = re.sub(before, after, cell.source)
            continue
        cell.outputs = [o for o in cell.outputs if o.get("name") != "stderr"]  # progress bars
        for data in (o.data for o in cell.outputs if "text/html" in o.get("data", {})):
            data["text/html"] = TABLE.sub(STYLED, STYLE.sub("", data["text/html"]))
    settings = {
        "ExtractOutputPreprocessor": {
            "enabled": True,
            "output_filename_template": name + "_{cell_index}_{index}{extension}",
        },
        "TagRemovePreprocessor": {"enabled": True, "remove_cell_tags": {"injected-parameters"}},
    }
    text, resources = MarkdownExporter(config=settings).from_notebook_node(notebook)
    return text.replace("![png](", f"![Figure of notebook {name}]("), resources["outputs"]
