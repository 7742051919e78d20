"""What there is to explore: test sets, the stores that were scored for them, and their results."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tqdm import tqdm

from contamination.audit.battery import TESTS
from contamination.audit.diagnosis import Diagnosis
from contamination.audit.diagnostics import diagnose_order
from contamination.errors import InputError
from contamination.scoring.plan import plan_store, stores_of
from contamination.scoring.store import open_store
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.sources import open_test_set
from reproduction.notebooks.mmlu.segmentation import by_line
from reproduction.notebooks.mmlu.subsets import FAMILY
from reproduction.report.explorer.outcomes import Outcome, StoreOutcomes, store_outcomes
from reproduction.run.experiment import MODELS, Experiment

MMLU_GROUP = "MMLU"
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
    shards : of whole orderings, where the profile sets them; None is what an audit takes.
    """

    model: str
    group: str
    test_set: ExampleSet
    stores: tuple[Path, ...]
    about: str = ""
    shards: int | None = None

    def is_usual(self, outcome: Outcome) -> bool:
        """Whether shards and b are those that were set before anyone looked."""
        test = TESTS[outcome.test]
        set_here = self.shards if test.kind == "orderings" else None
        plan = plan_store(test, len(self.test_set.examples), set_here)
        return (outcome.result.shards, outcome.b) == (plan.shards, test.b)


@dataclass(frozen=True, eq=False)
class ScoredSets:
    """Scored sets, and a line for each that could not be found or opened."""

    sets: tuple[ScoredSet, ...]
    left_out: tuple[str, ...] = ()


def scored_sets(experiment: Experiment) -> ScoredSets:
    """Everything that a run has scored: canary sets, subsets of MMLU, and what notebook 03 audits.

    That may be nothing.
    """
    stores = experiment.build / "stores"
    if not stores.is_dir():
        return ScoredSets((), (f"{stores}: no test set is scored; run `make reproduce`",))
    found = [
        _canary_sets(experiment),
        find_sets(stores / "mmlu", MMLU_GROUP, _subset_loader()),
        find_sets(stores / "open_models", "Audited sets", partial(_open_audited, experiment)),
    ]
    return ScoredSets(
        tuple(each for part in found for each in part.sets),
        tuple(line for part in found for line in part.left_out),
    )


def find_sets(directory: Path, group: str, load: Load) -> ScoredSets:
    """Find the stores in `directory/<model>/<test set>/<store>/`, as audits leave them.

    Models and sets are named as in their stores. Sets segmented by line are a group of their own.
    """
    sets, left_out = [], []
    for folder in sorted(directory.glob("*/*")):
        if stores := _stores(folder):
            try:
                header = open_store(stores[0]).header
                test_set = load(header.dataset, len(header.example_tokens))
            except InputError as error:
                left_out.append(f"{folder}: {error}")
                continue
            named = f"{group} by line" if header.dataset.endswith(BY_LINE) else group
            sets.append(ScoredSet(header.model, named, test_set, stores))
    return ScoredSets(tuple(sets), tuple(left_out))


def _canary_sets(experiment: Experiment) -> ScoredSets:
    sets, left_out = [], []
    for model in MODELS:
        for spec in experiment.profile.canaries:
            folder = stores_of(experiment.build / "stores", model, spec.name)
            if not (stores := _stores(folder)):
                left_out.append(f"{folder}: no store; run the score stage")
                continue
            dup_count = spec.dup_count if model == "contaminated" else 0
            sets.append(
                ScoredSet(
                    model,
                    "Canary sets",
                    experiment.test_set(spec.name),
                    stores,
                    f"Copies in this model's training data: {dup_count}.",
                    experiment.profile.scoring.shards,
                )
            )
    return ScoredSets(tuple(sets), tuple(left_out))


def _subset_loader() -> Load:
    """Open subsets of MMLU, each once; one segmented by line after the same one by record."""
    loaded: dict[str, ExampleSet] = {}

    def load(name: str, examples: int) -> ExampleSet:
        subset = name.removesuffix(BY_LINE)
        if name == subset:
            loaded[name] = replace(open_test_set(FAMILY + name, max_records=examples), name=name)
        elif subset not in loaded:
            raise InputError(f"{subset} was not scored by record, which says how much was read")
        elif name not in loaded:
            loaded[name] = by_line(loaded[subset])
        return loaded[name]

    return load


def _open_audited(experiment: Experiment, name: str, examples: int) -> ExampleSet:
    """Open what open models were tested on: a canary set of the run, or a registered set."""
    if name in {spec.name for spec in experiment.profile.canaries}:
        return experiment.test_set(name)
    return open_test_set(name, max_records=examples)


def _stores(directory: Path) -> tuple[Path, ...]:
    return tuple(path.parent for path in sorted(directory.glob("*/store.json")))


@dataclass(frozen=True, eq=False)
class View:
    """All that is shown of one test set under one model.

    Attributes
    ----------
    outcomes : every test with every choice of shards and b; empty if no store could be used.
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


def view_sets(sets: Sequence[ScoredSet]) -> list[View]:
    """Run every test on every store of the sets; a store that cannot be used is left out."""
    diagnoses: dict[tuple[str, int], Diagnosis] = {}  # no model changes them
    hidden = None if sets else True  # None: on a terminal alone
    bar = tqdm(sets, desc="explorer", unit="set", disable=hidden)
    return [_view(each, diagnoses) for each in bar]


def _view(scored: ScoredSet, diagnoses: dict[tuple[str, int], Diagnosis]) -> View:
    test_set = scored.test_set
    found: dict[tuple[str, int], StoreOutcomes] = {}
    shown: dict[int, Diagnosis] = {}
    left_out: list[str] = []
    for directory in scored.stores:
        try:
            store = open_store(directory)
            header = store.header
            if header.dataset_revision != test_set.revision:
                raise InputError(
                    f"{directory}: scored from another revision of the test set; score it again"
                )
            if (of_set := (test_set.revision, header.shards)) not in diagnoses:
                diagnoses[of_set] = diagnose_order(test_set, seed=header.seed, shards=header.shards)
            outcomes = store_outcomes(store)
        except InputError as error:
            left_out.append(f"{scored.model}, {test_set.name}: {error}")
            continue
        # Of two stores of the same shards, the one that keeps more tokens allows more.
        key, known = (header.kind, header.shards), found.get((header.kind, header.shards))
        if known is None or len(outcomes.outcomes) > len(known.outcomes):
            found[key] = outcomes
        shown[header.shards] = diagnoses[of_set]
    joints = [each.joint.log10_p for each in found.values()]
    return View(
        scored,
        tuple(outcome for each in found.values() for outcome in each.outcomes),
        min(0.0, min(joints) + math.log10(len(joints))) if joints else 0.0,
        shown,
        tuple(left_out),
    )
