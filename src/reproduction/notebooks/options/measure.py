"""The passes of notebook 14: a model reads planted sets, then both score all.

A question asks what a function does; the options are the first paragraph of its own
docstring and those of three others of the same module. Packages that the training
corpus holds out give them, as they give the canary records. A seed has drawn the
arrangement of the options, so that the null is a fact. No docstring serves two items,
in whatever role, so that what a model learns from one item says nothing about the
options of another.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path

import numpy as np
import pandas as pd

from contamination.audit.registry import OPTION_TEST, TESTS
from contamination.errors import InputError
from contamination.randomness import random_stream
from contamination.scoring.local import TransformersScorer
from contamination.scoring.plan import plan_store
from contamination.scoring.score import score
from contamination.scoring.store import Store
from contamination.testsets.example_set import ExampleSet, make_test_set
from contamination.testsets.variants import FixedOptions, option_variants
from reproduction.notebooks.options import tables
from reproduction.notebooks.options.settings import Settings
from reproduction.run.corpus import (
    DOCUMENTS,
    Docstring,
    first_paragraph,
    harvest,
    read_documents,
)
from reproduction.run.experiment import Experiment
from reproduction.run.further import PlantedSet, train_further
from reproduction.run.injection import PLANTINGS

LETTERS = "ABCD"
TEMPLATE = "mmlu/1"
SHORTEST = 25  # characters of an option
OWN = FixedOptions(habits=False)  # all may move: a seed has drawn every arrangement


def measure(experiment: Experiment, settings: Settings) -> dict[str, pd.DataFrame]:
    """Plant a set for every planting and number of copies, and test both axes.

    Returns
    -------
    outcomes : for each set and axis, with `tables.COLUMNS`.
    text : tokens of the text that was read, planted: tokens of items in it, places: of
        copies.
    items : item: the first example of every set.
    """
    seed = experiment.profile.seed
    cells = []
    for planting in PLANTINGS:
        cells += [tables.Cell(planting, count) for count in settings.dup_counts]
    sets = item_sets(
        experiment,
        {cell.name: settings.examples for cell in cells},
        packages=settings.packages,
        longest=settings.longest,
    )
    planted_sets = []
    for cell in cells:
        planted_sets.append(PlantedSet(sets[cell.name], cell.planting, cell.dup_count))
    folder = experiment.build / "options"
    planted, tokens, copies = train_further(
        experiment,
        planted_sets,
        folder / tables.PLANTED,
        background_tokens=settings.background_tokens,
        rng=random_stream(seed, "planting"),
        learning_rate=settings.learning_rate,
        batch_size=settings.batch_size,
        seed=seed,
    )
    scorers = {
        tables.PLANTED: TransformersScorer(planted),
        tables.CLEAN: TransformersScorer(experiment.model("clean")),
    }
    outcomes = []
    for cell in cells:
        stores = {}
        for model, scorer in scorers.items():
            stores[model] = score_axes(
                sets[cell.name],
                scorer,
                folder / "stores",
                model=model,
                permutations=settings.permutations,
                seed=seed,
            )
        table = tables.axis_outcomes(stores[tables.PLANTED], stores[tables.CLEAN])
        table = table.assign(
            planting=cell.planting,
            dup_count=cell.dup_count,
            dataset=cell.name,
            examples=settings.examples,
        )
        outcomes.append(table)
    text = {
        "tokens": [tokens],
        "planted": [sum(copy.stop - copy.start for copy in copies)],
        "places": [len(copies)],
    }
    first_items = [test_set.examples[0] for test_set in sets.values()]
    return {
        "outcomes": pd.concat(outcomes, ignore_index=True)[list(tables.COLUMNS)],
        "text": pd.DataFrame(text),
        "items": pd.DataFrame({"item": first_items}),
    }


def item_sets(
    experiment: Experiment,
    sizes: Mapping[str, int],
    *,
    packages: Sequence[str],
    longest: int,
) -> dict[str, ExampleSet]:
    """Make disjoint sets of items, by name, in canonical order.

    All items are shuffled together and dealt out, and the options of each are shuffled
    alone: order of records and arrangement of options are what the seed of the profile
    drew.

    Parameters
    ----------
    experiment
        The run.
    sizes
        Name of a set -> number of its items.
    packages
        Packages whose docstrings become items; without any, those that the corpus holds
        out.
    longest
        Characters of an option, at most.

    Raises
    ------
    InputError
        If the packages hold too few docstrings.
    """
    sources = list(packages) or list(experiment.profile.corpus.held_out)
    planted: list[str] = []
    for spec in experiment.profile.canaries:
        planted += experiment.test_set(spec.name).examples
    pool = usable(
        chain.from_iterable(map(harvest, sources)),
        longest=longest,
        planted=" ".join(planted),
        read={first_paragraph(text) for _, text in read_documents(experiment.corpus / DOCUMENTS)},
    )
    records = make_records(pool, rng=random_stream(experiment.profile.seed, "items"))
    wanted = sum(sizes.values())
    if len(records) < wanted:
        raise InputError(
            f"only {len(records)} items can be made of "
            f"{', '.join(sources) or 'no package'}, {wanted} wanted; lower `examples`, "
            "raise `longest` or name more `packages`",
        )
    numbered = iter([(f"item {i}", record) for i, record in enumerate(records, start=1)])
    return {
        name: make_test_set(name, list(islice(numbered, size)), TEMPLATE, name)
        for name, size in sizes.items()
    }


def usable(
    documents: Iterable[Docstring],
    *,
    longest: int,
    planted: str,
    read: Collection[str],
) -> list[list[tuple[str, str]]]:
    """Find functions and the first paragraphs of their docstrings, by module.

    Left out are names and texts that come twice, and texts that are known from
    elsewhere. Copies are compared in lower case, with single blanks.

    Parameters
    ----------
    documents
        The docstrings.
    longest
        Largest number of characters of a text.
    planted
        Text of the sets that are planted elsewhere.
    read
        First paragraphs of the documents that the models read, as `first_paragraph`
        writes them.
    """
    planted = " ".join(planted.lower().split())
    names: set[str] = set()
    texts = set(read)
    modules: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for document in documents:
        text = " ".join(document.text.partition("\n\n")[0].split())
        lower_case = text.lower()
        is_fit = document.signature and document.text.isascii()
        is_fit = is_fit and SHORTEST <= len(text) <= longest
        is_new = document.name not in names and lower_case not in texts
        if is_fit and is_new and lower_case not in planted:
            names.add(document.name)
            texts.add(lower_case)
            modules.setdefault((document.package, document.path), []).append(
                (document.name, text),
            )
    return list(modules.values())


def make_records(
    modules: Sequence[Sequence[tuple[str, str]]],
    *,
    rng: np.random.Generator,
) -> list[dict[str, str]]:
    """Make an item of every four functions of a module, and shuffle all items.

    Which four, which of them is asked for, and where its text stands among the options
    is drawn uniformly and independently.
    """
    records = []
    count = len(LETTERS)
    for functions in modules:
        order = rng.permutation(len(functions))
        for start in range(0, len(order) - count + 1, count):
            four = [functions[i] for i in order[start : start + count]]
            place = int(rng.integers(count))  # four are in random order already
            record = {"input": f"What does {four[place][0]} do?"}
            for letter, (_, text) in zip(LETTERS, four, strict=True):
                record[letter] = text
            record["target"] = LETTERS[place]
            records.append(record)
    return [records[i] for i in rng.permutation(len(records))]


def score_axes(
    test_set: ExampleSet,
    scorer: TransformersScorer,
    folder: Path,
    *,
    model: str,
    permutations: int,
    seed: int,
) -> dict[str, Store]:
    """Score a set for both axes: pairs of records, and arrangements of each record.

    Parameters
    ----------
    test_set
        The set of items.
    scorer
        The open model.
    folder
        Folder of all stores.
    model
        Name of the model.
    permutations
        Other arrangements of the options of an item.
    seed
        Draws the arrangements.
    """
    place = folder / model / test_set.name
    plan = plan_store(TESTS[tables.ORDER], len(test_set.examples), None)
    order = score(
        test_set,
        scorer,
        place / tables.ORDER,
        plan,
        model=model,
        permutations=0,
        seed=seed,
        replace=True,
    )
    options = option_variants(test_set, permutations=permutations, seed=seed, keep=OWN)
    alternatives = score(
        options,
        scorer,
        place / OPTION_TEST,
        model=model,
        seed=seed,
        replace=True,
    )
    return {tables.ORDER: order, OPTION_TEST: alternatives}
