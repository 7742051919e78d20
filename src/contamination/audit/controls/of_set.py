"""The controls of one set that need no model, computed once for all tests and models."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from contamination.audit.controls.diagnosis import Diagnosis
from contamination.audit.controls.options import diagnose_arrangements
from contamination.audit.controls.records import diagnose_order
from contamination.audit.controls.zlib import zlib_option_test, zlib_test
from contamination.audit.request import Request
from contamination.scoring.plan import StorePlan
from contamination.statistics import TestResult
from contamination.testsets.example_set import ExampleSet

if TYPE_CHECKING:
    from contamination.testsets.variants import VariantSet


class SetControls:
    """Diagnoses and zlib baselines of a set, each computed where it is first needed.

    They depend on the set and the request alone, and not on the name of the model in
    it, so all models of an audit share them.
    """

    def __init__(self, test_set: ExampleSet, request: Request) -> None:
        self.test_set = test_set
        self.request = request
        self._diagnoses: dict[tuple[bool, int], Diagnosis] = {}
        self._baselines: dict[StorePlan, TestResult] = {}

    def diagnosis(self, store: StorePlan) -> Diagnosis:
        """Return the diagnosis of what the test of a store permutes."""
        permuted = (store.kind == "alternatives", store.shards)
        if permuted not in self._diagnoses:
            self._diagnoses[permuted] = self._diagnose(store)
        return self._diagnoses[permuted]

    def zlib_baseline(self, store: StorePlan, variant_sets: Sequence["VariantSet"]) -> TestResult:
        """Return the test of a store under the zlib baseline.

        `variant_sets` is the one set of variants of the audit, if the store holds
        variants.
        """
        compressed = StorePlan(store.kind, store.shards)  # zlib reads whole examples
        if compressed not in self._baselines:
            self._baselines[compressed] = self._compress(store, variant_sets)
        return self._baselines[compressed]

    def _diagnose(self, store: StorePlan) -> Diagnosis:
        request = self.request
        match store.kind:  # a kind that is left out fails the type check, here and below
            case "alternatives":
                return diagnose_arrangements(self.test_set, seed=request.seed, keep=request.keep)
            case "orderings" | "successors":
                return diagnose_order(self.test_set, seed=request.seed, shards=store.shards)

    def _compress(self, store: StorePlan, variant_sets: Sequence["VariantSet"]) -> TestResult:
        match store.kind:
            case "alternatives":
                (variants,) = variant_sets
                return zlib_option_test(variants)
            case "orderings" | "successors":
                return zlib_test(
                    self.test_set,
                    kind=store.kind,
                    shards=store.shards,
                    permutations=self.request.permutations,
                    seed=self.request.seed,
                )
