"""What the code of a stage depends on: modules, packages of others, and files they read.

The closure of a module is all that it imports, directly or not, at its top or inside a
function.
"""

import ast
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import grimp

from contamination.files import sha256_of
from reproduction.notebooks.table import code_of
from reproduction.stages.digests import Digests

PACKAGES = ("contamination", "reproduction")
# Files that a module reads at run time, from the root of the repository.
READ_BY = {
    "contamination.testsets.registry": ("data/registry.yaml",),
    "reproduction.output.published": ("data/published/*.csv",),
    "reproduction.report.explorer.page": (
        "src/reproduction/report/explorer/*.*",
        "docs/measurements/mmlu_*.csv",
        "results/reference/pocket/tables/mmlu_subsets.csv",
    ),
    "reproduction.report.render": ("src/reproduction/report/*.lua",),
}


@cache
def _graph() -> grimp.ImportGraph:
    """Return which module imports which, of our packages and of others."""
    return grimp.build_graph(
        *PACKAGES,
        include_external_packages=True,
        exclude_type_checking_imports=True,
        cache_dir=None,
    )


@cache
def _imports_of(module: str) -> set[str]:
    """Return the modules that a module imports itself; closures share most of theirs."""
    return _graph().find_modules_directly_imported_by(module)


def closure(start: Iterable[str], without: Iterable[str] = ()) -> set[str]:
    """Return modules and all that they import, but not through `without`."""
    excluded = set(without)
    seen = set(excluded)
    waiting = set(start)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        waiting |= _imports_of(name)
        package = name.rpartition(".")[0]
        if package:
            waiting.add(package)  # importing a module runs its package
    return seen - excluded


def facts(
    root: Path,
    start: Iterable[str],
    without: Iterable[str] = (),
    *,
    known: Digests,
) -> dict[str, str]:
    """Return a digest or version for each name of the closure of `start`.

    Parameters
    ----------
    root
        Root of the repository.
    start
        Modules at which the closure starts.
    without
        Modules through which the closure does not go.
    known
        Digests of modules and versions of packages.
    """
    digests: dict[str, str] = {}
    for name in sorted(closure(start, without)):
        if name.startswith(PACKAGES):
            digests[name] = known.of_module(_file_of(root, name))
        else:
            installed = known.of_package(name)
            if installed:
                digests[name] = installed
        for pattern in READ_BY.get(name, ()):
            for path in sorted(root.glob(pattern)):
                if path.is_file() and path.suffix != ".py":
                    digests[path.relative_to(root).as_posix()] = sha256_of(path)
    return digests


@cache
def _file_of(root: Path, module: str) -> Path:
    """Return the file of a module or package of ours."""
    path = root / "src" / Path(*module.split("."))
    if path.is_dir():
        return path / "__init__.py"
    return path.with_suffix(".py")


def notebook_code(path: Path) -> tuple[set[str], str]:
    """Return our modules that a notebook imports, and the tree of its parameters."""
    imported: set[str] = set()
    parameters = ""
    for tree, has_parameters in code_of(path):
        if has_parameters:
            parameters += ast.dump(tree)
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and node.module:
                imported.add(node.module)
                imported.update(f"{node.module}.{alias.name}" for alias in node.names)
    modules = imported & _graph().modules  # a name of an import may be a function
    return {name for name in modules if name.startswith(PACKAGES)}, parameters
