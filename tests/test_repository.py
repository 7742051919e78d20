"""The repository as a reader meets it: pure statistics, exact pins."""

import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions

import grimp
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from fakes.data_fixtures import ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]


EXTRAS_OF_THE_LIBRARY = ("models", "hub", "endpoint", "seal")


@pytest.mark.parametrize(
    ("package", "extras"),
    [
        ("contamination", EXTRAS_OF_THE_LIBRARY),
        ("reproduction", (*EXTRAS_OF_THE_LIBRARY, "reproduce")),
    ],
)
def test_a_package_imports_what_is_declared_for_it(package: str, extras: tuple[str, ...]) -> None:
    declared = list(PROJECT["dependencies"])
    for extra in extras:
        declared += PROJECT["optional-dependencies"][extra]
    names = {canonicalize_name(Requirement(line).name) for line in declared}
    graph = grimp.build_graph(package, include_external_packages=True, cache_dir=None)
    own_environment = {"lm_eval", "inspect_ai"}
    known = {*sys.stdlib_module_names, "contamination", "reproduction", *own_environment}
    imported = {name for name in graph.modules if graph.is_module_squashed(name)} - known
    assert len(imported) > 10
    distributions = packages_distributions()
    undeclared = set()
    for module in imported:
        if names.isdisjoint(map(canonicalize_name, distributions[module])):
            undeclared.add(module)
    assert undeclared == set()


def test_the_statistics_are_used_without_torch_or_a_seed_of_their_own() -> None:
    code = (
        "import sys, contamination.statistics as s; [getattr(s, name) for name in s.__all__]; "
        "sys.exit(bool({'torch', 'pandas'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    for path in (ROOT / "src" / "contamination" / "statistics").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        code = re.sub(r"^ *(>>>|\.\.\.) .*$", "", text, flags=re.MULTILINE)  # without examples
        assert not re.search(r"default_rng\(|random\.seed", code), path


@cache
def _lock() -> dict[str, str]:
    """Name -> version of the lock file; fails unless every line is an exact pin."""
    pins = {}
    for line in (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines():
        match = re.fullmatch(r"([A-Za-z0-9._-]+)==([A-Za-z0-9.!+]+)( ; .+)?", line)
        assert match, line
        Requirement(line)  # the marker parses
        assert canonicalize_name(match[1]) not in pins, f"{match[1]} is pinned twice"
        pins[canonicalize_name(match[1])] = match[2]
    return pins


def test_lock_satisfies_every_dependency() -> None:
    extras = PROJECT["optional-dependencies"]
    wanted = PROJECT["dependencies"] + PYPROJECT["build-system"]["requires"]
    for name, texts in extras.items():
        if name not in ("quarto", "harness", "inspect"):
            wanted += texts
    for requirement in map(Requirement, wanted):
        if canonicalize_name(requirement.name) != PROJECT["name"]:
            pinned = _lock()[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(pinned), f"{requirement}, locked {pinned}"
    assert _lock()["torch"] == "2.13.0"
    # The report's optional renderer downloads at build time and must stay out.
    assert "quarto-cli" not in _lock()


def test_conda_environment_has_the_versions_of_the_lock() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    conda = [entry for entry in environment["dependencies"] if isinstance(entry, str)]
    (pip,) = [entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict)]
    assert any(re.match(r"quarto\b", entry) for entry in conda)
    assert any(re.match(r"(-r|--requirement)\s*=?\s*requirements\.lock$", entry) for entry in pip)
    for entry in (e for e in [*pip, *conda] if not e.startswith("-")):
        name, rest = re.match(r"([A-Za-z0-9._-]+)[\s=<>~!]*(.*)", entry).groups()
        assert rest == _lock().get(canonicalize_name(name), rest), entry


def test_the_hooks_of_a_commit_name_files_that_are_there() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    hooks = [hook for repository in config["repos"] for hook in repository["hooks"]]
    named = [word for hook in hooks for word in hook["entry"].split() if word.endswith(".py")]
    assert named
    assert [name for name in named if not (ROOT / name).is_file()] == []
