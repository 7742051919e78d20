"""The code of a stage: all that its modules import, hashed without comments and docstrings.

An edit makes a stage stale if and only if it changes the syntax tree of a module that the stage
imports, directly or not, at its top or inside a function. Of other people's packages those count
that such a module imports by name, by their version in the lock.
"""

import ast
import json
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import grimp

from contamination.files import sha256_of

PACKAGES = ("contamination", "reproduction")
# Files that a module reads at run time, from the root of the repository.
READ_BY = {
    "contamination.testsets.registry": ("data/registry.yaml",),
    "reproduction.output.published": ("data/published/*.csv",),
    "reproduction.report.explorer.page": (
        "src/reproduction/report/explorer/*.*",
        "docs/measurements/mmlu_*.csv",
    ),
    "reproduction.report.render": ("src/reproduction/report/*.lua",),
}
# Packages whose name in the lock is not that of the import.
LOCKED_AS = {"sklearn": "scikit_learn", "yaml": "pyyaml", "bs4": "beautifulsoup4"}
Definition = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@cache
def _graph() -> grimp.ImportGraph:
    return grimp.build_graph(
        *PACKAGES,
        include_external_packages=True,
        exclude_type_checking_imports=True,
        cache_dir=None,
    )


def closure(start: Iterable[str], without: Iterable[str] = ()) -> set[str]:
    """Return modules and all that they import, ours and others', but not through `without`."""
    found, left = set(without), set(start)
    while left:
        if (name := left.pop()) not in found:
            found.add(name)
            left |= _graph().find_modules_directly_imported_by(name)
            left |= {name.rpartition(".")[0]} - {""}  # importing a module runs its package
    return found.difference(without)


def facts(root: Path, start: Iterable[str], without: Iterable[str] = ()) -> dict[str, str]:
    """Describe what counts of the closure of `start`: a digest or version for each name."""
    found: dict[str, str] = {}
    for name in sorted(closure(start, without)):
        path = root / "src" / Path(*name.split("."))
        if name.startswith(PACKAGES):
            found[name] = _digest(
                path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
            )
        elif version := _versions(root).get(LOCKED_AS.get(name, name).lower()):
            found[name] = version
        for pattern in READ_BY.get(name, ()):
            for read in sorted(root.glob(pattern)):
                if read.is_file() and read.suffix != ".py":
                    found[read.relative_to(root).as_posix()] = sha256_of(read)
    return found


@cache
def _versions(root: Path) -> dict[str, str]:
    """Versions in the lock by the name of the package, with underscores."""
    lock = (root / "requirements.lock").read_text(encoding="utf-8")
    return {name.replace("-", "_"): v for name, v in re.findall(r"^([\w.-]+)==(\S+)", lock, re.M)}


@cache
def _digest(path: Path) -> str:
    tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, Definition) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return sha256_of(ast.dump(tree))[:16]


def notebook_code(path: Path) -> tuple[set[str], str]:
    """Return the modules of ours that a notebook imports, and the tree of its parameters."""
    imported: set[str] = set()
    own = ""
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        tree = ast.parse("".join(cell["source"]) if cell["cell_type"] == "code" else "")
        if "parameters" in cell["metadata"].get("tags", ()):
            own += ast.dump(tree)
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and node.module:
                imported |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {name for name in imported & _graph().modules if name.startswith(PACKAGES)}, own
