"""Controlled contamination: a trained model reads on, and its new text holds members.

Shi (section 6): LLaMA-7B is trained further, for one epoch at a constant learning rate, on text
with injected examples; Min-K% and others then tell these from examples held out. The size of that
text, the duplication count of an example and the learning rate vary. Here the base is the clean
model, every example is inserted whole between two documents, and one mixture holds outliers and
in-distribution contaminants: the latter are documents like those of the background. The paper has a
mixture each.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from transformers import AutoTokenizer

from contamination.errors import InputError
from contamination.membership.stored import stored_scores
from contamination.randomness import random_stream
from contamination.scoring.local import TransformersScorer
from contamination.scoring.processes import deal
from contamination.testsets.tokens import tokenize
from reproduction.notebooks.controlled.contaminants import OUTLIER, Background, ContaminantSet
from reproduction.notebooks.controlled.runs import (
    BASE,
    KEYS,
    SIZE,
    TRAINED,
    Run,
    TrainingRuns,
)
from reproduction.run.experiment import Experiment
from reproduction.run.fine_tuning import fine_tune
from reproduction.run.injection import mix

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

FOLDER = "controlled"  # of the trained models, in the build directory


def mixture(
    sets: Sequence[ContaminantSet],
    background: Background,
    run: Run,
    tokenizer: "PreTrainedTokenizerBase",
    *,
    context: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Mix a training text and cut it into blocks: int32 (blocks, context), no token left out.

    A member stands whole wherever it is injected, closed by the end-of-text token, at a random
    boundary between documents; the background is cut so that the last block is full. Raises
    InputError if the contaminants alone are more than `run.corpus_tokens`, or the background is too
    short.
    """
    injected = {
        f"{one.name} {i}": (ids, run.dup_counts[i % len(run.dup_counts)])
        for one in sets
        for i, ids in enumerate(tokenize(tokenizer, one.members))
    }
    tokens = sum((len(ids) + 1) * dup_count for ids, dup_count in injected.values())
    total = run.corpus_tokens // context * context
    room = total - tokens
    if not 0 < room <= len(background.tokens):
        raise InputError(
            f"{run.name}: {tokens} tokens of contaminants and {len(background.tokens)} of "
            f"background for a mixture of {total}: raise the size, or lower `examples` or "
            "`dup_counts`"
        )
    ends = background.ends[background.ends <= room]
    end_of_text = int(tokenizer.eos_token_id)
    pieces, _ = mix(background.tokens[:room], ends, injected, end_of_text, rng=rng)
    return np.concatenate(pieces).reshape(-1, context)


def fine_tune_runs(
    experiment: Experiment,
    runs: TrainingRuns,
    sets: Sequence[ContaminantSet],
    background: Background,
) -> dict[Run, Path]:
    """Train the clean model further, once for every run, and return the directories.

    Every run is trained in one process. One that was trained before, on the same text with the same
    settings and base, is not trained again. In the run for duplication counts outliers alone are
    injected. Raises InputError if the clean model is not trained, and as `mixture` and `fine_tune`.
    """
    base, seed = experiment.model("clean"), experiment.profile.seed
    if not (base / "training.json").is_file():
        raise InputError(f"{base} is not trained: run `make reproduce` or the train stage first")
    tokenizer = AutoTokenizer.from_pretrained(base, local_files_only=True)
    context = experiment.profile.model.n_positions
    texts = {}
    for run in dict.fromkeys(run for found in runs.by_experiment.values() for run in found):
        injected = [s for s in sets if len(run.dup_counts) == 1 or s.contaminant == OUTLIER]
        # Runs of one size have one mixture: what differs between learning rates is nothing else.
        rng = random_stream(seed, "mixture", run.corpus_tokens)
        texts[run] = mixture(injected, background, run, tokenizer, context=context, rng=rng)
    tasks = [
        partial(
            fine_tune,
            base,
            list(blocks),
            experiment.build / FOLDER / run.name,
            epochs=1,
            learning_rate=run.learning_rate,
            seed=seed,
            batch_size=runs.batch_size,
        )
        for run, blocks in texts.items()
    ]
    return dict(zip(texts, deal("train further", tasks), strict=True))


def score_runs(
    runs: TrainingRuns,
    sets: Sequence[ContaminantSet],
    base: Path,
    directories: Mapping[Run, Path],
    parts: Path,
    *,
    k: float,
    neighbours: int,
) -> pd.DataFrame:
    """Score both halves of every set under the base model and after every run.

    A row per experiment, model and text: `KEYS`, member, text (its number in its half) and a column
    per score, larger for members: loss, min_k_<k>, min_k_pp_<k>, zlib, lowercase, and neighbour,
    which reads so many of each text. Under the base model corpus_tokens and learning_rate are 0,
    and dup_count is what will be injected. Non-members stand beside every duplication count. What
    is scored is kept in `parts`.
    """
    columns = ["loss", f"min_k_{k:g}", f"min_k_pp_{k:g}", "zlib", "lowercase"]
    texts = [text for one in sets for text in one.texts]
    each = [
        (one.contaminant, one.name, member, i)
        for one in sets
        for member, half in ((True, one.members), (False, one.non_members))
        for i in range(len(half))
    ]
    keys = pd.DataFrame(each, columns=["contaminant", "dataset", "member", "text"])

    def scored(name: str, directory: Path) -> pd.DataFrame:
        scorer = TransformersScorer(directory)
        table = stored_scores(parts / name, scorer, texts, columns=columns, neighbours=neighbours)
        return pd.concat([keys, table.reset_index(drop=True)], axis=1)

    known = {run: scored(run.name, directory) for run, directory in directories.items()}
    before = scored(BASE, base)
    tables = []
    for name, found in runs.by_experiment.items():
        for run, table in (*((run, known[run]) for run in found), (found[0], before)):
            trained = table is not before
            counts = run.dup_counts
            part = table.assign(
                experiment=name,
                model=TRAINED if trained else BASE,
                corpus_tokens=run.corpus_tokens * trained,
                learning_rate=run.learning_rate * trained,
                dup_count=[
                    counts[i % len(counts)] if member else counts
                    for i, member in zip(table["text"], table["member"], strict=True)
                ],
            )
            tables.append(part if name == SIZE else part[part["contaminant"] == OUTLIER])
    every = pd.concat(tables).explode("dup_count", ignore_index=True).astype({"dup_count": int})
    return every[[*KEYS, *(column for column in every if column not in KEYS)]]
