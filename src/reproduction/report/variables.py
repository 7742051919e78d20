"""Every number of the report's prose, as text, for `variables.yml`.

Each is read from a result file, from the manifest or from the profile, never typed.
"""

import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from contamination.errors import InputError
from contamination.tables import MISSING, format_p, read_csv
from reproduction.notebooks.canaries.tables import format_redrawn, pooled_redrawn
from reproduction.output.published import AUDITED, load_published
from reproduction.report import readings
from reproduction.report.readings import Texts, texts
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
) -> dict[str, Texts]:
    """Collect them, grouped as the report names them.

    Raises InputError if a table of a notebook that ran is missing.
    """
    table = partial(read_csv, results)
    if profile.pretraining is None:
        sections = {
            name: read(*map(table, tables))
            for name, (notebook, tables, read) in readings.RELEASED.items()
            if notebook in profile.notebooks
        }
        return sections | {"run": _run(manifest)}
    alpha = profile.notebooks.get("01_canary_eval", {}).get("alpha")
    if alpha is None:
        raise InputError(f"profile {profile.name}: notebooks.01_canary_eval.alpha is missing")
    canaries = table("canaries")
    corpus, sets, models = manifest["corpus"], manifest["canaries"].values(), manifest["models"]
    m_whole = profile.scoring.whole_set_permutations
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
            layers=profile.model.n_layer,
            heads=profile.model.n_head,
            hidden=str(profile.model.n_embd),
            context=profile.model.n_positions,
            vocabulary=profile.corpus.vocabulary,
            training_tokens=models["contaminated"]["tokens"],
            injected_tokens=sum(c["tokens"] * c["dup_count"] for c in sets),
            final_loss_contaminated=f"{models['contaminated']['final_loss']:.2f}",
            final_loss_clean=f"{models['clean']['final_loss']:.2f}",
        ),
        "tests": {
            "shards": str(profile.scoring.shards),
            "permutations": str(profile.scoring.permutations),
            "whole_set_permutations": str(m_whole),
            "permutation_floor": format_p(1 / (1 + m_whole)),
        },
        "results": _results(canaries, alpha),
        "redrawn": _redrawn(canaries),
        "mmlu": _mmlu(table("mmlu_fisher"), table("mmlu_subsets"), published),
        "prefixes": readings.read_short_prefixes(table("power_replicates")),
        "calibration": readings.read_calibration(table("calibration")),
        "failures": readings.read_failures(table("failures")),
        "min_k": readings.read_min_k(table("min_k"), canaries, alpha),
        "assumptions": readings.read_assumptions(table("assumptions_within")),
        "books": readings.read_books(table("books"), table("books_validation")),
        "unlearning": readings.read_unlearning(table("unlearning_detection")),
        "options": readings.read_options(table("options")),
        "shi": _shi(published),
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
    largest = many.sort_values("log10_p").tail(1)
    found = {"alpha": f"{alpha:g}"}
    for prefix, test in (("", "sharded_exact"), ("successor_", "successor")):
        rows = rejected[(rejected["model"] == "contaminated") & (rejected["test"] == test)]
        found[f"{prefix}detected"] = str(len(rows))
        found[f"{prefix}smallest_detected_dup"] = str(
            rows["dup_count"].min() if len(rows) else "none"
        )
    shown = [format_p(row.p, row.log10_p) for row in largest.itertuples()]
    clean = exact.loc[exact.index == "clean", "holm_p"].min()
    accused = rejected.loc[rejected["model"] == "clean", "dataset"].nunique()
    return found | {
        "sets_at_32_or_more": str(len(many)),
        "largest_p_at_32_or_more": shown[0] if shown else MISSING,
        "clean_min_holm_p": format_p(clean),
        "clean_accused": str(accused or "none"),
    }


def _redrawn(table: pd.DataFrame) -> Texts:
    """Percent of the redrawn canonical orders that tests reject, with 95% intervals."""
    pooled = pooled_redrawn(table).set_index(["model", "test"])
    asked = {
        "clean": ("clean", "successor"),
        "contaminated": ("contaminated", "successor"),
        "clean_sharded_t": ("clean", "sharded_t"),
    }
    return texts(
        **{
            name: format_redrawn(pooled.loc[key]) if key in pooled.index else MISSING
            for name, key in asked.items()
        },
        each=int(table["redrawn_orders"].max()),
        orders=int(pooled["redrawn_orders"].max()),
    )


def _mmlu(combined: pd.DataFrame, subsets: pd.DataFrame, published: Path) -> Texts:
    # A run that measures the models of the paper has rows of its own for them.
    combined = combined.query("source == 'published'").set_index("model")
    subsets = subsets.query("source == 'published' and model == 'LLaMA2-7B'")
    dropped = int(subsets["excluded"].sum())
    text = load_published(published, "oren2024_text").set_index("key")["value"]
    p = {key: f"{combined.loc[name, 'p']:.3g}" for key, name in AUDITED.items()}
    printed = {key: f"{combined.loc[name, 'published_p']:.3g}" for key, name in AUDITED.items()}
    return {
        "subsets_listed": str(len(subsets)),
        "subsets_dropped": str(dropped),
        "subsets_kept": str(len(subsets) - dropped),
        "published_kept": str(text["mmlu_subsets_kept"]),
        "published_dropped": str(text["mmlu_subsets_dropped"]),
        **p,
        **{f"published_{key}": value for key, value in printed.items()},
    }


def _shi(published: Path) -> Texts:
    """What the text of Shi et al. says, as they print it: recalls with two decimals."""
    text = load_published(published, "shi2023_text").set_index("key")["value"]
    return {
        key: f"{value:.2f}" if key.startswith("recall") else f"{value:,g}"
        for key, value in text.items()
    }


def _listed(items: Iterable[Any]) -> str:
    """Join as in prose: a, b and c."""
    *first, last = [escape_markdown(str(item).strip()) for item in items] or [""]
    return f"{', '.join(first)} and {last}" if first else last
