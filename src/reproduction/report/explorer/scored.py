"""What a run has scored: test sets, their stores, and every test on them."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tqdm import tqdm

from contamination.audit.battery import TESTS
from contamination.audit.diagnosis import Diagnosis
from contamination.audit.diagnostics import diagnose_order
from contamination.errors import InputError
from contamination.scoring.plan import plan_store
from contamination.scoring.store import open_store
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.sources import open_test_set
from reproduction.notebooks.mmlu.subsets import FAMILY, by_line
from reproduction.report.explorer.outcomes import Outcome, store_outcomes
from reproduction.run.experiment import Experiment

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


def scored_sets(experiment: Experiment) -> Iterator[ScoredSet]:
    """Find what a run has scored: canary sets, subsets of MMLU, and what notebook 03 audits."""
    stores, profile = experiment.build / "stores", experiment.profile
    copies = {spec.name: spec.dup_count for spec in profile.canaries}
    for each in find_sets(stores, "Canary sets", lambda name, _: experiment.test_set(name)):
        count = copies[each.test_set.name] if each.model == "contaminated" else 0
        about = f"Copies in this model's training data: {count}."
        yield replace(each, about=about, shards=profile.scoring.shards)
    by_record: dict[str, ExampleSet] = {}

    def subset(name: str, examples: int) -> ExampleSet:
        """Open a subset, each once; one segmented by line after the same one by record."""
        if name.endswith(BY_LINE):
            if name.removesuffix(BY_LINE) not in by_record:
                raise InputError(f"{name} was not scored by record, which says how much was read")
            return by_line(by_record[name.removesuffix(BY_LINE)])
        if name not in by_record:
            opened = open_test_set(FAMILY + name, max_records=examples)
            by_record[name] = replace(opened, name=name)
        return by_record[name]

    def audited(name: str, examples: int) -> ExampleSet:
        """Open a canary set of the run, or a registered set."""
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


@dataclass(frozen=True, eq=False)
class View:
    """All that is shown of one test set under one model.

    Attributes
    ----------
    outcomes : every test with every choice of shards and b; empty if no store could be used.
    joint_log10_p : of the best exact choice, corrected for trying them all: Westfall and Young
        within a store, Bonferroni over stores.
    diagnoses : by number of shards.
    """

    scored: ScoredSet
    outcomes: tuple[Outcome, ...]
    joint_log10_p: float
    diagnoses: dict[int, Diagnosis]


def view_sets(sets: Sequence[ScoredSet]) -> list[View]:
    """Run every test on every store of the sets; the terminal names those that cannot be used."""
    diagnoses: dict[tuple[str, int], Diagnosis] = {}  # no model changes them
    hidden = None if sets else True  # None: on a terminal alone
    bar = tqdm(sets, desc="explorer", unit="set", disable=hidden)
    return [_view(each, diagnoses) for each in bar]


def _view(scored: ScoredSet, diagnoses: dict[tuple[str, int], Diagnosis]) -> View:
    test_set = scored.test_set
    found: dict[tuple[str, int], tuple[list[Outcome], float]] = {}
    for directory in scored.stores:
        try:
            store = open_store(directory)
            header = store.header
            if header.dataset_revision != test_set.revision:
                raise InputError(f"{directory}: scored from another revision; score it again")
            if (of_set := (test_set.revision, header.shards)) not in diagnoses:
                diagnoses[of_set] = diagnose_order(test_set, seed=header.seed, shards=header.shards)
            outcomes, joint = store_outcomes(store)
        except InputError as error:
            tqdm.write(f"left out: {scored.model}, {test_set.name}: {error}")
            continue
        # Of two stores of the same shards, the one that keeps more tokens allows more.
        key = (header.kind, header.shards)
        if key not in found or len(outcomes) > len(found[key][0]):
            found[key] = outcomes, joint.log10_p
    best = min((log10_p for _, log10_p in found.values()), default=0.0)
    return View(
        scored,
        tuple(outcome for outcomes, _ in found.values() for outcome in outcomes),
        min(0.0, best + math.log10(max(1, len(found)))),
        {shards: diagnoses[test_set.revision, shards] for _, shards in found},
    )
