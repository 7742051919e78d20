"""The manifest of a run, and the tables and numbers that the report takes from it.

The manifest has profile, seed, git commit, versions, revisions, checksums, and the time
and tokens of each step. A run without a corpus names the models that others have
released instead of those it trained; with CONTAMINATION_REHEARSAL set, the run and its
report say that stand-ins took the places of these. Of a step that was interrupted,
training counts its whole wall time, scoring that of the last start. `tokens_scored` of
the run counts the log-probabilities in the stores of all its steps.
"""

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
import torch
import yaml

from contamination.device import describe, has_bfloat16
from contamination.errors import InputError
from contamination.files import read_json, sha256_of, write_json, write_text
from contamination.scoring.models import find_model
from contamination.scoring.store_format import count_values
from contamination.tables import MISSING, write_markdown
from reproduction.notebooks.table import NOTEBOOKS, listed_notebooks
from reproduction.report.readings import build_variables
from reproduction.run.experiment import MODELS, Experiment
from reproduction.run.profile import Architecture

# set where stand-ins take the places of released models
REHEARSAL = "CONTAMINATION_REHEARSAL"
PACKAGES = (
    "torch",
    "transformers",
    "tokenizers",
    "accelerate",
    "numpy",
    "scipy",
    "pandas",
    "pyarrow",
    "statsmodels",
    "matplotlib",
    "seaborn",
    "papermill",
)


def write_manifest(experiment: Experiment, results: Path, published: Path) -> None:
    """Write `manifest.json` of a finished run, and `variables.yml` for the report.

    The report also quotes the tables `run_steps.md` and `run_versions.md`, written here.

    Parameters
    ----------
    experiment
        The run.
    results
        Directory of its tables and executed notebooks.
    published
        Directory of the papers' tables.

    Raises
    ------
    InputError
        For a profile that trains a released model further, which has no report.
    """
    profile = experiment.profile
    if profile.pretraining is not None and not isinstance(profile.model, Architecture):
        raise InputError(
            f"{profile.name} has no report; its tables are in {results / 'tables'}",
        )
    manifest = _build_manifest(experiment, results)
    write_markdown(_steps_layout(manifest["steps"]), results, "run_steps")
    versions = [("Python", manifest["python"]), *manifest["packages"].items()]
    write_markdown(
        pd.DataFrame(versions, columns=["Package", "Version"]),
        results,
        "run_versions",
    )
    variables = build_variables(profile, manifest, results, published)
    text = yaml.safe_dump(variables, allow_unicode=True, sort_keys=False)
    write_json(results / "manifest.json", manifest)
    write_text(results / "variables.yml", text)


def _steps_layout(steps: dict[str, dict[str, Any]]) -> pd.DataFrame:
    """Lay out minutes and tokens of every step, the sum of minutes last.

    Tokens are those read by a step that trains or scores canary sets, or else those
    whose log-probabilities the step stored.
    """
    costs = pd.DataFrame(steps, index=["seconds", "tokens", "tokens_scored"]).T
    minutes = (costs["seconds"] / 60).map("{:.1f}".format)
    counted = costs["tokens"].fillna(costs["tokens_scored"])
    tokens = counted.map("{:,.0f}".format, na_action="ignore").fillna(MISSING)
    table = pd.DataFrame({"Step": costs.index, "Minutes": minutes, "Tokens": tokens})
    table.loc["together"] = [
        "**together**",
        f"**{costs['seconds'].sum() / 60:.1f}**",
        MISSING,
    ]
    return table


def _build_manifest(experiment: Experiment, results: Path) -> dict[str, Any]:
    """Collect what the stages and the executed notebooks recorded."""
    profile = experiment.profile
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    steps: dict[str, dict[str, Any]] = {}
    if profile.pretraining is None:
        about_models: dict[str, Any] = {"released": _released(results)}
    else:
        steps |= _trained_steps(experiment)
        about_models = _trained_facts(experiment)
    steps |= _measuring_steps(experiment)
    for name in listed_notebooks(experiment):
        path = results / "notebooks" / f"{name}.ipynb"
        if path.is_file():
            metadata = read_json(path)["metadata"]
            steps[f"notebook {name}"] = {"seconds": metadata["papermill"]["duration"]}
    manifest: dict[str, Any] = {"profile": profile.name, "seed": profile.seed}
    if os.environ.get(REHEARSAL):
        manifest["rehearsal"] = True
    manifest |= {
        "commit": _git_commit(),
        "hardware": describe(device),
        "machine": _machine(device),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
    }
    manifest |= about_models
    packages = [NOTEBOOKS[name].package for name in listed_notebooks(experiment)]
    folders = [experiment.build, *(experiment.build / package for package in packages)]
    manifest["tokens_scored"] = sum(_tokens_in(folder / "stores") for folder in folders)
    manifest["steps"] = steps
    return manifest


