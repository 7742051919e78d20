"""What is published: wheel and source archive, and the action for continuous integration."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

from fakes.data_fixtures import ROOT

BUILD = "import setuptools.build_meta as b; b.build_wheel('dist'); b.build_sdist('dist')"


def _tracked(*patterns: str) -> set[str]:
    listed = ["git", "-C", ROOT, "ls-files", *patterns]
    if not (ROOT / ".git").exists():
        pytest.skip("the files of the package are those that git tracks")
    return set(subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split())


def test_wheel_and_source_archive_hold_the_packages_and_nothing_else(tmp_path: Path) -> None:
    """In a copy: a build folder of an older state would be packed, too."""
    sources = _tracked("src")
    for name in sources | {"pyproject.toml", "README.md", "LICENSE"}:
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
    assert not [name for name in packed if name.startswith(("tests", "results", "build"))]


@pytest.mark.parametrize(
    ("dataset", "arguments", "status", "said"),
    [
        ("set.jsonl", "--template 'Q {text}\\n' --permutations 3 --shards 5", "0", "verdict"),
        ("set.jsonl", "--shards 5 --alpha '$(touch stolen)'", "2", "--alpha"),
        ("missing.jsonl; touch stolen", "", "2", "missing.jsonl"),
    ],
)
def test_the_action_runs_the_command(
    dataset: str, arguments: str, status: str, said: str, model_directory: Path, tmp_path: Path
) -> None:
    """As a runner does: a script of bash, with the inputs in variables."""
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    (step,) = [step for step in action["runs"]["steps"] if step.get("id") == "test"]
    lines = (json.dumps({"text": f"lamp {i} stone"}) for i in range(20))
    (tmp_path / "set.jsonl").write_text("\n".join(lines))
    values = {"PYTHON": sys.executable, "MODEL": str(model_directory), "DATASET": dataset}
    values |= {"ARGUMENTS": arguments, "GITHUB_OUTPUT": str(tmp_path / "output")}
    assert set(step["env"]) <= values.keys()
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", step["run"]],
        cwd=tmp_path,
        env=os.environ | values,
        capture_output=True,
        text=True,
    )
    assert str(done.returncode) == status, done.stderr
    assert said in done.stdout + done.stderr
    assert (tmp_path / "output").read_text() == f"status={status}\n"
    assert not (tmp_path / "stolen").exists()
