"""What there is to explore: test sets, and the stores that were scored for them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from contamination.errors import InputError
from contamination.pretraining.experiment import MODELS, Experiment
from contamination.scoring.plan import stores_of
from contamination.scoring.store import open_store
from contamination.scoring.store_format import Kind
from contamination.testsets.example_set import ExampleSet

BY_LINE = "-by-line"  # at the end of the name of a set that was read by physical line

Load = Callable[[str, int], ExampleSet]  # name and number of examples -> the test set


@dataclass(frozen=True, eq=False)
class ScoredSet:
    """One test set under one model, and where its stores lie.

    Attributes
    ----------
    group : sets that belong together, such as the subsets of MMLU.
    stores : directories, each with a store; another number of shards is another store.
    usual_shards : by kind of store, the number that was set before anyone looked.
    about : what is known beforehand, such as how often the set was planted.
    """

    model: str
    group: str
    test_set: ExampleSet
    stores: tuple[Path, ...]
    usual_shards: Mapping[Kind, int]
    about: str = ""


@dataclass(frozen=True, eq=False)
class Found:
    """Scored sets, and a line for each that was looked for in vain."""

    sets: tuple[ScoredSet, ...]
    left_out: tuple[str, ...] = ()


def scored_sets(experiment: Experiment) -> Found:
    """Everything that a run has scored: canary sets, subsets of MMLU, and what notebook 03 audits.

    Raises
    ------
    InputError
        Nothing was scored.
    """
    stores = experiment.build / "stores"
    found = [
        _canary_sets(experiment),
        walk(stores / "mmlu", "MMLU", _subset_loader()),
        walk(stores / "open_models", "Audited sets", _audited_loader(experiment)),
    ]
    sets = tuple(each for part in found for each in part.sets)
    if not sets:
        raise InputError(f"{stores}: no test set is scored; run `make reproduce` first")
    return Found(sets, tuple(line for part in found for line in part.left_out))


def walk(directory: Path, group: str, load: Load) -> Found:
    """Find the stores in `directory/<model>/<test set>/<store>/`, as audits leave them.

    Models and sets have the names that their stores say; the usual number of shards is that of an
    audit. Sets read by physical line are a group of their own.
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
            usual = _usual_shards(len(test_set.examples))
            sets.append(ScoredSet(header.model, named, test_set, stores, usual))
    return Found(tuple(sets), tuple(left_out))


def _canary_sets(experiment: Experiment) -> Found:
    sets, left_out = [], []
    for model in MODELS:
        for spec in experiment.profile.canaries:
            folder = stores_of(experiment.build / "stores", model, spec.name)
            if not (stores := _stores(folder)):
                left_out.append(f"{folder}: no store; run the score stage")
                continue
            copies = spec.dup_count if model == "contaminated" else 0
            sets.append(
                ScoredSet(
                    model,
                    "Canary sets",
                    experiment.test_set(spec.name),
                    stores,
                    {
                        **_usual_shards(spec.examples),
                        "orderings": experiment.profile.scoring.shards,
                    },
                    f"Copies in this model's training data: {copies}.",
                )
            )
    return Found(tuple(sets), tuple(left_out))


def _subset_loader() -> Load:
    """Open subsets of MMLU, each once; one read by line after the same one read by record."""
    loaded: dict[str, ExampleSet] = {}

    def load(name: str, examples: int) -> ExampleSet:
        # Imported here: few runs score other sets than their own, and reading by line needs torch.
        subset = name.removesuffix(BY_LINE)
        if name == subset:
            from contamination.experiments.mmlu.subsets import FAMILY
            from contamination.testsets.sources import open_test_set

            loaded[name] = replace(open_test_set(FAMILY + name, max_records=examples), name=name)
        elif subset not in loaded:
            raise InputError(f"{subset} was not scored by record, which tells how much was read")
        elif name not in loaded:
            from contamination.experiments.mmlu.segmentation import by_line

            loaded[name] = by_line(loaded[subset])
        return loaded[name]

    return load


def _audited_loader(experiment: Experiment) -> Load:
    """Open what open models were tested on: canary sets of the run, and registered sets."""
    canaries = {spec.name for spec in experiment.profile.canaries}

    def load(name: str, examples: int) -> ExampleSet:
        from contamination.testsets.sources import open_test_set

        if name in canaries:
            return experiment.test_set(name)
        return open_test_set(name, max_records=examples)

    return load


def _usual_shards(examples: int) -> dict[Kind, int]:
    """As `contamination.audit.plan.store_plan`, which cannot be imported without torch."""
    return {"orderings": min(50, max(1, examples // 4)), "successors": max(1, examples // 10)}


def _stores(directory: Path) -> tuple[Path, ...]:
    return tuple(path.parent for path in sorted(directory.glob("*/store.json")))
