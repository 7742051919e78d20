"""A p-value for one model and one test set, in one call (Oren, Algorithm 1, and what goes beyond).

`plan_audit` counts shards, tokens, FLOPs and time before anything is paid for; `audit` scores what
no store holds yet, and tests; `audit_until` scores shard after shard, and stops early.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from tqdm import tqdm

from contamination.audit.battery import TESTS
from contamination.audit.both_axes import joint
from contamination.audit.compressor import compressor_alternatives, compressor_test
from contamination.audit.diagnosis import Diagnosis
from contamination.audit.diagnostics import diagnose_order
from contamination.audit.option_axis import (
    diagnose_options,
    plan_options,
    score_options,
)
from contamination.audit.outcome import Audit, ScoringPlan, combined, name_model, stored_tokens
from contamination.audit.request import Request
from contamination.errors import InputError
from contamination.files import sha256_of
from contamination.scoring import cost
from contamination.scoring.contract import Scorer
from contamination.scoring.loading import ModelSource, model_shape
from contamination.scoring.local import TransformersScorer
from contamination.scoring.models import label
from contamination.scoring.plan import StorePlan, kept_tokens, plan_store
from contamination.scoring.processes import processes
from contamination.scoring.score import score
from contamination.scoring.store import Store
from contamination.statistics import (
    AnytimeResult,
    EProcess,
    TestResult,
    anytime_test,
    shard_size_for_budget,
    successor_cost,
)
from contamination.testsets.alternatives import AlternativeSet, open_items
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.orderings import shard_bounds
from contamination.testsets.sources import open_test_set
from contamination.testsets.tokens import tokenize


def plan_audit(
    scorer: Scorer,
    test_set: ExampleSet,
    request: Request,
    *,
    alternatives: AlternativeSet | None = None,
) -> ScoringPlan:
    """Count what an audit has to score; where that is anything, run a sample to predict the time.

    Raises InputError if there are too few examples for the shards, the budget is too small, or, on
    the axis of options, as `contamination.testsets.alternatives.option_alternatives`.

    Parameters
    ----------
    alternatives : of the items, if they are known; None makes them for the axis of options.
    """
    plans = []
    if request.order_tests:
        plans.append(_plan_order(scorer, test_set, request))
    if request.axis != "order":
        plans.append(plan_options(scorer, alternatives or request.alternatives(test_set), request))
    return plans[0] if len(plans) == 1 else combined(plans)


def _plan_order(scorer: Scorer, test_set: ExampleSet, request: Request) -> ScoringPlan:
    """Count what the tests of the order of records have to score."""
    count = len(test_set.examples)
    ids = tokenize(scorer.tokenizer, test_set.examples)
    lengths = [len(i) for i in ids]
    stores = tuple(
        choose_store(test, lengths, scorer.context, request) for test in request.order_tests
    )
    distinct = list(dict.fromkeys(stores))
    works = [store.work(lengths, request.permutations, scorer.context) for store in distinct]
    work = cost.total(works)
    name = name_model(scorer, request)
    missing = sum(
        max(0, w.scored - stored_tokens(store.path(request.directory, name, test_set.name)))
        for store, w in zip(distinct, works, strict=True)
    )
    flops = seconds = None
    if isinstance(scorer, TransformersScorer) and missing:
        shape = model_shape(scorer.config)
        flops = shape.flops(work) * missing / work.scored
        sample = [
            np.concatenate(ids[start:stop])
            for store in distinct
            for start, stop in shard_bounds(count, store.shards)
        ]
        seconds = flops / cost.flops_per_second(scorer, shape, sample)
    return ScoringPlan(count, request.permutations, stores, work, missing, flops, seconds)


def choose_store(test: str, lengths: Sequence[int], context: int, request: Request) -> StorePlan:
    """Choose the store that a test reads of examples of so many tokens; errors as `plan_audit`."""
    chosen, count, shards = TESTS[test], len(lengths), request.shards
    if request.budget is not None:
        widest = plan_store(chosen, count, None).within(context, lengths)
        kept = kept_tokens(lengths, widest.tokens_per_example)
        shards = _shards_within(request.budget, chosen.fewest, lengths, kept)
    return plan_store(chosen, count, shards).within(context, lengths)


def _shards_within(budget: int, fewest: int, lengths: Sequence[int], kept: Sequence[int]) -> int:
    """Fewest shards, hence the largest, whose successors cost no more than a budget of tokens."""
    count = len(lengths)
    length, tokens_per_example = sum(lengths) / count, math.ceil(sum(kept) / count)
    smallest = -(-count // (count // fewest))
    least = math.ceil(
        successor_cost(
            smallest, examples=count, mean_length=length, tokens_per_example=tokens_per_example
        )
    )
    if budget < least:
        raise InputError(
            f"--budget is {budget:,} tokens, and shards of {smallest} examples read up to "
            f"{least:,}: give at least that, or use fewer examples (--max-records)"
        )
    size = shard_size_for_budget(
        budget, examples=count, mean_length=length, tokens_per_example=tokens_per_example
    )
    return -(-count // size)


def audit(
    model: Scorer | ModelSource | Path | str,
    test_set: ExampleSet | Path | str,
    request: Request = Request(),  # noqa: B008 - frozen
    *,
    plan: ScoringPlan | None = None,
    alternatives: AlternativeSet | None = None,
) -> Audit:
    """Score what is missing and test H0 "the model gives every ordering the same chance".

    An ordering is one of the records of a shard or, on the axis of options, of the options of an
    item (`contamination.audit.option_axis`). Raises InputError if there are too few examples, and
    for whatever loading, planning and scoring refuse.

    Parameters
    ----------
    model : a scorer, or what `TransformersScorer` takes: hub id, directory, GGUF file.
    test_set : a test set, or the path of a file with one example a record (template "text/1"; items
        on the axis of options are written by `contamination.testsets.alternatives.open_items`).
    plan, alternatives : what `plan_audit` returned and took for the same arguments, if it was
        asked.
    """
    if isinstance(model, str | Path | ModelSource):
        source = model if isinstance(model, ModelSource) else ModelSource(str(model))
        model = TransformersScorer(source)
        request = replace(request, name=request.name or label(source.name))
    if not isinstance(test_set, ExampleSet):
        test_set = (open_test_set if request.axis == "order" else open_items)(test_set)
    examples = test_set
    if request.axis != "order":
        alternatives = alternatives or request.alternatives(examples)
    plan = plan or plan_audit(model, examples, request, alternatives=alternatives)
    started = time.perf_counter()
    stores = {
        store: (
            score_options(model, alternatives, request)
            if alternatives is not None and store.kind == "alternatives"
            else fill_store(store, model, examples, request)
        )
        for store in dict.fromkeys(plan.stores)
    }
    seconds = time.perf_counter() - started
    shards = {(store.kind, store.shards): store for store in stores}  # one control for each
    diagnoses: dict[tuple[str, int], Diagnosis] = {}
    controls: dict[tuple[str, int], TestResult] = {}
    for key, store in shards.items():
        if alternatives is not None and store.kind == "alternatives":
            diagnoses[key] = diagnose_options(examples, request)
            controls[key] = compressor_alternatives(alternatives)
            continue
        same = (other for (_, count), other in diagnoses.items() if count == store.shards)
        diagnoses[key] = next(same, None) or diagnose_order(
            examples, seed=request.seed, shards=store.shards
        )
        controls[key] = run_control(store, examples, request)
    results = tuple(
        TESTS[test].result(stores[store], request.permutations)
        for test, store in zip(request.all_tests, plan.stores, strict=True)
    )
    return Audit(
        header=stores[plan.stores[0]].header,
        plan=plan,
        results=results,
        diagnosis=tuple(diagnoses[store.kind, store.shards] for store in plan.stores),
        control=tuple(controls[store.kind, store.shards] for store in plan.stores),
        stores=tuple(store.directory for store in stores.values()),
        seconds=seconds,
        noise=getattr(model, "noise", None),
        joint=joint(*results) if request.axis == "both" else None,
    )


@dataclass(frozen=True, eq=False)
class Stopped:
    """What an audit that stops early found.

    Attributes
    ----------
    result : `shards` is how many were looked at, `stopped_at` the one that sufficed, if any did.
    diagnosis, control : as in `Audit`, of all shards, looked at or not.
    noise : as in `Audit`.
    """

    result: AnytimeResult
    diagnosis: Diagnosis
    control: TestResult
    noise: float | None


def audit_until(scorer: Scorer, test_set: ExampleSet, request: Request, *, alpha: float) -> Stopped:
    """Score shard after shard until the evidence reaches 1 / alpha, or all are scored.

    The anytime-valid test (`statistics.anytime`) may be looked at after every shard, and its
    guarantee holds for any rule of stopping. What is not scored is not paid for; an audit that did
    not stop can go on later, with the shards that are left.

    Raises InputError for options, for several tests, for one that needs all shards at once, and for
    whatever planning and scoring refuse.
    """
    if request.axis != "order":
        raise InputError("--stop follows the order of records, shard by shard: leave out --axis")
    if len(request.order_tests) > 1:
        raise InputError("--stop follows the evidence of one test: give --test once")
    (test,) = request.order_tests
    if not TESTS[test].stops:
        known = [name for name, chosen in TESTS.items() if chosen.stops]
        raise InputError(f"test is {test!r}: stopping early needs one of {', '.join(known)}")
    lengths = [len(ids) for ids in tokenize(scorer.tokenizer, test_set.examples)]
    plan = choose_store(test, lengths, scorer.context, request)
    evidence, scores = EProcess(), list[np.ndarray]()

    def suffices(store: Store, shard: int) -> bool:
        nonlocal evidence
        scores.append(TESTS[test].shard_scores(store, shard, request.permutations))
        evidence = evidence.update(scores[-1])
        bar.update()
        return evidence.rejects(alpha)

    with tqdm(
        total=plan.shards,
        desc=f"{name_model(scorer, request)}: shards until p <= {alpha:g}",
        disable=None if processes().is_main_process else True,  # None: on a terminal alone
    ) as bar:
        fill_store(plan, scorer, test_set, request, enough=suffices)
    return Stopped(
        anytime_test(scores, alpha=alpha),
        diagnose_order(test_set, seed=request.seed, shards=plan.shards),
        run_control(plan, test_set, request),
        getattr(scorer, "noise", None),
    )


def fill_store(
    plan: StorePlan,
    scorer: Scorer,
    test_set: ExampleSet,
    request: Request,
    *,
    identity: str | None = None,
    enough: Callable[[Store, int], bool] | None = None,
    replace: bool = False,
) -> Store:
    """Score what a store lacks, and open it.

    `identity` as in `StorePlan.path`, `enough` and `replace` as in `contamination.scoring.score`.
    """
    name = name_model(scorer, request)
    return score(
        test_set,
        scorer,
        plan.path(request.directory, name, test_set.name, identity),
        model=name,
        shards=plan.shards,
        permutations=request.permutations,
        seed=request.seed,
        kind=plan.kind,
        tokens_per_example=plan.tokens_per_example,
        enough=enough,
        replace=replace,
    )


def score_for(
    test: str, scorer: Scorer, test_set: ExampleSet, request: Request, *, keep_revisions: bool
) -> Store:
    """Score what one test of one set needs under one model, for tables of many; return its store.

    Raises InputError as `audit` does.

    Parameters
    ----------
    test : name from `TESTS`; those of the request do not count.
    keep_revisions : whether the stores of other revisions of the model or the set stay beside this
        one. Otherwise this one takes their place.
    """
    lengths = [len(ids) for ids in tokenize(scorer.tokenizer, test_set.examples)]
    plan = choose_store(test, lengths, scorer.context, request)
    plan.work(lengths, request.permutations, scorer.context)  # refuse now what cannot be read
    identity = None
    if keep_revisions:
        identity = sha256_of(scorer.revision, test_set.revision, str(request.seed))
    return fill_store(plan, scorer, test_set, request, identity=identity, replace=identity is None)


def run_control(store: StorePlan, test_set: ExampleSet, request: Request) -> TestResult:
    """Test the shards of a store, in the same orderings, under a compressor."""
    return compressor_test(
        test_set,
        kind=store.kind,
        shards=store.shards,
        permutations=request.permutations,
        seed=request.seed,
    )
