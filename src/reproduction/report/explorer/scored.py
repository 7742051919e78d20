"""The test sets that a run has scored, their stores, and every test on them.

The p-values are those of `contamination.audit.registry`, with the settings that it has.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from tqdm import tqdm

from contamination.audit.controls.diagnosis import Diagnosis
from contamination.audit.controls.records import diagnose_order
from contamination.audit.controls.zlib import zlib_test
from contamination.audit.registry import COMPARED, TESTS
from contamination.errors import InputError
from contamination.scoring.store import Store, open_store
from contamination.statistics import TestResult, contributions
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.sources import open_test_set
from reproduction.notebooks.mmlu.measure import FAMILY
from reproduction.run.experiment import Experiment, profile_plan

BY_LINE = "-by-line"  # at the end of the name of a set that was segmented by line

Load = Callable[[str, int], ExampleSet]  # name and number of examples -> the test set


@dataclass(frozen=True, eq=False)
class ScoredSet:
    """One test set under one model, and where its stores lie.

    Attributes
    ----------
    group
        Sets that belong together, such as the subsets of MMLU.
    stores
        Directories, each with a store; another number of shards is another store.
    about
        Facts known beforehand, such as how often the set was planted.
    """

    model: str
    group: str
    test_set: ExampleSet
    stores: tuple[Path, ...]
    about: str = ""


@dataclass(frozen=True, eq=False)
class Outcome:
    """One test on one store of one set under one model.

    Attributes
    ----------
    diagnosis
        Diagnosis of the order of the set in this number of shards; no model changes it.
    by_shard
        (r,), evidence of each shard for the canonical order: z-scores; for the sharded
        t-test, nats.
    control_p
        p-value of the zlib baseline on the same shards.
    """

    scored: ScoredSet
    result: TestResult
    diagnosis: Diagnosis
    by_shard: np.ndarray
    control_p: float


def scored_sets(experiment: Experiment) -> Iterator[ScoredSet]:
    """Yield the sets that a run has scored: canary sets, MMLU, and notebook 03's.

    Only the stores that the profile plans for a canary set count: a number of shards
    that is picked after looking, as in notebook 02, proves nothing.
    """
    stores = experiment.build / "stores"
    copies = {spec.name: spec.dup_count for spec in experiment.profile.canaries}

    def canary(name: str, examples: int) -> ExampleSet:
        return experiment.test_set(name)

    def subset(name: str, examples: int) -> ExampleSet:
        return replace(open_test_set(FAMILY + name, max_records=examples), name=name)

    def audited(name: str, examples: int) -> ExampleSet:
        if name in copies:
            return experiment.test_set(name)
        return open_test_set(name, max_records=examples)

    for scored in find_sets(stores, "Canary sets", canary):
        count = copies[scored.test_set.name] if scored.model == "contaminated" else 0
        about = f"Copies in this model's training data: {count}."
        yield replace(scored, about=about, stores=_planned_stores(experiment, scored))
    yield from find_sets(stores / "mmlu", "MMLU", subset)
    yield from find_sets(stores / "open_models", "Audited sets", audited)


def _planned_stores(experiment: Experiment, scored: ScoredSet) -> tuple[Path, ...]:
    """Return the stores of a canary set that the profile plans."""
    planned = set()
    for name in ("permutation", *COMPARED):
        examples = len(scored.test_set.examples)
        plan, _ = profile_plan(experiment.profile.scoring, TESTS[name], examples)
        planned.add(
            plan.path(experiment.build / "stores", scored.model, scored.test_set.name),
        )
    return tuple(path for path in scored.stores if path in planned)


def find_sets(directory: Path, group: str, load: Load) -> Iterator[ScoredSet]:
    """Yield the sets whose stores are in `directory/<model>/<test set>/<store>/`.

    Models and sets are named as in their stores. Sets that are segmented by line are
    left out; a set that cannot be opened is left out, and the terminal says why.

    Parameters
    ----------
    directory
        Folder in which audits left their stores.
    group
        Name of all these sets together.
    load
        Opens a set by its name and its number of examples.
    """
    for folder in sorted(directory.glob("*/*")):
        stores = tuple(path.parent for path in sorted(folder.glob("*/store.json")))
        if not stores or folder.name.endswith(BY_LINE):
            continue
        try:
            header = open_store(stores[0]).header
            test_set = load(header.dataset, len(header.example_tokens))
        except InputError as error:
            tqdm.write(f"left out: {folder}: {error}")
            continue
        yield ScoredSet(header.model, group, test_set, stores)


def find_outcomes(sets: Sequence[ScoredSet]) -> list[Outcome]:
    """Run every test on every store of the sets; print which cannot be used."""
    outcomes: dict[tuple[int, str, int], Outcome] = {}
    diagnoses: dict[tuple[str, int], Diagnosis] = {}
    bar = tqdm(sets, desc="explorer", unit="set", disable=None)  # on a terminal alone
    for index, scored in enumerate(bar):
        for directory in scored.stores:
            try:
                of_store = _directory_outcomes(directory, scored, diagnoses)
            except InputError as error:
                tqdm.write(f"left out: {scored.model}, {scored.test_set.name}: {error}")
                continue
            for outcome in of_store:
                # If two stores have equal numbers of shards, the first counts.
                key = (index, outcome.result.test, outcome.result.shards)
                outcomes.setdefault(key, outcome)
    return list(outcomes.values())


def _directory_outcomes(
    directory: Path, scored: ScoredSet, diagnoses: dict[tuple[str, int], Diagnosis]
) -> list[Outcome]:
    """Run every test on one store of a set.

    `diagnoses` by revision and number of shards are filled here: other models share
    them. Raises InputError if the store cannot be used.
    """
    store = open_store(directory)
    header = store.header
    if header.dataset_revision != scored.test_set.revision:
        raise InputError(f"{directory}: scored from another revision; score it again")
    key = (header.dataset_revision, header.shards)
    if key not in diagnoses:
        diagnoses[key] = diagnose_order(
            scored.test_set,
            seed=header.seed,
            shards=header.shards,
        )
    return _store_outcomes(store, scored, diagnoses[key])


def _store_outcomes(
    store: Store,
    scored: ScoredSet,
    diagnosis: Diagnosis,
) -> list[Outcome]:
    """Run every test that the store allows.

    Raises InputError if the store is not scored to its end, or is damaged.
    """
    header = store.header
    names = [name for name in COMPARED if TESTS[name].kind == header.kind]
    if header.kind == "orderings" and header.shards == 1:
        names = ["permutation"]
    permutations = 0
    if store.has_permutations:
        # The largest: a store that was scored in part alone is refused below.
        for path in store.parts():
            for sequence in store.read_part(path):
                permutations = max(permutations, sequence.place[1])
    control = zlib_test(
        scored.test_set,
        kind=header.kind,
        shards=header.shards,
        permutations=permutations,
        seed=header.seed,
    )
    outcomes = []
    for name in names:
        scores = TESTS[name].scores(store, permutations)
        result = TESTS[name].result_from_scores(store, scores)
        if name == "sharded_t":
            by_shard = scores[:, 0] - scores[:, 1:].mean(axis=1)
        else:
            by_shard = contributions(scores, weights="inverse_sd")[:, 0]
        outcomes.append(Outcome(scored, result, diagnosis, by_shard, control.p))
    return outcomes
