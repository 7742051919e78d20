"""One run of a profile: its files, its stores, and what was measured.

::

    build/<profile>/stores/<model>/<canary set>/            orderings-<r>/, successors-<r>/
    build/<profile>/scores/<package>/tables/                what a notebook reads
    build/<profile>/scores/<package>/parts/                 rows that are not scored again
    build/<profile>/scores/<notebook>.json                  the target of make: it is done

The stages write these on all processes; notebooks only read them, through `Experiment`.
Beside the tables stand the parameters that they depend on, so that a notebook never
shows what was measured with others.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from contamination.errors import InputError
from contamination.files import read_json, replacing, write_json
from contamination.scoring.contract import Scorer
from contamination.scoring.models import ModelEntry, find_model
from contamination.scoring.plan import StoreNeed, StorePlan, plan_store
from contamination.scoring.store import Store, open_store
from contamination.scoring.store_format import count_values
from reproduction.run.profile import MODELS, RunFiles, ScoringSpec
from reproduction.run.settings import NotebookSettings

__all__ = [
    "MODELS",
    "Experiment",
    "named_models",
    "parts_of",
    "read_measured",
    "trained_here",
]
TABLES = "tables"
PARAMETERS = "parameters.json"


def profile_plan(
    spec: ScoringSpec,
    need: StoreNeed,
    examples: int,
) -> tuple[StorePlan, int]:
    """Return the store and the permutations of a profile for a test on a set of this size.

    Parameters
    ----------
    spec
        Shards and permutations of the profile.
    need
        What the test needs, such as `TESTS[name]`.
    examples
        Number of examples of the set.
    """
    whole_set = need.shard_size is None
    shards = spec.shards if need.kind == "orderings" else None
    permutations = spec.whole_set_permutations if whole_set else spec.permutations
    return plan_store(need, examples, shards), permutations


class Experiment(RunFiles):
    """The files of one run: its profile, and its directory in `build`."""

    def __init__(self, profile: Path | str, build: Path | str) -> None:
        super().__init__(profile, build)
        self._scorers: dict[str, Scorer] = {}

    def store_for(self, model: str, dataset: str, need: StoreNeed) -> tuple[Store, int]:
        """Open the store that a test of a canary set reads; also return its permutations.

        Parameters
        ----------
        model
            Contaminated or clean.
        dataset
            Name of the canary set.
        need
            What the test needs, such as `TESTS[name]`.
        """
        plan, permutations = profile_plan(
            self.profile.scoring,
            need,
            self.spec(dataset).examples,
        )
        return self.scored(model, dataset, plan, permutations), permutations

    def scored(
        self,
        model: str,
        name: str,
        plan: StorePlan,
        permutations: int = 0,
    ) -> Store:
        """Open a store that was scored, and check that it has the right plan and records.

        No model is opened: make ensures that the store is of the model as it is now.

        Parameters
        ----------
        model
            Name of the model.
        name
            Name of the canary set.
        plan
            Kind of store and its shards.
        permutations
            Of each shard, at least.

        Raises
        ------
        InputError
            If there is no such store, it is of another text or seed, or it lacks values.
        """
        store = open_store(plan.path(self.build / "stores", model, name))
        header = store.header
        same_text = header.dataset_revision == self.test_set(name).revision
        if not same_text or header.seed != self.profile.seed:
            raise InputError(
                f"{store.directory}: it was scored from another text or with another "
                "seed; run `make reproduce`",
            )
        stored = sum(map(count_values, store.parts()))
        if stored < store.tokens_stored(permutations):
            raise InputError(
                f"{store.directory}: something of what is asked for is not scored yet; "
                "run `make reproduce`",
            )
        return store

    def score(
        self,
        model: str,
        name: str,
        plan: StorePlan,
        permutations: int = 0,
    ) -> Store:
        """Score the missing parts of a store, on all processes.

        Parameters
        ----------
        model
            Contaminated or clean.
        name
            Name of the canary set.
        plan
            Kind and shards of the store.
        permutations
            Orderings of a shard besides the canonical one.
        """
        # Imported here: commands that score nothing must not cost the import of torch.
        from contamination.scoring.local import TransformersScorer
        from contamination.scoring.score import score

        if model not in self._scorers:
            self._scorers[model] = TransformersScorer(self.model(model))
        return score(
            self.test_set(name),
            self._scorers[model],
            plan.path(self.build / "stores", model, name),
            plan,
            model=model,
            permutations=permutations,
            seed=self.profile.seed,
            replace=True,
        )


def trained_here(experiment: Experiment) -> list[ModelEntry]:
    """Return the models of a run: the contaminated one, and the clean control.

    There are none where the profile has no corpus.
    """
    if experiment.profile.pretraining is None:
        return []
    contaminated, clean = MODELS
    planted = {f"profile/{spec.name}": spec.dup_count for spec in experiment.profile.canaries}
    return [
        ModelEntry(
            contaminated,
            str(experiment.model(contaminated)),
            role="contaminated",
            planted=planted,
        ),
        ModelEntry(
            clean,
            str(experiment.model(clean)),
            role="negative_control",
            planted=dict.fromkeys(planted, 0),
        ),
    ]


def named_models(experiment: Experiment, names: Sequence[str]) -> list[ModelEntry]:
    """Find models by name: those of the run, then registered ones.

    Raises InputError where two of them have one name.
    """
    here = {entry.name: entry for entry in trained_here(experiment)}
    models = [here.get(name) or find_model(name) for name in names]
    for name, count in Counter(model.name for model in models).items():
        if count > 1:
            raise InputError(f"{count} models are called {name!r}: name each once")
    return models


def parts_of(experiment: Experiment, package: str) -> Path:
    """Return the folder of the rows that the passes of a notebook have scored so far."""
    return experiment.build / "scores" / package / "parts"


def write_measured(
    experiment: Experiment,
    package: str,
    settings: NotebookSettings,
    tables: Mapping[str, pd.DataFrame],
) -> None:
    """Write the tables that the passes of a notebook gave, whole or not at all.

    Parameters
    ----------
    experiment
        The run.
    package
        Package of the notebook, in `reproduction.notebooks`.
    settings
        Settings of the notebook, on which the tables depend.
    tables
        Tables by name.
    """
    with replacing(experiment.build / "scores" / package / TABLES) as temporary:
        temporary.mkdir()
        write_json(temporary / PARAMETERS, settings.model_dump())
        for name, table in tables.items():
            table.to_parquet(temporary / f"{name}.parquet", index=False)


def read_measured(
    experiment: Experiment,
    package: str,
    settings: NotebookSettings,
) -> dict[str, pd.DataFrame]:
    """Read the tables of a notebook, by name, as they were measured with these settings.

    Parameters
    ----------
    experiment
        The run.
    package
        Package of the notebook, in `reproduction.notebooks`.
    settings
        Of the notebook.

    Raises
    ------
    InputError
        If nothing was measured with these settings.
    """
    folder = experiment.build / "scores" / package / TABLES
    measured_with = folder / PARAMETERS
    as_written = json.loads(json.dumps(settings.model_dump()))  # tuples become lists
    if not measured_with.is_file() or read_json(measured_with) != as_written:
        message = "nothing was measured with these parameters; run `make reproduce`"
        raise InputError(f"{folder}: {message}")
    return {path.stem: pd.read_parquet(path) for path in sorted(folder.glob("*.parquet"))}
