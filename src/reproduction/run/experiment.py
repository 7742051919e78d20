"""One run of a profile: its files, and how to score and open its stores.

::

    build/<profile>/stores/       <model>/<canary set>/orderings-<r>/, successors-<r>/

The stages write these; notebooks only read them, through `Experiment`.
"""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from contamination.errors import InputError
from contamination.scoring.models import ModelEntry
from contamination.scoring.plan import StoreNeed, StorePlan, plan_store
from contamination.scoring.store import Store, open_store
from contamination.scoring.store_format import count_rows
from reproduction.run.files import MODELS, RunFiles
from reproduction.run.profile import ScoringSpec

if TYPE_CHECKING:
    from contamination.scoring.contract import Scorer
    from contamination.scoring.store_format import Kind

__all__ = ["MODELS", "Experiment", "store_plan", "trained_here"]


def store_plan(spec: ScoringSpec, test: StoreNeed, examples: int) -> tuple[StorePlan, int]:
    """Return the store that a test of so many examples reads, and how many permutations."""
    whole_set = test.shard_size is None
    shards = spec.shards if test.kind == "orderings" else None
    permutations = spec.whole_set_permutations if whole_set else spec.permutations
    return plan_store(test, examples, shards), permutations


class Experiment(RunFiles):
    """The files of one run, of the YAML file of a profile and its directory in `build`."""

    def __init__(self, profile: Path | str, build: Path | str) -> None:
        super().__init__(profile, build)
        self._scorers: dict[str, Scorer] = {}

    def store_for(self, model: str, dataset: str, test: StoreNeed) -> tuple[Store, int]:
        """Open the store that a test of a canary set reads here; also return its permutations."""
        plan, permutations = store_plan(self.profile.scoring, test, self.spec(dataset).examples)
        return self.scored(model, dataset, permutations=permutations, **asdict(plan)), permutations

    def scored(
        self,
        model: str,
        name: str,
        *,
        shards: int,
        permutations: int = 0,
        kind: "Kind" = "orderings",
        tokens_per_example: int | None = None,
    ) -> Store:
        """Open a store that was scored, with so many permutations of each shard at least.

        No model is opened: that the store is of the model as it is now is for make to ensure.
        Raises InputError if there is no such store, it is of another text or seed, or it lacks
        something of what is asked for.
        """
        plan = StorePlan(kind, shards, tokens_per_example)
        store = open_store(plan.path(self.build / "stores", model, name))
        header, revision = store.header, self.test_set(name).revision
        if (header.dataset_revision, header.seed) != (revision, self.profile.seed):
            raise InputError(
                f"{store.directory}: it was scored from another text or with another seed; run "
                "`make reproduce`"
            )
        if sum(map(count_rows, store.parts())) < header.tokens_stored(permutations):
            raise InputError(
                f"{store.directory}: something of what is asked for is not scored yet; run "
                "`make reproduce`, or `python -m reproduction measure` with the notebook and its "
                "--parameter"
            )
        return store

    def score(
        self,
        model: str,
        name: str,
        *,
        shards: int,
        permutations: int = 0,
        kind: "Kind" = "orderings",
        tokens_per_example: int | None = None,
    ) -> Store:
        """Score what a store lacks, on all processes; see `contamination.scoring.score.score`."""
        # Imported here: commands that score nothing must not cost the import of torch.
        from contamination.scoring.local import TransformersScorer
        from contamination.scoring.score import score

        if model not in self._scorers:
            self._scorers[model] = TransformersScorer(self.model(model))
        plan = StorePlan(kind, shards, tokens_per_example)
        return score(
            self.test_set(name),
            self._scorers[model],
            plan.path(self.build / "stores", model, name),
            model=model,
            shards=shards,
            permutations=permutations,
            seed=self.profile.seed,
            kind=kind,
            tokens_per_example=tokens_per_example,
            replace=True,
        )


def trained_here(experiment: Experiment) -> list[ModelEntry]:
    """Return the models of a run: the contaminated one with its truth, the clean one as control.

    There are none where the profile has no corpus.
    """
    if experiment.profile.pretraining is None:
        return []
    contaminated, clean = ((name, str(experiment.model(name))) for name in MODELS)
    planted = {f"profile/{spec.name}": spec.dup_count for spec in experiment.profile.canaries}
    return [
        ModelEntry(*contaminated, role="contaminated", planted=planted),
        ModelEntry(*clean, role="negative_control", planted=dict.fromkeys(planted, 0)),
    ]
