"""A p-value and a verdict for one model and one test set (Oren, Algorithm 1).

`run_audit` plans, scores what no store holds yet, tests, adds the controls, and returns
an `Audit`, whose verdict follows at any level.

The order of the options is a second axis of proof, wherever the item stood in training.
H0: the published arrangement of every item was drawn uniformly from those that are
permitted, without regard to the model and independently over items. The p-value is
exact under H0. What breaks H0 without any contamination is how people write options;
`contamination.testsets.variants` says what stays in place for that, and a model that
cannot have read the set is a control (`with_control`).
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from contamination import statistics
from contamination.audit.controls.of_set import SetControls
from contamination.audit.decision import log10_floor
from contamination.audit.evidence import CombinedP, combine_by_fisher
from contamination.audit.finding import Finding
from contamination.audit.other_tests import note_test
from contamination.audit.plan import ScoringPlan, Work
from contamination.audit.power import simulate_power
from contamination.audit.registry import TESTS
from contamination.audit.request import Request
from contamination.audit.result import Audit
from contamination.audit.shard_scores import answers_problem
from contamination.errors import InputError
from contamination.scoring.contract import Scorer, require_scorer
from contamination.scoring.loading import ModelSource
from contamination.scoring.local import TransformersScorer
from contamination.scoring.models import label
from contamination.scoring.processes import processes
from contamination.scoring.store import Store
from contamination.statistics import AnytimeResult, TestResult
from contamination.testsets.example_set import ExampleSet
from contamination.testsets.sources import open_test_set

if TYPE_CHECKING:
    from contamination.testsets.variants import VariantSet

SAMPLED = ("successor",)  # tests on sampled orderings
FAR = -6.0  # log10 p below which the draw of the orderings matters


@dataclass(frozen=True, eq=False)
class FilledStores:
    """The stores of an audit, filled: one for each test.

    The plan has the whole work; its `missing` is what was scored in this run, which
    took `seconds`. `anytime` is the evidence of the shards that were scored, if it was
    followed shard by shard.
    """

    plan: ScoringPlan
    stores: tuple[Store, ...]
    seconds: float
    anytime: AnytimeResult | None = None


def run_audit(
    model: Scorer | ModelSource | Path | str,
    test_set: ExampleSet | Path | str,
    request: Request = Request(),  # noqa: B008 - frozen
    *,
    template: str | None = None,
    variants: Sequence["VariantSet"] | None = None,
    stop_at: float | None = None,
    timed: bool = True,
    controls: SetControls | None = None,
) -> Audit:
    """Return the audit of one model and one test set.

    H0: the model gives every ordering the same chance.
    An ordering is one of the records of a shard or, on the axis of options, of the
    options of an item. Only what no store holds yet is scored.

    Parameters
    ----------
    model
        a scorer, or what `TransformersScorer` takes: hub id, directory, GGUF file.
    test_set
        a test set, or what `contamination.testsets.sources.open_test_set` takes: a
        registered name, a file, a directory or a data set of the hub.
    request
        Tests, shards, permutations and the place of the stores.
    template
        Template of the records, by name or with {field}, if the set is opened here.
        None takes that of a registered set, else that of the layout of the records
        (`open_test_set`; for items see `contamination.testsets.item_sets.open_items`).
    variants
        Sets of arrangements of the items; None makes those of the request.
    stop_at
        Score shard after shard until the evidence reaches 1 / stop_at. The guarantee of
        the anytime-valid test (`statistics.anytime`) holds for any rule of stopping,
        and an audit that did not stop can go on later with the shards that are left.
        The result is an `AnytimeResult` of the scored shards; diagnosis and zlib
        baseline are those of all shards.
    timed
        Whether a sample is run to predict the seconds of the plan; never with
        `stop_at`.
    controls
        Controls of this very set and request, which the audits of several models share;
        None computes them.

    Returns
    -------
    audit : one finding for each test; `Audit.verdict` decides at a level.

    Raises
    ------
    InputError
        If the model or the set cannot be opened, the set has too few examples for the
        shards, a sequence is longer than the context, or a number is not finite. With
        `stop_at`, also for options, for several tests, and for one that needs all
        shards at once.
    """
    if stop_at is not None:
        request.require_stopping_test()
    scorer, request = _open_model(model, request)
    examples = _open_set(test_set, request, template)
    timed = timed and stop_at is None
    work = Work(scorer, examples, request, variants=variants, timed=timed)
    scored = score_work(work) if stop_at is None else score_until(work, stop_at)
    findings = apply_tests(work, scored)
    controls = controls or SetControls(examples, request)
    findings = _add_controls(work, scored, findings, controls)
    combined = None
    if request.axis == "both":
        combined = combine_axes(*(finding.result for finding in findings))
    return make_audit(work, scored, findings, combined=combined)


def with_control(audit: Audit, control: Audit) -> Audit:
    """Return an audit with that of a control, a model that cannot have read the set.

    The control is a second `run_audit` with the same set and request: the weights of
    the first model can be released before it is opened.

    Raises
    ------
    InputError
        If the two have taken different tests.
    """
    tests = [result.test for result in audit.results]
    if [result.test for result in control.results] != tests:
        raise InputError(
            f"the control {control.header.model} has to take the tests "
            f"{', '.join(tests)}: give both audits the same request"
        )
    return replace(audit, control=control)


def _open_model(
    model: Scorer | ModelSource | Path | str, request: Request
) -> tuple[Scorer, Request]:
    """Return the open model, and the request with its name."""
    if not isinstance(model, str | Path | ModelSource):
        require_scorer(model)
        return model, request
    source = model if isinstance(model, ModelSource) else ModelSource(str(model))
    named = replace(request, name=request.name or label(source.name))
    return TransformersScorer(source), named


def _open_set(
    test_set: ExampleSet | Path | str, request: Request, template: str | None
) -> ExampleSet:
    """Return the set, with its options as items where the request asks for them."""
    if isinstance(test_set, ExampleSet):
        return test_set
    if request.axis == "order":
        return open_test_set(test_set, template=template)
    from contamination.testsets.item_sets import open_items

    return open_items(test_set, template=template)


# --- score ----------------------------------------------------------------------------


def score_work(work: Work) -> FilledStores:
    """Score what is missing in every store of the plan.

    Raises InputError if the set has too few examples for the shards, a sequence is
    longer than the context, a log-probability is not finite, or the disk is full.
    """
    plan = work.plan  # before anything is scored
    started = time.perf_counter()
    stores = work.fill()
    return FilledStores(plan, tuple(stores), time.perf_counter() - started)


def score_until(work: Work, level: float) -> FilledStores:
    """Score shard after shard until the evidence of the only test reaches 1 / level.

    Raises InputError if the request has options or several tests, or its test needs all
    shards at once; if the set has too few examples for the shards, a sequence is longer
    than the context, a log-probability is not finite, or the disk is full.
    """
    name = work.request.stopping_test
    test = TESTS[name]
    anytime = AnytimeResult(test=name, alpha=level)
    plan = work.plan

    def enough(store: Store, shard: int) -> bool:
        nonlocal anytime
        anytime = anytime.update(
            test.shard_scores(store, shard, work.request.permutations),
        )
        return anytime.stopped_at is not None

    started = time.perf_counter()
    stores = work.fill(enough=enough)
    seconds = time.perf_counter() - started
    now = work.plan_orders(plan.stores[0])
    left = round(plan.work.scored * now.missing_share)
    plan = replace(plan, missing=max(0, plan.missing - left))
    return FilledStores(plan, tuple(stores), seconds, anytime)


# --- test -----------------------------------------------------------------------------


def apply_tests(
    work: Work,
    scored: FilledStores,
    own_tests: Mapping[str, Callable[[Store], TestResult]] | None = None,
) -> list[Finding]:
    """Return the finding of each test, and note in the stores what was tested.

    `own_tests` of variants take the place of those of the registry, by what the
    variants are.
    """
    if scored.anytime is not None:
        findings = [Finding(scored.anytime, store=scored.stores[0])]
    else:
        findings = []
        for name, store in zip(work.tests, scored.stores, strict=True):
            if own_tests is not None and name in own_tests:
                finding = Finding(own_tests[name](store), store=store)
            else:
                finding = _test_store(name, store, work.request.permutations)
            findings.append(finding)
    if processes().is_main_process:
        for finding, store in zip(findings, scored.stores, strict=True):
            note_test(store.directory, finding.result)
    return findings


def _test_store(name: str, store: Store, permutations: int) -> Finding:
    """Return the finding of a test of the registry, without controls."""
    test = TESTS[name]
    scores = test.scores(store, permutations)
    result = test.result_from_scores(store, scores)
    error = None
    if name in SAMPLED and result.log10_p < FAR:
        error = statistics.sampling_error(scores)
    return Finding(
        result,
        error=error,
        simulated_power=simulate_power(test, store, scores),
        store=store,
        answers_problem=answers_problem(scores),
    )


# --- control --------------------------------------------------------------------------


def _add_controls(
    work: Work,
    scored: FilledStores,
    findings: Sequence[Finding],
    controls: SetControls,
) -> list[Finding]:
    """Return the findings with their controls."""
    controlled = []
    for finding, store in zip(findings, scored.plan.stores, strict=True):
        with_controls = replace(
            finding,
            diagnosis=controls.diagnosis(store),
            zlib=controls.zlib_baseline(store, work.variant_sets),
        )
        controlled.append(with_controls)
    return controlled


# --- the result -----------------------------------------------------------------------


def make_audit(
    work: Work,
    scored: FilledStores,
    findings: Sequence[Finding],
    *,
    combined: CombinedP | None = None,
) -> Audit:
    """Return the audit of some findings, one for each test.

    `combined` is the p-value of all tests together, on which the verdict then rests.
    """
    directories = dict.fromkeys(store.directory for store in scored.stores)
    precision = str(getattr(work.scorer, "dtype", "unknown"))
    return Audit(
        header=scored.stores[0].header,
        plan=scored.plan,
        findings=tuple(findings),
        stores=tuple(directories),
        seconds=scored.seconds,
        noise=getattr(work.scorer, "noise", None),
        precision=precision.removeprefix("torch."),
        combined=combined,
        options_drawn=work.request.drawn,
        order_drawn=work.request.order_drawn,
        step=getattr(work.scorer, "step", None),
        tokens_per_character=_tokens_per_character(work),
    )


def _tokens_per_character(work: Work) -> float:
    """Return how many tokens the model reads for a character of the set."""
    characters = sum(map(len, work.test_set.examples))
    return sum(work.tokenised.lengths) / max(1, characters)


def combine_axes(*results: TestResult) -> CombinedP:
    """Return the p-value of the order of records and that of options, by Fisher's rule.

    Exact under H0 of both. The p-value q of options is a function of the arrangements A
    alone. Given A, the records are exchangeable within shards, independently over
    shards, so p of their order has P(p <= a | A) <= a. Hence P(p <= a and q <= b) <=
    a b: the pair is at least as large as two independent uniforms.
    """
    log10_p = [result.log10_p for result in results]
    return combine_by_fisher(log10_p, [log10_floor(result) for result in results])
