"""What a run was: profile, seed, git commit, versions, revisions, checksums, time and tokens.

Of a step that was interrupted, training counts its whole wall time, scoring that of the last start.
"""

import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import torch
import yaml

from contamination.device import describe
from contamination.files import read_json, sha256_of, write_json, write_text
from contamination.pretraining.experiment import MODELS, Experiment
from contamination.report.variables import build_variables
from contamination.results.tables import write_markdown

PACKAGES = ["torch", "transformers", "tokenizers", "accelerate", "numpy", "scipy", "pandas"]
PACKAGES += ["pyarrow", "statsmodels", "matplotlib", "seaborn", "papermill"]


def write_manifest(experiment: Experiment, results: Path, published: Path) -> None:
    """Write `manifest.json` of a finished run into `results`, and what the report quotes of it.

    That is `variables.yml`, and the tables `run_steps.md` and `run_versions.md`.
    """
    manifest = build_manifest(experiment, results)
    write_markdown(steps_table(manifest), results, "run_steps")
    write_markdown(versions_table(manifest), results, "run_versions")
    variables = build_variables(experiment.profile, manifest, results, published)
    write_json(results / "manifest.json", manifest)
    write_text(
        results / "variables.yml", yaml.safe_dump(variables, allow_unicode=True, sort_keys=False)
    )


def steps_table(manifest: dict[str, Any]) -> pd.DataFrame:
    """Text: every step with its time and, where it reads text, its tokens; the sum last."""
    steps = manifest["steps"]
    table = pd.DataFrame(
        {
            "Step": list(steps),
            "Minutes": [f"{step['seconds'] / 60:.1f}" for step in steps.values()],
            "Tokens": [
                f"{step['tokens']:,}" if "tokens" in step else "—" for step in steps.values()
            ],
        }
    )
    minutes = sum(step["seconds"] for step in steps.values()) / 60
    table.loc[len(table)] = ["**together**", f"**{minutes:.1f}**", "—"]
    return table


def versions_table(manifest: dict[str, Any]) -> pd.DataFrame:
    """Text: Python and the packages that the results depend on, with their versions."""
    versions = {"Python": manifest["python"], **manifest["packages"]}
    return pd.DataFrame({"Package": versions.keys(), "Version": versions.values()})


def build_manifest(experiment: Experiment, results: Path) -> dict[str, Any]:
    """Collect what the stages and the executed notebooks recorded."""
    profile, corpus = experiment.profile, experiment.corpus_facts
    training = {m: read_json(experiment.model(m) / "training.json") for m in experiment.shapes}
    scoring = {m: read_json(experiment.build / "stores" / f"{m}.json") for m in MODELS}
    steps = {"corpus": {"seconds": corpus["seconds"], "tokens": corpus["tokens"]}}
    for model in training:
        steps[f"train {model}"] = {k: training[model][k] for k in ("seconds", "tokens")}
    for model in MODELS:
        steps[f"score {model}"] = {
            "seconds": scoring[model]["seconds"],
            "tokens": sum(scoring[model]["tokens"].values()),
        }
    for path in sorted((results / "notebooks").glob("[0-9]*.ipynb")):
        # What a notebook had to score itself is in its time, and in `tokens_scored`.
        metadata = read_json(path)["metadata"]
        steps[f"notebook {path.stem}"] = {"seconds": metadata["papermill"]["duration"]}
    return {
        "profile": profile.name,
        "seed": profile.seed,
        "commit": _git_commit(),
        "hardware": describe(torch.device("cuda" if torch.cuda.is_available() else "cpu")),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
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
        "tokens_scored": sum(
            pq.read_metadata(part).num_rows
            for part in sorted((experiment.build / "stores").rglob("part-*.parquet"))
        ),
        "steps": steps,
    }


def _git_commit() -> str:
    """Commit of the working tree, marked `+changes` if it has any; "unknown" without git."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        commit = git("rev-parse", "--short=12", "HEAD")
        return f"{commit}+changes" if git("status", "--porcelain") else commit
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
