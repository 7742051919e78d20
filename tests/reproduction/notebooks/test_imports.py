"""Notebooks read what `measure` wrote: none of their imports brings torch."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import nbformat

from fakes.data_fixtures import ROOT

NUMBERED = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))  # the seminar runs models


def imports_of(path: Path) -> list[str]:
    """Return the import statements of a notebook's cells."""
    statements = []
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type != "code":
            continue
        for node in ast.walk(ast.parse(cell.source)):
            if isinstance(node, ast.Import | ast.ImportFrom):
                statements.append(ast.unparse(node))
    return statements


def test_no_numbered_notebook_imports_torch():
    statements: list[str] = []
    for path in NUMBERED:
        statements += imports_of(path)
    places = [ROOT / "tests" / "fakes" / "no_torch", ROOT / "src"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, places))}
    subprocess.run([sys.executable, "-c", "\n".join(statements)], env=environment, check=True)
