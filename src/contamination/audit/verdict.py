"""A p-value for one model and one test set, in one call (Oren, Algorithm 1, and what goes beyond).

`plan_audit` counts shards, tokens, FLOPs and time before anything is paid for; `audit` scores what
no store holds yet, and tests; `audit_until` scores shard after shard, and stops early. A set is
tokenised once for each model: what was planned is what is scored.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from contamination.audit.arrangement_diagnostics import diagnose_arrangements
from contamination.audit.battery import TESTS
from contamination.audit.compressor import compressor_alternatives, compressor_test
from contamination.audit.diagnosis import Diagnosis
from contamination.audit.diagnostics import diagnose_order
from contamination.audit.option_axis import joint, plan_options, score_options
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
from contamination.scoring.store_format import Kind
from contamination.statistics.anytime import EProcess, anytime_test
from contamination.statistics.results import TestResult
from contamination.statistics.successor import shard_size_for_budget, successor_cost
from contamination.testsets.alternatives import AlternativeSet, open_items
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.orderings import shard_bounds
from contamination.testsets.sources import open_test_set
from contamination.testsets.tokens import TokenisedSet, tokenize_set


def plan_audit(
    scorer: Scorer,
    test_set: ExampleSet,
    request: Request,
    *,
    alternatives: AlternativeSet | None = None,
    tokenised: TokenisedSet | None = None,
) -> ScoringPlan:
    """Count what an audit has to score; where that is anything, run a sample to predict the time.

    Raises InputError if there are too few examples for the shards, the budget is too small, or, on
    the axis of options, as `contamination.testsets.alternatives.option_alternatives`.

    Parameters
    ----------
    alternatives : of the items, if they are known; None makes them for the axis of options.
    tokenised : the set, if its tokens are known.
    """
    plans = []
    if request.order_tests:
        tokenised = tokenised or tokenize_set(scorer.tokenizer, test_set)
        plans.append(plan_order(scorer, tokenised, request))
    if request.axis != "order":
        alternatives = alternatives or request.alternatives(test_set)
        plans.append(plan_options(scorer, alternatives, request))
    return plans[0] if len(plans) == 1 else combined(plans)


def plan_order(
    scorer: Scorer, tokenised: TokenisedSet, request: Request, *, timed: bool = True
) -> ScoringPlan:
    """Count what the tests of the order of records have to score; errors as `plan_audit`.

    If it is not to be `timed`, no sample runs, and FLOPs and seconds are not known.
    """
    lengths, name = tokenised.lengths, name_model(scorer, request)
    stores = tuple(
        choose_store(test, lengths, scorer.context, request) for test in request.order_tests
    )
    distinct = list(dict.fromkeys(stores))
    works = [store.work(lengths, request.permutations, scorer.context) for store in distinct]
    work = cost.total(works)
    paths = [store.path(request.directory, name, tokenised.test_set.name) for store in distinct]
    missing = sum(
        max(0, one.scored - stored_tokens(path)) for one, path in zip(works, paths, strict=True)
    )
    flops = seconds = None
    if timed and missing and isinstance(scorer, TransformersScorer):
        shape = model_shape(scorer.config)
        flops = shape.flops(work) * missing / work.scored
        sample = [
            np.concatenate(tokenised.ids[start:stop])
            for store in distinct
            for start, stop in shard_bounds(len(lengths), store.shards)
        ]
        seconds = flops / cost.flops_per_second(scorer, shape, sample)
    return ScoringPlan(len(lengths), request.permutations, stores, work, missing, flops, seconds)


def choose_store(test: str, lengths: Sequence[int], context: int, request: Request) -> StorePlan:
    """Choose the store that a test reads of examples of so many tokens; errors as `plan_audit`."""
    chosen, count, shards = TESTS[test], len(lengths), request.shards
    if request.budget is not None:
        widest = plan_store(chosen, count, None).within(context, lengths)
        kept = kept_tokens(lengths, widest.tokens_per_example)
        of_set: dict[str, Any] = {
            "examples": count,
            "mean_length": sum(lengths) / count,
            "tokens_per_example": math.ceil(sum(kept) / count),
        }
        least = math.ceil(successor_cost(-(-count // (count // chosen.fewest)), **of_set))
        if request.budget < least:
            raise InputError(
                f"--budget is {request.budget:,} tokens: give at least {least:,}, or fewer "
                "examples (--max-records)"
            )
        # Fewest shards, hence the largest, whose successors cost no more.
        shards = -(-count // shard_size_for_budget(request.budget, **of_set))
    return plan_store(chosen, count, shards).within(context, lengths)


def audit(
    model: Scorer | ModelSource | Path | str,
    test_set: ExampleSet | Path | str,
    request: Request = Request(),  # noqa: B008 - frozen
    *,
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
    alternatives : as `plan_audit` takes them.
    """
    if isinstance(model, str | Path | ModelSource):
        source = model if isinstance(model, ModelSource) else ModelSource(str(model))
        model = TransformersScorer(source)
        request = replace(request, name=request.name or label(source.name))
    opened = open_test_set if request.axis == "order" else open_items
    examples = test_set if isinstance(test_set, ExampleSet) else opened(test_set)
    tokenised = tokenize_set(model.tokenizer, examples) if request.order_tests else None
    if request.axis != "order":
        alternatives = alternatives or request.alternatives(examples)
    plan = plan_audit(model, examples, request, alternatives=alternatives, tokenised=tokenised)
    started = time.perf_counter()
    stores: dict[StorePlan, Store] = {}
    for store in dict.fromkeys(plan.stores):
        if alternatives is not None and store.kind == "alternatives":
            stores[store] = score_options(model, alternatives, request)
        else:
            stores[store] = fill_store(store, model, tokenised or examples, request)
    seconds = time.perf_counter() - started

    @cache  # the same shards have one
    def diagnose(options: bool, shards: int) -> Diagnosis:
        if options:
            return diagnose_arrangements(examples, seed=request.seed, keep=request.keep)
        return diagnose_order(examples, seed=request.seed, shards=shards)

    @cache
    def control(kind: Kind, shards: int) -> TestResult:
        if alternatives is not None and kind == "alternatives":
            return compressor_alternatives(alternatives)
        return _control(examples, kind, shards, request)

    results = tuple(
        TESTS[test].result(stores[store], request.permutations)
        for test, store in zip(request.all_tests, plan.stores, strict=True)
    )
    return Audit(
        header=stores[plan.stores[0]].header,
        plan=plan,
        results=results,
        diagnosis=tuple(diagnose(s.kind == "alternatives", s.shards) for s in plan.stores),
        control=tuple(control(s.kind, s.shards) for s in plan.stores),
        stores=tuple(store.directory for store in stores.values()),
        seconds=seconds,
        noise=getattr(model, "noise", None),
        joint=joint(*results) if request.axis == "both" else None,
        drawn=request.drawn,
    )


