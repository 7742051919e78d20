"""What a run was, and every number of the report's prose.

The manifest has profile, seed, git commit, versions, revisions, checksums, time and tokens. A run
without a corpus names the models that others have released instead of those it trained; with
CONTAMINATION_REHEARSAL set, the run and its report say that stand-ins took the places of these. Of
a step that was interrupted, training counts its whole wall time, scoring that of the last start.
The numbers, as text, are read from a result file, from the manifest or from the profile.
"""

import os
import platform
import re
import subprocess
from collections.abc import Iterable
from dataclasses import asdict
from functools import partial
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
from contamination.tables import MISSING, SIGNIFICANT, format_p, read_csv, write_markdown
from reproduction.notebooks.canaries.tables import format_redrawn, pooled_redrawn
from reproduction.notebooks.table import NOTEBOOKS
from reproduction.output.published import AUDITED, load_published
from reproduction.report import readings
from reproduction.report.readings import RELEASED, Texts, read_section, texts
from reproduction.run.experiment import MODELS, Experiment
from reproduction.run.profile import Architecture, Profile

REHEARSAL = "CONTAMINATION_REHEARSAL"  # set where stand-ins take the places of released models
REHEARSED = "Rehearsal: stand-ins with random weights; these numbers mean nothing."
MANY = 32  # dup_count from which on detection is expected beyond doubt

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
    versions = {"Python": manifest["python"], **manifest["packages"]}
    table = pd.DataFrame({"Package": versions.keys(), "Version": versions.values()})
    write_markdown(table, results, "run_versions")
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

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        commit = git("rev-parse", "--short=12", "HEAD")
        return f"{commit}+changes" if git("status", "--porcelain") else commit
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


# --- numbers of the prose -------------------------------------------------------------------------


def escape_markdown(text: str) -> str:
    """Escape `text` for variables.yml, whose values are one line of markdown.

    Use it for text that this project did not write, such as the name of a processor.
    """
    return re.sub(r"([\\`*_{}\[\]<>#@$^~|!\"'])", r"\\\1", " ".join(text.split()))


def build_variables(
    profile: Profile, manifest: dict[str, Any], results: Path, published: Path
) -> dict[str, Texts]:
    """Collect them, grouped as the report names them.

    Raises InputError if a table of a notebook that ran is missing.
    """
    table = partial(read_csv, results)
    if profile.pretraining is None:
        ran = {NOTEBOOKS[name].package for name in profile.notebooks}
        sections = {name: read_section(name, table) for name in RELEASED if name in ran}
        return sections | {"run": _run(manifest)}
    shape = profile.model
    assert isinstance(shape, Architecture)  # else there is no report, as `write_manifest` says
    alpha = profile.notebooks.get("01_canary_eval", {}).get("alpha", SIGNIFICANT)
    canaries = table("canaries")
    corpus, sets, models = manifest["corpus"], manifest["canaries"].values(), manifest["models"]
    return {
        "corpus": texts(**{key: corpus[key] for key in ("documents", "characters", "tokens")})
        | {"packages": _listed(f"{p['package']} {p['version']}" for p in corpus["packages"])},
        "canaries": texts(
            sets=len(sets),
            examples=sum(c["examples"] for c in sets),
            tokens=sum(c["tokens"] for c in sets),
            sources=_listed(profile.corpus.held_out) or "files of the profile",
            counts=_listed(sorted({c["dup_count"] for c in sets})),
        ),
        "model": texts(
            parameters=models["clean"]["parameters"],
            layers=shape.n_layer,
            heads=shape.n_head,
            hidden=str(shape.n_embd),
            context=shape.n_positions,
            vocabulary=profile.corpus.vocabulary,
            training_tokens=models["contaminated"]["tokens"],
            injected_tokens=sum(c["tokens"] * c["dup_count"] for c in sets),
            final_loss_contaminated=f"{models['contaminated']['final_loss']:.2f}",
            final_loss_clean=f"{models['clean']['final_loss']:.2f}",
        ),
        "tests": {
            **{name: str(value) for name, value in asdict(profile.scoring).items()},
            "permutation_floor": format_p(1 / (1 + profile.scoring.whole_set_permutations)),
        },
        "results": _results(canaries, alpha),
        "redrawn": _redrawn(canaries),
        "mmlu": _mmlu(table("mmlu_fisher"), table("mmlu_subsets"), published),
        "prefixes": readings.read_short_prefixes(table("power_replicates")),
        "calibration": readings.read_calibration(table("calibration")),
        "failures": readings.read_failures(table("failures")),
        "generated": readings.read_generated(table("generated")),
        "min_k": readings.read_min_k(table("min_k"), canaries, alpha),
        "assumptions": readings.read_assumptions(table("assumptions_within")),
        "options": readings.read_options(table("options")),
        "run": _run(manifest),
    }


