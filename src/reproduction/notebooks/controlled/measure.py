"""The passes of notebook 09: the clean model trains on in every run, then all models score.

Shi (section 6) train LLaMA-7B further, for one epoch at a constant learning rate, on text with
injected examples, and look for these among others. Here the base is the clean model, an example is
inserted whole between two documents, and one mixture holds both sorts of contaminants, where the
paper has a mixture each. *Outliers*: there, examples of downstream sets in a web corpus; here,
records like those of the canary sets, from sources that the corpus holds out. *In-distribution*:
there, news in a corpus of news; here, documents of the corpus's own sources that were left out.

Chance divides each set in halves of which one is injected, so a score that knows nothing of the
training has an AUC of 0.5.
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
from contamination.membership.api import stored_scores
from contamination.randomness import random_stream
from contamination.scoring.local import TransformersScorer
from contamination.scoring.processes import deal
from contamination.testsets.tokens import tokenize
from reproduction.notebooks.controlled import tables
from reproduction.run.corpus import DOCUMENTS, is_divided, non_members, read_documents
from reproduction.run.experiment import Experiment, parts_of
from reproduction.run.fine_tuning import fine_tune
from reproduction.run.injection import fill_blocks
from reproduction.run.texts import tuning_texts

LEFT_OUT = "left-out documents"  # name of the in-distribution set
SHORTEST = 32  # tokens of a document, as the shortest texts of Shi's WikiMIA
# A contaminant of OUTLIER or INSIDE, its source, whether it is injected, its number in its half.
CONTAMINANT = ["contaminant", "dataset", "member", "text"]


@dataclass(frozen=True)
class Run:
    """One training run."""

    name: str  # of its directory
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
    many the base model has not read) and `scored`, as of `score_runs`. The parameters are those of
    the functions below.
    """
    runs = training_runs(sizes, learning_rate, other_rates, fixed_tokens, dup_counts)
    tokenizer = AutoTokenizer.from_pretrained(experiment.corpus / "tokenizer")
    rng = random_stream(experiment.profile.seed, "contaminants")
    sets = contaminant_sets(experiment, tokenizer, outliers, examples, validation_files, rng=rng)
    background, unread = collect_background(experiment, tokenizer, sets, tokens=max(sizes))
    models = fine_tune_runs(experiment, tokenizer, runs, sets, background, batch_size)
    parts = parts_of(experiment, "controlled")
    scored = score_runs(runs, sets, models, parts, k=k, neighbours=neighbours)
    shown = sets[sets["member"] & (sets["text"] == 0)].rename(columns={"dataset": "set"})
    shown = shown[["contaminant", "set", "example"]].reset_index(drop=True)
    around = {"tokens": [sum(map(len, background))], "unread": [unread]}
    return {"sets": shown, "background": pd.DataFrame(around), "scored": scored}


def training_runs(
    sizes: Sequence[int],
    learning_rate: float,
    other_rates: Sequence[float],
    fixed_tokens: int,
    dup_counts: Sequence[int],
) -> dict[str, tuple[Run, ...]]:
    """Return the runs of every experiment, which changes one thing; some runs serve two.

    Contaminants are injected once, but for `dup_counts`, each for an equal part of the members of
    one mixture of `fixed_tokens`, one of `sizes`; learning rates are compared there, too. Raises
    InputError for fewer than two values of what is varied, or one that comes twice.
    """
    rates = (learning_rate, *other_rates)
    for name, values in {"sizes": sizes, "dup_counts": dup_counts, "other_rates": rates}.items():
        if len(set(values)) < max(2, len(values)):
            raise InputError(f"{name}: two different values are compared, or more; none twice")
    return {
        tables.SIZE: tuple(Run(f"size-{n}", n, learning_rate) for n in sorted(sizes)),
        tables.COUNT: (Run("dup-counts", fixed_tokens, learning_rate, tuple(dup_counts)),),
        tables.RATE: (
            Run(f"size-{fixed_tokens}", fixed_tokens, learning_rate),
            *(Run(f"rate-{rate:g}", fixed_tokens, rate) for rate in other_rates),
        ),
    }


