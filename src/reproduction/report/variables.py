"""Every number of the report's prose, as text, for `variables.yml`.

Each is read from a result file, from the manifest or from the profile, never typed.
"""

import re
from pathlib import Path
from typing import Any

import pandas as pd

from contamination.errors import InputError
from contamination.tables import MISSING, format_p, read_csv
from reproduction.notebooks.canaries.tables import format_redrawn, pooled_redrawn
from reproduction.output.published import AUDITED, load_published
from reproduction.report.readings import (
    read_assumptions,
    read_books,
    read_calibration,
    read_failures,
    read_min_k,
    read_options,
    read_short_prefixes,
    read_unlearning,
)
from reproduction.report.released import released_variables
from reproduction.run.profile import Profile

REHEARSED = "Rehearsal: stand-ins with random weights; these numbers mean nothing."
MANY = 32  # dup_count from which on detection is expected beyond doubt


def escape_markdown(text: str) -> str:
    """Escape `text` for variables.yml, whose values are one line of markdown.

    Use it for text that this project did not write, such as the name of a processor.
    """
    return re.sub(r"([\\`*_{}\[\]<>#@$^~|!\"'])", r"\\\1", " ".join(text.split()))


def build_variables(
    profile: Profile, manifest: dict[str, Any], results: Path, published: Path
) -> dict[str, dict[str, str]]:
    """Collect them, grouped as the report names them."""
    if profile.pretraining is None:
        return released_variables(profile.notebooks, results) | {"run": _run(manifest)}
    canaries = manifest["canaries"].values()
    models = manifest["models"]
    injected = sum(c["tokens"] * c["dup_count"] for c in canaries)
    m_whole = profile.scoring.whole_set_permutations
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
        "results": _results(read_csv(results, "canaries"), _alpha(profile)),
        "redrawn": _redrawn(read_csv(results, "canaries")),
        "mmlu": _mmlu(results, published),
        "prefixes": read_short_prefixes(read_csv(results, "power_replicates")),
        "calibration": read_calibration(read_csv(results, "calibration")),
        "failures": read_failures(read_csv(results, "failures")),
        "min_k": read_min_k(
            read_csv(results, "min_k"), read_csv(results, "canaries"), _alpha(profile)
        ),
        "assumptions": read_assumptions(read_csv(results, "assumptions_within")),
        "books": read_books(read_csv(results, "books"), read_csv(results, "books_validation")),
        "unlearning": read_unlearning(read_csv(results, "unlearning_detection")),
        "options": read_options(read_csv(results, "options")),
        "shi": _shi(published),
        "run": _run(manifest),
    }


def _run(manifest: dict[str, Any]) -> dict[str, str]:
    """What is said of every run; `rehearsal` is there only where stand-ins were read."""
    steps = manifest["steps"].values()
    return {
        "profile": escape_markdown(manifest["profile"]),
        "seed": str(manifest["seed"]),
        "commit": escape_markdown(manifest["commit"]),
        "hardware": escape_markdown(manifest["hardware"]),
        "summed_time": _duration(sum(step["seconds"] for step in steps)),
        "tokens_scored": _count(manifest["tokens_scored"]),
        "python": manifest["python"],
        "torch": escape_markdown(manifest["packages"]["torch"]),
        **({"rehearsal": REHEARSED} if manifest.get("rehearsal") else {}),
    }


def _alpha(profile: Profile) -> float:
    alpha = profile.notebooks.get("01_canary_eval", {}).get("alpha")
    if alpha is None:
        raise InputError(f"profile {profile.name}: notebooks.01_canary_eval.alpha is missing")
    return float(alpha)


def _results(table: pd.DataFrame, alpha: float) -> dict[str, str]:
    rejected = table[table["holm_p"] <= alpha]
    exact = table[table["test"] == "sharded_exact"]
    planted = exact[exact["model"] == "contaminated"]
    many = planted[planted["dup_count"] >= MANY]
    largest = many.loc[many["log10_p"].idxmax()] if len(many) else None
    return {
        "alpha": f"{alpha:g}",
        **_detected(rejected, "sharded_exact"),
        **_detected(rejected, "successor", "successor_"),
        "sets_at_32_or_more": str(len(many)),
        "largest_p_at_32_or_more": "—"
        if largest is None
        else format_p(largest["p"], largest["log10_p"]),
        "clean_min_holm_p": format_p(exact[exact["model"] == "clean"]["holm_p"].min()),
        "clean_accused": str(
            rejected.loc[rejected["model"] == "clean", "dataset"].nunique() or "none"
        ),
    }


def _detected(rejected: pd.DataFrame, test: str, prefix: str = "") -> dict[str, str]:
    """Count the planted sets that a test rejects, and say how few copies were enough."""
    rows = rejected[(rejected["model"] == "contaminated") & (rejected["test"] == test)]
    smallest = str(rows["dup_count"].min()) if len(rows) else "none"
    return {f"{prefix}detected": str(len(rows)), f"{prefix}smallest_detected_dup": smallest}


def _redrawn(table: pd.DataFrame) -> dict[str, str]:
    """Percent of the redrawn canonical orders that tests reject, with 95% intervals."""
    pooled = pooled_redrawn(table).set_index(["model", "test"])
    asked = {
        "clean": ("clean", "successor"),
        "contaminated": ("contaminated", "successor"),
        "clean_sharded_t": ("clean", "sharded_t"),
    }
    values = {
        name: format_redrawn(pooled.loc[key]) if key in pooled.index else MISSING
        for name, key in asked.items()
    }
    each, orders = table["redrawn_orders"].max(), pooled["redrawn_orders"].max()
    return values | {"each": _count(int(each)), "orders": _count(int(orders))}


def _mmlu(results: Path, published: Path) -> dict[str, str]:
    # A run that measures the models of the paper has rows of its own for them.
    combined, subsets = (
        read_csv(results, name).query("source == 'published'")
        for name in ("mmlu_fisher", "mmlu_subsets")
    )
    combined = combined.set_index("model")
    one_model = subsets[subsets["model"] == "LLaMA2-7B"]
    dropped = int(one_model["excluded"].sum())
    text = load_published(published, "oren2024_text").set_index("key")["value"]
    return {
        "subsets_listed": str(len(one_model)),
        "subsets_dropped": str(dropped),
        "subsets_kept": str(len(one_model) - dropped),
        "published_kept": str(text["mmlu_subsets_kept"]),
        "published_dropped": str(text["mmlu_subsets_dropped"]),
        **{key: f"{combined.loc[name, 'p']:.3g}" for key, name in AUDITED.items()},
        **{
            f"published_{key}": f"{combined.loc[name, 'published_p']:.3g}"
            for key, name in AUDITED.items()
        },
    }


def _shi(published: Path) -> dict[str, str]:
    """What the text of Shi et al. says, as they print it: recalls with two decimals."""
    text = load_published(published, "shi2023_text").set_index("key")["value"]
    return {
        key: f"{value:.2f}" if key.startswith("recall") else f"{value:,g}"
        for key, value in text.items()
    }


def _count(number: int) -> str:
    return f"{number:,}"


def _listed(items: Any) -> str:
    """Join as in prose: a, b and c."""
    *first, last = [escape_markdown(str(item)) for item in items] or [""]
    return f"{', '.join(first)} and {last}" if first else last


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.1f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
