"""A p-value for one model and one test set, in one call (Oren, Algorithm 1, and what goes beyond).

::

    from contamination.audit import Request, audit

    print(audit("gpt2", "my_test_set.jsonl").summary())
    request = Request(tests=["sharded_exact"], permutations=50)
    print(audit("gpt2", "my_test_set.jsonl", request).summary())
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from contamination.audit.battery import TESTS
from contamination.audit.compressor import compressor_test
from contamination.audit.diagnostics import Diagnosis, diagnose
from contamination.audit.plan import ScoringPlan, choose_store, name_model, plan_audit
from contamination.audit.request import Request
from contamination.files import sha256_of
from contamination.scoring.contract import Scorer
from contamination.scoring.loading import ModelSource
from contamination.scoring.local import TransformersScorer
from contamination.scoring.models import label
from contamination.scoring.plan import StorePlan
from contamination.scoring.score import score
from contamination.scoring.store import Store
from contamination.statistics import TestResult, WestfallYoungResult
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.sources import open_test_set
from contamination.testsets.tokens import tokenize

__all__ = ["Audit", "Request", "audit", "label"]


@dataclass(frozen=True, eq=False)
class Audit:
    """What an audit found, and what it took.

    Attributes
    ----------
    results : one for each test, uncorrected: choose the test before you look.
    diagnosis : whether the order of the records carries information by itself. Unless it is quiet,
        a small p-value is no evidence of contamination.
    control : one for each test: the same shards under a compressor, which has seen no test set.
        Where it is small, the order of the records carries information by itself.
    tokens_scored, seconds : in this run; 0 tokens if all was stored.
    """

    model: str
    model_revision: str
    dataset: str
    dataset_revision: str
    template: str
    seed: int
    plan: ScoringPlan
    results: tuple[TestResult, ...]
    diagnosis: Diagnosis
    control: tuple[TestResult, ...]
    stores: tuple[Path, ...]
    tokens_scored: int
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        verdict, reasons = self.diagnosis.verdict, list(self.diagnosis.reasons)
        return vars(self) | {
            "plan": asdict(self.plan),
            "results": [_described(result) for result in self.results],
            "diagnosis": {"verdict": verdict, "reasons": reasons},
            "control": [_described(result) for result in self.control],
            "stores": [str(path) for path in self.stores],
        }

    def summary(self) -> str:
        """One line for each test, and what the order of the records gives away without a model."""
        lines = [
            f"{self.model} on {self.dataset}: {r.test} test, p = {r.p:.3g} ({r.shards} shards); "
            f"under a compressor, p = {control.p:.3g}"
            for r, control in zip(self.results, self.control, strict=True)
        ]
        return "\n".join([*lines, f"order of the records: {self.diagnosis.verdict}"])


def audit(
    model: Scorer | ModelSource | Path | str,
    test_set: ExampleSet | Path | str,
    request: Request = Request(),  # noqa: B008 - frozen
    *,
    plan: ScoringPlan | None = None,
) -> Audit:
    """Score what is missing and test H0 "the model gives every ordering the same chance".

    Parameters
    ----------
    model : a scorer, or what `TransformersScorer` takes: hub id, directory, GGUF file.
    test_set : a test set, or the path of a file with one example a record (template "text/1").
    request : tests, shards, permutations and where stores are kept.
    plan : what `plan_audit` returned for the same arguments, if it was asked.

    Raises
    ------
    InputError
        Too few examples, or whatever loading and scoring complain of.
    """
    if isinstance(model, str | Path | ModelSource):
        source = model if isinstance(model, ModelSource) else ModelSource(str(model))
        model = TransformersScorer(source)
        request = replace(request, name=request.name or label(source.name))
    examples = test_set if isinstance(test_set, ExampleSet) else open_test_set(test_set)
    plan = plan or plan_audit(model, examples, request)
    started = time.perf_counter()
    stores = {
        store: fill_store(store, model, examples, request) for store in dict.fromkeys(plan.stores)
    }
    seconds = time.perf_counter() - started
    asked = list(zip(request.tests, plan.stores, strict=True))
    shards = {(store.kind, store.shards): store for store in stores}  # one control for each
    controls = {key: run_control(store, examples, request) for key, store in shards.items()}
    return Audit(
        model=name_model(model, request),
        model_revision=model.revision,
        dataset=examples.name,
        dataset_revision=examples.revision,
        template=examples.template,
        seed=request.seed,
        plan=plan,
        results=tuple(
            TESTS[test].result(stores[store], request.permutations) for test, store in asked
        ),
        diagnosis=diagnose_order(examples, request),
        control=tuple(controls[store.kind, store.shards] for _, store in asked),
        stores=tuple(store.directory for store in stores.values()),
        tokens_scored=plan.missing,
        seconds=seconds,
    )


def fill_store(
    store: StorePlan,
    scorer: Scorer,
    test_set: ExampleSet,
    request: Request,
    *,
    directory: Path | None = None,
    enough: Callable[[Store, int], bool] | None = None,
    replace: bool = False,
) -> Store:
    """Score what a store lacks, and open it.

    It lies in `directory`, or where the audits in that of the request keep it; `enough` and
    `replace` as in `contamination.scoring.score.score`.
    """
    name = name_model(scorer, request)
    return score(
        test_set,
        scorer,
        directory or store.path(request.directory, name, test_set.name),
        model=name,
        shards=store.shards,
        permutations=request.permutations,
        seed=request.seed,
        kind=store.kind,
        tokens_per_example=store.tokens_per_example,
        enough=enough,
        replace=replace,
    )


def score_and_test(
    test: str, scorer: Scorer, test_set: ExampleSet, request: Request, *, keep_revisions: bool
) -> tuple[TestResult, Store]:
    """Run one test of one set under one model, for tables of many; return the result and its store.

    Parameters
    ----------
    test : name from `TESTS`.
    request : permutations, seed and directory of the store, and the model's name.
    keep_revisions : whether the stores of other revisions of the model or the set stay beside this
        one. Otherwise this one takes their place.

    Raises
    ------
    InputError
        Too few examples, or whatever scoring complains of.
    """
    lengths = [len(ids) for ids in tokenize(scorer.tokenizer, test_set.examples)]
    plan = choose_store(test, lengths, scorer.context, request)
    plan.work(lengths, request.permutations, scorer.context)  # refuse now what cannot be read
    directory = plan.path(request.directory, name_model(scorer, request), test_set.name)
    if keep_revisions:
        revisions = sha256_of(scorer.revision, test_set.revision, str(request.seed))
        directory = directory.with_name(f"{directory.name}-{revisions[:8]}")
    store = fill_store(
        plan, scorer, test_set, request, directory=directory, replace=not keep_revisions
    )
    return TESTS[test].result(store, request.permutations), store


def run_control(store: StorePlan, test_set: ExampleSet, request: Request) -> TestResult:
    """Test the shards of a store, in the same orderings, under a compressor."""
    return compressor_test(
        test_set,
        kind=store.kind,
        shards=store.shards,
        permutations=request.permutations,
        seed=request.seed,
    )


def diagnose_order(test_set: ExampleSet, request: Request) -> Diagnosis:
    """Look for information in the order of the records, without any model."""
    rng = np.random.default_rng(request.seed)
    return diagnose(test_set.examples, test_set.records or None, rng=rng)


def _described(result: TestResult) -> dict[str, Any]:
    kept = ("test", "statistic", "p", "log10_p", "shards", "permutations")
    described = {name: getattr(result, name) for name in kept}
    best = {"best": result.best} if isinstance(result, WestfallYoungResult) else {}
    return described | best
