"""The manifest of a run: every number is the one that was recorded."""

import re
import shutil
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import pytest
import yaml

from contamination.files import read_json, sha256_of, write_json
from contamination.tables import write_csv
from fakes.data_fixtures import ROOT, MadeUpRun
from fakes.made_up_run import PAPER, variables_used
from reproduction.notebooks.canaries.tables import canary_table
from reproduction.notebooks.mmlu.tables import fisher_table, published_subsets
from reproduction.output.published import load_published
from reproduction.report.manifest import PACKAGES, write_manifest
from reproduction.report.readings_trained import read_canaries
from reproduction.report.render import DOCUMENTS
from reproduction.run.experiment import Experiment

PUBLISHED = ROOT / "data" / "published"
REFERENCE = ROOT / "results" / "reference"
Variables = dict[str, dict[str, str]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MadeUpRun]:
    made_up = MadeUpRun(tmp_path_factory.mktemp("run"))
    shutil.copytree(REFERENCE / "tables", made_up.results / "tables")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Experiment, "scored", made_up.stand_in())
        table = canary_table(made_up.experiment, alpha=0.05, redrawn=40)
        write_csv(table, made_up.results, "canaries")
    subsets = published_subsets(load_published(PUBLISHED, "oren2024_table4_mmlu"), 0.05)
    write_csv(subsets, made_up.results, "mmlu_subsets")
    table2 = load_published(PUBLISHED, "oren2024_table2_open_models")
    write_csv(fisher_table(subsets, table2), made_up.results, "mmlu_fisher")

    notebook = nbformat.v4.new_notebook(metadata={"papermill": {"duration": 7.5}})
    (made_up.results / "notebooks").mkdir()
    # The last two are left of a notebook that failed, and of one that was renamed.
    for stem in ("01_canary_eval", "01_canary_eval.failed", "08_old_name"):
        nbformat.write(notebook, made_up.results / "notebooks" / f"{stem}.ipynb")
    build = made_up.experiment.build
    for notebook_name in ("06_wikimia", "14_option_order", "08_old_name"):
        write_json(build / "scores" / f"{notebook_name}.json", {"seconds": 9.0})
    shutil.copytree(build / "stores" / "clean", build / "options" / "stores" / "clean")
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


def tokens_in(stores: Path) -> int:
    parts = list(stores.rglob("*.parquet"))
    assert parts
    return sum(pd.read_parquet(part)["nats"].map(len).sum() for part in parts)


def test_manifest_says_what_ran(manifest: dict[str, Any], run: MadeUpRun) -> None:
    assert manifest["profile"] == "tiny"
    assert manifest["seed"] == 5
    assert re.fullmatch(r"[0-9a-f]{12}(\+changes)?|unknown", manifest["commit"])
    assert manifest["packages"] == {name: version(name) for name in PACKAGES}
    corpus = run.experiment.corpus_facts
    assert manifest["corpus"]["sha256"] == corpus["sha256"]
    assert manifest["canaries"] == corpus["canaries"]  # with their revisions
    weights = {m: run.experiment.model(m) / "model.safetensors" for m in ("contaminated", "clean")}
    assert {m: manifest["models"][m]["sha256"] for m in weights} == {
        m: sha256_of(path) for m, path in weights.items()
    }
    build = run.experiment.build
    in_stores = tokens_in(build / "stores") + tokens_in(build / "options" / "stores")
    assert manifest["tokens_scored"] == in_stores
    assert manifest["steps"] == {
        "corpus": {"seconds": 60.0, "tokens": 98765},
        "train contaminated": {"seconds": 120.0, "tokens": 50_000},
        "score contaminated": {"seconds": 30.0, "tokens": 3000},
        "train clean": {"seconds": 121.0, "tokens": 50_001},
        "score clean": {"seconds": 30.0, "tokens": 3001},
        "measure 06_wikimia": {"seconds": 9.0},  # keeps no stores
        "measure 14_option_order": {
            "seconds": 9.0,
            "tokens_scored": tokens_in(run.experiment.build / "options" / "stores"),
        },
        "notebook 01_canary_eval": {"seconds": 7.5},
    }


def test_tables_of_the_report_repeat_the_manifest(manifest: dict[str, Any], run: MadeUpRun) -> None:
    tables = run.results / "tables"
    steps = (tables / "run_steps.md").read_text(encoding="utf-8").splitlines()
    assert {"| corpus | 1.0 | 98,765 |", "| notebook 01_canary_eval | 0.1 | — |"} < set(steps)
    total = sum(step["seconds"] for step in manifest["steps"].values()) / 60
    assert steps[-1] == f"| **together** | **{total:.1f}** | — |"
    assert len(steps) == 3 + len(manifest["steps"])
    assert f"| torch | {version('torch')} |" in (tables / "run_versions.md").read_text("utf-8")


@pytest.mark.parametrize("folder", [REFERENCE, REFERENCE / "pocket"])
def test_the_manifest_of_a_reference_has_the_facts_of_today(manifest, folder: Path) -> None:
    held = read_json(folder / "manifest.json")
    of_models = {"corpus", "canaries", "models", "released"}  # trained here, or released by others
    assert held.keys() - of_models == manifest.keys() - of_models
    assert held["machine"].keys() == manifest["machine"].keys()
    assert held["packages"].keys() == manifest["packages"].keys()


def test_the_report_finds_every_variable(variables: Variables) -> None:
    names = {"report.renderer"}  # known only when the pages are made
    for group, values in variables.items():
        names |= {f"{group}.{name}" for name in values}
        assert all(isinstance(value, str) and value for value in values.values())
    assert set() < set(variables_used(*(PAPER / name for name, _ in DOCUMENTS.values()))) <= names


def test_where_nothing_is_detected_and_where_any_test_accuses_the_clean_model(canaries) -> None:
    silent = canaries.assign(p=1.0, log10_p=0.0, holm_p=1.0, dup_count=1)
    found = read_canaries(silent, 0.05)
    assert found["detected"] == "0"
    assert found["smallest_detected_dup"] == "none"
    assert found["largest_p_at_32_or_more"] == "—"
    assert found["clean_min_holm_p"] == "1.000"
    # Sets that any test rejects, each counted once.
    clean = silent["model"] == "clean"
    one = clean & (silent["dataset"] == "one") & (silent["test"] != "permutation")
    accused = silent.assign(holm_p=silent["holm_p"].where(~one, 0.05))
    assert read_canaries(accused, 0.05)["clean_accused"] == "1"
