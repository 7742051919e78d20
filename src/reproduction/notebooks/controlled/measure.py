"""The passes of notebook 09: the clean model trains on, then all models score.

Shi (section 6) train LLaMA-7B further, for one epoch at a constant learning rate, on
text with injected examples, and look for these among others. Here the base is the clean
model, and one mixture holds both sorts of contaminants (`contaminants`), where the paper
has a mixture each.

Chance divides each set in halves of which one is injected, so a score that knows
nothing of the training has an AUC of 0.5.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from contamination.errors import InputError
from contamination.membership.stored import stored_scores
from contamination.randomness import random_stream
from contamination.scoring.local import TransformersScorer
from contamination.scoring.processes import distribute
from contamination.testsets.tokens import tokenize
from reproduction.notebooks.controlled import tables
from reproduction.notebooks.controlled.contaminants import (
    CONTAMINANT,
    collect_background,
    contaminant_sets,
    dose_table,
)
from reproduction.notebooks.controlled.settings import Settings
from reproduction.run.experiment import Experiment, parts_of
from reproduction.run.fine_tuning import fine_tune
from reproduction.run.injection import fill_blocks


@dataclass(frozen=True)
class TrainingRun:
    """One training run."""

    name: str  # of its directory
    # of the mixture, with contaminants; less than a block of them is dropped
    corpus_tokens: int
    learning_rate: float
    dup_counts: tuple[int, ...] = (1,)  # member i has that of i mod their number


Runs = Mapping[str, Sequence[TrainingRun]]  # comparison, such as `tables.SIZE` -> its runs


def measure(experiment: Experiment, settings: Settings) -> dict[str, pd.DataFrame]:
    """Choose the contaminants, train every run, and score both halves under all models.

    Returns
    -------
    sets : contaminant, set, and example: one of its members.
    background : tokens, and unread: the number of them that the base model has not read.
    doses : as of `dose_table`.
    scored : as of `score_runs`.
    """
    runs = training_runs(settings)
    tokenizer = AutoTokenizer.from_pretrained(experiment.corpus / "tokenizer")
    rng = random_stream(experiment.profile.seed, "contaminants")
    sets = contaminant_sets(experiment, tokenizer, settings, rng=rng)
    background, unread = collect_background(experiment, tokenizer, sets, tokens=max(settings.sizes))
    models = fine_tune_runs(experiment, tokenizer, runs, sets, background, settings.batch_size)
    parts = parts_of(experiment, "controlled")
    scored = score_runs(runs, sets, models, parts, k=settings.k, neighbours=settings.neighbours)
    shown = sets[sets["member"] & (sets["text"] == 0)].rename(columns={"dataset": "set"})
    shown = shown[["contaminant", "set", "example"]].reset_index(drop=True)
    sizes = {"tokens": [sum(map(len, background))], "unread": [unread]}
    return {
        "sets": shown,
        "background": pd.DataFrame(sizes),
        "doses": dose_table(tokenizer, sets, settings.sizes),
        "scored": scored,
    }


def training_runs(settings: Settings) -> dict[str, tuple[TrainingRun, ...]]:
    """Return the runs of every comparison, which changes one thing; some runs serve two.

    Contaminants are injected once, but for `dup_counts`, each for an equal part of the
    members of one mixture of `fixed_tokens`, one of `sizes`; learning rates are
    compared there, too. Raises InputError for fewer than two values of what is varied,
    or one that comes twice.
    """
    rate = settings.learning_rate
    tokens = settings.fixed_tokens
    _require_different("sizes", settings.sizes)
    _require_different("dup_counts", settings.dup_counts)
    _require_different("other_rates", (rate, *settings.other_rates))
    sizes = [TrainingRun(f"size-{size}", size, rate) for size in sorted(settings.sizes)]
    rates = [TrainingRun(f"size-{tokens}", tokens, rate)]
    rates += [TrainingRun(f"rate-{other:g}", tokens, other) for other in settings.other_rates]
    return {
        tables.SIZE: tuple(sizes),
        tables.COUNT: (TrainingRun("dup-counts", tokens, rate, settings.dup_counts),),
        tables.RATE: tuple(rates),
    }


def _require_different(name: str, values: Sequence[float]) -> None:
    """Raise InputError for fewer than two values, or one that comes twice."""
    if len(set(values)) < max(2, len(values)):
        raise InputError(f"{name}: two different values are compared, or more; none twice")


def fine_tune_runs(
    experiment: Experiment,
    tokenizer: PreTrainedTokenizerBase,
    runs: Runs,
    sets: pd.DataFrame,
    background: Sequence[np.ndarray],
    batch_size: int,
) -> dict[str, Path]:
    """Train the clean model further, once for every run; return all models by name.

    Of a mixture no token is left out; a member is injected whole at random boundaries
    between documents, in the run for duplication counts those of outliers alone. Every
    run is trained in one process, unless it was before.

    Parameters
    ----------
    experiment
        The run of the profile.
    tokenizer
        Tokenizer of the run's models.
    runs
        Runs of all comparisons.
    sets
        The contaminants.
    background
        Documents, each closed by the end-of-text token.
    batch_size
        Blocks of an optimiser step.

    Raises
    ------
    InputError
        If the copies leave no room in a mixture, the background is too short, or the
        loss of a run is not finite.
    """
    seed = experiment.profile.seed
    members = sets[sets["member"]]
    members = members.assign(ids=tokenize(tokenizer, members["example"].tolist()))
    documents = np.concatenate(background)
    ends = np.cumsum([len(ids) for ids in background])
    base = experiment.model("clean")
    folder = experiment.build / "controlled"
    tasks = {}
    for run in dict.fromkeys(chain.from_iterable(runs.values())):
        # Runs of one size have one mixture: what differs between learning rates is
        # nothing else.
        blocks, _ = fill_blocks(
            documents,
            ends,
            _injected(members, run.dup_counts),
            int(tokenizer.eos_token_id),
            context=experiment.profile.model.n_positions,
            rng=random_stream(seed, "mixture", run.corpus_tokens),
            tokens=run.corpus_tokens,
        )
        tasks[run.name] = partial(
            fine_tune,
            base,
            list(blocks),
            folder / run.name,
            learning_rate=run.learning_rate,
            seed=seed,
            epochs=1,
            batch_size=batch_size,
        )
    trained = distribute("train further", list(tasks.values()))
    return {tables.BASE: base} | dict(zip(tasks, trained, strict=True))


def _injected(
    members: pd.DataFrame, dup_counts: Sequence[int]
) -> dict[str, tuple[np.ndarray, int]]:
    """Return what a run injects, by name: token ids, and how often."""
    injected = {}
    for member in members.itertuples():
        if len(dup_counts) == 1 or member.contaminant == tables.OUTLIER:
            dup_count = dup_counts[member.text % len(dup_counts)]
            injected[f"{member.dataset} {member.text}"] = (member.ids, dup_count)
    return injected


def score_runs(
    runs: Runs,
    sets: pd.DataFrame,
    models: Mapping[str, Path],
    parts: Path,
    *,
    k: float,
    neighbours: int,
) -> pd.DataFrame:
    """Score both halves of every set under the base model and after every run.

    Parameters
    ----------
    runs
        Runs of all comparisons.
    sets
        The contaminants.
    models
        Models by the name of their run, and the base model.
    parts
        Folder that keeps what is scored.
    k
        Percentage of Min-K%.
    neighbours
        Of each text for "Neighbor"; 0 leaves it out.

    Returns
    -------
    scored
        A row per comparison (column experiment), model and text: `KEYS`, member, text
        (its number in its half) and a column per score, larger for members. Under the
        base model corpus_tokens and learning_rate are 0, and dup_count is what will be
        injected. Non-members have a row for every duplication count.
    """
    columns = ["loss", f"min_k_{k:g}", f"min_k_pp_{k:g}", "zlib", "lowercase"]
    texts = sets["example"].tolist()
    scores = {}
    for name, directory in models.items():
        scorer = TransformersScorer(directory)
        table = stored_scores(parts / name, scorer, texts, columns=columns, neighbours=neighbours)
        scores[name] = sets[CONTAMINANT].join(table)
    rows = []
    for comparison, compared in runs.items():
        for run in compared:
            rows.append(_rows_of_run(comparison, tables.TRAINED, run, scores[run.name]))
        before = replace(compared[0], name=tables.BASE, corpus_tokens=0, learning_rate=0.0)
        rows.append(_rows_of_run(comparison, tables.BASE, before, scores[tables.BASE]))
    scored = pd.concat(rows).explode("dup_count", ignore_index=True).astype({"dup_count": int})
    others = [column for column in scored if column not in tables.KEYS]
    return scored[[*tables.KEYS, *others]]


def _rows_of_run(
    comparison: str, model: str, run: TrainingRun, scores: pd.DataFrame
) -> pd.DataFrame:
    """Return the rows of a run; a non-member has a list of duplication counts."""
    counts = run.dup_counts
    dup_counts: list[int | tuple[int, ...]] = []
    for text, is_member in zip(scores["text"], scores["member"], strict=True):
        dup_counts.append(counts[text % len(counts)] if is_member else counts)
    rows = scores.assign(
        experiment=comparison,
        model=model,
        corpus_tokens=run.corpus_tokens,
        learning_rate=run.learning_rate,
        dup_count=dup_counts,
    )
    if comparison != tables.SIZE:
        rows = rows[rows["contaminant"] == tables.OUTLIER]
    return rows
