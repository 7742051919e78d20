"""Stores that travel with the repository: the log-probabilities of one run.

::

    data/stores/stores.json                                  which run, which sets, checksums
    data/stores/<model>/<canary set>/orderings-<r>/          as in build/<profile>/stores/
    data/stores/<model>/<canary set>/successors-<r>/

Every directory is a store that `contamination.scoring.store.open_store` opens; most
were summed. Of two sets, chosen by their duplication counts alone, the tokens in shards
stay. No file holds text or tokens of a test set: they are numbers that models gave to
places in it.
"""

import shutil
from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pydantic.dataclasses import dataclass

from contamination.audit.null_calibration import gain_by_position
from contamination.audit.registry import TESTS
from contamination.errors import InputError
from contamination.files import read_json, replacing, sha256_of, write_json
from contamination.scoring.plan import StoreNeed
from contamination.scoring.store import Store, open_store, sum_store
from contamination.statistics import adjust
from contamination.statistics.results import outcome_row
from reproduction.run.experiment import Experiment, profile_plan
from reproduction.run.profile import MODELS, CanarySpec, ScoringSpec

CONTENTS = "stores.json"
# a test for each store that is shipped
NEEDS = ("permutation", "sharded_exact", "successor")
SHOWN = ("permutation", "sharded_t", "sharded_exact", "successor")
FEW = 4  # copies of a set, which are hard to see
RUN = ("profile", "seed", "commit", "hardware", "python", "packages", "corpus", "models")


def ship_stores(experiment: Experiment, results: Path, directory: Path) -> None:
    """Replace `directory` by the stores of a finished run, whole or not at all.

    Parameters
    ----------
    experiment
        The run.
    results
        Folder of the run's results.
    directory
        Folder of the shipped stores.

    Raises
    ------
    InputError
        If `results/manifest.json` is missing or of other test sets, or a store is.
    """
    path = results / "manifest.json"
    manifest = read_json(path)
    if manifest["canaries"] != experiment.corpus_facts["canaries"]:
        raise InputError(
            f"{path}: of other test sets than {experiment.build}: run it again",
        )
    canaries = experiment.profile.canaries
    with_tokens = _sets_with_tokens(canaries)
    with replacing(directory) as target:
        for model, spec, test in product(MODELS, canaries, NEEDS):
            store, permutations = experiment.store_for(model, spec.name, TESTS[test])
            copy = target / store.directory.relative_to(experiment.build / "stores")
            if spec.name in with_tokens and store.header.shards > 1:
                _copy_store(store, copy)
            else:
                sum_store(store, copy, permutations=permutations)
        checksums = {}
        for copy in sorted(target.glob("*/*/*")):
            checksums[copy.relative_to(target).as_posix()] = _checksum(copy)
        contents = {
            "run": {name: manifest[name] for name in RUN},
            "scoring": asdict(experiment.profile.scoring),
            "canaries": {spec.name: manifest["canaries"][spec.name] for spec in canaries},
            "with_tokens": with_tokens,
            "sha256": checksums,
        }
        write_json(target / CONTENTS, contents)


def _sets_with_tokens(canaries: Sequence[CanarySpec]) -> list[str]:
    """Choose the sets whose tokens are shipped: the first of many and of few copies.

    The rule sees no log-probability.
    """
    few = [spec for spec in canaries if spec.dup_count <= FEW] or canaries
    most_copies = max(canaries, key=attrgetter("dup_count"))
    most_of_few = max(few, key=attrgetter("dup_count"))
    return list(dict.fromkeys([most_copies.name, most_of_few.name]))


def _copy_store(store: Store, target: Path) -> None:
    """Copy a store whole, with its tokens."""
    target.mkdir(parents=True)
    for file in (store.directory / "store.json", *store.records(), *store.parts()):
        shutil.copyfile(file, target / file.name)


def _checksum(store: Path) -> str:
    """Return the SHA-256 over the names and the contents of the files of a store."""
    parts: list[str | Path] = []
    for path in sorted(store.glob("*")):
        parts += [path.name, path]
    return sha256_of(*parts)


@dataclass(frozen=True, eq=False)
class Shipped:
    """Shipped stores, opened: every file is the one that was shipped.

    `run` and `scoring` say which run they come from, and `canaries`, by name, what it
    recorded of a set: kind, examples, dup_count, tokens ...; `with_tokens` are sets
    whose tokens are there, too.
    """

    directory: Path
    run: dict[str, Any]
    scoring: ScoringSpec
    canaries: dict[str, dict[str, Any]]
    with_tokens: tuple[str, ...]

    @property
    def sets(self) -> pd.DataFrame:
        """Return every test set by its duplication count: dataset, examples, tokens."""
        table = pd.DataFrame([*self.canaries.values()]).assign(dataset=[*self.canaries])
        table = table[["dataset", "dup_count", "examples", "tokens"]]
        return table.sort_values(["dup_count", "dataset"], ignore_index=True)

    def store_for(self, model: str, dataset: str, need: StoreNeed) -> tuple[Store, int]:
        """Open the store that a test of a set reads; also return its permutations.

        Raises InputError if it is not shipped.

        Parameters
        ----------
        model
            Contaminated or clean.
        dataset
            Name of the set.
        need
            What the test needs, such as `TESTS[name]`.
        """
        plan, permutations = profile_plan(
            self.scoring,
            need,
            self.canaries[dataset]["examples"],
        )
        return open_store(plan.path(self.directory, model, dataset)), permutations


def open_shipped(directory: Path | str) -> Shipped:
    """Open the stores of `ship_stores`; raise InputError if one is missing or changed."""
    directory = Path(directory)
    contents = read_json(directory / CONTENTS)
    for name, checksum in contents.pop("sha256").items():
        if _checksum(directory / name) != checksum:
            raise InputError(
                f"{directory / name}: not the store that was shipped; restore it",
            )
    return Shipped(directory, **contents)


# --- what notebook 00 computes of them ------------------------------------------------


def whole_orderings(shipped: Shipped, dataset: str) -> dict[str, np.ndarray]:
    """Return log-probabilities (nats) of the whole set by ordering, (m+1,), by model."""
    test = TESTS["permutation"]
    orderings = {}
    for model in MODELS:
        store, permutations = shipped.store_for(model, dataset, test)
        orderings[model] = test.scores(store, permutations)[0]
    return orderings


def token_gains(shipped: Shipped, dataset: str) -> dict[str, np.ndarray]:
    """Return the gain (nats) of the canonical order by place, (tokens,), by model."""
    test = TESTS["sharded_exact"]
    gains = {}
    for model in MODELS:
        store, permutations = shipped.store_for(model, dataset, test)
        gains[model] = gain_by_position(store, permutations)
    return gains


def p_values(shipped: Shipped) -> pd.DataFrame:
    """Test every set under both models: a row for each model, set and test of `SHOWN`.

    `dup_count` is how often the contaminated model met the set; `holm_p` is Holm's
    correction over the sets of one model and test.
    """
    rows = []
    sets = shipped.sets[["dataset", "examples", "dup_count"]].to_dict("records")
    for model, facts, name in product(MODELS, sets, SHOWN):
        test = TESTS[name]
        store, permutations = shipped.store_for(model, facts["dataset"], test)
        row = {"model": model} | facts
        rows.append(row | outcome_row(test.result(store, permutations)))
    table = pd.DataFrame(rows)
    log10_p_values = table.groupby(["model", "test"])["log10_p"]
    table["holm_p"] = log10_p_values.transform(lambda log10_p: adjust(log10_p, method="holm").p)
    return table
