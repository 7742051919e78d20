"""Texts of several domains: those that a model was trained on, and those that it was not.

A domain is a source of text: a package of the corpus or a file, a package held out of it, or, with
a local mirror, a domain of the Pile. All texts have the same number of tokens, the beginning of a
document, so that no score tells them apart by their length.
"""

import gzip
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from contamination.errors import InputError
from contamination.pretraining.documents import Document
from contamination.pretraining.experiment import Experiment
from contamination.pretraining.members import MEMBERS, NON_MEMBERS, first_paragraph, read_documents
from contamination.testsets.cache import DATA_VARIABLE

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

MIRROR = "pile_domains"  # folder of the data directory: {"text": ...} lines, one file a domain

Texts = tuple[np.ndarray, ...]  # token ids, each int32 [length]


@dataclass(frozen=True, eq=False)
class Domain:
    """Texts of one domain.

    Attributes
    ----------
    members : the models read their documents, once.
    non_members : the clean model read nothing of their documents.
    spare : as `non_members`, to be trained on afterwards.
    """

    members: Texts = ()
    non_members: Texts = ()
    spare: Texts = ()


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
    (`contamination.pretraining.members`). A corpus that was taken whole has no non-members, and
    the other domains have no members.

    Parameters
    ----------
    tokenizer : of the model.
    length : tokens of a text; shorter documents are left out.
    texts : most texts of a domain, members and non-members each.
    spare : most texts of a domain to be trained on afterwards.

    Raises
    ------
    InputError
        The corpus stage has not finished; an argument below 1, or a length below 2; no document of
        the corpus is that long; a file of the mirror that cannot be read.
    """
    if length < 2 or texts < 1 or spare < 1:
        raise InputError(
            f"length {length}, texts {texts}, spare {spare}: give at least 2 tokens and 1 text each"
        )
    experiment.require_corpus()
    folder, corpus = experiment.corpus, experiment.profile.corpus
    names = corpus.packages or corpus.files
    divided = (folder / MEMBERS).is_file() and (folder / NON_MEMBERS).is_file()
    documents = read_documents(folder / (MEMBERS if divided else "documents.jsonl"))
    members = _beginnings(documents, tokenizer, length, texts, sources=len(names))
    if not members:
        raise InputError(f"{folder}: no document of {length} tokens; lower `length`")
    left: dict[str, Texts] = {}
    if divided:
        documents = read_documents(folder / NON_MEMBERS)
        left = _beginnings(documents, tokenizer, length, texts + spare, sources=len(names))
    domains = {name: _divided(members.get(name, ()), left.get(name, ()), texts) for name in names}
    for name, documents in other_domains(experiment):
        found = _beginnings(documents, tokenizer, length, texts + spare).get(name, ())
        domains[name] = Domain(non_members=found[:texts], spare=found[texts:])
    return {
        name: domain for name, domain in domains.items() if domain.members or domain.non_members
    }


def to_train_on(domains: Mapping[str, Domain]) -> dict[str, Texts]:
    """Texts for fine-tuning: the spare ones of the corpus's domains, else those of all domains."""
    spare = {name: domain.spare for name, domain in domains.items() if domain.spare}
    return {name: found for name, found in spare.items() if domains[name].members} or spare


def _divided(members: Texts, left: Texts, texts: int) -> Domain:
    """As many members as non-members, unless none is left."""
    if not left:
        return Domain(members)
    count = min(len(members), len(left))
    return Domain(members[:count], left[:count], left[texts:])


def other_domains(experiment: Experiment) -> Iterator[tuple[str, Iterator[Document]]]:
    """Yield the domains of which the corpus holds nothing, by name."""
    from contamination.pretraining.corpus import build_corpus

    if held_out := experiment.profile.corpus.held_out:
        paths = [experiment.corpus / name for name in ("documents.jsonl", NON_MEMBERS)]
        known = [read_documents(path) for path in paths if path.is_file()]
        read = {first_paragraph(text) for documents in known for _, text in documents}
        for package in held_out:
            found = build_corpus([package])  # in the order of files, of which a few are no sample
            order = np.random.default_rng(experiment.profile.seed).permutation(len(found))
            yield package, _distinct(((package, found[i].text) for i in order), read)
    folder = Path(os.environ.get(DATA_VARIABLE, "data")) / MIRROR
    for path in sorted(folder.glob("*.jsonl.gz")):
        name = path.name.partition(".")[0]
        yield name, _mirrored(path, name)


def _distinct(documents: Iterable[Document], read: set[str]) -> Iterator[Document]:
    """Leave out documents whose first paragraph came before, here or in another domain."""
    known = set(read)
    for source, text in documents:
        if (key := first_paragraph(text)) not in known:
            known.add(key)
            yield source, text


def _mirrored(path: Path, name: str) -> Iterator[Document]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            try:
                yield name, json.loads(line)["text"].strip()
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise InputError(
                    f'{path}, line {number}: write {{"text": "..."}}, one object a line'
                ) from error


def _beginnings(
    documents: Iterable[Document],
    tokenizer: "PreTrainedTokenizerBase",
    length: int,
    most: int,
    *,
    sources: int = 1,
) -> dict[str, Texts]:
    """First `length` tokens of the first documents of each source that have as many.

    Reading ends when all sources have `most`: a corpus may be larger than memory.
    """
    from contamination.testsets.tokens import tokenize

    found: dict[str, list[np.ndarray]] = {}
    full = 0
    for source, text in documents:
        kept = found.setdefault(source, [])
        if len(kept) == most:
            continue
        (ids,) = tokenize(tokenizer, [text])
        if len(ids) >= length:
            kept.append(ids[:length])
            full += len(kept) == most
        if full == sources:
            break
    return {source: tuple(kept) for source, kept in found.items() if kept}
