"""What the code of a stage depends on: modules, packages of others, and files they read.

The closure of a module is all that it imports, directly or not, at its top or inside a
function. Some packages import the module that defines a name when the name is first
used: who takes the name from the package imports that module.
"""

import ast
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import grimp

import contamination
import contamination.audit
import contamination.statistics
from contamination.files import sha256_of
from reproduction.notebooks.table import code_of
from reproduction.stages.digests import Digests

PACKAGES = ("contamination", "reproduction")
SOURCE = Path(contamination.__file__).parents[1]
# Files that a module reads at run time, from the root of the repository; of
# data/models.yaml, `rules` names the entries that a stage quotes.
READ_BY = {
    "contamination.audit.power": ("src/contamination/audit/effects.csv",),
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
def _homes() -> dict[str, str]:
    """Return the module that defines each name which a package imports on first use."""
    homes = {}
    for package in (contamination, contamination.audit, contamination.statistics):
        for name, module in package.HOMES.items():
            homes[f"{package.__name__}.{name}"] = f"{package.__name__}.{module}"
    for name, module in contamination.statistics.HOMES.items():
        homes[f"contamination.{name}"] = f"contamination.statistics.{module}"
    return homes


def homes_in(tree: ast.Module) -> set[str]:
    """Return the modules that define what code takes from a package that imports on first use."""
    taken = set[str]()
    imported: dict[str, str] = {}  # name in the code -> what it stands for
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                imported[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                imported[alias.asname or alias.name] = alias.name
    taken.update(imported.values())
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            taken.add(f"{imported.get(node.value.id)}.{node.attr}")
    return {_homes()[name] for name in taken if name in _homes()}


@cache
def _imported_by(name: str) -> set[str]:
    """Return what a module imports directly, of our packages and of others."""
    imported = _graph().find_modules_directly_imported_by(name)
    lazy = {"contamination", "contamination.audit", "contamination.statistics"}
    if name.startswith(PACKAGES) and imported & lazy:
        path = _file_of(SOURCE, name)
        imported = imported | homes_in(ast.parse(path.read_bytes()))
    return imported


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
        waiting |= _imported_by(name)
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
            digests[name] = known.of_module(_file_of(root / "src", name))
        else:
            installed = known.of_package(name)
            if installed:
                digests[name] = installed
        for pattern in READ_BY.get(name, ()):
            for path in sorted(root.glob(pattern)):
                if not path.is_file() or path.suffix == ".py":
                    continue
                is_yaml = path.suffix == ".yaml"
                digest = known.of_yaml(path) if is_yaml else sha256_of(path)
                digests[path.relative_to(root).as_posix()] = digest
    return digests


@cache
def _file_of(source: Path, module: str) -> Path:
    """Return the file of a module or package of ours."""
    path = source / Path(*module.split("."))
    if path.is_dir():
        return path / "__init__.py"
    return path.with_suffix(".py")


def modules_of_notebook(path: Path) -> set[str]:
    """Return our modules that a notebook imports."""
    imported: set[str] = set()
    for tree, _ in code_of(path):
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and node.module:
                imported.add(node.module)
                imported.update(f"{node.module}.{alias.name}" for alias in node.names)
        imported |= homes_in(tree)
    modules = imported & _graph().modules  # a name of an import may be a function
    return {name for name in modules if name.startswith(PACKAGES)}


def parameters_of_notebook(path: Path) -> str:
    """Return the tree of the parameters of a notebook."""
    parameters = ""
    for tree, has_parameters in code_of(path):
        if has_parameters:
            parameters += ast.dump(tree)
    return parameters
