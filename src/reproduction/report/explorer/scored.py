"""What a run has scored: test sets, their stores, and every test on them."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
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
from reproduction.notebooks.mmlu.segmentation import by_line
from reproduction.notebooks.mmlu.subsets import FAMILY
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


def scored_sets(experiment: Experiment) -> Iterator[ScoredSet | str]:
    """Everything that a run has scored: canary sets, subsets of MMLU, and what notebook 03 audits.

    A line of text stands in the place of a set that could not be opened.
    """
    stores, profile = experiment.build / "stores", experiment.profile
    if not stores.is_dir():
        yield f"{stores}: no test set is scored; run `make reproduce`"
        return
    copies = {spec.name: spec.dup_count for spec in profile.canaries}
    for each in find_sets(stores, "Canary sets", lambda name, _: experiment.test_set(name)):
        if isinstance(each, ScoredSet):
            count = copies[each.test_set.name] if each.model == "contaminated" else 0
            about = f"Copies in this model's training data: {count}."
            each = replace(each, about=about, shards=profile.scoring.shards)
        yield each
    yield from find_sets(stores / "mmlu", MMLU_GROUP, _subset_loader())
    yield from find_sets(stores / "open_models", "Audited sets", partial(_open, experiment))


def find_sets(directory: Path, group: str, load: Load) -> Iterator[ScoredSet | str]:
    """Find the stores in `directory/<model>/<test set>/<store>/`, as audits leave them.

    Models and sets are named as in their stores. Sets segmented by line are a group of their own.
    """
    for folder in sorted(directory.glob("*/*")):
        if stores := tuple(path.parent for path in sorted(folder.glob("*/store.json"))):
            try:
                header = open_store(stores[0]).header
                test_set = load(header.dataset, len(header.example_tokens))
            except InputError as error:
                yield f"{folder}: {error}"
                continue
            named = f"{group} by line" if header.dataset.endswith(BY_LINE) else group
            yield ScoredSet(header.model, named, test_set, stores)


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


def _open(experiment: Experiment, name: str, examples: int) -> ExampleSet:
    """Open what open models were tested on: a canary set of the run, or a registered set."""
    if name in {spec.name for spec in experiment.profile.canaries}:
        return experiment.test_set(name)
    return open_test_set(name, max_records=examples)


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
    found: dict[tuple[str, int], tuple[list[Outcome], float]] = {}
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
            outcomes, joint = store_outcomes(store)
        except InputError as error:
            left_out.append(f"{scored.model}, {test_set.name}: {error}")
            continue
        # Of two stores of the same shards, the one that keeps more tokens allows more.
        key = (header.kind, header.shards)
        if key not in found or len(outcomes) > len(found[key][0]):
            found[key] = outcomes, joint.log10_p
        shown[header.shards] = diagnoses[of_set]
    best = min((log10_p for _, log10_p in found.values()), default=0.0)
    return View(
        scored,
        tuple(outcome for outcomes, _ in found.values() for outcome in outcomes),
        min(0.0, best + math.log10(max(1, len(found)))),
        shown,
        tuple(left_out),
    )
