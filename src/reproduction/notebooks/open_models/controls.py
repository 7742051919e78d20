"""The controls of an audit: the sets alone, and models that cannot have read them.

A negative control is a model that cannot be contaminated (Oren, section 4.3). Where an
audit has none, the zlib baseline takes its place.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from tqdm import tqdm

from contamination.audit.controls.options import diagnose_arrangements
from contamination.audit.controls.records import diagnose_order
from contamination.audit.controls.zlib import zlib_option_test, zlib_scores
from contamination.audit.request import Request
from contamination.scoring.status import OK
from contamination.scoring.store_format import Header
from contamination.statistics import sharded_exact_test
from contamination.testsets.example_set import ExampleSet
from reproduction.run.grid import Row

CONTROL = "negative_control"  # role of a model
ZLIB_BASELINE = "compressor"


class Controls:
    """Facts about the sets of an audit that need no model, computed once for each set.

    Attributes
    ----------
    sets
        Sets by their names in the audit.
    """

    def __init__(self, sets: Mapping[str, ExampleSet]) -> None:
        self.sets = sets
        self._cached: dict[tuple[Any, ...], Any] = {}

    def order_verdict(self, name: str, header: Header) -> str:
        """Return the verdict on the order of records within the shards of a store."""
        key = ("order", name, header.shards, header.seed)
        if key not in self._cached:
            diagnosis = diagnose_order(
                self.sets[name],
                shards=header.shards,
                seed=header.seed,
            )
            self._cached[key] = diagnosis.verdict
        return str(self._cached[key])

    def compressor_scores(
        self,
        name: str,
        header: Header,
        permutations: int,
    ) -> np.ndarray:
        """Return the zlib baseline's scores of the orderings of a store, (r, m + 1).

        Parameters
        ----------
        name
            Name of the set.
        header
            Header of the store.
        permutations
            Orderings of a shard besides the canonical one.
        """
        key = ("compressor", name, header.shards, header.seed, header.kind, permutations)
        if key not in self._cached:
            self._cached[key] = zlib_scores(
                self.sets[name],
                shards=header.shards,
                seed=header.seed,
                kind=header.kind,
                permutations=permutations,
            )
        return np.asarray(self._cached[key])

    def of_options(self, name: str, *, arrangements: int, seed: int) -> Row:
        """Return the verdict on the arrangements of a set, and the p-value of the zlib baseline.

        Parameters
        ----------
        name
            Name of the set.
        arrangements
            Number of arrangements of an item, the published one included.
        seed
            Seed of the arrangements.
        """
        key = ("options", name, arrangements, seed)
        if key not in self._cached:
            request = Request(axis="options", arrangements=arrangements, seed=seed)
            test_set = self.sets[name]
            diagnosis = diagnose_arrangements(
                test_set,
                seed=request.seed,
                keep=request.keep,
            )
            p = zlib_option_test(request.option_variants(test_set)).p
            self._cached[key] = {"verdict": diagnosis.verdict, "compressor_p": p}
        return dict(self._cached[key])


def add_controls(rows: Sequence[Row]) -> None:
    """Add to each row with a p-value that of the first negative control.

    Of a row without such a control it is that of the zlib baseline: `compressor_p`, or the
    exact test of `control_scores`, where it reads what the model has read.
    """
    done = [row for row in rows if row["status"] == OK]
    controls: dict[tuple[str, str], Row] = {}
    for row in done:
        if row["role"] == CONTROL:
            controls.setdefault((row["dataset"], row["test"]), row)
    for row in tqdm(done, desc="controls", unit="p", leave=False):
        control = controls.get((row["dataset"], row["test"]))
        if control is not None and control["model"] != row["model"]:
            row["control"] = control["model"]
            row["control_p"] = control["p"]
            row["control_scores"] = control.get("scores")
            continue
        scores = row.get("control_scores")
        row["control"] = ZLIB_BASELINE
        row["control_p"] = sharded_exact_test(scores()).p if scores else row["compressor_p"]
