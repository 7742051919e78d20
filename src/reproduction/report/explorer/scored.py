"""What a run has scored: test sets, their stores, and every test on them.

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
from contamination.scoring.store_format import read_units
from contamination.statistics import TestResult, contributions
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.sources import open_test_set
from reproduction.notebooks.mmlu.measure import FAMILY
from reproduction.run.experiment import Experiment, store_plan

BY_LINE = "-by-line"  # at the end of the name of a set that was segmented by line

Load = Callable[[str, int], ExampleSet]  # name and number of examples -> the test set


@dataclass(frozen=True, eq=False)
class ScoredSet:
    """One test set under one model, and where its stores lie.

    Attributes
    ----------
    group : sets that belong together, such as the subsets of MMLU.
    stores : directories, each with a store; another number of shards is another store.
    about : what is known beforehand, such as how often the set was planted.
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
    diagnosis : of the order of the set in so many shards; no model changes it.
    by_shard : (r,), evidence of each shard for the canonical order: z-scores, of the sharded t-test
        nats.
    control_p : of the same shards under a compressor.
    """

    scored: ScoredSet
    result: TestResult
    diagnosis: Diagnosis
    by_shard: np.ndarray
    control_p: float


def scored_sets(experiment: Experiment) -> Iterator[ScoredSet]:
    """Find what a run has scored: canary sets, subsets of MMLU, and what notebook 03 audits.

    Of a canary set the stores are those that the profile sets: a number of shards that is picked
    after looking, as in notebook 02, proves nothing.
    """
    stores = experiment.build / "stores"
    profile = experiment.profile
    copies = {spec.name: spec.dup_count for spec in profile.canaries}
    tests = [TESTS[name] for name in ("permutation", *COMPARED)]
    for each in find_sets(stores, "Canary sets", lambda name, _: experiment.test_set(name)):
        name = each.test_set.name
        examples = len(each.test_set.examples)
        count = copies[name] if each.model == "contaminated" else 0
        about = f"Copies in this model's training data: {count}."
        plans = (store_plan(profile.scoring, test, examples)[0] for test in tests)
        wanted = {plan.path(stores, each.model, name) for plan in plans}
        yield replace(each, about=about, stores=tuple(s for s in each.stores if s in wanted))

    def subset(name: str, examples: int) -> ExampleSet:
        return replace(open_test_set(FAMILY + name, max_records=examples), name=name)

    def audited(name: str, examples: int) -> ExampleSet:
        if name in copies:
            return experiment.test_set(name)
        return open_test_set(name, max_records=examples)

    yield from find_sets(stores / "mmlu", "MMLU", subset)
    yield from find_sets(stores / "open_models", "Audited sets", audited)


def find_sets(directory: Path, group: str, load: Load) -> Iterator[ScoredSet]:
    """Find the stores in `directory/<model>/<test set>/<store>/`, as audits leave them.

    Models and sets are named as in their stores; those segmented by line are left out. What cannot
    be opened is named on the terminal.
    """
    for folder in sorted(directory.glob("*/*")):
        stores = tuple(path.parent for path in sorted(folder.glob("*/store.json")))
        if stores and not folder.name.endswith(BY_LINE):
            try:
                header = open_store(stores[0]).header
                test_set = load(header.dataset, len(header.example_tokens))
            except InputError as error:
                tqdm.write(f"left out: {folder}: {error}")
                continue
            yield ScoredSet(header.model, group, test_set, stores)


def find_outcomes(sets: Sequence[ScoredSet]) -> list[Outcome]:
    """Run every test on every store of the sets; the terminal names those that cannot be used."""
    found: dict[tuple[int, str, int], Outcome] = {}  # of two stores of as many shards the first
    known: dict[tuple[str, int], Diagnosis] = {}
    # A bar on a terminal alone.
    for index, scored in enumerate(tqdm(sets, desc="explorer", unit="set", disable=None)):
        for directory in scored.stores:
            try:
                store = open_store(directory)
                seed, key = store.header.seed, (scored.test_set.revision, store.header.shards)
                if store.header.dataset_revision != scored.test_set.revision:
                    raise InputError(f"{directory}: scored from another revision; score it again")
                if key not in known:
                    known[key] = diagnose_order(scored.test_set, seed=seed, shards=key[1])
                for each in _store_outcomes(store, scored, known[key]):
                    found.setdefault((index, each.result.test, each.result.shards), each)
            except InputError as error:
                tqdm.write(f"left out: {scored.model}, {scored.test_set.name}: {error}")
    return list(found.values())


def _store_outcomes(store: Store, scored: ScoredSet, diagnosis: Diagnosis) -> list[Outcome]:
    """Run every test that the store allows.

    Raises InputError if the store is not scored to its end, or is damaged.
    """
    header = store.header
    names = [name for name in COMPARED if TESTS[name].kind == header.kind]
    if header.kind == "orderings" and header.shards == 1:
        names = ["permutation"]
    permutations = 0
    for path in store.parts():
        for rows in read_units(path, header):
            permutations = max(permutations, rows.unit[1])
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
        result = TESTS[name].judge(store, scores)
        if name == "sharded_t":
            by_shard = scores[:, 0] - scores[:, 1:].mean(axis=1)
        else:
            by_shard = contributions(scores, weights="inverse_sd")[:, 0]
        outcomes.append(Outcome(scored, result, diagnosis, by_shard, control.p))
    return outcomes
