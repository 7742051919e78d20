"""What is injected and what it is injected into: contaminants in halves, and a background.

Shi (section 6) has two sorts of contaminants. *Outliers* are unlike the text around them: there,
examples of downstream sets in a web corpus; here, records like those of the canary sets, made from
sources that the corpus holds out. *In-distribution* contaminants are of its kind: there, news in a
corpus of news; here, documents of the corpus's own sources that were left out of it.

Chance divides each set in halves of which one is injected, so a score that knows nothing of the
training has an AUC of 0.5.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contamination.errors import InputError
from contamination.testsets.tokens import tokenize
from reproduction.run.corpus import Document
from reproduction.run.experiment import Experiment
from reproduction.run.members import DOCUMENTS, is_divided, non_members, read_documents
from reproduction.run.tuning_texts import tuning_texts

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

OUTLIER, INSIDE = "outlier", "in-distribution"
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


@dataclass(frozen=True, eq=False)
class Background:
    """Documents around the contaminants, none of which is one."""

    tokens: np.ndarray  # int32 (T,), each document closed by the end-of-text token
    ends: np.ndarray  # int64 (documents,), offset after each
    unread: int  # the base model has not read so many tokens at the start; the others it has, once


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
    found = [
        _divided(OUTLIER, source, texts[source], examples, rng)
        for source in dict.fromkeys(sources[name] for name in outliers)
    ]
    if is_divided(experiment.corpus):
        documents = _fitting(non_members(experiment.corpus), tokenizer, experiment)
        found.append(_divided(INSIDE, LEFT_OUT, documents, examples, rng))
    return tuple(found)


def collect_background(
    experiment: Experiment,
    tokenizer: "PreTrainedTokenizerBase",
    sets: Sequence[ContaminantSet],
    *,
    tokens: int,
) -> Background:
    """Collect documents: those left out of the corpus, then, if more are needed, its own.

    Both halves of the `sets` are left out. The last document may go beyond the `tokens` that are
    needed. Raises InputError if all documents together are fewer tokens.
    """
    used = {text for one in sets for text in one.texts}
    read = read_documents(experiment.corpus / DOCUMENTS)
    parts: list[np.ndarray] = []
    length = unread = 0
    for documents, fresh in ((non_members(experiment.corpus), True), (read, False)):
        for line in (text + "\n" for _, text in documents):
            if length >= tokens:
                break
            if line not in used:
                (ids,) = tokenize(tokenizer, [line])
                parts.append(np.append(ids, np.int32(tokenizer.eos_token_id)))
                length += len(parts[-1])
                unread += len(parts[-1]) * fresh
    if length < tokens:
        raise InputError(
            f"{experiment.corpus}: {length} tokens of documents that are no contaminants, "
            f"{tokens} wanted: lower the corpus sizes"
        )
    return Background(np.concatenate(parts), np.cumsum([len(ids) for ids in parts]), unread)


def _fitting(
    documents: Iterator[Document], tokenizer: "PreTrainedTokenizerBase", experiment: Experiment
) -> list[str]:
    """List documents that a context holds as a whole, as they are read: with the last newline."""
    texts = [text + "\n" for _, text in documents]
    context = experiment.profile.model.n_positions
    lengths = map(len, tokenize(tokenizer, texts))
    return [t for t, n in zip(texts, lengths, strict=True) if SHORTEST <= n <= context]


def _divided(
    contaminant: str, name: str, texts: Sequence[str], examples: int, rng: np.random.Generator
) -> ContaminantSet:
    """Draw two halves from all texts."""
    if len(texts) < 2 * examples:
        raise InputError(
            f"{name}: {len(texts)} texts, {2 * examples} wanted, of which half is injected: lower "
            "`examples`, or name a file with more text in `validation_files`"
        )
    drawn = [texts[i] for i in rng.permutation(len(texts))[: 2 * examples]]
    return ContaminantSet(contaminant, name, tuple(drawn[:examples]), tuple(drawn[examples:]))
