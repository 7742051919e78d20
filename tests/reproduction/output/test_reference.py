"""The reference: whole or as it was, of a finished run, next to those of other profiles."""

import json
import os
from pathlib import Path

import pytest

from contamination.errors import InputError
from reproduction.output.compare import renew_reference

OUTPUTS = ("tables/canaries.csv", "tables/canaries.md", "figures/power.svg", "figures/power.png")
KEPT = {*OUTPUTS[:3], "tables/run_steps.md", "tables/run_versions.md", "manifest.json"}
KEPT |= {"variables.yml", "report/report.pdf"}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Return the results of a finished run, with files that the reference leaves out."""
    results = tmp_path / "results"
    notebook = "notebooks/01_canary_eval.ipynb"
    steps = {"notebook 01_canary_eval": {"seconds": 1.0}}
    manifest = {"profile": "laptop", "commit": "0123456789ab", "steps": steps}
    for age, name in enumerate(["tables/old.csv", notebook, *sorted(KEPT | {*OUTPUTS})]):
        path = results / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(manifest) if name == "manifest.json" else name)
        os.utime(path, (age, age))
    return results


def _renew(results: Path) -> list[Path]:
    return renew_reference(results, results / "reference", [results / name for name in OUTPUTS])


def _held(results: Path) -> dict[str, bytes]:
    reference = results / "reference"
    files = [path for path in reference.rglob("*") if path.is_file()]
    return {path.relative_to(reference).as_posix(): path.read_bytes() for path in files}


def test_it_holds_tables_and_drawings_of_the_run_and_nothing_else(results: Path) -> None:
    (results / "reference").mkdir()
    (results / "reference" / "gone.csv").write_text("of an earlier run")
    _renew(results)
    assert _held(results) == {name: (results / name).read_bytes() for name in KEPT}


@pytest.mark.parametrize("lost", ["figures/power.svg", "notebooks/01_canary_eval.ipynb"])
def test_a_run_that_lacks_a_file_changes_nothing(results: Path, lost: str) -> None:
    _renew(results)
    before = _held(results)
    (results / "tables" / "canaries.md").write_text("new")
    (results / lost).unlink()
    with pytest.raises(InputError, match=lost):
        _renew(results)
    assert _held(results) == before


@pytest.mark.parametrize("newer", ["manifest.json", "notebooks/01_canary_eval.ipynb"])
def test_a_run_that_goes_on_is_refused(results: Path, newer: str) -> None:
    os.utime(results / newer, (99, 99))
    with pytest.raises(InputError, match=f"is older than .*{newer}, the run is not finished"):
        _renew(results)
    assert not (results / "reference").exists()


def test_what_an_interrupted_or_renamed_notebook_left_is_no_step(results: Path) -> None:
    for name in ("01_canary_eval.failed.ipynb", "08_old_name.ipynb"):
        (results / "notebooks" / name).write_text("left")
    assert len(_renew(results)) == len(KEPT)


def test_a_run_of_another_profile_has_a_folder_of_its_own(results: Path) -> None:
    _renew(results)
    before = _held(results)
    manifest = results / "manifest.json"
    age = manifest.stat().st_mtime
    manifest.write_text('{"profile": "pocket", "steps": {}}')
    os.utime(manifest, (age, age))
    _renew(results)
    pocket = {f"pocket/{name}": (results / name).read_bytes() for name in KEPT}
    assert _held(results) == before | pocket
    manifest.write_bytes(before["manifest.json"])
    os.utime(manifest, (age, age))
    _renew(results)
    assert _held(results) == before | pocket
