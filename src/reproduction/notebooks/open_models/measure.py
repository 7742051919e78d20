"""The passes of notebook 03: every model scores every set, for every test."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import pandas as pd

from contamination.audit.battery import OPTION_TEST, TESTS
from contamination.audit.request import Request
from contamination.errors import InputError
from contamination.scoring.contract import Scorer
from contamination.scoring.models import ModelEntry
from contamination.testsets import example_set
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.options import items_of
from contamination.testsets.registry import registered
from contamination.testsets.sources import available
from reproduction.run.experiment import Experiment, named_models, store_plan, trained_here
from reproduction.run.grid import ACCESS, Access, Row, grid, load_each

STORES = Path("stores") / "open_models"  # in the build directory
CELLS = ("model", "asked", "test", "permutations", "store", "model_revision", "status")
OF_PROFILE = "profile/"  # before a canary set's name; needed where a registered set is called alike
# Subsets that notebook 04 combines; text to train on; lines that no template renders.
NOT_ALONE = ("mmlu/", "wikitext/", "contam-1.4b/")


def entries_of(experiment: Experiment, models: Sequence[str]) -> list[ModelEntry]:
    """Return the models of an audit; without any those trained here. Errors of `named_models`."""
    return named_models(experiment, models) if models else trained_here(experiment)


def label(asked: str) -> str:
    """What tables call a set: a file by its stem, a canary set by its name if no other has it."""
    name = asked.removeprefix(OF_PROFILE)
    if name != asked:
        return asked if name in registered() else name
    return Path(asked).stem if Path(asked).is_file() else asked


def open_sets(
    experiment: Experiment,
    sets: Sequence[str],
    max_records: int | None,
    *,
    by_line: bool = False,
    access: Access = ACCESS,
) -> dict[str, ExampleSet | str]:
    """Open each set, or say why not, in the order asked for; canary sets as `profile/<name>`.

    Without `sets` these are the profile's canary sets, and the registered sets that need no network
    but the subsets of MMLU, which notebook 04 combines. Canary sets are whole and by record, of
    others there are at most `max_records`, or `by_line` so many lines of their files. Raises
    InputError for two sets that tables could not tell apart.
    """
    canaries, known = [spec.name for spec in experiment.profile.canaries], registered()
    if not sets:
        others = [name for name in known if not name.startswith(NOT_ALONE) and available(name)]
        sets = [*(OF_PROFILE + name for name in canaries), *others]
    names = [OF_PROFILE + one if one in canaries and one not in known else one for one in sets]
    for name, count in Counter(map(label, dict.fromkeys(names))).items():
        if count > 1:
            raise InputError(f"{count} sets are called {name!r}: audit them one after the other")

    def load(asked: str) -> ExampleSet:
        if asked.startswith(OF_PROFILE):
            return experiment.test_set(asked.removeprefix(OF_PROFILE))
        return access.open_set(asked, max_records=max_records, lines=by_line)

    return load_each(names, load)


def measure(
    experiment: Experiment,
    *,
    models: Sequence[str],
    sets: Sequence[str],
    tests: Sequence[str],
    permutations: int,
    max_records: int | None,
    start_each: bool,
    arrangements: int = 24,
    by_line: bool = False,
    access: Access = ACCESS,
) -> dict[str, pd.DataFrame]:
    """Score every set under every model for every test.

    The table `cells` has a row for each, `CELLS`: `store` is the folder of the store in `STORES`,
    "" where the profile's own stages scored it. `model_revision` is the commit of a hub id, else
    the checksum of what was loaded; `status` is that of `reproduction.run.grid.grid`, or "not
    asked: reason" for the order of options in a set without any. Raises InputError for a test that
    is unknown, two models or sets of one name, or no permutation.

    Parameters
    ----------
    models, sets : see `entries_of` and `open_sets`.
    permutations : m, shuffled orderings per shard. Models that were trained here keep the shards
        and permutations of the profile on its canary sets, which the score stage has scored.
    max_records : only so many records of a set, from its start; canary sets stay whole.
    arrangements : of the options of an item, in the test of their order; the published one counts.
    start_each : read sets as `contamination.testsets.example_set.start_each`; not those that the
        score stage has scored.
    by_line : an example is a line of the file, with all of its fields; not of canary sets.
    """
    seed, directory = experiment.profile.seed, experiment.build / STORES
    settings: Row = {"permutations": permutations, "seed": seed, "directory": directory}
    options = Request(axis="options", arrangements=arrangements, **settings)
    orders = [test for test in tests if test != OPTION_TEST]
    order = Request(orders if orders or not tests else None, **settings)
    requests = {test: options if test == OPTION_TEST else order for test in tests}
    entries, trained = entries_of(experiment, models), trained_here(experiment)
    opened = open_sets(experiment, sets, max_records, by_line=by_line, access=access)

    def asked(entry: ModelEntry) -> Iterator[tuple[Row, tuple[str, str, ExampleSet] | str]]:
        for (name, one), test in product(opened.items(), requests):
            others = arrangements - 1 if test == OPTION_TEST else permutations
            row = {"asked": name, "test": test, "permutations": others}
            yield row | {"store": "", "model_revision": ""}, _asked(name, test, one)

    def open_model(entry: ModelEntry) -> tuple[Scorer, Row]:
        scorer = access.open_model(entry)
        source = getattr(scorer, "source", None)
        revision = (source.revision if source else None) or scorer.revision
        return scorer, {"model_revision": revision}

    def cell(entry: ModelEntry, scorer: Scorer, wanted: tuple[str, str, ExampleSet]) -> Row:
        asked, test, examples = wanted
        if asked.startswith(OF_PROFILE) and entry in trained and test != OPTION_TEST:
            count = len(examples.examples)
            plan, own = store_plan(experiment.profile.scoring, TESTS[test], count)
            experiment.score(entry.name, examples.name, plan, own)
            return {"permutations": own}
        own_request = replace(requests[test], name=entry.name)
        begun = example_set.start_each(examples, start_each)
        keep = test != OPTION_TEST  # a store of arrangements has one place, whatever the model
        return {"store": access.score_orders(test, scorer, begun, own_request, keep_revisions=keep)}

    rows = grid(entries, asked, cell, open_model=open_model)
    return {"cells": pd.DataFrame(rows, columns=list(CELLS))}


def _asked(name: str, test: str, one: ExampleSet | str) -> tuple[str, str, ExampleSet] | str:
    """What a cell computes, or why there is nothing to compute."""
    if isinstance(one, str):
        return one
    if test == OPTION_TEST:
        try:
            items_of(one)
        except InputError as error:
            return f"not asked: {error}"
    return name, test, one