def _run(manifest: dict[str, Any]) -> Texts:
    """What is said of every run; `rehearsal` is there only where stand-ins were read."""
    seconds = sum(step["seconds"] for step in manifest["steps"].values())
    minutes, hours = f"{seconds / 60:.1f} minutes", f"{seconds / 3600:.1f} hours"
    return {
        "profile": escape_markdown(manifest["profile"]),
        "seed": str(manifest["seed"]),
        "commit": escape_markdown(manifest["commit"]),
        "hardware": escape_markdown(manifest["hardware"]),
        "summed_time": minutes if seconds < 5400 else hours,
        "tokens_scored": f"{manifest['tokens_scored']:,}",
        "python": manifest["python"],
        "torch": escape_markdown(manifest["packages"]["torch"]),
        **({"rehearsal": REHEARSED} if manifest.get("rehearsal") else {}),
    }


def _results(table: pd.DataFrame, alpha: float) -> Texts:
    """What the exact test on shards and the successor test find of the planted sets."""
    rejected = table[table["holm_p"] <= alpha]
    exact = table[table["test"] == "sharded_exact"].set_index("model")
    many = exact[(exact.index == "contaminated") & (exact["dup_count"] >= MANY)]
    found = {"alpha": f"{alpha:g}"}
    for prefix, test in (("", "sharded_exact"), ("successor_", "successor")):
        rows = rejected[(rejected["model"] == "contaminated") & (rejected["test"] == test)]
        fewest = rows["dup_count"].min() if len(rows) else "none"
        found |= {
            f"{prefix}detected": str(len(rows)),
            f"{prefix}smallest_detected_dup": str(fewest),
        }
    largest = many.sort_values("log10_p").tail(1)
    shown = [format_p(row.p, row.log10_p) for row in largest.itertuples()]
    accused = rejected.loc[rejected["model"] == "clean", "dataset"].nunique()
    return found | {
        "sets_at_32_or_more": str(len(many)),
        "largest_p_at_32_or_more": shown[0] if shown else MISSING,
        "clean_min_holm_p": format_p(exact.loc[exact.index == "clean", "holm_p"].min()),
        "clean_accused": str(accused or "none"),
    }


def _redrawn(table: pd.DataFrame) -> Texts:
    """Percent of the redrawn canonical orders that tests reject, with 95% intervals."""
    pooled = pooled_redrawn(table).set_index(["model", "test"])
    shown = {key: format_redrawn(row) for key, row in pooled.iterrows()}
    return texts(
        clean=shown.get(("clean", "successor"), MISSING),
        contaminated=shown.get(("contaminated", "successor"), MISSING),
        clean_sharded_t=shown.get(("clean", "sharded_t"), MISSING),
        each=int(table["redrawn_orders"].max()),
        orders=int(pooled["redrawn_orders"].max()),
    )


def _mmlu(combined: pd.DataFrame, subsets: pd.DataFrame, published: Path) -> Texts:
    # A run that measures the models of the paper has rows of its own for them.
    combined = combined.query("source == 'published'").set_index("model").loc[AUDITED.values()]
    subsets = subsets.query("source == 'published' and model == 'LLaMA2-7B'")
    dropped = int(subsets["excluded"].sum())
    text = load_published(published, "oren2024_text").set_index("key")["value"]
    p = {
        f"{before}{key}": f"{value:.3g}"
        for before, column in (("", "p"), ("published_", "published_p"))
        for key, value in zip(AUDITED, combined[column], strict=True)
    }
    return {
        "subsets_listed": str(len(subsets)),
        "subsets_dropped": str(dropped),
        "subsets_kept": str(len(subsets) - dropped),
        "published_kept": str(text["mmlu_subsets_kept"]),
        "published_dropped": str(text["mmlu_subsets_dropped"]),
    } | p


def _listed(items: Iterable[Any]) -> str:
    """Join as in prose: a, b and c."""
    *first, last = [escape_markdown(str(item).strip()) for item in items] or [""]
    return f"{', '.join(first)} and {last}" if first else last
