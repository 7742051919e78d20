"""Texts of several domains: those that a model was trained on, and those that it was not.

A domain is a source of text: a package of the corpus or a file, a package held out of it, or, with
a local mirror, a domain of the Pile. All texts have the same number of tokens, the beginning of a
document, so that no score tells them apart by their length.
"""

import gzip
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from contamination.errors import InputError
from contamination.randomness import random_stream
from contamination.testsets.sources import data_directory
from contamination.testsets.tokens import tokenize
from reproduction.run.corpus import Document, build_corpus, read_texts
from reproduction.run.experiment import Experiment
from reproduction.run.members import (
    DOCUMENTS,
    first_paragraph,
    members,
    non_members,
    read_documents,
    sample_by_source,
)

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

MIRROR = "pile_domains"  # folder of the data directory: {"text": ...} lines, one file a domain

Texts = tuple[np.ndarray, ...]  # token ids, each int32 [length]


@dataclass(frozen=True, eq=False)
class Domain:
    """Texts of one domain."""

    members: Texts = ()  # the models read their documents, once
    non_members: Texts = ()  # the clean model read nothing of their documents
    spare: Texts = ()  # further non-members, to be trained on afterwards


def domain_texts(
    experiment: Experiment,
    tokenizer: "PreTrainedTokenizerBase",
    *,
    length: int,
    texts: int,
    spare: int,
) -> dict[str, Domain]:
    """Find the texts of every domain at hand: the corpus, packages held out of it, the mirror.

    A domain of the corpus has as many members as non-members, drawn by one rule
    (`reproduction.run.members`). A corpus that was taken whole has no non-members, and
    the other domains have no members. Raises InputError if the corpus stage has not finished, an
    argument is below 1 or a length below 2, no document of the corpus is that long, or a file of
    the mirror cannot be read.

    Parameters
    ----------
    length : tokens of a text; shorter documents are left out.
    texts : most texts of a domain, members and non-members each.
    spare : most texts of a domain to be trained on afterwards.
    """
    if length < 2 or texts < 1 or spare < 1:
        raise InputError(
            f"length {length}, texts {texts}, spare {spare}: give at least 2 tokens and 1 text each"
        )
    experiment.require_corpus()
    corpus, profile = experiment.corpus, experiment.profile.corpus

    def sample(documents: Iterable[Document], most: int, sources: int = 1) -> dict[str, Texts]:
        def beginning(text: str) -> np.ndarray | None:
            (ids,) = tokenize(tokenizer, [text])
            return ids[:length] if len(ids) >= length else None

        found = sample_by_source(documents, beginning, most=most, sources=sources)
        return {source: tuple(ids) for source, ids in found.items()}

    names = profile.packages or profile.files
    read = sample(members(corpus), texts, len(names))
    if not read:
        raise InputError(f"{corpus}: no document of {length} tokens; lower `length`")
    unread = sample(non_members(corpus), texts + spare, len(names))
    domains = {name: _balanced(read.get(name, ()), unread.get(name, ()), texts) for name in names}
    for name, documents in other_domains(experiment):
        found = sample(documents, texts + spare).get(name, ())
        domains[name] = Domain(non_members=found[:texts], spare=found[texts:])
    return {name: one for name, one in domains.items() if one.members or one.non_members}


def to_train_on(domains: Mapping[str, Domain]) -> dict[str, Texts]:
    """Return texts for fine-tuning: the spare ones of the corpus's domains, else of all domains."""
    spare = {name: domain.spare for name, domain in domains.items() if domain.spare}
    return {name: found for name, found in spare.items() if domains[name].members} or spare


def _balanced(read: Texts, unread: Texts, texts: int) -> Domain:
    """Keep as many members as non-members, unless there is no non-member."""
    if not unread:
        return Domain(read)
    count = min(len(read), len(unread))
    return Domain(read[:count], unread[:count], unread[texts:])


def other_domains(experiment: Experiment) -> Iterator[tuple[str, Iterator[Document]]]:
    """Yield the domains of which the corpus holds nothing, by name."""
    if held_out := experiment.profile.corpus.held_out:
        found = [read_documents(experiment.corpus / DOCUMENTS), non_members(experiment.corpus)]
        known = {first_paragraph(text) for documents in found for _, text in documents}
        for package in held_out:
            texts = build_corpus([package])  # shuffled: the first few files would not be a sample
            rng = random_stream(experiment.profile.seed, "domain", package)
            order = rng.permutation(len(texts))
            yield package, _distinct(((package, texts[i].text) for i in order), known)
    for path in sorted((data_directory() / MIRROR).glob("*.jsonl.gz")):
        name = path.name.partition(".")[0]
        yield name, _mirrored(path, name)


def _distinct(documents: Iterable[Document], known: set[str]) -> Iterator[Document]:
    """Leave out documents whose first paragraph came before, here or in another domain."""
    known = set(known)
    for source, text in documents:
        if (key := first_paragraph(text)) not in known:
            known.add(key)
            yield source, text


def _mirrored(path: Path, name: str) -> Iterator[Document]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from read_texts(file, name, path)
