"""Texts of known membership: of domains that models read, and of others.

A domain is a source of text: a package of the corpus or a file, a package held out of
it, or, with a local mirror, a domain of the Pile. All its texts have the same number of
tokens, the beginning of a document, so that no score tells them apart by their length.

A heuristic is tuned on text of the same kind as the planted sets that was never
planted. Text of another kind would be no yardstick, since a threshold would then tell
kinds of text apart. Docstrings are what the corpus stage has left of a shuffle of which
the canary sets are the first records, so which of them were planted is chance. Of a
file, they are the records that no set holds; a set takes the first, so they are like it
where the order of the file means nothing.
"""

import math
from collections.abc import Iterator, Mapping
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
# folder of the data directory: {"text": ...} lines, one file a domain
MIRROR = "pile_domains"

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
    """Find the texts of every domain: the corpus, packages held out, the mirror.

    A domain of the corpus has as many members as non-members, drawn by one rule; none
    if the corpus was taken whole. The other domains have no members.

    Parameters
    ----------
    experiment
        The run, whose corpus is read.
    tokenizer
        Tokenizer of the run's models.
    length
        Tokens of a text; shorter documents are left out.
    texts
        Most texts of a domain, members and non-members each.
    spare
        Most texts of a domain to be trained on afterwards.

    Raises
    ------
    InputError
        If the corpus stage has not finished, no document of the corpus is that long, or
        a file of the mirror cannot be read.
    """
    experiment.require_corpus()
    corpus = experiment.corpus
    profile = experiment.profile.corpus
    names = profile.packages or profile.files

    def beginning(text: str) -> np.ndarray | None:
        (ids,) = tokenize(tokenizer, [text])
        return ids[:length] if len(ids) >= length else None

    read = sample_by_source(members(corpus), beginning, most=texts, sources=len(names))
    if not read:
        raise InputError(f"{corpus}: no document of {length} tokens; lower `length`")
    most = texts + spare
    unread = sample_by_source(
        non_members(corpus),
        beginning,
        most=most,
        sources=len(names),
    )
    domains = {}
    for name in names:
        own_members = tuple(read.get(name, ()))
        others = tuple(unread.get(name, ()))
        count = min(len(own_members), len(others)) if others else None
        domains[name] = Domain(
            members=own_members[:count],
            non_members=others[:count],
            spare=others[texts:],
        )
    for name, documents in other_domains(experiment):
        sampled = sample_by_source(documents, beginning, most=most, sources=1)
        others = tuple(sampled.get(name, ()))
        domains[name] = Domain(non_members=others[:texts], spare=others[texts:])
    return {
        name: domain for name, domain in domains.items() if domain.members or domain.non_members
    }


def to_train_on(domains: Mapping[str, Domain]) -> dict[str, Texts]:
    """Return texts for fine-tuning: spare ones of the corpus, else of all domains."""
    spare = {name: domain.spare for name, domain in domains.items() if domain.spare}
    of_corpus = {name: texts for name, texts in spare.items() if domains[name].members}
    return of_corpus or spare


def other_domains(experiment: Experiment) -> Iterator[tuple[str, Iterator[Document]]]:
    """Yield the domains of which the corpus holds nothing, by name."""
    held_out = experiment.profile.corpus.held_out
    if held_out:
        of_corpus = _first_paragraphs(experiment)
        for package in held_out:
            docstrings = build_corpus([package])
            # Shuffled: the first few files would not be a sample.
            rng = random_stream(experiment.profile.seed, "domain", package)
            by_paragraph: dict[str, Document] = {}
            for index in rng.permutation(len(docstrings)):
                text = docstrings[index].text
                by_paragraph.setdefault(first_paragraph(text), (package, text))
            documents = [
                document
                for paragraph, document in by_paragraph.items()
                if paragraph not in of_corpus
            ]
            yield package, iter(documents)
    for path in sorted((data_directory() / MIRROR).glob("*.jsonl.gz")):
        name = path.name.partition(".")[0]
        yield name, read_documents(path, name)


def _first_paragraphs(experiment: Experiment) -> set[str]:
    """Return the first paragraphs of all documents that were found for the corpus."""
    documents = chain(
        read_documents(experiment.corpus / DOCUMENTS),
        non_members(experiment.corpus),
    )
    return {first_paragraph(text) for _, text in documents}


def tuning_texts(
    experiment: Experiment,
    *,
    tokens: int,
    files: Mapping[str, str] | None = None,
) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    """Find text for every canary set of the profile.

    Parameters
    ----------
    experiment
        The run.
    tokens
        About how many are wanted of each kind of docstrings; files are taken whole.
    files
        Canary set -> file of the data directory, instead of the set's own file.

    Returns
    -------
    sources : canary set -> name of its source (a kind, or a file and its template).
    texts : source -> texts with their separators, shuffled, none twice.

    Raises
    ------
    InputError
        If a set in `files` is not made from a file, there are too few docstrings, or a
        file cannot be read.
    """
    specs = experiment.profile.canaries
    files = files or {}
    made_from_files = {spec.name for spec in specs if spec.file}
    unknown = sorted(set(files) - made_from_files)
    if unknown:
        raise InputError(
            f"{unknown[0]!r} is no canary set that is made from a file; take it out",
        )
    planted: set[str] = set()
    for spec in specs:
        planted.update(experiment.test_set(spec.name).examples)
    sources: dict[str, str] = {}
    texts: dict[str, tuple[str, ...]] = {}
    for spec in specs:
        template = experiment.corpus_facts["canaries"][spec.name]["template"]
        if spec.kind:
            source = str(spec.kind)
            texts[source] = _left_over_docstrings(experiment, source, template, tokens)
        else:
            file = files.get(spec.name, str(spec.file))
            source = f"{file} as {template}"
            texts[source] = _left_over_records(experiment, file, template, planted)
        sources[spec.name] = source
    return sources, texts


def _left_over_docstrings(
    experiment: Experiment,
    kind: str,
    template: str,
    tokens: int,
) -> tuple[str, ...]:
    """Return records of a kind that no set holds, with about this number of tokens."""
    path = experiment.corpus / LEFT / f"{kind}.jsonl"
    facts = [fact for fact in experiment.corpus_facts["canaries"].values() if fact["kind"] == kind]
    examples_of_kind = sum(fact["examples"] for fact in facts)
    tokens_of_kind = sum(fact["tokens"] for fact in facts)
    wanted = math.ceil(SPARE * tokens * (examples_of_kind / tokens_of_kind))
    return make_test_set(kind, read_records(path), template, str(path), wanted).examples


def _left_over_records(
    experiment: Experiment,
    file: str,
    template: str,
    planted: set[str],
) -> tuple[str, ...]:
    """Return the records of a file that are not planted, shuffled, none twice."""
    examples = open_test_set(data_file(file), template=template).examples
    left_over = [text for text in dict.fromkeys(examples) if text not in planted]
    rng = random_stream(experiment.profile.seed, "left over", file, template)
    return tuple(left_over[i] for i in rng.permutation(len(left_over)))
