"""The passes of notebook 03: every model scores every set, for every test.

Every model is loaded once and freed before the next. If a model or a set cannot be opened, its
cells say why, and the others are scored. What is scored stays in stores, so that an interrupted run
resumes where it stopped.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pandas as pd
from tqdm import tqdm

from contamination.audit.battery import TESTS
from contamination.audit.request import Request
from contamination.audit.verdict import score_for
from contamination.device import free_memory
from contamination.scoring.contract import Scorer
from contamination.scoring.local import open_scorer
from contamination.scoring.models import ModelEntry
from contamination.scoring.processes import share, together
from contamination.scoring.status import FAILURES, OK, status_of
from reproduction.notebooks.open_models.cells import (
    CELLS,
    STORES,
    Cell,
    is_scored_by_profile,
    model_entries,
)
from reproduction.notebooks.open_models.sets import (
    ExampleSets,
    SetName,
    set_names,
    sets_at_hand,
)
from reproduction.run.experiment import Experiment, store_plan, trained_here

Open = Callable[[ModelEntry], Scorer]


def measure(
    experiment: Experiment,
    *,
    models: Sequence[str],
    sets: Sequence[str],
    tests: Sequence[str],
    permutations: int,
    max_records: int,
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
    open_scorer: Open = open_scorer,
) -> pd.DataFrame:
    """Score every set under every model for every test, and return a row for each, `CELLS`.

    `status` is "ok", "failed: reason", or "not run here: reason" where the hub is out of reach.
    `store` is the folder of the store in `directory`, "" where the profile's own stages scored it.
    `model_revision` is the commit of a hub id, else the checksum of what was loaded.

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
    seed : of the orderings.
    open_scorer : how a model is opened, with other precision or placement for instance.
    """
    each = tuple(dict.fromkeys(tests))
    request = Request(each, permutations=permutations, seed=seed, directory=directory)
    entries, names = model_entries(models, experiment), set_names(sets, experiment)
    opened = ExampleSets(names, experiment, max_records)
    for problems in share(lambda: opened.problems):
        opened.problems |= problems  # what one process cannot open, none scores
    passes = _Passes(names, opened, request, experiment, open_scorer)
    cells: list[Cell] = []
    for entry in tqdm(entries, "models", unit="model", leave=False, disable=None):
        cells += passes.cells(entry)
        free_memory()  # the model goes before the next one comes
    return pd.DataFrame(cells, columns=list(CELLS))


@dataclass(frozen=True)
class _Passes:
    names: list[SetName]
    sets: ExampleSets
    request: Request
    experiment: Experiment | None
    open_scorer: Open

    def cells(self, entry: ModelEntry) -> Iterator[Cell]:
        """Yield a cell for each set and test, whatever happens."""
        revision, problem = "", ""
        try:
            if self.sets.opened:  # else it would be loaded, or downloaded, for nothing
                scorer = together(lambda: self.open_scorer(entry))
                source = getattr(scorer, "source", None)
                revision = (source.revision if source else None) or scorer.revision
        except FAILURES as error:
            problem = status_of(error)
        for name in self.names:
            for test in self.request.order_tests:
                cell: Cell = {
                    "model": entry.name,
                    "asked": name.asked,
                    "test": test,
                    "permutations": self.request.permutations,
                    "store": "",
                    "model_revision": revision,
                    "status": problem or self.sets.problems.get(name) or OK,
                }
                if cell["status"] == OK:
                    try:
                        cell |= self._score(entry, scorer, name, test)
                    except FAILURES as error:
                        cell["status"] = status_of(error)
                yield cell

    def _score(self, entry: ModelEntry, scorer: Scorer, name: SetName, test: str) -> Cell:
        run = self.experiment
        if run and name.canary and is_scored_by_profile(run, entry, name):
            count = run.spec(name.canary).examples
            plan, permutations = store_plan(run.profile.scoring, TESTS[test], count)
            run.score(entry.name, name.canary, permutations=permutations, **asdict(plan))
            return {"permutations": permutations}
        request = replace(self.request, name=entry.name)
        examples = self.sets.opened[name]
        store = score_for(test, scorer, examples, request, keep_revisions=True)
        return {"store": store.directory.relative_to(self.request.directory).as_posix()}
