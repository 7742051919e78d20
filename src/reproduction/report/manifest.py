"""What a run was: its manifest, and the tables and numbers that the report takes from it.

The manifest has profile, seed, git commit, versions, revisions, checksums, time and tokens. A run
without a corpus names the models that others have released instead of those it trained; with
CONTAMINATION_REHEARSAL set, the run and its report say that stand-ins took the places of these. Of
a step that was interrupted, training counts its whole wall time, scoring that of the last start.
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
from reproduction.report.readings import build_variables
from reproduction.run.experiment import MODELS, Experiment
from reproduction.run.profile import Architecture

REHEARSAL = "CONTAMINATION_REHEARSAL"  # set where stand-ins take the places of released models
PACKAGES = ["torch", "transformers", "tokenizers", "accelerate", "numpy", "scipy", "pandas"]
PACKAGES += ["pyarrow", "statsmodels", "matplotlib", "seaborn", "papermill"]


def write_manifest(experiment: Experiment, results: Path, published: Path) -> None:
    """Write `manifest.json` of a finished run into `results`, and what the report quotes of it.

    That is `variables.yml`, and the tables `run_steps.md` and `run_versions.md`. Raises InputError
    for a profile that trains a released model further, which has no report.
    """
    profile = experiment.profile
    if profile.pretraining is not None and not isinstance(profile.model, Architecture):
        raise InputError(f"{profile.name} has no report; its tables are in {results / 'tables'}")
    manifest = _build_manifest(experiment, results)
    steps = pd.DataFrame(manifest["steps"], index=["seconds", "tokens"]).T
    minutes = (steps["seconds"] / 60).map("{:.1f}".format)
    tokens = steps["tokens"].map("{:,.0f}".format, na_action="ignore").fillna(MISSING)
    table = pd.DataFrame({"Step": steps.index, "Minutes": minutes, "Tokens": tokens})
    table.loc["together"] = ["**together**", f"**{steps['seconds'].sum() / 60:.1f}**", MISSING]
    write_markdown(table, results, "run_steps")
    versions = {"Python": manifest["python"], **manifest["packages"]}.items()
    write_markdown(pd.DataFrame(versions, columns=["Package", "Version"]), results, "run_versions")
    variables = build_variables(profile, manifest, results, published)
    text = yaml.safe_dump(variables, allow_unicode=True, sort_keys=False)
    write_json(results / "manifest.json", manifest)
    write_text(results / "variables.yml", text)


def _build_manifest(experiment: Experiment, results: Path) -> dict[str, Any]:
    """Collect what the stages and the executed notebooks recorded."""
    profile = experiment.profile
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    trains = profile.pretraining is not None
    steps, facts = _trained(experiment) if trains else ({}, {"released": _released(results)})
    for path in sorted((experiment.build / "scores").glob("*.json")):
        steps[f"measure {path.stem}"] = {"seconds": read_json(path)["seconds"]}
    for path in sorted((results / "notebooks").glob("[0-9]*.ipynb")):
        metadata = read_json(path)["metadata"]
        steps[f"notebook {path.stem}"] = {"seconds": metadata["papermill"]["duration"]}
    return {
        "profile": profile.name,
        "seed": profile.seed,
        **({"rehearsal": True} if os.environ.get(REHEARSAL) else {}),
        "commit": _git_commit(),
        "hardware": describe(device),
        "machine": _machine(device),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        **facts,
        "tokens_scored": sum(
            count_values(part)
            for part in sorted((experiment.build / "stores").rglob("part-*.parquet"))
        ),
        "steps": steps,
    }


def _trained(experiment: Experiment) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Return the steps and the facts of the corpus, of training, and of scoring canary sets."""
    corpus = experiment.corpus_facts
    training = {m: read_json(experiment.model(m) / "training.json") for m in experiment.shapes}
    steps = {"corpus": {"seconds": corpus["seconds"], "tokens": corpus["tokens"]}}
    for model in training:
        steps[f"train {model}"] = {k: training[model][k] for k in ("seconds", "tokens")}
    for model in MODELS:
        scored = read_json(experiment.build / "stores" / f"{model}.json")
        tokens = sum(scored["tokens"].values())
        steps[f"score {model}"] = {"seconds": scored["seconds"], "tokens": tokens}
    return steps, {
        "corpus": {
            k: corpus[k] for k in ("packages", "documents", "characters", "tokens", "sha256")
        },
        "canaries": corpus["canaries"],
        "models": {
            model: {
                "sha256": sha256_of(experiment.model(model) / "model.safetensors"),
                **{k: training[model][k] for k in ("parameters", "steps", "tokens", "final_loss")},
            }
            for model in training
        },
    }


def _released(results: Path) -> dict[str, dict[str, str]]:
    """Name every model of the tables with its hub id and the revision that was read."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted((results / "tables").glob("*.csv")):
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
        if {"model", "model_revision"} <= set(table):
            read = table[table["model_revision"] != ""].drop_duplicates("model")
            for model, revision in zip(read["model"], read["model_revision"], strict=True):
                found.setdefault(model, {"id": find_model(model).id, "revision": revision})
    return found


def _machine(device: torch.device) -> dict[str, Any]:
    """Say what can move the last digits of a number; nothing that names this one machine."""
    return {
        "system": platform.system(),
        "architecture": platform.machine(),
        "processor": torch.cpu.get_capabilities().get("cpu_name") or platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "accelerators": torch.cuda.device_count(),
        "precision": "bfloat16" if has_bfloat16(device) else "float32",
    }


def _git_commit() -> str:
    """Commit of the working tree, marked `+changes` if it has any; "unknown" without git."""
    command = ["git", "status", "--porcelain=v2", "--branch"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    first, *others = said.splitlines()  # "# branch.oid COMMIT", more of the branch, changes
    changed = any(not line.startswith("#") for line in others)
    return first.split()[-1][:12] + "+changes" * changed
