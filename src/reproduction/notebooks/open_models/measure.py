"""The passes of notebook 03: every model scores every set, for every test."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import pandas as pd

from contamination.audit.registry import OPTION_TEST, TESTS
from contamination.audit.request import Request
from contamination.errors import InputError
from contamination.scoring.contract import Scorer
from contamination.scoring.models import ModelEntry
from contamination.testsets import example_set
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.options import items_of
from contamination.testsets.registry import registered
from contamination.testsets.sources import available
from reproduction.notebooks.open_models.settings import Settings
from reproduction.run.experiment import (
    Experiment,
    named_models,
    profile_plan,
    trained_here,
)
from reproduction.run.grid import ACCESS, Access, Row, grid, load_each

STORES = Path("stores") / "open_models"  # in the build directory
CELLS = ("model", "asked", "test", "permutations", "store", "model_revision", "status")
# before a canary set's name; needed where a registered set is called alike
OF_PROFILE = "profile/"
# Subsets that notebook 04 combines; text to train on; lines that no template renders.
NOT_ALONE = ("mmlu/", "wikitext/", "contam-1.4b/")


def entries_of(experiment: Experiment, models: Sequence[str]) -> list[ModelEntry]:
    """Return the models of an audit; without any those trained here.

    Raises InputError where two of them have one name.
    """
    if not models:
        return trained_here(experiment)
    return named_models(experiment, models)


def label(name: str) -> str:
    """Name a set in tables: a file by its stem, a canary set by its own name."""
    canary = name.removeprefix(OF_PROFILE)
    if canary != name:
        return name if canary in registered() else canary
    if Path(name).is_file():
        return Path(name).stem
    return name


def open_sets(
    experiment: Experiment,
    settings: Settings,
    access: Access = ACCESS,
) -> dict[str, ExampleSet | str]:
    """Open each set, or return why it cannot be opened, in the order of the settings.

    Without sets in the settings these are the profile's canary sets, as
    `profile/<name>`, and the registered sets that need no network but the subsets of
    MMLU, which notebook 04 combines. Raises InputError for two sets that tables could
    not tell apart.

    Parameters
    ----------
    experiment
        The run.
    settings
        Models and sets.
    access
        Opens models and sets; another one counts what they cost.
    """

    def load(name: str) -> ExampleSet:
        if name.startswith(OF_PROFILE):
            return experiment.test_set(name.removeprefix(OF_PROFILE))
        return access.open_set(
            name,
            max_records=settings.max_records,
            lines=settings.by_line,
        )

    names = _set_names(experiment, settings.sets)
    for name, count in Counter(map(label, dict.fromkeys(names))).items():
        if count > 1:
            raise InputError(
                f"{count} sets are called {name!r}: audit them one after the other",
            )
    return load_each(names, load)


def _set_names(experiment: Experiment, sets: Sequence[str]) -> list[str]:
    """Return the names of the sets of an audit; canary sets begin with `OF_PROFILE`."""
    canaries = [spec.name for spec in experiment.profile.canaries]
    known = registered()
    names = []
    if not sets:
        names += [OF_PROFILE + name for name in canaries]
        names += [name for name in known if not name.startswith(NOT_ALONE) and available(name)]
    for name in sets:
        is_canary = name in canaries and name not in known
        names.append(OF_PROFILE + name if is_canary else name)
    return names


@dataclass(frozen=True)
class Cell:
    """A set under a test: the work of one model, or what has to be scored for it."""

    set_name: str
    test: str
    examples: ExampleSet


def measure(
    experiment: Experiment,
    settings: Settings,
    access: Access = ACCESS,
) -> dict[str, pd.DataFrame]:
    """Score every set under every model for every test.

    Parameters
    ----------
    experiment
        The run.
    settings
        Models and sets.
    access
        Opens models and sets; another one counts what they cost.

    Returns
    -------
    cells
        A row for each, `CELLS`: `store` is the folder of the store in `STORES`, ""
        where the profile's own stages scored it. `model_revision` is the commit of a
        hub id, else the checksum of what was loaded; `status` is that of
        `reproduction.run.grid.grid`, or "not asked: reason" for the order of options in
        a set without any.

    Raises
    ------
    InputError
        For a test that is unknown, two models or sets of one name, or no permutation.
    """
    requests = _requests(experiment, settings)
    entries = entries_of(experiment, settings.models)
    trained = trained_here(experiment)
    sets = open_sets(experiment, settings, access)

    def cells_of(entry: ModelEntry) -> Iterator[tuple[Row, Cell | str]]:
        for (name, examples), test in product(sets.items(), requests):
            permutations = settings.permutations
            if test == OPTION_TEST:
                permutations = settings.arrangements - 1
            row = {
                "asked": name,
                "test": test,
                "permutations": permutations,
                "store": "",
                "model_revision": "",
            }
            yield row, _cell(name, test, examples)

    def open_model(entry: ModelEntry) -> tuple[Scorer, Row]:
        scorer = access.open_model(entry)
        return scorer, {"model_revision": _revision_of(scorer)}

    def score_cell(entry: ModelEntry, scorer: Scorer, cell: Cell) -> Row:
        is_canary = cell.set_name.startswith(OF_PROFILE)
        if is_canary and entry in trained and cell.test != OPTION_TEST:
            return _score_canary(experiment, entry.name, cell)
        store = access.score_orders(
            cell.test,
            scorer,
            example_set.start_each(cell.examples, settings.start_each),
            replace(requests[cell.test], name=entry.name),
            # A store of arrangements has one place, whatever the model.
            keep_revisions=cell.test != OPTION_TEST,
        )
        return {"store": store}

    rows = grid(entries, cells_of, score_cell, open_model=open_model)
    return {"cells": pd.DataFrame(rows, columns=list(CELLS))}


def _requests(experiment: Experiment, settings: Settings) -> dict[str, Request]:
    """Return what each test asks for; raise InputError for an unknown test."""
    seed = experiment.profile.seed
    directory = experiment.build / STORES
    of_options = Request(
        axis="options",
        arrangements=settings.arrangements,
        permutations=settings.permutations,
        seed=seed,
        directory=directory,
    )
    order_tests = [test for test in settings.tests if test != OPTION_TEST]
    all_tests = None  # of a request that names none
    of_order = Request(
        order_tests if order_tests or not settings.tests else all_tests,
        permutations=settings.permutations,
        seed=seed,
        directory=directory,
    )
    return {test: of_options if test == OPTION_TEST else of_order for test in settings.tests}


def _revision_of(scorer: Scorer) -> str:
    """Return the commit of a hub id, else the checksum of what was loaded."""
    source = getattr(scorer, "source", None)
    if source is not None and source.revision:
        return str(source.revision)
    return scorer.revision


def _score_canary(experiment: Experiment, model: str, cell: Cell) -> Row:
    """Score a canary set with the shards and permutations of the profile."""
    count = len(cell.examples.examples)
    plan, permutations = profile_plan(experiment.profile.scoring, TESTS[cell.test], count)
    experiment.score(model, cell.examples.name, plan, permutations)
    return {"permutations": permutations}


def _cell(name: str, test: str, examples: ExampleSet | str) -> Cell | str:
    """Return what is scored, or the reason why there is nothing to score."""
    if isinstance(examples, str):
        return examples
    if test == OPTION_TEST:
        try:
            items_of(examples)
        except InputError as error:
            return f"not asked: {error}"
    return Cell(set_name=name, test=test, examples=examples)