def audit_until(scorer: Scorer, test_set: ExampleSet, request: Request, *, alpha: float) -> Audit:
    """Score shard after shard until the evidence reaches 1 / alpha, or all are scored.

    The anytime-valid test (`statistics.anytime`) may be looked at after every shard, and its
    guarantee holds for any rule of stopping. What is not scored is not paid for; an audit that did
    not stop can go on later, with the shards that are left. The result of the audit is an
    `AnytimeResult`: `shards` is how many were looked at, `stopped_at` the one that sufficed, if any
    did. Diagnosis and control are those of all shards, looked at or not.

    Raises InputError for options, for several tests, for one that needs all shards at once, and for
    whatever planning and scoring refuse.
    """
    test = TESTS[request.stopping_test]
    tokenised = tokenize_set(scorer.tokenizer, test_set)
    plan = plan_order(scorer, tokenised, request, timed=False)
    (wanted,) = plan.stores
    evidence, scores = EProcess(), list[np.ndarray]()

    def suffices(store: Store, shard: int) -> bool:
        nonlocal evidence
        scores.append(test.shard_scores(store, shard, request.permutations))
        evidence = evidence.update(scores[-1])
        bar.update()
        return evidence.rejects(alpha)

    started = time.perf_counter()
    with tqdm(
        total=wanted.shards,
        desc=f"{name_model(scorer, request)}: shards until p <= {alpha:g}",
        disable=None if processes().is_main_process else True,  # None: on a terminal alone
    ) as bar:
        store = fill_store(wanted, scorer, tokenised, request, enough=suffices)
    seconds = time.perf_counter() - started
    before = plan.work.scored - plan.missing
    return Audit(
        header=store.header,
        plan=replace(plan, missing=max(0, stored_tokens(store.directory) - before)),
        results=(replace(anytime_test(scores, alpha=alpha), test=test.name),),
        diagnosis=(diagnose_order(test_set, seed=request.seed, shards=wanted.shards),),
        control=(_control(test_set, wanted.kind, wanted.shards, request),),
        stores=(store.directory,),
        seconds=seconds,
        noise=getattr(scorer, "noise", None),
    )


def _control(test_set: ExampleSet, kind: Kind, shards: int, request: Request) -> TestResult:
    """Test the shards of a store, in the same orderings, under a compressor."""
    asked = {"permutations": request.permutations, "seed": request.seed}
    return compressor_test(test_set, kind=kind, shards=shards, **asked)


def fill_store(
    plan: StorePlan,
    scorer: Scorer,
    test_set: ExampleSet | TokenisedSet,
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
    dataset = test_set if isinstance(test_set, ExampleSet) else test_set.test_set
    return score(
        test_set,
        scorer,
        plan.path(request.directory, name, dataset.name, identity),
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
    tokenised = tokenize_set(scorer.tokenizer, test_set)
    plan = choose_store(test, tokenised.lengths, scorer.context, request)
    plan.work(tokenised.lengths, request.permutations, scorer.context)  # refuses what is too long
    identity = None
    if keep_revisions:
        identity = sha256_of(scorer.revision, test_set.revision, str(request.seed))
    return fill_store(plan, scorer, tokenised, request, identity=identity, replace=not identity)
