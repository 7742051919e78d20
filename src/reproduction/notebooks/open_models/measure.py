"""The passes of notebook 03: every model scores every set, for every test."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from contamination.audit.battery import TESTS
from contamination.audit.request import Request
from contamination.errors import InputError
from contamination.scoring.models import ModelEntry, find_model
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.registry import registered
from contamination.testsets.sources import available
from reproduction.run.experiment import Experiment, store_plan, trained_here
from reproduction.run.grid import ACCESS, Access, Row, grid, load_each

if TYPE_CHECKING:
    from contamination.scoring.contract import Scorer

STORES = Path("stores") / "open_models"  # in the build directory
CELLS = ("model", "asked", "test", "permutations", "store", "model_revision", "status")
OF_PROFILE = "profile/"  # before a canary set's name; needed where a registered set is called alike
# Subsets that notebook 04 combines; text to train on; lines that notebook 12 reads.
NOT_ALONE = ("mmlu/", "wikitext/", "contam-1.4b/")


@dataclass(frozen=True)
class SetName:
    """A test set as it was asked for."""

    asked: str  # registered name, path or hub id; `profile/<name>` is a canary set of the profile
    label: str  # in tables
    canary: str | None = None  # its name in the profile; None if it comes from elsewhere


def set_names(asked: Sequence[str], experiment: Experiment | None) -> list[SetName]:
    """Find out which sets are canary sets of the profile; each set once, in the order asked for.

    Raises InputError for no set, a bare string in the place of a list, and two sets that tables
    could not tell apart.
    """
    if isinstance(asked, str) or not asked:
        raise InputError(f"sets is {asked!r}: give a list of registered names, paths or hub ids")
    names = list(dict.fromkeys(_set_name(name, experiment) for name in asked))
    label, count = Counter(name.label for name in names).most_common(1)[0]
    if count > 1:
        raise InputError(f"{count} sets are called {label!r}: audit them one after the other")
    return names


def _set_name(asked: str, experiment: Experiment | None) -> SetName:
    name, known = asked.removeprefix(OF_PROFILE), registered()
    canaries = [spec.name for spec in experiment.profile.canaries] if experiment else []
    if name in canaries and (name != asked or name not in known):
        return SetName(OF_PROFILE + name, OF_PROFILE + name if name in known else name, name)
    path = Path(asked)
    return SetName(asked, path.stem if path.is_file() else asked)


def sets_at_hand(experiment: Experiment) -> list[str]:
    """Return the profile's canary sets, and the registered sets that need no network.

    The subsets of MMLU are not among them: notebook 04 combines them.
    """
    canaries = [OF_PROFILE + spec.name for spec in experiment.profile.canaries]
    others = [name for name in registered() if not name.startswith(NOT_ALONE) and available(name)]
    return canaries + others


def open_sets(
    names: Sequence[SetName],
    experiment: Experiment | None,
    max_records: int | None,
    access: Access = ACCESS,
) -> dict[SetName, ExampleSet | str]:
    """Open each set, or say why not: canary sets of `experiment` whole, of others `max_records`."""

    def load(name: SetName) -> ExampleSet:
        if name.canary is not None and experiment is not None:
            return experiment.test_set(name.canary)
        return access.open_set(name.asked, max_records=max_records)

    return load_each(names, load)


def model_entries(
    models: Sequence[str | ModelEntry], experiment: Experiment | None
) -> list[ModelEntry]:
    """Return each model once, in the order asked for.

    Raises InputError for no model, a bare string, and two models of one name.
    """
    if isinstance(models, str) or not models:
        raise InputError(f"models is {models!r}: give a list of names, paths or hub ids")
    here = {entry.name: entry for entry in trained_here(experiment)} if experiment else {}
    entries: list[ModelEntry] = []
    for model in models:
        entry = model if isinstance(model, ModelEntry) else here.get(model) or find_model(model)
        if entry not in entries:
            entries.append(entry)
    name, count = Counter(entry.name for entry in entries).most_common(1)[0]
    if count > 1:
        raise InputError(f"{count} models are called {name!r}: audit them one after the other")
    return entries


def measure(
    experiment: Experiment,
    *,
    models: Sequence[str],
    sets: Sequence[str],
    tests: Sequence[str],
    permutations: int,
    max_records: int,
    access: Access = ACCESS,
) -> dict[str, pd.DataFrame]:
    """Score `sets` under `models`; without any, the sets at hand under the models trained here.

    The table `cells` is that of `score_models`. Raises InputError if no model is named and none was
    trained.
    """
    cells = score_models(
        models or trained_here(experiment),
        sets or sets_at_hand(experiment),
        tests=tests,
        permutations=permutations,
        max_records=max_records,
        seed=experiment.profile.seed,
        directory=experiment.build / STORES,
        experiment=experiment,
        access=access,
    )
    return {"cells": cells}


def score_models(
    models: Sequence[str | ModelEntry],
    sets: Sequence[str],
    *,
    tests: Sequence[str],
    permutations: int,
    directory: Path | str,
    max_records: int | None = None,
    seed: int = 0,
    experiment: Experiment | None = None,
    access: Access = ACCESS,
) -> pd.DataFrame:
    """Score every set under every model for every test, and return a row for each, `CELLS`.

    `store` is the folder of the store in `directory`, "" where the profile's own stages scored it.
    `model_revision` is the commit of a hub id, else the checksum of what was loaded; `status` is
    that of `reproduction.run.grid.grid`.

    Raises InputError for no model, set or test, one that is unknown or ambiguous, or no
    permutation.

    Parameters
    ----------
    models : names for `contamination.scoring.models.find_model`, or entries; with `experiment` also
        the models that it trained.
    sets : names for `contamination.testsets.sources.open_test_set`; with `experiment` also its
        canary sets, `profile/<name>` where a registered set is called alike.
    tests : names from `contamination.audit.battery.TESTS`.
    permutations : m, shuffled orderings per shard, in tests of whole orderings. The models of
        `experiment` on its canary sets keep the shards and permutations of the profile, which the
        score stage has scored.
    directory : where the stores lie, one for each revision of a model and a set.
    max_records : only so many records of a set, from its start; canary sets stay whole.
    seed : of the orderings. access : to sets and models.
    """
    each = tuple(dict.fromkeys(tests))
    request = Request(each, permutations=permutations, seed=seed, directory=directory)
    entries, names = model_entries(models, experiment), set_names(sets, experiment)
    opened = open_sets(names, experiment, max_records, access)

    def asked(entry: ModelEntry) -> Iterator[tuple[Row, tuple[SetName, str, ExampleSet] | str]]:
        empty = {"permutations": permutations, "store": "", "model_revision": ""}
        for name in names:
            one = opened[name]
            for test in request.order_tests:
                row = {"asked": name.asked, "test": test} | empty
                yield row, one if isinstance(one, str) else (name, test, one)

    def open_model(entry: ModelEntry) -> tuple["Scorer", Row]:
        scorer = access.open_model(entry)
        source = getattr(scorer, "source", None)
        revision = (source.revision if source else None) or scorer.revision
        return scorer, {"model_revision": revision}

    def cell(entry: ModelEntry, scorer: "Scorer", wanted: tuple[SetName, str, ExampleSet]) -> Row:
        name, test, examples = wanted
        if experiment and name.canary and entry in trained_here(experiment):
            count = experiment.spec(name.canary).examples
            plan, own = store_plan(experiment.profile.scoring, TESTS[test], count)
            experiment.score(entry.name, name.canary, permutations=own, **asdict(plan))
            return {"permutations": own}
        return {
            "store": access.score_orders(test, scorer, examples, replace(request, name=entry.name))
        }

    rows = grid(entries, asked, cell, open_model=open_model)
    return pd.DataFrame(rows, columns=list(CELLS))
