"""Stores that travel with the repository: the log-probabilities of one run, slim enough for git.

::

    data/stores/stores.json                                  which run, which sets, checksums
    data/stores/<model>/<canary set>/orderings-<r>/          as in build/<profile>/stores/
    data/stores/<model>/<canary set>/successors-<r>/

Every directory is a store that `contamination.scoring.store.open_store` opens; most were summed. Of
two sets, chosen by their duplication counts alone, the tokens in shards stay. No file holds text or
tokens of a test set: they are numbers that models gave to places in it.
"""

import shutil
from dataclasses import asdict
from itertools import product
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pydantic.dataclasses import dataclass

from contamination.audit.battery import TESTS
from contamination.audit.redrawn import gain_by_position
from contamination.errors import InputError
from contamination.files import read_json, replacing, sha256_of, write_json
from contamination.scoring.plan import StoreNeed
from contamination.scoring.store import Store, open_store, sum_store
from contamination.statistics import adjust
from contamination.tables import outcome_row
from reproduction.run.experiment import Experiment, store_plan
from reproduction.run.profile import MODELS, ScoringSpec

CONTENTS = "stores.json"
NEEDS = ("permutation", "sharded_exact", "successor")  # a test for each store that is shipped
SHOWN = ("permutation", "sharded_t", "sharded_exact", "successor")
FEW = 4  # copies, of the set that shows how hard few are to see
RUN = ("profile", "seed", "commit", "hardware", "python", "packages", "corpus", "models")


def ship_stores(experiment: Experiment, results: Path, directory: Path) -> None:
    """Replace `directory` by the stores of a finished run, whole or not at all.

    Raises InputError if `results/manifest.json` is missing or of other test sets, or a store is.
    """
    path, profile = results / "manifest.json", experiment.profile
    manifest = read_json(path)
    if manifest["canaries"] != experiment.corpus_facts["canaries"]:
        raise InputError(f"{path}: of other test sets than {experiment.build}: run it again")
    # The rule sees no log-probability: of all sets, and of those of few copies, the first of most.
    few = [spec for spec in profile.canaries if spec.dup_count <= FEW] or profile.canaries
    most = [max(sets, key=attrgetter("dup_count")).name for sets in (profile.canaries, few)]
    whole = list(dict.fromkeys(most))
    with replacing(directory) as target:
        for model, spec, test in product(MODELS, profile.canaries, NEEDS):
            store, permutations = experiment.store_for(model, spec.name, TESTS[test])
            copy = target / store.directory.relative_to(experiment.build / "stores")
            if spec.name in whole and store.header.shards > 1:
                copy.mkdir(parents=True)
                for file in (store.directory / "store.json", *store.records(), *store.parts()):
                    shutil.copyfile(file, copy / file.name)
            else:
                sum_store(store, copy, permutations=permutations)
        contents = {
            "run": {name: manifest[name] for name in RUN},
            "scoring": asdict(profile.scoring),
            "canaries": {spec.name: manifest["canaries"][spec.name] for spec in profile.canaries},
            "with_tokens": whole,
            "sha256": {
                store.relative_to(target).as_posix(): _checksum(store)
                for store in sorted(target.glob("*/*/*"))
            },
        }
        write_json(target / CONTENTS, contents)


def _checksum(store: Path) -> str:
    """SHA-256 over the names and the contents of the files of a store."""
    return sha256_of(*(part for path in sorted(store.glob("*")) for part in (path.name, path)))


@dataclass(frozen=True, eq=False)
class Shipped:
    """Shipped stores, opened: every file is the one that was shipped.

    `run` and `scoring` say which run they come from, and `canaries`, by name, what it recorded of a
    set: kind, examples, dup_count, tokens ...; `with_tokens` are sets whose tokens are there, too.
    """

    directory: Path
    run: dict[str, Any]
    scoring: ScoringSpec
    canaries: dict[str, dict[str, Any]]
    with_tokens: tuple[str, ...]

    @property
    def sets(self) -> pd.DataFrame:
        """Every test set, by its duplication count: dataset, dup_count, examples, tokens."""
        table = pd.DataFrame([*self.canaries.values()]).assign(dataset=[*self.canaries])
        table = table[["dataset", "dup_count", "examples", "tokens"]]
        return table.sort_values(["dup_count", "dataset"], ignore_index=True)

    def store_for(self, model: str, dataset: str, test: StoreNeed) -> tuple[Store, int]:
        """Open the store that a test of a set reads, of sums in most; return its permutations, too.

        Raises InputError if it is not shipped.
        """
        plan, permutations = store_plan(self.scoring, test, self.canaries[dataset]["examples"])
        return open_store(plan.path(self.directory, model, dataset)), permutations


def open_shipped(directory: Path | str) -> Shipped:
    """Open what `ship_stores` wrote; raises InputError where it is missing or has changed."""
    directory = Path(directory)
    contents = read_json(directory / CONTENTS)
    for name, checksum in contents.pop("sha256").items():
        if _checksum(directory / name) != checksum:
            raise InputError(f"{directory / name}: not the store that was shipped; restore it")
    return Shipped(directory, **contents)


# --- what notebook 00 computes of them ------------------------------------------------------------


def whole_orderings(shipped: Shipped, dataset: str) -> dict[str, np.ndarray]:
    """Log-probabilities (nats) of the whole set in each ordering, (m+1,) by model."""
    test = TESTS["permutation"]
    return {model: test.scores(*shipped.store_for(model, dataset, test))[0] for model in MODELS}


def token_gains(shipped: Shipped, dataset: str) -> dict[str, np.ndarray]:
    """Gain (nats) of the canonical order by place in the example, (tokens,) by model."""
    test = TESTS["sharded_exact"]
    return {model: gain_by_position(*shipped.store_for(model, dataset, test)) for model in MODELS}


def p_values(shipped: Shipped) -> pd.DataFrame:
    """Test every set under both models: a row for each model, set and test of `SHOWN`.

    `dup_count` is how often the contaminated model met the set; `holm_p` is Holm's correction over
    the sets of one model and test.
    """
    rows = []
    sets = shipped.sets[["dataset", "examples", "dup_count"]].to_dict("records")
    for model, facts, name in product(MODELS, sets, SHOWN):
        store, permutations = shipped.store_for(model, facts["dataset"], TESTS[name])
        rows.append({"model": model} | facts | outcome_row(TESTS[name].result(store, permutations)))
    table = pd.DataFrame(rows)
    table["holm_p"] = table.groupby(["model", "test"])["log10_p"].transform(
        lambda log10_p: adjust(log10_p=log10_p, method="holm").p
    )
    return table