def _measuring_steps(experiment: Experiment) -> dict[str, dict[str, Any]]:
    """Return the seconds of the passes of each notebook, and tokens scored if stores show them.

    They do where the notebook has stores of its own. Passes that share stores with
    others, or keep no stores, are not counted for each step.
    """
    build = experiment.build
    steps: dict[str, dict[str, Any]] = {}
    for name in listed_notebooks(experiment):
        record = build / "scores" / f"{name}.json"
        if not record.is_file():
            continue
        step: dict[str, Any] = {"seconds": read_json(record)["seconds"]}
        package = NOTEBOOKS[name].package
        tokens = _tokens_in(build / package / "stores") + _tokens_in(build / "stores" / package)
        if tokens:
            step["tokens_scored"] = tokens
        steps[f"measure {name}"] = step
    return steps


def _tokens_in(stores: Path) -> int:
    """Return the number of log-probabilities in all stores of a directory."""
    return sum(map(count_values, stores.rglob("part-*.parquet")))


def _training_of(experiment: Experiment) -> dict[str, dict[str, Any]]:
    """Return what training recorded of every model, by name."""
    return {
        model: read_json(experiment.model(model) / "training.json") for model in experiment.shapes
    }


def _trained_steps(experiment: Experiment) -> dict[str, dict[str, Any]]:
    """Return seconds and tokens of the corpus, of training, and of scoring canary sets."""
    corpus = experiment.corpus_facts
    steps = {"corpus": {"seconds": corpus["seconds"], "tokens": corpus["tokens"]}}
    for model, training in _training_of(experiment).items():
        steps[f"train {model}"] = {
            "seconds": training["seconds"],
            "tokens": training["tokens"],
        }
    for model in MODELS:
        scored = read_json(experiment.build / "stores" / f"{model}.json")
        tokens = sum(scored["tokens"].values())
        steps[f"score {model}"] = {"seconds": scored["seconds"], "tokens": tokens}
    return steps


def _trained_facts(experiment: Experiment) -> dict[str, Any]:
    """Return the facts of the corpus, the canary sets and the models."""
    corpus = experiment.corpus_facts
    models = {}
    for model, training in _training_of(experiment).items():
        facts = {"sha256": sha256_of(experiment.model(model) / "model.safetensors")}
        facts |= {name: training[name] for name in ("parameters", "steps", "tokens", "final_loss")}
        models[model] = facts
    names = ("packages", "documents", "characters", "tokens", "sha256")
    return {
        "corpus": {name: corpus[name] for name in names},
        "canaries": corpus["canaries"],
        "models": models,
    }


def _released(results: Path) -> dict[str, dict[str, str]]:
    """Name every model of the tables with its hub id and the revision that was read."""
    models: dict[str, dict[str, str]] = {}
    for path in sorted((results / "tables").glob("*.csv")):
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
        if not {"model", "model_revision"} <= set(table):
            continue
        read = table[table["model_revision"] != ""].drop_duplicates("model")
        for model, revision in zip(read["model"], read["model_revision"], strict=True):
            models.setdefault(model, {"id": find_model(model).id, "revision": revision})
    return models


def _knows_bfloat16(device: torch.device) -> bool:
    """Return whether the device has instructions for bfloat16, be they fast or not."""
    if device.type == "cuda":
        return has_bfloat16(device)
    able = torch.cpu.get_capabilities()
    return any(able.get(name, False) for name in ("avx512_bf16", "amx_bf16", "bf16"))


def _machine(device: torch.device) -> dict[str, Any]:
    """Return what can move the last digits of a number, without this machine's name.

    `precision` is that in which models were trained and scored. It is float32 without
    bfloat16, and where bfloat16 is slower than float32.
    """
    return {
        "system": platform.system(),
        "architecture": platform.machine(),
        "processor": torch.cpu.get_capabilities().get("cpu_name") or platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "accelerators": torch.cuda.device_count(),
        "bfloat16": _knows_bfloat16(device),
        "precision": "bfloat16" if has_bfloat16(device) else "float32",
    }


def _git_commit() -> str:
    """Return the commit of the working tree, with `+changes`, else "unknown"."""
    command = ["git", "status", "--porcelain=v2", "--branch"]
    try:
        status = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    # "# branch.oid COMMIT", more of the branch, changes
    first, *others = status.splitlines()
    commit = first.split()[-1][:12]
    is_changed = any(not line.startswith("#") for line in others)
    return f"{commit}+changes" if is_changed else commit
