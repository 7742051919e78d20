"""What a run says of itself: every number is the one that was recorded."""

import re
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import nbformat
import pandas as pd
import pytest
import yaml

from contamination.files import read_json, sha256_of
from contamination.tables import write_csv
from fakes.data_fixtures import ROOT, MadeUpRun
from fakes.made_up_run import PAPER, variables_used
from fakes.made_up_tables import FILES
from reproduction.notebooks.canaries.tables import canary_table
from reproduction.notebooks.mmlu.tables import fisher_table, published_subsets
from reproduction.output.published import load_published
from reproduction.report.manifest import PACKAGES, write_manifest
from reproduction.report.render import DOCUMENTS
from reproduction.report.variables import _results, build_variables
from reproduction.run.experiment import Experiment
from reproduction.run.profile import load_profile

PUBLISHED = ROOT / "data" / "published"
Variables = dict[str, dict[str, str]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MadeUpRun]:
    made_up = MadeUpRun(tmp_path_factory.mktemp("run"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Experiment, "scored", made_up.stand_in())
        table = canary_table(made_up.experiment, alpha=0.05, redrawn=40)
        write_csv(table, made_up.results, "canaries")
    subsets = published_subsets(load_published(PUBLISHED, "oren2024_table4_mmlu"), 0.05)
    write_csv(subsets, made_up.results, "mmlu_subsets")
    table2 = load_published(PUBLISHED, "oren2024_table2_open_models")
    write_csv(fisher_table(subsets, table2), made_up.results, "mmlu_fisher")
    for name, table in FILES.items():
        write_csv(table, made_up.results, name)
    notebook = nbformat.v4.new_notebook(metadata={"papermill": {"duration": 7.5}})
    (made_up.results / "notebooks").mkdir()
    nbformat.write(notebook, made_up.results / "notebooks" / "01_canary_eval.ipynb")
    write_manifest(made_up.experiment, made_up.results, PUBLISHED)
    yield made_up


@pytest.fixture(scope="module")
def manifest(run: MadeUpRun) -> dict[str, Any]:
    return read_json(run.results / "manifest.json")


@pytest.fixture(scope="module")
def variables(run: MadeUpRun) -> Variables:
    return yaml.safe_load((run.results / "variables.yml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def canaries(run: MadeUpRun) -> pd.DataFrame:
    return pd.read_csv(run.results / "tables" / "canaries.csv")


def test_manifest_says_what_ran(manifest: dict[str, Any], run: MadeUpRun) -> None:
    assert (manifest["profile"], manifest["seed"]) == ("tiny", 5)
    assert re.fullmatch(r"[0-9a-f]{12}(\+changes)?|unknown", manifest["commit"])
    assert set(manifest["packages"]) == set(PACKAGES)
    assert manifest["packages"]["torch"] == version("torch")
    corpus = run.experiment.corpus_facts
    assert manifest["corpus"]["sha256"] == corpus["sha256"]
    assert manifest["canaries"] == corpus["canaries"]  # with their revisions
    for model in ("contaminated", "clean"):
        weights = run.experiment.model(model) / "model.safetensors"
        assert manifest["models"][model]["sha256"] == sha256_of(weights)
    assert manifest["models"]["clean"]["sha256"] != manifest["models"]["contaminated"]["sha256"]


def test_tokens_scored_are_those_of_all_stores(manifest: dict[str, Any], run: MadeUpRun) -> None:
    parts = list((run.experiment.build / "stores").rglob("*.parquet"))
    assert manifest["tokens_scored"] == sum(len(pd.read_parquet(part)) for part in parts) > 0


def test_tables_of_the_report_repeat_the_manifest(manifest: dict[str, Any], run: MadeUpRun) -> None:
    steps, versions = (
        (run.results / "tables" / f"run_{name}.md").read_text(encoding="utf-8").splitlines()
        for name in ("steps", "versions")
    )
    assert steps[1] == "|:---|---:|---:|"
    assert "| corpus | 1.0 | 98,765 |" in steps
    assert "| train contaminated | 2.0 | 50,000 |" in steps
    assert "| notebook 01_canary_eval | 0.1 | — |" in steps
    total = sum(step["seconds"] for step in manifest["steps"].values()) / 60
    assert steps[-1] == f"| **together** | **{total:.1f}** | — |"
    assert len(steps) == 3 + len(manifest["steps"])
    assert f"| torch | {version('torch')} |" in versions
    assert len(versions) == 3 + len(PACKAGES)


def test_manifest_has_time_and_tokens_of_every_step(manifest: dict[str, Any]) -> None:
    assert manifest["steps"] == {
        "corpus": {"seconds": 60.0, "tokens": 98765},
        "train contaminated": {"seconds": 120.0, "tokens": 50_000},
        "score contaminated": {"seconds": 30.0, "tokens": 3000},
        "train clean": {"seconds": 121.0, "tokens": 50_001},
        "score clean": {"seconds": 30.0, "tokens": 3001},
        "notebook 01_canary_eval": {"seconds": 7.5},
    }


def test_variables_of_the_reference_are_those_of_its_tables() -> None:
    reference = ROOT / "results" / "reference"
    profile = load_profile(ROOT / "profiles" / "laptop.yaml")
    built = build_variables(profile, read_json(reference / "manifest.json"), reference, PUBLISHED)
    written = yaml.safe_load((reference / "variables.yml").read_text(encoding="utf-8"))
    for group, values in written.items():
        assert values.items() <= built[group].items(), group


def test_the_report_finds_every_variable(variables: Variables) -> None:
    names = {f"{group}.{name}" for group, values in variables.items() for name in values}
    assert set() < set(variables_used(*(PAPER / name for name in DOCUMENTS))) <= names
    assert all(isinstance(v, str) and v for values in variables.values() for v in values.values())


def test_detection_is_after_holm_and_the_largest_p_is_the_largest(canaries) -> None:
    rows = canaries[(canaries["test"] == "sharded_exact") & (canaries["model"] == "contaminated")]
    rows = rows.set_index("dataset").loc[["one", "eight", "sixty-four"]].reset_index()
    rows = rows.assign(
        dup_count=[2, 32, 64],
        p=[0.04, 2e-200, 2.2250738585072014e-308],
        log10_p=[-1.4, -199.7, -400.0],
        holm_p=[0.06, 4e-200, 1e-307],
    )
    # The other model and the other tests must not be counted.
    clean = rows.assign(model="clean", holm_p=[0.3, 0.2, 0.9])
    other = rows.assign(test="sharded_t", dup_count=1, holm_p=1e-9)
    neighbours = rows.assign(test="successor", dup_count=[4, 4, 64], holm_p=[0.05, 0.06, 0.01])
    found = _results(pd.concat([rows, clean, other, neighbours]), 0.05)
    assert found["successor_detected"] == "2"
    assert found["successor_smallest_detected_dup"] == "4"
    assert found["detected"] == "2"
    assert found["smallest_detected_dup"] == "32"
    assert found["sets_at_32_or_more"] == "2"
    assert found["largest_p_at_32_or_more"] == "2.0\u00a0×\u00a010⁻²⁰⁰"
    assert found["clean_min_holm_p"] == "0.200"
    assert found["clean_accused"] == "none"
    silent = canaries.assign(p=1.0, log10_p=0.0, holm_p=1.0, dup_count=1)
    found = _results(silent, 0.05)
    assert (found["detected"], found["smallest_detected_dup"]) == ("0", "none")
    assert (found["largest_p_at_32_or_more"], found["clean_min_holm_p"]) == ("—", "1.000")
    # Sets that any test rejects, each counted once.
    accused = pd.concat(
        [
            clean.assign(test=t, holm_p=[0.9, 0.05, h])
            for t, h in [("sharded_exact", 0.9), ("boundary", 0.01)]
        ]
    )
    assert _results(pd.concat([rows, accused]), 0.05)["clean_accused"] == "2"
