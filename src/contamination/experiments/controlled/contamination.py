"""Controlled contamination: a trained model reads on, and what it met is told from what it did not.

Shi (section 6): LLaMA-7B is trained further, for one epoch at a constant learning rate, on text
with injected examples; Min-K% and others then tell these from examples held out. The size of that
text, the number of occurrences and the learning rate vary. Here the base is the clean model, every
example is inserted whole between two documents, and one mixture holds outliers and in-distribution
contaminants: the latter are documents like those of the background. The paper has a mixture each.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from tqdm import tqdm

from contamination.errors import InputError
from contamination.experiments.controlled.contaminants import OUTLIER, Background, ContaminantSet
from contamination.experiments.controlled.plan import SIZE, Plan, Run
from contamination.membership.api import membership_scores
from contamination.pretraining.experiment import Experiment
from contamination.pretraining.injection import mix
from contamination.testsets.tokens import tokenize

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

FOLDER = "controlled"  # of the trained models, in the build directory
BASE, TRAINED = "base", "trained"
KEYS = (
    *("experiment", "contaminant", "dataset", "model"),
    *("corpus_tokens", "occurrences", "learning_rate"),
)
STREAM = 9  # of random numbers, after the seed of the profile


def mixture(
    sets: Sequence[ContaminantSet],
    around: Background,
    run: Run,
    tokenizer: "PreTrainedTokenizerBase",
    *,
    context: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Mix a training text and cut it into blocks: int32 (blocks, context), no token left out.

    Every copy of a member stands whole, closed by the end-of-text token, at a random boundary
    between documents; the background is cut so that the last block is full.

    Raises
    ------
    InputError
        The contaminants alone are more than `run.corpus_tokens`, or the background is too short.
    """
    canaries = {
        f"{one.name} {i}": (ids, run.occurrences[i % len(run.occurrences)])
        for one in sets
        for i, ids in enumerate(tokenize(tokenizer, one.members))
    }
    injected = sum((len(ids) + 1) * copies for ids, copies in canaries.values())
    total = run.corpus_tokens // context * context
    room = total - injected
    if not 0 < room <= len(around.tokens):
        raise InputError(
            f"{run.name}: {injected} tokens of contaminants and {len(around.tokens)} of background "
            f"for a mixture of {total}: raise the size, or lower `examples` or the occurrences"
        )
    mixed = mix(
        around.tokens[:room],
        around.ends[around.ends <= room],
        canaries,
        int(tokenizer.eos_token_id),
        rng=rng,
    )
    return np.concatenate(mixed.pieces).reshape(-1, context)


def train_runs(
    experiment: Experiment,
    plan: Plan,
    sets: Sequence[ContaminantSet],
    around: Background,
) -> dict[Run, Path]:
    """Train the clean model further, once for every run, and return the directories.

    A run that was trained before, on the same text with the same settings and base, is not trained
    again. In the run for occurrences outliers alone are injected.

    Raises
    ------
    InputError
        The clean model is not trained; as `mixture` and
        `contamination.pretraining.fine_tuning.fine_tune`.
    """
    from transformers import AutoTokenizer

    from contamination.pretraining.fine_tuning import fine_tune

    base, seed = experiment.model("clean"), experiment.profile.seed
    if not (base / "training.json").is_file():
        raise InputError(f"{base} is not trained: run `make reproduce` or the train stage first")
    tokenizer = AutoTokenizer.from_pretrained(base, local_files_only=True)
    context = experiment.profile.model.n_positions
    texts = {}
    for run in dict.fromkeys(run for runs in plan.runs.values() for run in runs):
        injected = [s for s in sets if len(run.occurrences) == 1 or s.contaminant == OUTLIER]
        # Runs of one size have one mixture: what differs between learning rates is nothing else.
        rng = np.random.default_rng([seed, STREAM, run.corpus_tokens])
        texts[run] = mixture(injected, around, run, tokenizer, context=context, rng=rng)
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
                batch_size=plan.batch_size,
            )
            bar.update(blocks.size)
    return directories


def score_runs(
    plan: Plan,
    sets: Sequence[ContaminantSet],
    base: Path,
    directories: Mapping[Run, Path],
    *,
    k: float,
) -> pd.DataFrame:
    """Score both halves of every set under the base model and after every run.

    Returns
    -------
    DataFrame
        A row per experiment, model and text: `KEYS`, member, text (its number in its half) and a
        column per score, larger for members: loss, min_k_<k>, min_k_pp_<k>, zlib. Under the base
        model corpus_tokens and learning_rate are 0, and occurrences is what will be injected.
        Non-members stand beside every number of occurrences.
    """
    texts = {one: (*one.members, *one.non_members) for one in sets}
    known = {run: _scored(directory, texts, k) for run, directory in directories.items()}
    first = _scored(base, texts, k)
    parts = []
    for name, runs in plan.runs.items():
        for run in runs:
            parts.append(known[run].assign(experiment=name, run=run, model=TRAINED))
        parts.append(first.assign(experiment=name, run=runs[0], model=BASE))
    table = pd.concat(parts, ignore_index=True)
    ran = [model == TRAINED for model in table["model"]]
    table["corpus_tokens"] = [r.corpus_tokens * t for r, t in zip(table["run"], ran, strict=True)]
    table["learning_rate"] = [r.learning_rate * t for r, t in zip(table["run"], ran, strict=True)]
    table["occurrences"] = [
        (run.occurrences[i % len(run.occurrences)],) if member else run.occurrences
        for run, i, member in zip(table["run"], table["text"], table["member"], strict=True)
    ]
    inside = (table["experiment"] != SIZE) & (table["contaminant"] != OUTLIER)
    table = table[~inside].drop(columns="run").explode("occurrences", ignore_index=True)
    found = table.astype({"occurrences": int})
    return found[[*KEYS, *(name for name in found if name not in KEYS)]]


def _scored(
    directory: Path, texts: Mapping[ContaminantSet, Sequence[str]], k: float
) -> pd.DataFrame:
    """Score the texts of all sets in one pass of a model."""
    every = [text for found in texts.values() for text in found]
    columns = ["loss", f"min_k_{k:g}", f"min_k_pp_{k:g}", "zlib"]
    table = membership_scores(directory, every, columns=columns)
    keys = [
        (one.contaminant, one.name, member, i)
        for one in texts
        for member, half in ((True, one.members), (False, one.non_members))
        for i in range(len(half))
    ]
    names = ["contaminant", "dataset", "member", "text"]
    return pd.concat([pd.DataFrame(keys, columns=names), table], axis=1)
