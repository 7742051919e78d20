"""The reference: whole or as it was, of a finished run of `laptop` alone, and complete in git."""

import json
import os
from pathlib import Path

import pytest

OUTPUTS = ("tables/canaries.csv", "tables/canaries.md", "figures/power.svg", "figures/power.png")
KEPT = {*OUTPUTS[:3], "tables/run_steps.md", "tables/run_versions.md", "manifest.json"}
KEPT |= {"variables.yml", "report/report.pdf"}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Return the results of a finished run, with files that the reference leaves out."""
    results = tmp_path / "results"
    notebook = "notebooks/01_canary_eval.ipynb"
    manifest = {"profile": "laptop", "commit": "0123456789ab"}
    for age, name in enumerate(["tables/old.csv", notebook, *sorted(KEPT | {*OUTPUTS})]):
        path = results / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(manifest) if name == "manifest.json" else name)
        os.utime(path, (age, age))
    return results


def _renew(call, results: Path) -> tuple[int, str, str]:
    outputs = [results / name for name in OUTPUTS]
    reference = results / "reference"
    return call("stage", "reference", "--results", results, "--reference", reference, *outputs)


def _held(results: Path) -> dict[str, bytes]:
    reference = results / "reference"
    files = [path for path in reference.rglob("*") if path.is_file()]
    return {path.relative_to(reference).as_posix(): path.read_bytes() for path in files}


def test_it_holds_tables_and_drawings_of_the_run_and_nothing_else(call, results: Path) -> None:
    (results / "reference").mkdir()
    (results / "reference" / "gone.csv").write_text("of an earlier run")
    status, out, err = _renew(call, results)
    assert status == 0, err
    assert out.endswith("8 files, 0.0 MB, of a run of commit 0123456789ab\n")
    assert _held(results) == {name: (results / name).read_bytes() for name in KEPT}


@pytest.mark.parametrize("lost", sorted(KEPT))
def test_a_run_that_lacks_a_file_changes_nothing(call, results: Path, lost: str) -> None:
    _renew(call, results)
    before = _held(results)
    (results / "tables" / "canaries.md").write_text("new")
    (results / lost).unlink()
    status, out, err = _renew(call, results)
    assert (status, out) == (2, "")
    assert lost in err and "run " in err
    assert _held(results) == before


@pytest.mark.parametrize("newer", ["manifest.json", "notebooks/01_canary_eval.ipynb"])
def test_a_run_that_goes_on_is_refused(call, results: Path, newer: str) -> None:
    os.utime(results / newer, (99, 99))
    status, _, err = _renew(call, results)
    assert status == 2
    assert f"is older than {results / newer}, the run is not finished: run `make" in err
    assert not (results / "reference").exists()


def test_another_profile_is_refused(call, results: Path) -> None:
    manifest = results / "manifest.json"
    manifest.write_text(manifest.read_text().replace("laptop", "quick"))
    status, _, err = _renew(call, results)
    assert status == 2
    assert err == f"error: {manifest}: a run of quick; the reference is one of laptop\n"
