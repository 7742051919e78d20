"""The passes of notebook 09: the clean model reads on in every run, then all models score."""

from collections.abc import Mapping, Sequence

import pandas as pd
from transformers import AutoTokenizer

from contamination.randomness import random_stream
from reproduction.notebooks.controlled.contaminants import collect_background, contaminant_sets
from reproduction.notebooks.controlled.runs import TrainingRuns
from reproduction.notebooks.controlled.training import fine_tune_runs, score_runs
from reproduction.run.experiment import Experiment
from reproduction.run.measured import parts_of


def measure(
    experiment: Experiment,
    *,
    outliers: Sequence[str],
    examples: int,
    sizes: Sequence[int],
    fixed_tokens: int,
    dup_counts: Sequence[int],
    learning_rate: float,
    other_rates: Sequence[float],
    batch_size: int,
    k: float,
    neighbours: int,
    validation_files: Mapping[str, str],
) -> dict[str, pd.DataFrame]:
    """Choose the contaminants, train every run, and score both halves under all models.

    Tables: `sets` (contaminant, set, example: one of its members), `background` (tokens, unread: so
    many the base model has not read) and `scored`, as of `score_runs`.
    """
    seed = experiment.profile.seed
    tokenizer = AutoTokenizer.from_pretrained(experiment.corpus / "tokenizer")
    sets = contaminant_sets(
        experiment,
        tokenizer,
        outliers=outliers,
        examples=examples,
        rng=random_stream(seed, "contaminants"),
        files=validation_files,
    )
    background = collect_background(experiment, tokenizer, sets, tokens=max(sizes))
    runs = TrainingRuns(
        tuple(sizes),
        learning_rate,
        tuple(other_rates),
        fixed_tokens,
        tuple(dup_counts),
        batch_size,
    )
    directories = fine_tune_runs(experiment, runs, sets, background)
    base, parts = experiment.model("clean"), parts_of(experiment, "controlled")
    scored = score_runs(runs, sets, base, directories, parts, k=k, neighbours=neighbours)
    shown = [(one.contaminant, one.name, one.members[0]) for one in sets]
    around = {"tokens": [len(background.tokens)], "unread": [background.unread]}
    return {
        "sets": pd.DataFrame(shown, columns=["contaminant", "set", "example"]),
        "background": pd.DataFrame(around),
        "scored": scored,
    }
