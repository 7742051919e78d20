"""The code of a stage: all that its modules import, hashed without comments and docstrings.

An edit makes a stage stale if and only if it changes the syntax tree of a module that the stage
imports, directly or not, at its top or inside a function. Of other people's packages those count
that such a module imports by name, by their version in the lock.
"""

import ast
import json
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from contamination.files import sha256_of

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
LOCKED_AS = {"sklearn": "scikit-learn", "yaml": "pyyaml", "bs4": "beautifulsoup4"}
Definition = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Code:
    """The packages in `src` of a repository, parsed when asked for."""

    def __init__(self, root: Path, packages: Iterable[str] = ("contamination", "reproduction")):
        self.root = root
        self._files = {
            _module_of(path.relative_to(root / "src")): path
            for package in packages
            for path in sorted((root / "src" / package).rglob("*.py"))
        }
        self._imports: dict[str, set[str]] = {}
        self._digests: dict[str, str] = {}

    @property
    def modules(self) -> list[str]:
        """Names of all modules of the packages."""
        return list(self._files)

    @cached_property
    def _versions(self) -> dict[str, str]:
        """Lines of the lock by the name of the package, in lower case and with underscores."""
        lock = (self.root / "requirements.lock").read_text(encoding="utf-8")
        lines = re.findall(r"^([\w.-]+)(==\S+)", lock, re.M)
        return {name.lower().replace("-", "_"): version for name, version in lines}

    def closure(self, start: Iterable[str], without: Iterable[str] = ()) -> set[str]:
        """Return the names of modules and of all that they import, but not through `without`."""
        found = set(without)
        left = [part for name in start for part in self._with_parents(name)]
        while left:
            if (name := left.pop()) not in found:
                found.add(name)
                left.extend(self._imported(name))
        return found.difference(without)

    def facts(self, start: Iterable[str], without: Iterable[str] = ()) -> dict[str, str]:
        """Describe what counts of the closure of `start`: a digest or version for each name."""
        facts: dict[str, str] = {}
        for name in sorted(self.closure(start, without)):
            if name in self._files:
                self._imported(name)
                facts[name] = self._digests[name]
            else:
                name = LOCKED_AS.get(name, name)
                if version := self._versions.get(name.lower().replace("-", "_")):
                    facts[name] = version
            read = [path for pattern in READ_BY.get(name, ()) for path in self.root.glob(pattern)]
            for path in sorted(read):
                if path.is_file() and path.suffix != ".py":
                    facts[path.relative_to(self.root).as_posix()] = sha256_of(path)
        return facts

    def imports_of_notebook(self, path: Path) -> set[str]:
        """Return the modules of ours that the cells of a notebook import."""
        trees = [ast.parse("".join(cell["source"])) for cell in _code_cells(path)]
        return {name for tree in trees for name in self._named(tree) if name in self._files}

    def _imported(self, module: str) -> set[str]:
        if module not in self._files:
            return set()
        if module not in self._imports:
            tree = ast.parse(self._files[module].read_bytes())
            self._imports[module] = set(self._named(tree)) - {module}
            self._digests[module] = sha256_of(ast.dump(without_docstrings(tree)))[:16]
        return self._imports[module]

    def _named(self, tree: ast.AST) -> Iterator[str]:
        """Yield the modules that a tree imports, with the packages that they lie in."""
        for node in _statements(tree):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            else:
                continue
            for name in names:
                yield from self._with_parents(name)

    def _with_parents(self, name: str) -> list[str]:
        """Name a module of ours and the packages above it; of another package the package alone."""
        parts = name.split(".")
        parents = [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
        return [parent for parent in parents if parent in self._files] or parts[:1]


def without_docstrings(tree: ast.Module) -> ast.Module:
    """Drop the docstrings of a module and of all that it defines, in place."""
    for node in (tree, *_statements(tree)):
        if isinstance(node, Definition) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return tree


def parameters_cell(path: Path) -> str:
    """Return the syntax tree of the cell of a notebook that is tagged `parameters`, as text."""
    cells = [c for c in _code_cells(path) if "parameters" in c["metadata"].get("tags", ())]
    return "".join(ast.dump(ast.parse("".join(cell["source"]))) for cell in cells)


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements of a block and of those within, but for `if TYPE_CHECKING`."""
    for block in ("body", "handlers", "cases", "orelse", "finalbody"):
        for child in getattr(node, block, ()) if not _is_for_types(node, block) else ():
            if isinstance(child, ast.stmt):
                yield child
            yield from _statements(child)


def _is_for_types(node: ast.AST, block: str) -> bool:
    return (
        block == "body"
        and isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and node.test.id == "TYPE_CHECKING"
    )


def _code_cells(path: Path) -> list[dict[str, Any]]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def _module_of(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
