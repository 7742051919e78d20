"""Sets of multiple-choice items, and a text that holds them in one of three plantings.

A question asks what a function does; the options are the first paragraph of its own docstring and
those of three others of the same module. Packages that the training corpus holds out give them, as
they give the canary records. A seed has drawn the arrangement of the options, so that the null is a
fact. No docstring serves two items, in whatever role, so that what a model learns from one item
says nothing about the options of another.

The clean model reads on, and its text holds the sets.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from contamination.errors import InputError
from contamination.randomness import random_stream
from contamination.testsets.example_set import ExampleSet, make_test_set
from reproduction.run.corpus import DOCUMENTS, Docstring, first_paragraph, harvest, read_documents
from reproduction.run.experiment import Experiment
from reproduction.run.injection import Injection, Planting, fill_blocks, planted_copies

LETTERS = "ABCD"
TEMPLATE = "mmlu/1"
SHORTEST = 25  # characters of an option

Record = dict[str, str]


def item_sets(
    experiment: Experiment, sizes: Mapping[str, int], *, packages: Sequence[str], longest: int
) -> dict[str, ExampleSet]:
    """Make disjoint sets of items, by name, in canonical order.

    All items are shuffled together and dealt out, and the options of each are shuffled alone: order
    of records and arrangement of options are what the seed of the profile drew. Raises InputError
    if the packages hold too few docstrings.

    Parameters
    ----------
    sizes : name of a set -> how many items it has.
    packages : whose docstrings are asked for; none takes those that the corpus holds out.
    longest : characters of an option at most.
    """
    sources = list(packages) or list(experiment.profile.corpus.held_out)
    planted = [experiment.test_set(spec.name) for spec in experiment.profile.canaries]
    pool = usable(
        (document for package in sources for document in harvest(package)),
        longest=longest,
        planted=" ".join(text for one in planted for text in one.examples),
        read={first_paragraph(text) for _, text in read_documents(experiment.corpus / DOCUMENTS)},
    )
    records = make_records(pool, rng=random_stream(experiment.profile.seed, "items"))
    if len(records) < (wanted := sum(sizes.values())):
        raise InputError(
            f"only {len(records)} items can be made of {', '.join(sources) or 'no package'}, "
            f"{wanted} wanted; lower `examples`, raise `longest` or name more `packages`"
        )
    numbered = ((f"item {i}", record) for i, record in enumerate(records, start=1))
    return {
        name: make_test_set(name, list(islice(numbered, size)), TEMPLATE, name)
        for name, size in sizes.items()
    }


def usable(
    documents: Iterable[Docstring], *, longest: int, planted: str, read: Collection[str]
) -> list[list[tuple[str, str]]]:
    """Find functions and the first paragraphs of their docstrings, (name, text), module by module.

    Left out are names and texts that come twice, texts that stand in what is `planted` elsewhere,
    and those that are the first paragraph of a document that the models `read` (as
    `first_paragraph` writes it). Copies are compared in lower case, with single blanks.
    """
    known, names = " ".join(planted.lower().split()), set[str]()
    texts, modules = set(read), dict[tuple[str, str], list[tuple[str, str]]]()
    for document in documents:
        text = " ".join(document.text.partition("\n\n")[0].split())
        if (
            document.signature
            and document.text.isascii()
            and SHORTEST <= len(text) <= longest
            and document.name not in names
            and (key := text.lower()) not in texts
            and key not in known
        ):
            names.add(document.name)
            texts.add(key)
            modules.setdefault((document.package, document.path), []).append((document.name, text))
    return list(modules.values())


def make_records(
    modules: Sequence[Sequence[tuple[str, str]]], *, rng: np.random.Generator
) -> list[Record]:
    """Make an item of every four functions of a module, as many as there are, and shuffle them.

    Which four, which of them is asked for, and where its text stands among the options is drawn
    uniformly and independently.
    """
    records = []
    count = len(LETTERS)
    for functions in modules:
        order = rng.permutation(len(functions))
        for start in range(0, len(order) - count + 1, count):
            four = [functions[i] for i in order[start : start + count]]
            place = int(rng.integers(count))  # four are in random order already
            texts = dict(zip(LETTERS, (text for _, text in four), strict=True))
            question = f"What does {four[place][0]} do?"
            records.append({"input": question, **texts, "target": LETTERS[place]})
    return [records[i] for i in rng.permutation(len(records))]


@dataclass(frozen=True)
class Cell:
    """One set of the design: how it is planted, and how often."""

    planting: Planting
    dup_count: int
    part: int = 0  # tells sets apart that are planted alike

    @property
    def name(self) -> str:
        """Name of its set: single-16, or single-16-1 for a second one."""
        return f"{self.planting}-{self.dup_count}" + (f"-{self.part}" if self.part else "")


def plant(
    sets: Mapping[Cell, list[np.ndarray]],
    background: np.ndarray,
    ends: np.ndarray,
    *,
    context: int,
    end_of_text: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, list[Injection]]:
    """Insert the copies of all `sets` as `fill_blocks` does, which takes the other arguments.

    `sets` are token ids of the records of every set, in canonical order.
    """
    copies = {
        name: copy
        for cell, records in sets.items()
        for name, copy in planted_copies(
            cell.name, cell.planting, cell.dup_count, records, rng=rng
        ).items()
    }
    return fill_blocks(background, ends, copies, end_of_text, context=context, rng=rng)
