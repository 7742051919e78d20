"""A p-value for one model and one test set, in one call (Oren, Algorithm 1, and what goes beyond).

`run_audit` scores what no store holds yet, and tests. An `Audit` is what it found, and says what it
amounts to.

The order of the options is a second axis of proof, wherever an item stood when it was read. H0: the
published arrangement of every item was drawn uniformly from those that are permitted, without
regard to the model and independently over items. The p-value is exact under H0. What breaks H0
without any contamination is how people write options; `contamination.testsets.variants` says
what stays in place for that, and a model that cannot have read the set is tested beside this one.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from contamination import statistics
from contamination.audit.controls.options import diagnose_arrangements
from contamination.audit.controls.records import diagnose_order
from contamination.audit.controls.zlib import zlib_option_test, zlib_test
from contamination.audit.other_tests import note_test
from contamination.audit.plan import Work
from contamination.audit.power import simulate_power
from contamination.audit.registry import TESTS
from contamination.audit.request import Request
from contamination.audit.result import Audit, Finding
from contamination.scoring.contract import Scorer
from contamination.scoring.loading import ModelSource
from contamination.scoring.local import TransformersScorer
from contamination.scoring.models import label
from contamination.scoring.processes import processes
from contamination.scoring.store import Store
from contamination.scoring.store_format import Kind
from contamination.statistics import PValue, TestResult
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.sources import open_test_set

SAMPLED, FAR = ("successor",), -6.0  # tests on sampled orderings; log10 p where the draw matters


def run_audit(
    model: Scorer | ModelSource | Path | str,
    test_set: ExampleSet | Path | str,
    request: Request = Request(),  # noqa: B008 - frozen
    *,
    template: str | None = None,
) -> Audit:
    """Score what is missing and test H0 "the model gives every ordering the same chance".

    An ordering is one of the records of a shard or, on the axis of options, of the options of an
    item. Raises InputError for whatever loading, planning (`contamination.audit.plan.Work`) and
    scoring refuse.

    Parameters
    ----------
    model : a scorer, or what `TransformersScorer` takes: hub id, directory, GGUF file.
    test_set : a test set, or what the command takes as DATASET: a registered name, a file, a
        directory or a data set of the hub.
    template : how a record of a set that is opened here becomes text, by name or with {field}; None
        is the set's own, else "text/1" (of items that of
        `contamination.testsets.variants.open_items`).
    """
    if isinstance(model, str | Path | ModelSource):
        source = model if isinstance(model, ModelSource) else ModelSource(str(model))
        model = TransformersScorer(source)
        request = replace(request, name=request.name or label(source.name))
    examples = test_set
    if not isinstance(examples, ExampleSet):
        if request.axis == "order":
            examples = open_test_set(examples, template=template)
        else:
            from contamination.testsets.variants import open_items

            examples = open_items(examples, template=template)
    return audit_work(Work(model, examples, request))


def audit_work(work: Work, *, stop_at: float | None = None) -> Audit:
    """Score what is missing and test it, beside what the order gives away without the model.

    With `stop_at`, shard after shard is scored until the evidence reaches 1 / stop_at, or all are.
    The guarantee of the anytime-valid test (`statistics.anytime`) holds for any rule of stopping,
    and an audit that did not stop can go on later, with the shards that are left. Its result is an
    `AnytimeResult` of the shards that were looked at; diagnosis and control are those of all.
    Raises InputError as `audit`; with `stop_at` also for options, for several tests, and for one
    that needs all shards at once.
    """
    found = carry_out(work, stop_at)
    request = work.request
    test_set = work.test_set
    diagnose = cache(partial(diagnose_order, test_set, seed=request.seed))  # once for its shards

    @cache
    def beside(kind: Kind, shards: int) -> dict[str, Any]:
        if kind == "alternatives":
            diagnosis = diagnose_arrangements(test_set, seed=request.seed, keep=request.keep)
            return {"diagnosis": diagnosis, "control": zlib_option_test(*work.alternatives)}
        control = zlib_test(
            test_set,
            kind=kind,
            shards=shards,
            permutations=request.permutations,
            seed=request.seed,
        )
        return {"diagnosis": diagnose(shards=shards), "control": control}

    pairs = zip(found.findings, found.plan.stores, strict=True)
    findings = [replace(each, **beside(store.kind, store.shards)) for each, store in pairs]
    both = combine_axes(*found.results) if request.axis == "both" else None
    return replace(found, findings=tuple(findings), joint=both, drawn=request.drawn)


def carry_out(
    work: Work, stop_at: float | None = None, /, **others: Callable[[Store], TestResult]
) -> Audit:
    """Score what is missing and test as `audit_work`, with nothing beside the results.

    `others` are tests of alternatives that are not in `TESTS`, by what the alternatives are.
    """
    evidence: list[statistics.AnytimeResult] = []  # after each shard
    if stop_at is not None:
        evidence = [statistics.AnytimeResult(test=work.request.stopping_test, alpha=stop_at)]
    plan, permutations = work.plan, work.request.permutations  # made before anything is scored

    def suffices(store: Store, shard: int) -> bool:
        test = TESTS[evidence[0].test]
        evidence.append(evidence[-1].update(test.shard_scores(store, shard, permutations)))
        return evidence[-1].stopped_at is not None

    started = time.perf_counter()
    stores = work.fill(**({"enough": suffices} if evidence else {}))
    seconds = time.perf_counter() - started
    findings = [Finding(result, store=stores[0]) for result in evidence[-1:]]
    if evidence:
        left = round(plan.work.scored * work.order_part(plan.stores[0]).share)
        plan = replace(plan, missing=max(0, plan.missing - left))
    tests = [*work.request.order_tests, *(each.what for each in work.alternatives)]
    for name, store in zip(tests, stores, strict=True) if not evidence else ():
        if name in others:
            findings.append(Finding(others[name](store), store=store))
            continue
        scores = TESTS[name].scores(store, permutations)
        error = None
        result = TESTS[name].judge(store, scores)
        if name in SAMPLED and result.log10_p < FAR:
            error = statistics.sampling_error(scores)
        problem = ""
        if not np.ptp(scores, axis=-1).any():
            problem = "the model gives all orders the same probability, so nothing can stand out"
        findings.append(
            Finding(
                result,
                error=error,
                planted=simulate_power(TESTS[name], store, scores),
                store=store,
                answers_problem=problem,
            )
        )
    for each in findings:
        if each.store is not None and processes().is_main_process:
            note_test(each.store.directory, each.result)
    directories = tuple(dict.fromkeys(store.directory for store in stores))
    noise = getattr(work.scorer, "noise", None)
    precision = str(getattr(work.scorer, "dtype", "unknown")).removeprefix("torch.")
    return Audit(stores[0].header, plan, tuple(findings), directories, seconds, noise, precision)


def combine_axes(*results: TestResult) -> PValue:
    """Combine the p-values of the order of records and of the order of options, by Fisher's rule.

    Exact under H0 of both. The p-value q of options is a function of the arrangements A alone.
    Given A, the records are exchangeable within shards, so p of their order has P(p <= a | A) <= a.
    Hence P(p <= a and q <= b) <= a b: the pair is at least as large as two independent uniforms.
    """
    return statistics.fisher(log10_p=[result.log10_p for result in results])
