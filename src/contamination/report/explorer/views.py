"""Everything that is shown of one test set under one model."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from contamination.audit.battery import TESTS
from contamination.audit.diagnostics import Diagnosis, diagnose
from contamination.errors import InputError
from contamination.report.explorer.outcomes import Outcome, StoreOutcomes, store_outcomes
from contamination.report.explorer.scored import ScoredSet
from contamination.scoring.store import Store, open_store
from contamination.testsets.example_set import ExampleSet


@dataclass(frozen=True, eq=False)
class View:
    """One test set under one model.

    Attributes
    ----------
    outcomes : every test with every choice of shards and b; none if no store could be used.
    joint_log10_p : of the best exact choice, corrected for trying them all: Westfall and Young
        within a store, Bonferroni over stores.
    diagnoses : by number of shards.
    left_out : a line for each store that could not be used, with the reason.
    """

    scored: ScoredSet
    outcomes: tuple[Outcome, ...]
    joint_log10_p: float
    diagnoses: dict[int, Diagnosis]
    left_out: tuple[str, ...]

    def is_usual(self, outcome: Outcome) -> bool:
        """Whether shards and b are those that were set before anyone looked."""
        usual_shards = self.scored.usual_shards[TESTS[outcome.test].kind]
        return outcome.b == TESTS[outcome.test].b and (
            outcome.test == "permutation" or outcome.result.shards == usual_shards
        )


class Viewer:
    """Makes views of scored sets; what no model changes is worked out once per test set."""

    def __init__(self) -> None:
        self._diagnoses: dict[tuple[str, int], Diagnosis] = {}

    def view(self, scored: ScoredSet) -> View:
        """Run every test on every store of a set; a store that cannot be used is left out."""
        found: dict[tuple[str, int], StoreOutcomes] = {}
        diagnoses: dict[int, Diagnosis] = {}
        left_out: list[str] = []
        for directory in scored.stores:
            try:
                store = _open(directory, scored.test_set)
                header = store.header
                diagnosis = self._diagnose(scored.test_set, header.shards, header.seed)
                outcomes = store_outcomes(store)
            except InputError as error:
                left_out.append(f"{scored.model}, {scored.test_set.name}: {error}")
                continue
            # Of two stores of the same shards, the one that keeps more tokens allows more.
            key, known = (header.kind, header.shards), found.get((header.kind, header.shards))
            if known is None or len(outcomes.outcomes) > len(known.outcomes):
                found[key] = outcomes
            diagnoses[header.shards] = diagnosis
        joints = [each.joint.log10_p for each in found.values()]
        return View(
            scored,
            tuple(outcome for each in found.values() for outcome in each.outcomes),
            min(0.0, min(joints) + math.log10(len(joints))) if joints else 0.0,
            diagnoses,
            tuple(left_out),
        )

    def _diagnose(self, test_set: ExampleSet, shards: int, seed: int) -> Diagnosis:
        key = (test_set.revision, shards)
        if key not in self._diagnoses:
            self._diagnoses[key] = diagnose(
                test_set.examples,
                test_set.records or None,
                shards=shards,
                rng=np.random.default_rng(seed),
            )
        return self._diagnoses[key]


def _open(directory: Path, test_set: ExampleSet) -> Store:
    store = open_store(directory)
    if store.header.dataset_revision != test_set.revision:
        raise InputError(
            f"{directory}: scored from another revision of the test set; score it again"
        )
    return store
