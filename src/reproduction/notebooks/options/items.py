"""Multiple-choice items whose published arrangement a seed has drawn, so that the null is a fact.

A question asks what a function does; the options are the first paragraph of its own docstring and
those of three others of the same module. Packages that the training corpus holds out give them, as
they give the canary records. No docstring serves two items, in whatever role, so that what a model
learns from one item says nothing about the options of another.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from contamination.errors import InputError
from contamination.randomness import random_stream
from contamination.testsets.example_set import ExampleSet, make_test_set
from reproduction.run.corpus import Docstring, harvest
from reproduction.run.experiment import Experiment
from reproduction.run.members import DOCUMENTS, first_paragraph, read_documents

LETTERS = "ABCD"
TEMPLATE = "mmlu/1"
SHORTEST = 25  # characters of an option

Record = dict[str, str]


def item_sets(
    experiment: Experiment,
    sizes: Mapping[str, int],
    *,
    packages: Sequence[str],
    longest: int,
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
    if not sources:
        raise InputError(
            f"profile {experiment.profile.name} holds no package out of its corpus: name some in "
            "`packages` of the notebook"
        )
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
            f"only {len(records)} items can be made of {', '.join(sources)}, {wanted} wanted; "
            "lower `examples`, raise `longest` or name more `packages`"
        )
    sets, start = {}, 0
    for name, size in sizes.items():
        chosen = [(f"item {start + i + 1}", records[start + i]) for i in range(size)]
        sets[name] = make_test_set(name, chosen, TEMPLATE, name)
        start += size
    return sets


def usable(
    documents: Iterable[Docstring], *, longest: int, planted: str, read: Collection[str]
) -> list[list[tuple[str, str]]]:
    """Find functions and the first paragraphs of their docstrings, (name, text), module by module.

    Left out are names and texts that come twice, texts that stand in what is `planted` elsewhere,
    and those that are the first paragraph of a document that the models `read` (as
    `first_paragraph` writes it).
    """
    known, names = plain(planted), set[str]()
    texts, modules = set(read), dict[tuple[str, str], list[tuple[str, str]]]()
    for document in documents:
        text = " ".join(document.text.partition("\n\n")[0].split())
        if (
            document.signature
            and document.text.isascii()
            and SHORTEST <= len(text) <= longest
            and document.name not in names
            and (key := plain(text)) not in texts
            and key not in known
        ):
            names.add(document.name)
            texts.add(key)
            modules.setdefault((document.package, document.path), []).append((document.name, text))
    return list(modules.values())


def plain(text: str) -> str:
    """Text as two copies of it are compared: in lower case, with single blanks."""
    return " ".join(text.lower().split())


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
