"""The published files: wheel and source archive, with a core that needs no extra."""

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

from contamination.extras import EXTRAS
from fakes.data_fixtures import ROOT

BUILD = "import setuptools.build_meta as b; b.build_wheel('dist'); b.build_sdist('dist')"


def _tracked(*patterns: str) -> set[str]:
    listed = ["git", "-C", ROOT, "ls-files", *patterns]
    if not (ROOT / ".git").exists():
        pytest.skip("the files of the package are those that git tracks")
    return set(subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split())


def test_wheel_and_source_archive_hold_the_library_and_nothing_else(tmp_path: Path) -> None:
    """In a copy: a build folder of an older state would be packed, too."""
    sources = _tracked("src/contamination")
    for name in _tracked("src") | {"pyproject.toml", "README.md", "LICENSE"}:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    subprocess.run([sys.executable, "-c", BUILD], cwd=tmp_path, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("dist/*.whl")
    inside = {n for n in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in n}
    assert inside == {name.removeprefix("src/") for name in sources}
    (archive,) = tmp_path.glob("dist/*.tar.gz")
    with tarfile.open(archive) as opened:
        packed = {name.partition("/")[2] for name in opened.getnames()}
    assert sources | {"pyproject.toml", "README.md", "LICENSE"} <= packed
    others = ("src/reproduction", "tests", "results", "build")
    assert not [name for name in packed if name.startswith(others)]


def test_the_citation_is_of_this_version_and_of_the_papers_that_the_report_cites() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert citation["version"] == project["version"]
    cited = re.findall(r"url\s*= \{(.*?)\}", (ROOT / "paper/references.bib").read_text("utf-8"))
    papers = [reference["url"] for reference in citation["references"]]
    assert len(papers) == 3
    assert set(papers) <= set(cited)


# Python as it is where only the core is installed: what an extra brings cannot be imported.
CORE_ALONE = """
import sys
from contamination.extras import EXTRAS

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in EXTRAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
from contamination.cli.main import main
main()
"""


def _with_the_core_alone(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a Python that lacks all that an extra brings."""
    command = [sys.executable, "-c", CORE_ALONE, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


def test_the_core_computes_a_shipped_store_again() -> None:
    done = _with_the_core_alone("verify", "data/stores/clean/parameter-16")
    assert done.returncode == 0, done.stderr
    assert "sharded_exact" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (("test", "my_model", "{file}"), "models"),
        (("membership", "my_model", "{file}"), "models"),
        (("data", "fetch", "gsm8k"), "hub"),
    ],
)
def test_the_core_names_the_extra_that_a_command_needs(
    arguments: tuple[str, ...], extra: str, tmp_path: Path
) -> None:
    file = tmp_path / "set.jsonl"
    file.write_text("".join(f'{{"text": "record {i}"}}\n' for i in range(20)))
    done = _with_the_core_alone(*(each.format(file=file) for each in arguments))
    assert done.returncode == 2
    assert f"'.[{extra}]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_every_package_of_an_extra_is_known_to_the_message() -> None:
    """An import name is the distribution's, but for scikit-learn and the like."""
    import_names = {"scikit-learn": "sklearn"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for extra in ("models", "hub", "endpoint", "seal"):
        for requirement in project["optional-dependencies"][extra]:
            distribution = re.split(r"[>=<\[]", requirement)[0]
            name = import_names.get(distribution, distribution.replace("-", "_"))
            assert name in EXTRAS or name == "contamination"


def test_a_notebook_without_widgets_shows_no_warning_about_them() -> None:
    """As `tqdm` warns, whose bars are then text; a new process has the filters of a user."""
    code = "import warnings, contamination; warnings.warn('IProgress not found. Please update')"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT / "src"
    )
    assert done.stderr == ""
