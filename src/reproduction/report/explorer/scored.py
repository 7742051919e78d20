"""What a run has scored: test sets, their stores, and every test on them.

The p-values are those of `contamination.audit.battery`, with the settings that it has.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import scipy.stats
from tqdm import tqdm

from contamination.audit.battery import COMPARED, TESTS
from contamination.audit.compressor import compressor_test
from contamination.audit.diagnostics import Diagnosis, diagnose_order
from contamination.errors import InputError
from contamination.randomness import random_stream
from contamination.scoring.plan import plan_store
from contamination.scoring.store import Store, open_store
from contamination.scoring.store_format import read_units
from contamination.statistics import TestResult, contributions
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.sources import open_test_set
from reproduction.notebooks.mmlu.measure import FAMILY, by_line
from reproduction.run.experiment import Experiment

MMLU_GROUP = "MMLU"
BY_LINE = "-by-line"  # at the end of the name of a set that was segmented by line
BINS = 41
DRAWS = 10_000  # from the null law of a sum over shards

Load = Callable[[str, int], ExampleSet]  # name and number of examples -> the test set


@dataclass(frozen=True, eq=False)
class ScoredSet:
    """One test set under one model, and where its stores lie.

    Attributes
    ----------
    group : sets that belong together, such as the subsets of MMLU.
    stores : directories, each with a store; another number of shards is another store.
    about : what is known beforehand, such as how often the set was planted.
    shards : of whole orderings, where the profile sets them; None is what an audit takes.
    """

    model: str
    group: str
    test_set: ExampleSet
    stores: tuple[Path, ...]
    about: str = ""
    shards: int | None = None


@dataclass(frozen=True, eq=False)
class Outcome:
    """One test on one store.

    Attributes
    ----------
    by_shard : (r,), evidence of each shard for the canonical order: z-scores, of the sharded t-test
        nats.
    null : counts and edges of a histogram of the statistic where order carries no information; of
        the sharded t-test Student's law, which it assumes.
    canonical : the statistic on the scale of `null`: a z-score, or t.
    usual : whether the number of shards is the one that was set before anyone looked.
    control_p : of the same shards under a compressor.
    """

    test: str
    result: TestResult
    by_shard: np.ndarray
    null: tuple[np.ndarray, np.ndarray]
    canonical: float
    usual: bool
    control_p: float


@dataclass(frozen=True, eq=False)
class View:
    """All that is shown of one test set under one model.

    Attributes
    ----------
    outcomes : every test on every store; empty if no store could be used.
    joint_log10_p : of the best exact test, corrected for trying them all (Bonferroni).
    diagnoses : by number of shards.
    """

    scored: ScoredSet
    outcomes: tuple[Outcome, ...]
    joint_log10_p: float
    diagnoses: dict[int, Diagnosis]


def scored_sets(experiment: Experiment) -> Iterator[ScoredSet]:
    """Find what a run has scored: canary sets, subsets of MMLU, and what notebook 03 audits."""
    stores, profile = experiment.build / "stores", experiment.profile
    copies = {spec.name: spec.dup_count for spec in profile.canaries}
    for each in find_sets(stores, "Canary sets", lambda name, _: experiment.test_set(name)):
        count = copies[each.test_set.name] if each.model == "contaminated" else 0
        about = f"Copies in this model's training data: {count}."
        yield replace(each, about=about, shards=profile.scoring.shards)
    records: dict[str, int] = {}  # lines do not say how many records were read

    def subset(name: str, examples: int) -> ExampleSet:
        whole = name.removesuffix(BY_LINE)
        if whole == name:
            records[name] = examples
        elif whole not in records:
            raise InputError(f"{name} was not scored by record, which says how much was read")
        opened = open_test_set(FAMILY + whole, max_records=records[whole])
        opened = replace(opened, name=whole)
        return opened if whole == name else by_line(opened)

    def audited(name: str, examples: int) -> ExampleSet:
        if name in copies:
            return experiment.test_set(name)
        return open_test_set(name, max_records=examples)

    yield from find_sets(stores / "mmlu", MMLU_GROUP, subset)
    yield from find_sets(stores / "open_models", "Audited sets", audited)


def find_sets(directory: Path, group: str, load: Load) -> Iterator[ScoredSet]:
    """Find the stores in `directory/<model>/<test set>/<store>/`, as audits leave them.

    Models and sets are named as in their stores. Sets segmented by line are a group of their own.
    What cannot be opened is named on the terminal.
    """
    for folder in sorted(directory.glob("*/*")):
        if stores := tuple(path.parent for path in sorted(folder.glob("*/store.json"))):
            try:
                header = open_store(stores[0]).header
                test_set = load(header.dataset, len(header.example_tokens))
            except InputError as error:
                tqdm.write(f"left out: {folder}: {error}")
                continue
            named = f"{group} by line" if header.dataset.endswith(BY_LINE) else group
            yield ScoredSet(header.model, named, test_set, stores)


def view_sets(sets: Sequence[ScoredSet]) -> list[View]:
    """Run every test on every store of the sets; the terminal names those that cannot be used."""
    known: dict[tuple[str, int], Diagnosis] = {}  # no model changes them
    views = []
    for scored in tqdm(sets, desc="explorer", unit="set", disable=None):  # on a terminal alone
        outcomes: dict[tuple[str, int], Outcome] = {}
        diagnoses = {}
        for directory in scored.stores:
            try:
                store = open_store(directory)
                seed, key = store.header.seed, (scored.test_set.revision, store.header.shards)
                if store.header.dataset_revision != scored.test_set.revision:
                    raise InputError(f"{directory}: scored from another revision; score it again")
                for each in store_outcomes(store, scored):
                    outcomes.setdefault((each.test, each.result.shards), each)
            except InputError as error:
                tqdm.write(f"left out: {scored.model}, {scored.test_set.name}: {error}")
                continue
            known[key] = known.get(key) or diagnose_order(scored.test_set, seed=seed, shards=key[1])
            diagnoses[key[1]] = known[key]
        exact = [each.result.log10_p for (test, _), each in outcomes.items() if test != "sharded_t"]
        joint = min(0.0, min(exact, default=0.0) + math.log10(len(exact) or 1))
        views.append(View(scored, tuple(outcomes.values()), joint, diagnoses))
    return views


def store_outcomes(store: Store, scored: ScoredSet) -> list[Outcome]:
    """Run every test that the store allows.

    Raises InputError if the store is not scored to its end, or is damaged.
    """
    header = store.header
    names = [name for name in COMPARED if TESTS[name].kind == header.kind]
    if header.kind == "orderings" and header.shards == 1:
        names = ["permutation"]
    units = (rows.unit for path in store.parts() for rows in read_units(path, header))
    permutations = max((ordering for _, ordering in units), default=0)
    rng = random_stream(header.seed, "explorer", header.dataset_revision, header.shards)
    read = {"kind": header.kind, "shards": header.shards, "permutations": permutations}
    control_p = compressor_test(scored.test_set, **read, seed=header.seed).p
    outcomes = []
    for name in names:
        set_here = scored.shards if header.kind == "orderings" else None
        plan = plan_store(TESTS[name], len(scored.test_set.examples), set_here)
        scores = TESTS[name].scores(store, permutations)
        result = TESTS[name].judge(store, scores)
        shown = _shown(name, result, scores, rng)
        outcomes.append(Outcome(name, result, *shown, plan.shards == header.shards, control_p))
    return outcomes


def _shown(
    test: str, result: TestResult, scores: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray], float]:
    """What the charts show of a test: evidence by shard, the null law and the statistic in it."""
    if test == "sharded_t":
        law = scipy.stats.t(len(scores) - 1)
        edges = np.linspace(law.ppf(0.001), law.ppf(0.999), BINS + 1)
        null = np.rint(DRAWS * np.diff(law.cdf(edges))).astype(np.int64), edges
        return scores[:, 0] - scores[:, 1:].mean(axis=1), null, result.statistic
    z = contributions(scores, weights="inverse_sd")  # of the whole set: one row
    drawn = sum(row[rng.integers(len(row), size=DRAWS)] for row in z)
    spread = float(np.sqrt((z**2).mean(axis=1).sum())) or 1.0
    return z[:, 0], np.histogram(drawn / spread, BINS), float(z[:, 0].sum()) / spread
