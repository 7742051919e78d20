"""`make rehearse`: what it must leave is checked; its profile is the real one but for size."""

import json
from pathlib import Path

import pandas as pd
import pytest
from rehearsal import run
from rehearsal.check import check

WANTED = {
    "notebooks": ["03_audit"],
    "reasons": {"org/model": "no token"},
    "taught": ["learnt", "canaries/piqa"],
}


@pytest.fixture
def results(tmp_path) -> Path:
    for folder in ("notebooks", "tables", "report"):
        (tmp_path / folder).mkdir()
    (tmp_path / "notebooks" / "03_audit.ipynb").write_text("{}")
    (tmp_path / "report" / "report.html").write_text('<div class="rehearsal">')
    (tmp_path / "report" / "report.pdf").write_text("")
    manifest = {"rehearsal": True, "released": ["learnt"], "tokens_scored": 1}
    manifest["steps"] = {"notebook 03_audit": {}}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    statuses = ["ok", "failed: org/model: there is no token", "not asked: too large"]
    statuses.append("not pooled: 0 sets")
    pd.DataFrame({"status": statuses}).to_csv(tmp_path / "tables" / "papers.csv")
    row = {"model": "learnt", "dataset": "canaries/piqa", "test": "successor", "p": 1e-9}
    blank = row | {"model": "blank", "p": 0.3}
    pd.DataFrame([row, blank]).to_csv(tmp_path / "tables" / "open_models.csv", index=False)
    return tmp_path


@pytest.mark.parametrize(
    ("file", "old", "new", "problem"),
    [
        ("notebooks/03_audit.ipynb", None, "", "notebook 03_audit was not executed"),
        ("tables/papers.csv", "no token", "none", "no status says of org/model: no token"),
        ("tables/papers.csv", "not asked: too large", "", "papers.csv: 1 rows do not say why"),
        ("tables/open_models.csv", "1e-09", "0.2", "learnt canaries/piqa, and p is 0.2"),
        ("tables/open_models.csv", "0.3", "1e-6", "blank has read nothing"),
        ("manifest.json", "true", "false", "manifest.json.*rehearsal"),
    ],
)
def test_what_is_not_is_found(results, file, old, new, problem):
    check(results, **WANTED)  # nothing is wrong yet
    path = results / file
    if old is None:
        path.unlink()
    else:
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))
    with pytest.raises(SystemExit, match=problem):
        check(results, **WANTED)


def test_the_profile_keeps_its_notebooks_and_models(tmp_path, monkeypatch) -> None:
    small, whole = run.shortened()["notebooks"], run.Experiment(run.PROFILE, tmp_path).profile
    assert list(small) == [*whole.notebooks, run.RELEASED]
    for name, given in whole.notebooks.items():
        for key in given.keys() - run.LIMITS.keys() - run.OTHERWISE.get(name, {}).keys():
            kept = small[name][key]
            if name == run.AUDIT and key in ("models", "sets"):  # what is taught is audited, too
                kept = kept[: len(given[key])]
            assert kept == given[key], (name, key)
    assert small["03_open_model_audit"]["permutations"] == 3
