"""The passes of notebook 09: the clean model trains on in every run, then all models score.

Shi (section 6): LLaMA-7B is trained further, for one epoch at a constant learning rate, on text
with injected examples; Min-K% and others then separate these from others. The size of that
text, the duplication count of an example and the learning rate vary. Here the base is the clean
model, every example is inserted whole between two documents, and one mixture holds both sorts of
contaminants; the paper has a mixture each. *Outliers* are unlike the text around them: there,
examples of downstream sets in a web corpus; here, records like those of the canary sets, made from
sources that the corpus holds out. *In-distribution* contaminants are of its kind: there, news in a
corpus of news; here, documents of the corpus's own sources that were left out of it.

Chance divides each set in halves of which one is injected, so a score that knows nothing of the
training has an AUC of 0.5.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from reproduction.notebooks.controlled.tables import (
    BASE,
    COUNT,
    INSIDE,
    KEYS,
    OUTLIER,
    RATE,
    SIZE,
    TRAINED,
)
from reproduction.run.experiment import Experiment
from reproduction.run.fine_tuning import fine_tune
from reproduction.run.injection import mix
from reproduction.run.measured import parts_of
from reproduction.run.members import DOCUMENTS, is_divided, non_members, read_documents
from reproduction.run.tuning_texts import tuning_texts

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

FOLDER = "controlled"  # of the trained models, in the build directory
LEFT_OUT = "left-out documents"  # name of the in-distribution set
SHORTEST = 32  # tokens of a document, as the shortest texts of Shi's WikiMIA


@dataclass(frozen=True)
class ContaminantSet:
    """Texts of one source, of which half is injected; separators are included."""

    contaminant: str  # OUTLIER or INSIDE
    name: str  # of the source
    members: tuple[str, ...]
    non_members: tuple[str, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """Both halves, members first."""
        return (*self.members, *self.non_members)


@dataclass(frozen=True)
class Run:
    """One training run."""

    name: str
    corpus_tokens: int  # of the mixture, with contaminants; less than a block of them is dropped
    learning_rate: float
    dup_counts: tuple[int, ...] = (1,)  # member i has that of i mod their number


Runs = Mapping[str, Sequence[Run]]  # experiment -> its runs


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
    runs = training_runs(sizes, learning_rate, other_rates, fixed_tokens, dup_counts)
    tokenizer = AutoTokenizer.from_pretrained(experiment.corpus / "tokenizer")
    sets = contaminant_sets(
        experiment,
        tokenizer,
        outliers=outliers,
        examples=examples,
        rng=random_stream(experiment.profile.seed, "contaminants"),
        files=validation_files,
    )
    background, unread = collect_background(experiment, tokenizer, sets, tokens=max(sizes))
    directories = fine_tune_runs(experiment, runs, sets, background, batch_size=batch_size)
    base, parts = experiment.model("clean"), parts_of(experiment, "controlled")
    scored = score_runs(runs, sets, base, directories, parts, k=k, neighbours=neighbours)
    shown = [(one.contaminant, one.name, one.members[0]) for one in sets]
    around = {"tokens": [sum(map(len, background))], "unread": [unread]}
    return {
        "sets": pd.DataFrame(shown, columns=["contaminant", "set", "example"]),
        "background": pd.DataFrame(around),
        "scored": scored,
    }


def training_runs(
    sizes: Sequence[int],
    learning_rate: float,
    other_rates: Sequence[float],
    fixed_tokens: int,
    dup_counts: Sequence[int],
) -> dict[str, tuple[Run, ...]]:
    """Return the runs of every experiment, which changes one thing; some runs serve two.

    Raises InputError for fewer than two values of what is varied, one that is not positive or comes
    twice, or `fixed_tokens` that are not in `sizes`.

    Parameters
    ----------
    sizes : tokens of a mixture; contaminants are injected once.
    learning_rate : of all runs but those of `other_rates`.
    fixed_tokens : one of `sizes`, where duplication counts and learning rates are compared.
    dup_counts : in one mixture of that size, each for an equal part of members.
    """
    rates = (learning_rate, *other_rates)
    varied = {"sizes": sizes, "learning_rate and other_rates": rates, "dup_counts": dup_counts}
    for name, values in varied.items():
        if len(values) < 2 or min(values) <= 0 or len(set(values)) < len(values):
            raise InputError(f"{name} {list(values)}: give two or more positive numbers")
    if fixed_tokens not in sizes:
        raise InputError(f"fixed_tokens {fixed_tokens}: give one of the sizes {list(sizes)}")
    return {
        SIZE: tuple(Run(f"size-{n}", n, learning_rate) for n in sorted(sizes)),
        COUNT: (Run("dup-counts", fixed_tokens, learning_rate, tuple(dup_counts)),),
        RATE: (
            Run(f"size-{fixed_tokens}", fixed_tokens, learning_rate),
            *(Run(f"rate-{rate:g}", fixed_tokens, rate) for rate in other_rates),
        ),
    }


def contaminant_sets(
    experiment: Experiment,
    tokenizer: "PreTrainedTokenizerBase",
    *,
    outliers: Sequence[str],
    examples: int,
    rng: np.random.Generator,
    files: Mapping[str, str] | None = None,
) -> tuple[ContaminantSet, ...]:
    """Find the contaminants: outlier sets, then the in-distribution one where documents were left.

    Raises InputError for no outlier set or fewer than 2 examples, a canary set that the profile has
    not, a source with too little text, and as `tuning_texts`.

    Parameters
    ----------
    outliers : canary sets of the profile. Text of their source (a kind of docstring, or a file)
        that was never planted becomes a set; sets of one source give one.
    examples : of each set, in either half.
    rng : divides the sets.
    files : canary set -> file of the data directory, where the set's own holds too little.
    """
    if not outliers or examples < 2:
        raise InputError(
            f"{len(outliers)} outlier sets of {examples} examples: name a canary set and 2 examples"
        )
    facts = experiment.corpus_facts["canaries"]
    wanted = [facts[experiment.spec(name).name] for name in outliers]
    longest = max(one["tokens"] / one["examples"] for one in wanted)  # mean tokens of an example
    sources, texts = tuning_texts(experiment, tokens=int(2 * examples * longest), files=files)
    groups = {(OUTLIER, sources[name]): texts[sources[name]] for name in outliers}
    if is_divided(experiment.corpus):
        # What a context holds as a whole, as it is read: with the last newline.
        left = [text + "\n" for _, text in non_members(experiment.corpus)]
        context, lengths = experiment.profile.model.n_positions, map(len, tokenize(tokenizer, left))
        groups[INSIDE, LEFT_OUT] = tuple(
            text for text, n in zip(left, lengths, strict=True) if SHORTEST <= n <= context
        )
    found = []
    for (contaminant, name), choice in groups.items():
        if len(choice) < 2 * examples:
            raise InputError(
                f"{name}: {len(choice)} texts, {2 * examples} wanted, of which half is injected: "
                "lower `examples`, or name a file with more text in `validation_files`"
            )
        drawn = tuple(choice[i] for i in rng.permutation(len(choice))[: 2 * examples])
        found.append(ContaminantSet(contaminant, name, drawn[:examples], drawn[examples:]))
    return tuple(found)


def collect_background(
    experiment: Experiment,
    tokenizer: "PreTrainedTokenizerBase",
    sets: Sequence[ContaminantSet],
    *,
    tokens: int,
) -> tuple[list[np.ndarray], int]:
    """Collect documents: those left out of the corpus, then, if more are needed, its own.

    Both halves of the `sets` are left out. The last document may go beyond the `tokens` that are
    needed. Returns the documents (int32, each closed by the end-of-text token), and how many tokens
    at their start the base model has not read; the others it has, once. Raises InputError if all
    documents together are fewer tokens.
    """
    used = {text for one in sets for text in one.texts}
    read = read_documents(experiment.corpus / DOCUMENTS)
    background: list[np.ndarray] = []
    length = unread = 0
    for documents, fresh in ((non_members(experiment.corpus), True), (read, False)):
        for line in (text + "\n" for _, text in documents):
            if length >= tokens:
                break
            if line not in used:
                (ids,) = tokenize(tokenizer, [line])
                background.append(np.append(ids, np.int32(tokenizer.eos_token_id)))
                length += len(background[-1])
                unread += len(background[-1]) * fresh
    if length < tokens:
        raise InputError(
            f"{experiment.corpus}: {length} tokens of documents that are no contaminants, "
            f"{tokens} wanted: lower the corpus sizes"
        )
    return background, unread


def mixture(
    sets: Sequence[ContaminantSet],
    background: Sequence[np.ndarray],
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
    room, around = total - tokens, np.concatenate(background)
    if not 0 < room <= len(around):
        raise InputError(
            f"{run.name}: {tokens} tokens of contaminants and {len(around)} of "
            f"background for a mixture of {total}: raise the size, or lower `examples` or "
            "`dup_counts`"
        )
    ends = np.cumsum([len(ids) for ids in background])
    end_of_text = int(tokenizer.eos_token_id)
    pieces, _ = mix(around[:room], ends[ends <= room], injected, end_of_text, rng=rng)
    return np.concatenate(pieces).reshape(-1, context)


def fine_tune_runs(
    experiment: Experiment,
    runs: Runs,
    sets: Sequence[ContaminantSet],
    background: Sequence[np.ndarray],
    *,
    batch_size: int,
) -> dict[Run, Path]:
    """Train the clean model further, once for every run, and return the directories.

    Every run is trained in one process, `batch_size` blocks at a step. One that was trained before,
    on the same text with the same settings and base, is not trained again. In the run for
    duplication counts outliers alone are injected. Raises InputError if the clean model is not
    trained, and as `mixture` and `fine_tune`.
    """
    base, seed = experiment.model("clean"), experiment.profile.seed
    if not (base / "training.json").is_file():
        raise InputError(f"{base} is not trained: run `make reproduce` or the train stage first")
    tokenizer = AutoTokenizer.from_pretrained(base, local_files_only=True)
    context = experiment.profile.model.n_positions
    tasks = {}
    for run in dict.fromkeys(run for found in runs.values() for run in found):
        injected = [s for s in sets if len(run.dup_counts) == 1 or s.contaminant == OUTLIER]
        # Runs of one size have one mixture: what differs between learning rates is nothing else.
        rng = random_stream(seed, "mixture", run.corpus_tokens)
        blocks = mixture(injected, background, run, tokenizer, context=context, rng=rng)
        tasks[run] = partial(
            fine_tune,
            base,
            list(blocks),
            experiment.build / FOLDER / run.name,
            epochs=1,
            learning_rate=run.learning_rate,
            seed=seed,
            batch_size=batch_size,
        )
    return dict(zip(tasks, deal("train further", list(tasks.values())), strict=True))


def score_runs(
    runs: Runs,
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
    for name, found in runs.items():
        for run, trained in (*((run, True) for run in found), (found[0], False)):
            table = known[run] if trained else before
            counts = np.array(run.dup_counts)[table["text"] % len(run.dup_counts)]
            part = table.assign(
                experiment=name,
                model=TRAINED if trained else BASE,
                corpus_tokens=run.corpus_tokens * trained,
                learning_rate=run.learning_rate * trained,
                dup_count=[
                    count if member else run.dup_counts
                    for count, member in zip(counts, table["member"], strict=True)
                ],
            )
            tables.append(part if name == SIZE else part[part["contaminant"] == OUTLIER])
    every = pd.concat(tables).explode("dup_count", ignore_index=True).astype({"dup_count": int})
    return every[[*KEYS, *(column for column in every if column not in KEYS)]]
