"""Controlled contamination: a trained model reads on, and its new text holds members.

Shi (section 6): LLaMA-7B is trained further, for one epoch at a constant learning rate, on text
with injected examples; Min-K% and others then tell these from examples held out. The size of that
text, the duplication count of an example and the learning rate vary. Here the base is the clean
model, every example is inserted whole between two documents, and one mixture holds outliers and
in-distribution contaminants: the latter are documents like those of the background. The paper has a
mixture each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from tqdm import tqdm
from transformers import AutoTokenizer

from contamination.errors import InputError
from contamination.experiments.controlled.contaminants import OUTLIER, Background, ContaminantSet
from contamination.membership.api import membership_scores
from contamination.pretraining.experiment import Experiment
from contamination.pretraining.fine_tuning import fine_tune
from contamination.pretraining.injection import mix
from contamination.randomness import random_stream
from contamination.testsets.tokens import tokenize

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

SIZE, COUNT, RATE = "corpus_size", "dup_count", "learning_rate"  # experiments: what varies
BASE, TRAINED = "base", "trained"
KEYS = (
    *("experiment", "contaminant", "dataset", "model"),
    *("corpus_tokens", "dup_count", "learning_rate"),
)
FOLDER = "controlled"  # of the trained models, in the build directory


@dataclass(frozen=True)
class Run:
    """One training run."""

    name: str
    corpus_tokens: int  # of the mixture, with contaminants; less than a block of them is dropped
    learning_rate: float
    dup_counts: tuple[int, ...] = (1,)  # member i has that of i mod their number


@dataclass(frozen=True)
class TrainingRuns:
    """The training runs that the experiments need. Every experiment changes one thing.

    Raises InputError for fewer than two values of what is varied, one that is not positive or comes
    twice, or `fixed_tokens` that are not in `sizes`.
    """

    sizes: tuple[int, ...]  # tokens of a mixture; contaminants are injected once
    learning_rate: float  # of all runs but those of `other_rates`
    other_rates: tuple[float, ...]
    fixed_tokens: int  # one of `sizes`, where duplication counts and learning rates are compared
    dup_counts: tuple[int, ...]  # in one mixture of that size, each for an equal part of members
    batch_size: int = 8  # blocks of a step

    def __post_init__(self) -> None:
        """Refuse what cannot be compared."""
        varied = {
            "sizes": self.sizes,
            "learning_rate and other_rates": (self.learning_rate, *self.other_rates),
            "dup_counts": self.dup_counts,
        }
        for name, values in varied.items():
            if len(values) < 2 or min(values) <= 0 or len(set(values)) < len(values):
                raise InputError(f"{name} {list(values)}: give two or more positive numbers")
        if self.fixed_tokens not in self.sizes:
            raise InputError(
                f"fixed_tokens {self.fixed_tokens}: give one of the sizes {list(self.sizes)}"
            )

    @property
    def by_experiment(self) -> dict[str, tuple[Run, ...]]:
        """Experiment -> its runs; one that serves two experiments is in both."""
        sizes = tuple(Run(f"size-{n}", n, self.learning_rate) for n in sorted(self.sizes))
        fixed = next(run for run in sizes if run.corpus_tokens == self.fixed_tokens)
        others = (Run(f"rate-{r:g}", self.fixed_tokens, r) for r in self.other_rates)
        counts = Run("dup-counts", self.fixed_tokens, self.learning_rate, self.dup_counts)
        return {SIZE: sizes, COUNT: (counts,), RATE: (fixed, *others)}


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

    A run that was trained before, on the same text with the same settings and base, is not trained
    again. In the run for duplication counts outliers alone are injected. Raises InputError if the
    clean model is not trained, and as `mixture` and `fine_tune`.
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
    directories = {}
    total = sum(blocks.size for blocks in texts.values())
    with tqdm(desc="train further", total=total, unit="tok", unit_scale=True) as bar:
        for run, blocks in texts.items():
            bar.set_postfix_str(run.name)
            directories[run] = fine_tune(
                base,
                list(blocks),
                experiment.build / FOLDER / run.name,
                epochs=1,
                learning_rate=run.learning_rate,
                seed=seed,
                batch_size=runs.batch_size,
            )
            bar.update(blocks.size)
    return directories


def score_runs(
    runs: TrainingRuns,
    sets: Sequence[ContaminantSet],
    base: Path,
    directories: Mapping[Run, Path],
    *,
    k: float,
    neighbours: int,
) -> pd.DataFrame:
    """Score both halves of every set under the base model and after every run.

    A row per experiment, model and text: `KEYS`, member, text (its number in its half) and a column
    per score, larger for members: loss, min_k_<k>, min_k_pp_<k>, zlib, lowercase, and neighbour,
    which reads so many of each text. Under the base model corpus_tokens and learning_rate are 0,
    and dup_count is what will be injected. Non-members stand beside every duplication count.
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

    def scored(directory: Path) -> pd.DataFrame:
        table = membership_scores(directory, texts, columns=columns, neighbours=neighbours)
        return pd.concat([keys, table], axis=1)

    known = {run: scored(directory) for run, directory in directories.items()}
    before = scored(base)
    parts = []
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
            parts.append(part if name == SIZE else part[part["contaminant"] == OUTLIER])
    every = pd.concat(parts).explode("dup_count", ignore_index=True).astype({"dup_count": int})
    return every[[*KEYS, *(column for column in every if column not in KEYS)]]