def contaminant_sets(
    experiment: Experiment,
    tokenizer: PreTrainedTokenizerBase,
    outliers: Sequence[str],
    examples: int,
    files: Mapping[str, str],
    *,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """Find the contaminants: outlier sets, then the in-distribution one where documents were left.

    Text of the source (a kind of docstring, or a file) of the canary sets `outliers` that was never
    planted becomes a set, of so many `examples` in either half; canary sets of one source give one.
    Returns `CONTAMINANT` and example (with its separator), members of a set first. Raises
    InputError for a source with too little text, and as `tuning_texts`, which takes the `files`.
    """
    facts = [experiment.corpus_facts["canaries"][experiment.spec(name).name] for name in outliers]
    longest = max(one["tokens"] / one["examples"] for one in facts)  # mean tokens of an example
    sources, texts = tuning_texts(experiment, tokens=int(2 * examples * longest), files=files)
    groups = {(tables.OUTLIER, sources[name]): texts[sources[name]] for name in outliers}
    if is_divided(experiment.corpus):
        # What a context holds as a whole, as it is read: with the last newline.
        left = [text + "\n" for _, text in non_members(experiment.corpus)]
        context, lengths = experiment.profile.model.n_positions, map(len, tokenize(tokenizer, left))
        fitting = [text for text, n in zip(left, lengths, strict=True) if SHORTEST <= n <= context]
        groups[tables.INSIDE, LEFT_OUT] = tuple(fitting)
    rows = []
    for (contaminant, name), choice in groups.items():
        if len(choice) < 2 * examples:
            raise InputError(
                f"{name}: {len(choice)} texts, {2 * examples} wanted, of which half is injected: "
                "lower `examples`, or name a file with more text in `validation_files`"
            )
        for place, i in enumerate(rng.permutation(len(choice))[: 2 * examples]):
            injected, number = place < examples, place % examples
            rows.append((contaminant, name, injected, number, choice[i]))
    return pd.DataFrame(rows, columns=[*CONTAMINANT, "example"])


def collect_background(
    experiment: Experiment, tokenizer: PreTrainedTokenizerBase, sets: pd.DataFrame, *, tokens: int
) -> tuple[list[np.ndarray], int]:
    """Collect documents: those left out of the corpus, then, if more are needed, its own.

    Returns the documents (int32, each closed by the end-of-text token) without those of `sets`, and
    how many tokens at their start the base model has not read; the others it has, once. The last
    one may go beyond the `tokens` needed. Raises InputError if all together are fewer.
    """
    used = set(sets["example"])
    fresh = ((text + "\n", True) for _, text in non_members(experiment.corpus))
    read = ((text + "\n", False) for _, text in read_documents(experiment.corpus / DOCUMENTS))
    background: list[np.ndarray] = []
    length = unread = 0
    for line, new in chain(fresh, read):
        if length >= tokens:
            break
        if line not in used:
            (ids,) = tokenize(tokenizer, [line])
            background.append(np.append(ids, np.int32(tokenizer.eos_token_id)))
            length += len(background[-1])
            unread += len(background[-1]) * new
    if length < tokens:
        raise InputError(
            f"{experiment.corpus}: {length} tokens of documents that are no contaminants, "
            f"{tokens} wanted: lower the corpus sizes"
        )
    return background, unread


def fine_tune_runs(
    experiment: Experiment,
    tokenizer: PreTrainedTokenizerBase,
    runs: Runs,
    sets: pd.DataFrame,
    background: Sequence[np.ndarray],
    batch_size: int,
) -> dict[str, Path]:
    """Train the clean model further, once for every run; return all models by name, it as `BASE`.

    Of a mixture no token is left out; a member is injected whole at random boundaries between
    documents, in the run for duplication counts those of outliers alone. Every run is trained in
    one process, unless it was before. Raises InputError as `fill_blocks` and `fine_tune`.
    """
    seed, members = experiment.profile.seed, sets[sets["member"]]
    around, ends = np.concatenate(background), np.cumsum([len(ids) for ids in background])
    every = tokenize(tokenizer, members["example"].tolist())
    keys = [members[name] for name in ("contaminant", "dataset", "text")]
    context, end = experiment.profile.model.n_positions, int(tokenizer.eos_token_id)
    base, folder = experiment.model("clean"), experiment.build / "controlled"
    teach = partial(fine_tune, base, epochs=1, seed=seed, batch_size=batch_size)
    tasks = {}
    for run in dict.fromkeys(run for found in runs.values() for run in found):
        counts, tokens = run.dup_counts, run.corpus_tokens
        injected = {
            f"{name} {i}": (ids, counts[i % len(counts)])
            for contaminant, name, i, ids in zip(*keys, every, strict=True)
            if len(counts) == 1 or contaminant == tables.OUTLIER
        }
        # Runs of one size have one mixture: what differs between learning rates is nothing else.
        rng = random_stream(seed, "mixture", tokens)
        sizes = {"context": context, "tokens": tokens}
        blocks, _ = fill_blocks(around, ends, injected, end, rng=rng, **sizes)
        place, rate = folder / run.name, run.learning_rate
        tasks[run.name] = partial(teach, list(blocks), place, learning_rate=rate)
    trained = deal("train further", list(tasks.values()))
    return {tables.BASE: base} | dict(zip(tasks, trained, strict=True))


def score_runs(
    runs: Runs,
    sets: pd.DataFrame,
    models: Mapping[str, Path],
    parts: Path,
    *,
    k: float,
    neighbours: int,
) -> pd.DataFrame:
    """Score both halves of every set under the base model and after every run, kept in `parts`.

    A row per experiment, model and text: `KEYS`, member, text (its number in its half) and a column
    per score, larger for members. Under the base model corpus_tokens and learning_rate are 0, and
    dup_count is what will be injected. Non-members stand beside every duplication count.
    """
    columns = ["loss", f"min_k_{k:g}", f"min_k_pp_{k:g}", "zlib", "lowercase"]
    texts, known = sets["example"].tolist(), {}
    for name, directory in models.items():
        scorer = TransformersScorer(directory)
        found = stored_scores(parts / name, scorer, texts, columns=columns, neighbours=neighbours)
        known[name] = sets[CONTAMINANT].join(found)
    rows = []
    for experiment, varied in runs.items():
        before = replace(varied[0], name=tables.BASE, corpus_tokens=0, learning_rate=0.0)
        for run in (*varied, before):
            part, counts = known[run.name], run.dup_counts
            own = [counts[text % len(counts)] for text in part["text"]]
            part = part.assign(
                experiment=experiment,
                model=tables.BASE if run is before else tables.TRAINED,
                corpus_tokens=run.corpus_tokens,
                learning_rate=run.learning_rate,
                dup_count=[n if m else counts for n, m in zip(own, part["member"], strict=True)],
            )
            if experiment != tables.SIZE:
                part = part[part["contaminant"] == tables.OUTLIER]
            rows.append(part)
    every = pd.concat(rows).explode("dup_count", ignore_index=True).astype({"dup_count": int})
    return every[[*tables.KEYS, *(column for column in every if column not in tables.KEYS)]]
