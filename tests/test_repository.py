"""The repository as a reader meets it: pure statistics, profiles, exact pins, citation."""

import re
import subprocess
import sys
import tomllib
from functools import cache

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from fakes.data_fixtures import PROFILES, ROOT
from reproduction.run.profile import load_profile

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_statistics_are_used_without_torch_or_a_seed_of_their_own() -> None:
    code = (
        "import sys, contamination.statistics as s; [getattr(s, name) for name in s.__all__]; "
        "sys.exit(bool({'torch', 'pandas'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    for path in (ROOT / "src" / "contamination" / "statistics").glob("*.py"):
        assert not re.search(r"default_rng\(|random\.seed", path.read_text(encoding="utf-8")), path


@pytest.mark.parametrize("path", PROFILES, ids=lambda p: p.stem)
def test_profiles_load_and_use_locked_packages(path) -> None:
    """Same lock, same corpus: what is harvested must be pinned."""
    profile = load_profile(path)
    if profile.pretraining is not None:
        harvested = {*profile.corpus.packages, *profile.corpus.held_out}
        assert {canonicalize_name(name) for name in harvested} <= set(_lock())


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
    extras = PROJECT["project"]["optional-dependencies"]
    wanted = [text for name, texts in extras.items() if name != "quarto" for text in texts]
    wanted += PROJECT["project"]["dependencies"] + PROJECT["build-system"]["requires"]
    for requirement in map(Requirement, wanted):
        if canonicalize_name(requirement.name) != PROJECT["project"]["name"]:
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


def test_citation_names_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "title", "authors", "message"} <= set(citation)
    assert citation["version"] == PROJECT["project"]["version"]
