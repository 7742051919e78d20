"""Texts of known membership: of the domains that models read and others, and to tune heuristics on.

A domain is a source of text: a package of the corpus or a file, a package held out of it, or, with
a local mirror, a domain of the Pile. All its texts have the same number of tokens, the beginning of
a document, so that no score tells them apart by their length.

A heuristic is tuned on text of the same kind as the planted sets that was never planted. Text of
another kind would be no yardstick, since a threshold would then tell kinds of text apart.
Docstrings are what the corpus stage has left of a shuffle of which the canary sets are the first
records, so which of them were planted is chance. Of a file, they are the records that no set holds;
a set takes the first, so they are like it where the order of the file means nothing.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from contamination.errors import InputError
from contamination.randomness import random_stream
from contamination.testsets.example_set import make_test_set
from contamination.testsets.records import read_records
from contamination.testsets.sources import data_directory, data_file, open_test_set
from contamination.testsets.tokens import tokenize
from reproduction.run.canaries import LEFT
from reproduction.run.corpus import (
    DOCUMENTS,
    Document,
    build_corpus,
    first_paragraph,
    members,
    non_members,
    read_documents,
    sample_by_source,
)
from reproduction.run.experiment import Experiment

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

SPARE = 1.15  # more records than the mean length asks for, since lengths vary
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

    A domain of the corpus has as many members as non-members, drawn by one rule; none if the corpus
    was taken whole. The other domains have no members. Raises InputError if the corpus stage has
    not finished, no document of the corpus is that long, or a file of the mirror cannot be read.

    Parameters
    ----------
    length : tokens of a text; shorter documents are left out.
    texts : most texts of a domain, members and non-members each.
    spare : most texts of a domain to be trained on afterwards.
    """
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
    domains = {}
    for name in names:
        one, other = read.get(name, ()), unread.get(name, ())
        count = min(len(one), len(other)) if other else None
        domains[name] = Domain(one[:count], other[:count], other[texts:])
    for name, documents in other_domains(experiment):
        found = sample(documents, texts + spare).get(name, ())
        domains[name] = Domain(non_members=found[:texts], spare=found[texts:])
    return {name: one for name, one in domains.items() if one.members or one.non_members}


def to_train_on(domains: Mapping[str, Domain]) -> dict[str, Texts]:
    """Return texts for fine-tuning: the spare ones of the corpus's domains, else of all domains."""
    spare = {name: domain.spare for name, domain in domains.items() if domain.spare}
    return {name: found for name, found in spare.items() if domains[name].members} or spare


def other_domains(experiment: Experiment) -> Iterator[tuple[str, Iterator[Document]]]:
    """Yield the domains of which the corpus holds nothing, by name; each first paragraph once."""
    if held_out := experiment.profile.corpus.held_out:
        corpus = read_documents(experiment.corpus / DOCUMENTS), non_members(experiment.corpus)
        known = {first_paragraph(text) for _, text in chain(*corpus)}
        for package in held_out:
            texts = build_corpus([package])  # shuffled: the first few files would not be a sample
            rng = random_stream(experiment.profile.seed, "domain", package)
            found: dict[str, Document] = {}
            for text in (texts[i].text for i in rng.permutation(len(texts))):
                found.setdefault(first_paragraph(text), (package, text))
            yield package, (document for key, document in found.items() if key not in known)
    for path in sorted((data_directory() / MIRROR).glob("*.jsonl.gz")):
        name = path.name.partition(".")[0]
        yield name, read_documents(path, name)


def tuning_texts(
    experiment: Experiment, *, tokens: int, files: Mapping[str, str] | None = None
) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    """Find text for every canary set of the profile.

    Returns (sources, texts): canary set -> name of its source (a kind, or a file and its template),
    and source -> texts with their separators, shuffled, none twice. Raises InputError if a set in
    `files` is not made from a file, there are too few docstrings, or a file cannot be read.

    Parameters
    ----------
    tokens : about how many are wanted of each kind of docstrings; files are taken whole.
    files : canary set -> file of the data directory, instead of the set's own file.
    """
    specs, facts = experiment.profile.canaries, experiment.corpus_facts["canaries"]
    files, sources, texts = files or {}, dict[str, str](), dict[str, tuple[str, ...]]()
    if unknown := sorted(set(files) - {spec.name for spec in specs if spec.file}):
        raise InputError(f"{unknown[0]!r} is no canary set that is made from a file; take it out")
    planted = {text for spec in specs for text in experiment.test_set(spec.name).examples}
    for spec in specs:
        template = facts[spec.name]["template"]
        if spec.kind:
            source, path = str(spec.kind), experiment.corpus / LEFT / f"{spec.kind}.jsonl"
            known = [one for one in facts.values() if one["kind"] == source]
            per_token = sum(one["examples"] for one in known) / sum(one["tokens"] for one in known)
            wanted = math.ceil(SPARE * tokens * per_token)
            rows = read_records(path)
            texts[source] = make_test_set(source, rows, template, str(path), wanted).examples
        else:
            file = files.get(spec.name, str(spec.file))
            source = f"{file} as {template}"
            found = dict.fromkeys(open_test_set(data_file(file), template=template).examples)
            left = [text for text in found if text not in planted]
            rng = random_stream(experiment.profile.seed, "left over", file, template)
            texts[source] = tuple(left[i] for i in rng.permutation(len(left)))
        sources[spec.name] = source
    return sources, texts
