"""The repository as a reader meets it: what every file of a kind must have."""

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from fakes.data_fixtures import PROFILES, ROOT
from reproduction.run.profile import load_profile

SOURCES = ROOT / "src" / "contamination"
MODULES = sorted(SOURCES.rglob("*.py"))
STATISTICS = sorted((SOURCES / "statistics").glob("*.py"))
MOST_LINES = 400


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def test_what_no_other_test_reads_is_there() -> None:
    for name in ("LICENSE", ".ci/run", ".pre-commit-config.yaml", ".gitignore"):
        assert (ROOT / name).stat().st_size > 0, name
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111, "not executable"


# --- modules --------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.relative_to(SOURCES).as_posix())
def test_modules_have_a_docstring_and_are_short(path: Path) -> None:
    assert ast.get_docstring(_tree(path))
    lines = path.read_text(encoding="utf-8").count("\n")
    if path in STATISTICS:
        # Their docstrings state hypotheses, guarantees and references, and may be long.
        lines -= sum(_docstring_lines(node) for node in ast.walk(_tree(path)))
    assert lines < MOST_LINES


def _docstring_lines(node: ast.AST) -> int:
    if not isinstance(node, ast.ClassDef | ast.FunctionDef) or not ast.get_docstring(node):
        return 0
    return (node.body[0].end_lineno or 0) - node.body[0].lineno + 1


def _imports(path: Path) -> set[str]:
    """Top-level packages, or `contamination.module`, that a module imports."""
    names = set()
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            names.add(node.module or "")
    return {n if n.startswith("contamination") else n.partition(".")[0] for n in names}


@pytest.mark.parametrize("path", STATISTICS, ids=lambda p: p.stem)
def test_statistics_are_pure(path: Path) -> None:
    pure = {
        *("collections", "dataclasses", "functools", "itertools", "math", "typing"),
        *("numpy", "scipy", "statsmodels", "contamination.errors"),
    }
    own = {name for name in _imports(path) if name.startswith("contamination.statistics")}
    lazy = {"importlib", "pkgutil"} if path.stem == "__init__" else set()  # exports on first use
    assert _imports(path) - own - lazy <= pure
    called = {
        node.func.id
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not called & {"open", "print", "input", "exec", "eval"}
    # Random numbers come from the caller's generator alone.
    assert "default_rng(" not in path.read_text(encoding="utf-8")
    assert "np.random.seed" not in path.read_text(encoding="utf-8")


# --- profiles -------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PROFILES, ids=lambda p: p.stem)
def test_profiles_load_and_use_locked_packages(path: Path) -> None:
    """Same lock, same corpus: what is harvested must be pinned."""
    profile = load_profile(path)
    if profile.pretraining is None:
        return
    assert {canonicalize_name(name) for name in profile.corpus.packages} <= set(_lock())
    assert {canonicalize_name(name) for name in profile.corpus.held_out} <= set(_lock())


def test_all_profiles_are_there() -> None:
    studies = {"study", "study-2", "frontier", "frontier-2"}
    names = {"quick", "laptop", "benchmarks", "paper", "open", "open-small"} | studies
    assert {p.stem for p in PROFILES} == names


# --- pins -----------------------------------------------------------------------------------------


@cache
def _lock() -> dict[str, str]:
    """Name -> version of the lock file; fails unless every line is an exact pin."""
    pins = {}
    for line in (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        match = re.fullmatch(r"([A-Za-z0-9._-]+)==([A-Za-z0-9.!+]+)( ; .+)?", line)
        assert match, line
        Requirement(line)  # the marker parses
        assert canonicalize_name(match[1]) not in pins, f"{match[1]} is pinned twice"
        pins[canonicalize_name(match[1])] = match[2]
    return pins


def test_the_statistics_are_used_without_torch() -> None:
    code = (
        "import sys, contamination.statistics as s; [getattr(s, name) for name in s.__all__]; "
        "sys.exit(bool({'torch', 'pandas'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_torch_is_pinned_exactly() -> None:
    assert _lock()["torch"] == "2.13.0"


def test_lock_satisfies_every_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    wanted = project["project"]["dependencies"] + extras["dev"]
    wanted += project["build-system"]["requires"]  # `--no-build-isolation`
    for text in wanted:
        requirement = Requirement(text)
        pinned = _lock()[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(pinned), f"{text}, locked {pinned}"
    # The report's optional renderer downloads at build time and must stay out.
    assert "quarto-cli" not in _lock()


def test_conda_environment_has_the_versions_of_the_lock() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    entries = environment["dependencies"]
    conda = [entry for entry in entries if isinstance(entry, str)]
    (pip,) = [entry["pip"] for entry in entries if isinstance(entry, dict)]
    assert "pip" in conda
    assert any(re.match(r"quarto\b", entry) for entry in conda)
    named = [entry for entry in pip if not entry.startswith("-")] + conda
    pinned = 0
    for entry in named:
        name, _, rest = re.match(r"([A-Za-z0-9._-]+)\s*((?:[=<>~!]=?)*)(.*)", entry).groups()
        if (version := _lock().get(canonicalize_name(name))) is not None:
            assert rest == version, f"{entry}, locked {version}"
            pinned += 1
    whole_lock = [e for e in pip if re.match(r"(-r|--requirement)\s*=?\s*requirements\.lock$", e)]
    assert whole_lock or pinned >= len(_lock())


# --- texts ----------------------------------------------------------------------------------------


def test_citation_file() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert citation["cff-version"]
    assert {"title", "authors", "message"} <= set(citation)
    assert citation["version"] == project["version"]


def test_the_map_of_the_code_is_that_of_today() -> None:
    sys.path.insert(0, str(ROOT / "scripts"))
    from code_map import PAGE, renewed

    page = PAGE.read_text(encoding="utf-8")
    assert renewed(page) == page, "run python scripts/code_map.py"
