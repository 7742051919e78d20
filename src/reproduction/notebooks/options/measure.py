"""The passes of notebook 14: the clean model reads planted sets, then both score all of them.

A question asks what a function does; the options are the first paragraph of its own docstring and
those of three others of the same module. Packages that the training corpus holds out give them, as
they give the canary records. A seed has drawn the arrangement of the options, so that the null is a
fact. No docstring serves two items, in whatever role, so that what a model learns from one item
says nothing about the options of another.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from transformers import AutoTokenizer

from contamination.audit.battery import OPTION_TEST, TESTS
from contamination.errors import InputError
from contamination.randomness import random_stream
from contamination.scoring.local import TransformersScorer
from contamination.scoring.plan import plan_store
from contamination.scoring.processes import deal
from contamination.scoring.score import score
from contamination.scoring.store import Store
from contamination.testsets.alternatives import Keep, option_alternatives
from contamination.testsets.example_set import ExampleSet, make_test_set
from contamination.testsets.tokens import id_type, tokenize
from reproduction.notebooks.options import tables
from reproduction.run.corpus import DOCUMENTS, Docstring, first_paragraph, harvest, read_documents
from reproduction.run.experiment import Experiment
from reproduction.run.fine_tuning import fine_tune
from reproduction.run.injection import PLANTINGS, fill_blocks, planted_copies

LETTERS = "ABCD"
TEMPLATE = "mmlu/1"
SHORTEST = 25  # characters of an option
OWN = Keep(habits=False)  # all may move: a seed has drawn every arrangement


def measure(
    experiment: Experiment,
    *,
    examples: int,
    dup_counts: Sequence[int],
    permutations: int,
    packages: Sequence[str],
    longest: int,
    background_tokens: int,
    learning_rate: float,
    batch_size: int,
) -> dict[str, pd.DataFrame]:
    """Plant a set for every planting and number of copies, and run both axes on all of them.

    Tables: `outcomes`, for each set and axis, with `tables.COLUMNS`; `text` (tokens of the text
    that was read, planted: so many of them of items, places: of copies in it); `items` (item: the
    first example of every set).
    """
    cells = [tables.Cell(planting, count) for planting in PLANTINGS for count in dup_counts]
    sizes = {cell.name: examples for cell in cells}
    sets = item_sets(experiment, sizes, packages=packages, longest=longest)
    base, seed = experiment.model("clean"), experiment.profile.seed
    tokenizer = AutoTokenizer.from_pretrained(base, local_files_only=True)
    rng, copies = random_stream(seed, "planting"), dict[str, tuple[np.ndarray, int]]()
    for cell in cells:
        records = tokenize(tokenizer, sets[cell.name].examples)
        copies |= planted_copies(cell.name, cell.planting, cell.dup_count, records, rng=rng)
    background, ends = read_background(experiment, background_tokens)
    context, end = experiment.profile.model.n_positions, tokenizer.eos_token_id
    blocks, places = fill_blocks(background, ends, copies, end, context=context, rng=rng)
    folder = experiment.build / "options"
    rates: dict[str, Any] = {"learning_rate": learning_rate, "batch_size": batch_size}
    task = partial(fine_tune, base, list(blocks), folder / tables.PLANTED, seed=seed, **rates)
    (path,) = deal("plant", [task])
    scorers = {tables.PLANTED: TransformersScorer(path), tables.CLEAN: TransformersScorer(base)}
    drawn: dict[str, Any] = {"permutations": permutations, "seed": seed}
    outcomes = []
    for cell in cells:
        stores = (
            score_axes(sets[cell.name], scorer, folder / "stores", model=model, **drawn)
            for model, scorer in scorers.items()
        )
        facts = asdict(cell) | {"dataset": cell.name, "examples": examples}
        outcomes.append(tables.axis_outcomes(*stores).assign(**facts))
    read = sum(one.stop - one.start for one in places)
    text = {"tokens": [blocks.size], "planted": [read], "places": [len(places)]}
    return {
        "outcomes": pd.concat(outcomes, ignore_index=True)[list(tables.COLUMNS)],
        "text": pd.DataFrame(text),
        "items": pd.DataFrame({"item": [one.examples[0] for one in sets.values()]}),
    }


def item_sets(
    experiment: Experiment, sizes: Mapping[str, int], *, packages: Sequence[str], longest: int
) -> dict[str, ExampleSet]:
    """Make disjoint sets of so many items, by name, in canonical order.

    All items are shuffled together and dealt out, and the options of each, of `longest` characters
    at most, are shuffled alone: order of records and arrangement of options are what the seed of
    the profile drew. No `packages` are those that the corpus holds out. Raises InputError if they
    hold too few docstrings.
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
) -> list[dict[str, str]]:
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


def read_background(experiment: Experiment, tokens: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first documents of the corpus, of so many tokens at least, and their ends.

    All models have read them once. Raises InputError if the corpus is shorter.
    """
    ends = np.load(experiment.corpus / "ends.npy")
    if ends[-1] < tokens:
        raise InputError(
            f"{experiment.corpus} has {ends[-1]} tokens, {tokens} wanted: lower `background_tokens`"
        )
    kept = ends[: int(np.searchsorted(ends, tokens)) + 1]
    kind = id_type(AutoTokenizer.from_pretrained(experiment.corpus / "tokenizer"))
    path = experiment.corpus / "tokens.bin"
    return np.fromfile(path, dtype=kind, count=int(kept[-1])), kept


def score_axes(
    test_set: ExampleSet,
    scorer: TransformersScorer,
    folder: Path,
    *,
    model: str,
    permutations: int,
    seed: int,
) -> dict[str, Store]:
    """Score what both axes read of a set: pairs of records, and so many other arrangements each."""
    place = folder / model / test_set.name
    plan = plan_store(TESTS[tables.ORDER], len(test_set.examples), None)
    options = option_alternatives(test_set, permutations=permutations, seed=seed, keep=OWN)
    same: dict[str, Any] = {"model": model, "seed": seed, "replace": True}
    order = score(test_set, scorer, place / tables.ORDER, plan, permutations=0, **same)
    alternatives = score(options, scorer, place / OPTION_TEST, **same)
    return {tables.ORDER: order, OPTION_TEST: alternatives}
