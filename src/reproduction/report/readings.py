"""Every number of the report's prose, as text: `variables.yml`.

They are read from the profile, from the manifest or from the tables of
`results/tables/`.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from contamination.tables import SIGNIFICANT, format_p, read_csv
from reproduction.notebooks.table import NOTEBOOKS
from reproduction.output.published import load_published
from reproduction.report import readings_trained
from reproduction.report.prose import Texts, escape_markdown, listed, texts
from reproduction.report.readings_released import RELEASED, TableReader, numbers_of_section
from reproduction.run.profile import Architecture, Profile

REHEARSED = "Rehearsal: stand-ins with random weights; these numbers mean nothing."


def build_variables(
    profile: Profile,
    manifest: dict[str, Any],
    results: Path,
    published: Path,
) -> dict[str, Texts]:
    """Collect the numbers of a run, grouped as the report names them.

    Parameters
    ----------
    profile
        Profile of the run.
    manifest
        Manifest of the run.
    results
        Directory of its tables.
    published
        Directory of the papers' tables.

    Raises
    ------
    InputError
        If a table of a notebook that ran is missing.
    """

    def table(name: str) -> pd.DataFrame:
        return read_csv(results, name)

    if profile.pretraining is None:
        variables = _released_variables(profile, table)
    else:
        variables = _trained_variables(profile, manifest, table, published)
    variables["run"] = _run(manifest)
    return variables


def _released_variables(profile: Profile, table: TableReader) -> dict[str, Texts]:
    """Read the sections of the notebooks that ran on released models."""
    ran = {NOTEBOOKS[name].package for name in profile.notebooks}
    return {section: numbers_of_section(section, table) for section in RELEASED if section in ran}


def _trained_variables(
    profile: Profile,
    manifest: dict[str, Any],
    table: TableReader,
    published: Path,
) -> dict[str, Texts]:
    """Read the groups of a run that trained its models."""
    alpha = profile.notebooks.get("01_canary_eval", {}).get("alpha", SIGNIFICANT)
    canaries = table("canaries")
    scoring = {name: str(value) for name, value in asdict(profile.scoring).items()}
    whole_set = profile.scoring.whole_set_permutations
    scoring["permutation_floor"] = format_p(1 / (1 + whole_set))
    return {
        "corpus": _corpus(manifest["corpus"]),
        "canaries": _canary_sets(manifest, profile),
        "model": _model(manifest, profile),
        "tests": scoring,
        "results": readings_trained.numbers_of_canaries(canaries, alpha),
        "redrawn": readings_trained.numbers_of_null_calibration(canaries),
        "mmlu": readings_trained.numbers_of_mmlu(
            table("mmlu_fisher"),
            table("mmlu_subsets"),
            published,
        ),
        "prefixes": readings_trained.numbers_of_short_prefixes(table("power_replicates")),
        "calibration": readings_trained.numbers_of_calibration(table("calibration")),
        "failures": readings_trained.numbers_of_failures(table("failures")),
        "generated": readings_trained.numbers_of_generated(table("generated")),
        "min_k": readings_trained.numbers_of_min_k(table("min_k"), canaries, alpha),
        "held_out": readings_trained.numbers_of_held_out(table("min_k_held_out"), alpha),
        "assumptions": readings_trained.numbers_of_assumptions(table("assumptions_within")),
        "books": readings_trained.numbers_of_books(table("books"), table("books_validation")),
        "unlearning": readings_trained.numbers_of_unlearning(
            table("unlearning"),
            table("unlearning_detection"),
        ),
        "shi": _said_by_shi(published),
        "options": readings_trained.numbers_of_options(table("options")),
        "controlled": readings_trained.numbers_of_doses(table("controlled_doses")),
        "wikimia": readings_trained.numbers_of_wikimia(table("wikimia")),
    }


def _said_by_shi(published: Path) -> Texts:
    """Return what the text of Shi et al. says of books and unlearning, as they write it."""
    text = load_published(published, "shi2023_text")
    return dict(zip(text["key"], text["value"], strict=True))


def _corpus(corpus: dict[str, Any]) -> Texts:
    """Write the size of the corpus, and its packages with their versions."""
    sizes = texts(
        documents=corpus["documents"],
        characters=corpus["characters"],
        tokens=corpus["tokens"],
    )
    packages = [f"{package['package']} {package['version']}" for package in corpus["packages"]]
    return sizes | {"packages": listed(packages)}


def _canary_sets(manifest: dict[str, Any], profile: Profile) -> Texts:
    """Write the number and size of the canary sets, their sources and duplication counts."""
    sets = manifest["canaries"].values()
    return texts(
        sets=len(sets),
        examples=sum(canary["examples"] for canary in sets),
        tokens=sum(canary["tokens"] for canary in sets),
        sources=listed(profile.corpus.held_out) or "files of the profile",
        counts=listed(sorted({canary["dup_count"] for canary in sets})),
    )


def _model(manifest: dict[str, Any], profile: Profile) -> Texts:
    """Write the shape of the models, and what they read and reached."""
    shape = profile.model
    # else there is no report, as `write_manifest` says
    assert isinstance(shape, Architecture)
    sets = manifest["canaries"].values()
    contaminated = manifest["models"]["contaminated"]
    clean = manifest["models"]["clean"]
    return texts(
        parameters=clean["parameters"],
        layers=shape.n_layer,
        heads=shape.n_head,
        hidden=str(shape.n_embd),
        context=shape.n_positions,
        vocabulary=profile.corpus.vocabulary,
        training_tokens=contaminated["tokens"],
        injected_tokens=sum(canary["tokens"] * canary["dup_count"] for canary in sets),
        final_loss_contaminated=f"{contaminated['final_loss']:.2f}",
        final_loss_clean=f"{clean['final_loss']:.2f}",
    )


def _run(manifest: dict[str, Any]) -> Texts:
    """Write the facts of every run; `rehearsal` is there only where stand-ins were read."""
    seconds = sum(step["seconds"] for step in manifest["steps"].values())
    minutes = f"{seconds / 60:.1f} minutes"
    hours = f"{seconds / 3600:.1f} hours"
    facts = {
        "profile": escape_markdown(manifest["profile"]),
        "seed": str(manifest["seed"]),
        "commit": escape_markdown(manifest["commit"]),
        "hardware": escape_markdown(manifest["hardware"]),
        "summed_time": minutes if seconds < 5400 else hours,
        "tokens_scored": f"{manifest['tokens_scored']:,}",
        "python": manifest["python"],
        "torch": escape_markdown(manifest["packages"]["torch"]),
    }
    if manifest.get("rehearsal"):
        facts["rehearsal"] = REHEARSED
    return facts
