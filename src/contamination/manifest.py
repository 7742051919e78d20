"""What a run was: the manifest for machines, and the variables that the report's prose reads.

`manifest.json` keeps profile, seed, git commit, package versions, revisions and checksums, and per
step the wall time and the tokens. `variables.yml` holds every number of the prose as text; each is
read from a result file or from what the stages recorded, never typed.
"""

import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
import torch
import yaml

from contamination.experiment import MODELS, Experiment
from contamination.files import read_json, sha256_of, write_json, write_text
from contamination.hardware import describe
from contamination.published import load_published
from contamination.report import plain
from contamination.tables import format_p, read_csv

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
MANY = 32  # copies from which on detection is expected beyond doubt


def write_manifest(experiment: Experiment, results: Path, published: Path) -> None:
    """Write `manifest.json` and `variables.yml` of a finished run into `results`."""
    manifest = build_manifest(experiment)
    write_json(results / "manifest.json", manifest)
    variables = build_variables(experiment, manifest, results, published)
    write_text(
        results / "variables.yml", yaml.safe_dump(variables, allow_unicode=True, sort_keys=False)
    )


def build_manifest(experiment: Experiment) -> dict[str, Any]:
    """Collect what the stages recorded."""
    profile, corpus = experiment.profile, experiment.corpus_facts
    training = {m: read_json(experiment.model(m) / "training.json") for m in MODELS}
    scoring = {m: read_json(experiment.build / "stores" / f"{m}.json") for m in MODELS}
    steps = {"corpus": {"seconds": corpus["seconds"], "tokens": corpus["tokens"]}}
    for model in MODELS:
        steps[f"train {model}"] = {k: training[model][k] for k in ("seconds", "tokens")}
        steps[f"score {model}"] = {
            "seconds": scoring[model]["seconds"],
            "tokens": sum(scoring[model]["tokens"].values()),
        }
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
            for model in MODELS
        },
        "steps": steps,
    }


def _git_commit() -> str:
    """Commit of the working tree, marked `+changes` if it has any; "unknown" without git."""
    try:
        commit = _git("rev-parse", "--short=12", "HEAD")
        return f"{commit}+changes" if _git("status", "--porcelain") else commit
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], capture_output=True, text=True, check=True
    ).stdout.strip()


def build_variables(
    experiment: Experiment, manifest: dict[str, Any], results: Path, published: Path
) -> dict[str, dict[str, str]]:
    """Every number of the report's prose, as text."""
    profile, canaries = experiment.profile, manifest["canaries"].values()
    models = manifest["models"]
    injected = sum(c["tokens"] * c["dup_count"] for c in canaries)
    m_whole = profile.scoring.whole_set_permutations
    steps = manifest["steps"]
    return {
        "corpus": {
            "documents": _count(manifest["corpus"]["documents"]),
            "characters": _count(manifest["corpus"]["characters"]),
            "tokens": _count(manifest["corpus"]["tokens"]),
            "packages": _listed(
                f"{p['package']} {p['version']}".strip() for p in manifest["corpus"]["packages"]
            ),
        },
        "canaries": {
            "sets": str(len(canaries)),
            "examples": _count(sum(c["examples"] for c in canaries)),
            "tokens": _count(sum(c["tokens"] for c in canaries)),
            "sources": _listed(profile.corpus.held_out) or "files of the profile",
            "counts": _listed(sorted({c["dup_count"] for c in canaries})),
        },
        "model": {
            "parameters": _count(models["clean"]["parameters"]),
            "layers": str(profile.model.n_layer),
            "heads": str(profile.model.n_head),
            "hidden": str(profile.model.n_embd),
            "context": _count(profile.model.n_positions),
            "vocabulary": _count(profile.corpus.vocabulary),
            "training_tokens": _count(models["contaminated"]["tokens"]),
            "injected_tokens": _count(injected),
            "final_loss_contaminated": f"{models['contaminated']['final_loss']:.2f}",
            "final_loss_clean": f"{models['clean']['final_loss']:.2f}",
        },
        "tests": {
            "shards": str(profile.scoring.shards),
            "permutations": str(profile.scoring.permutations),
            "whole_set_permutations": str(m_whole),
            "permutation_floor": format_p(1 / (1 + m_whole)),
        },
        "results": _results(read_csv(results, "canaries"), profile),
        "mmlu": _mmlu(results, published),
        "run": {
            "profile": plain(profile.name),
            "seed": str(profile.seed),
            "commit": plain(manifest["commit"]),
            "hardware": plain(manifest["hardware"]),
            "wall_time": _duration(sum(step["seconds"] for step in steps.values())),
            "tokens_scored": _count(sum(steps[f"score {model}"]["tokens"] for model in MODELS)),
            "python": manifest["python"],
            "torch": plain(manifest["packages"]["torch"]),
        },
    }


def _results(table: pd.DataFrame, profile: Any) -> dict[str, str]:
    alpha = profile.notebooks["01_canary_eval"]["alpha"]
    exact = table[table["test"] == "exact"]
    planted = exact[exact["model"] == "contaminated"]
    detected = planted[planted["holm_p"] <= alpha]
    many = planted[planted["dup_count"] >= MANY]
    largest = many.loc[many["log10_p"].idxmax()] if len(many) else None
    return {
        "alpha": f"{alpha:g}",
        "detected": str(len(detected)),
        "smallest_detected_dup": str(detected["dup_count"].min()) if len(detected) else "none",
        "sets_at_32_or_more": str(len(many)),
        "largest_p_at_32_or_more": "—"
        if largest is None
        else format_p(largest["p"], largest["log10_p"]),
        "clean_min_holm_p": format_p(exact[exact["model"] == "clean"]["holm_p"].min()),
    }


def _mmlu(results: Path, published: Path) -> dict[str, str]:
    combined = read_csv(results, "mmlu_fisher").set_index("model")
    subsets = read_csv(results, "mmlu_subsets")
    one_model = subsets[subsets["model"] == "LLaMA2-7B"]
    dropped = int(one_model["excluded"].sum())
    text = load_published(published, "oren2024_text").set_index("key")["value"]
    keys = {"llama2_7b": "LLaMA2-7B", "mistral_7b": "Mistral-7B", "pythia_1_4b": "Pythia-1.4B"}
    return {
        "subsets_listed": str(len(one_model)),
        "subsets_dropped": str(dropped),
        "subsets_kept": str(len(one_model) - dropped),
        "published_subsets": str(text["mmlu_subsets"]),
        "published_dropped": str(text["mmlu_subsets_dropped"]),
        **{key: f"{combined.loc[name, 'p']:.3g}" for key, name in keys.items()},
        **{
            f"published_{key}": f"{combined.loc[name, 'published_p']:.3g}"
            for key, name in keys.items()
        },
    }


def _count(number: int) -> str:
    return f"{number:,}"


def _listed(items: Any) -> str:
    """Join as in prose: a, b and c."""
    *first, last = [plain(str(item)) for item in items] or [""]
    return f"{', '.join(first)} and {last}" if first else last


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.1f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
