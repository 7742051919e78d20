"""What an installation brings: each package imports what pyproject.toml declares for it."""

import re
import sys
import tomllib
from importlib.metadata import packages_distributions

import grimp
import pytest

from fakes.data_fixtures import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def _names(requirements: list[str]) -> set[str]:
    return {re.match(r"[\w-]+", each)[0].lower().replace("_", "-") for each in requirements}


LIBRARY = _names(PROJECT["dependencies"])
EXTRA = _names(PROJECT["optional-dependencies"]["reproduce"])


@pytest.mark.parametrize(
    ("package", "declared"), [("contamination", LIBRARY), ("reproduction", LIBRARY | EXTRA)]
)
def test_a_package_imports_what_is_declared_for_it(package: str, declared: set[str]) -> None:
    graph = grimp.build_graph(package, include_external_packages=True, cache_dir=None)
    known = {*sys.stdlib_module_names, "contamination", "reproduction"}
    imported = {name for name in graph.modules if graph.is_module_squashed(name)} - known
    providers = packages_distributions()
    assert len(imported) > 10
    missing = {
        name
        for name in imported
        if not {each.lower().replace("_", "-") for each in providers[name]} & declared
    }
    assert not missing


def test_the_library_needs_no_tool_of_the_reproduction() -> None:
    assert not LIBRARY & {"jupyterlab", "papermill", "matplotlib", "seaborn", "sympy", "networkx"}
    assert not LIBRARY & EXTRA


def test_the_lock_has_all_that_is_declared() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    locked = {line.partition("==")[0] for line in lock.splitlines()}
    assert {*LIBRARY, *EXTRA, *_names(PROJECT["optional-dependencies"]["dev"])} <= locked
