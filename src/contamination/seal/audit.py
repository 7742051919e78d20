"""Test a sealed set: order of records, order of options, and choice of wordings.

`contamination.seal.held_out` adds the choice of the records that are held back.

H0: the model does not depend on what the key has drawn, given the author's records. It
needs no diagnosis and no control, since the arrangement was drawn from the law that the
tests assume: this is a fact if the key was drawn once and kept from those who trained
the model. `contamination.seal.files.verify` has checked everything else.

Why the tests hold. Let C be the author's records, M the model, and w, rho, sigma the
wordings, arrangements of options and order of records that the key has drawn: uniform,
and independent of each other and, under H0, of M given C.

- Wordings. Each record's r wordings are scored with the options in the author's order,
  so the scores depend on the key by w alone. The published one is uniform among the r,
  independently over records, so `statistics.sharded_exact_test` is exact given C and M.
- Options. The scores depend on the key by rho and w. Given w, C and M, the published
  arrangement of an item is uniform among those that are free, independently over items:
  exact again. Where not all arrangements are scored, which others are is drawn afresh
  for each item.
- Order. Given rho, w, C and M, sigma is uniform over all n! orders. The whole-set
  `permutation` test redraws from that law itself. A test within shards is exact as
  well: given which records are in which shard, and the order in all others, every order
  within a shard is as likely.

Why they combine. Each p-value is at most alpha with probability at most alpha given all
that the ones before it depend on (C, M; then w; then w and rho). So all three together
are stochastically no smaller than independent uniform numbers, and Fisher's method on
them keeps its level: a sum that falls with each p-value is at most what it is for such
numbers. Several tests of the order share sigma, so they enter as one p-value, the
smallest times their number (Bonferroni).
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, norm

from contamination import statistics
from contamination.audit.decision import log10_floor
from contamination.audit.evidence import CombinedP, combine_by_fisher
from contamination.audit.generation import audit_generation
from contamination.audit.generation_plan import GenerationAudit
from contamination.audit.plan import ScoringPlan, Work
from contamination.audit.registry import OPTION_TEST, TESTS
from contamination.audit.request import CHOICES, Request
from contamination.audit.result import Audit
from contamination.audit.run import apply_tests, make_audit, score_work
from contamination.audit.wordings import WORDINGS_TEST, token_scores, wordings_test
from contamination.scoring.contract import Scorer
from contamination.scoring.cost import Workload
from contamination.scoring.endpoint import EndpointScorer
from contamination.scoring.generation import Generator, Sampling
from contamination.scoring.store import Store
from contamination.seal.files import SealedSet
from contamination.seal.held_out import compare_sides, with_sides
from contamination.statistics import KnownResult, TestResult
from contamination.testsets.templates import render
from contamination.testsets.variants import FEWEST, VariantSet, option_variants

EFFECTS = (0.1, 0.2, 0.5, 1.0)
POWER = 0.8
COUNTS = np.arange(1, 20_000)  # of records, among which the fewest are searched
NOT_CLAIMED = (
    "how the model came by the set, or whether it has read paraphrases or translations of it",
    "anything, if the key was known before training",
    "a date: that of the commitment is as good as the place where it was published",
)
NOT_STATED = "the tests that the seal states take log-probabilities; these take text alone"
NOT_SENT = (
    "wordings were not tested: an endpoint would be sent the unpublished ones, and could keep them"
)
NOT_COMPARED = (
    "published records were not compared with those that were held back: that takes "
    "log-probabilities, and the author's file of them"
)


def not_claimed(sealed: SealedSet, audit: Audit) -> tuple[str, ...]:
    """Return what a result does not prove, and what was not tested."""
    limits = list(NOT_CLAIMED)
    tested = [result.test for result in audit.results]
    if audit.generation is not None:
        limits.append(NOT_STATED)
    elif sealed.listed("wordings") >= FEWEST and WORDINGS_TEST not in tested:
        limits.append(NOT_SENT)
    if sealed.held_out is not None and audit.held_out is None:
        limits.append(NOT_COMPARED)
    return tuple(limits)


# --- the tests on log-probabilities ---------------------------------------------------


def sealed_work(scorer: Scorer, request: Request, sealed: SealedSet) -> Work:
    """Return the work of the stated test of a verified set under one model.

    Everything is tested that the key has drawn, but an endpoint is not sent wordings
    that are not published. The request gives the folder of the stores, and the name of
    the model in them; the seal states the rest. Raises InputError if the stated test
    does not fit the set or the context of the model.
    """
    stated = sealed.seal.request(request.directory, request.name)
    variant_sets = list[VariantSet]()
    if sealed.seal.options:
        variant_sets.append(_option_variants(sealed, stated.arrangements - 1))
    if sealed.listed("wordings") >= FEWEST and not isinstance(scorer, EndpointScorer):
        variant_sets.append(wording_variants(sealed))
    return Work(scorer, sealed.test_set, stated, variant_sets)


def audit_sealed(work: Work, sealed: SealedSet, *, compared: bool = False) -> Audit:
    """Score what is missing, and test: the verdict rests on `Audit.combined`.

    `work` is what `sealed_work` returned. The results are the stated tests of the
    order of records, then that of options and that of wordings, where there are any,
    and of the sides, uncorrected, each with its own bound at the level of the seal;
    there is no diagnosis and no control. With `compared` the published records are
    compared with those that were held back, if any were; an endpoint is sent both.
    """
    level = sealed.seal.level

    def test_options(store: Store) -> TestResult:
        result = TESTS[OPTION_TEST].result(store, work.request.permutations)
        return _with_bound(result, store, level)

    def test_wordings(store: Store) -> TestResult:
        return _with_bound(wordings_test(store), store, level)

    own_tests = {OPTION_TEST: test_options, WORDINGS_TEST: test_wordings}
    scored = score_work(work)
    findings = apply_tests(work, scored, own_tests)
    results = [finding.result for finding in findings]
    orders = len(work.request.order_tests)
    combined = combine_parts(results[:orders], results[orders:])
    audit = make_audit(work, scored, findings, combined=combined)
    if sealed.held_out is None:
        return audit
    comparison = None
    if compared:
        comparison = compare_sides(work.scorer, sealed, work.request)
    return with_sides(audit, comparison)


def _with_bound(result: TestResult, store: Store, level: float) -> KnownResult:
    """Return a result with a lower bound on how many records were known."""
    return KnownResult(
        statistic=result.statistic,
        p=result.p,
        log10_p=result.log10_p,
        test=result.test,
        shards=result.shards,
        permutations=result.permutations,
        log10_least=result.log10_least,
        known_at_least=known_records(token_scores(store), level=level),
        level=level,
    )


def _option_variants(sealed: SealedSet, others: int) -> VariantSet:
    """Return the published arrangement of each item, and `others`."""
    free = [record.variants.choices("options") for record in sealed.drawn]
    return option_variants(sealed.test_set, permutations=others, seed=0, keep=free)


def wording_variants(sealed: SealedSet) -> VariantSet:
    """Return all wordings of each record, rendered, the published one first.

    The options stand in the author's order and not as published: so the texts depend on
    the key by its choice of wordings alone, and a test on them is independent of one on
    arrangements. The records stand in the author's order, too.
    """
    template = sealed.seal.template
    name = sealed.test_set.name
    texts = list[tuple[str, ...]]()
    most = max(len(record.variants.choices("wordings")) for record in sealed.drawn)
    for number, variants, picks in sorted(sealed.drawn):
        count = len(variants.choices("wordings")) or 1
        published = picks.get("wordings", 0)
        others = [wording for wording in range(count) if wording != published]
        place = f"record {number + 1}"
        worded = []
        for wording in [published, *others]:
            worded.append((place, variants.variant({"wordings": wording})))
        row = render(worded, template, name)
        texts.append(row * (most // len(row)))
    return VariantSet(name, tuple(texts), sealed.test_set.template, "wordings")


# --- the tests on texts that a model writes -------------------------------------------


def sealed_generations(
    generator: Generator,
    request: Request,
    sealed: SealedSet,
    *,
    sampling: Sampling | None = None,
    next_record: bool = False,
) -> tuple[GenerationAudit, ...]:
    """Return what a model is to write about a verified set: on order and on options.

    Options are a quiz, if any item has enough arrangements. The request gives the
    folder of the stores, and the name of the model in them. `sampling` and
    `next_record` are for the texts about the order; see `GenerationAudit`. Raises
    InputError if `GenerationAudit` refuses the set or the sampling.
    """
    on_order = Request(directory=request.directory, name=request.name)
    order = GenerationAudit(
        generator,
        sealed.test_set,
        on_order,
        sampling=sampling,
        next_record=next_record,
    )
    if not sealed.seal.options:
        return (order,)
    if max(_option_variants(sealed, CHOICES - 1).distinct) < CHOICES:
        return (order,)
    free = [record.variants.choices("options") for record in sealed.drawn]
    asker = copy(generator)
    asker.instruction = ""
    options = GenerationAudit(
        asker,
        sealed.test_set,
        replace(on_order, axis="options", drawn=True),
        sampling=sampling if next_record else None,  # else it is not that of a quiz
        keep=free,
    )
    return order, options


def audit_sealed_texts(*works: GenerationAudit, sealed: SealedSet) -> Audit:
    """Have the model write what is missing, and test; see `audit_sealed`.

    The tests are exact for the same reason as those on log-probabilities: the texts
    after records, or answers about them, depend on the key by wordings and options
    alone, and the order is uniform given these; answers about options, by wordings and
    arrangements, in places that we draw. `Audit.generation` is that of the order of
    records, with the one of the options under "options".
    """
    level = sealed.seal.level
    audits = [audit_generation(work, alpha=level, drawn=True) for work in works]
    findings = tuple(chain.from_iterable(audit.findings for audit in audits))
    stores = tuple(chain.from_iterable(audit.stores for audit in audits))
    order, *others = [finding.result for finding in findings]
    first = audits[0]
    generation = dict(first.generation or {})
    if len(audits) > 1:
        generation["options"] = audits[1].generation
    audit = replace(
        first,
        plan=_plan_of_all([audit.plan for audit in audits]),
        findings=findings,
        stores=stores,
        seconds=sum(audit.seconds for audit in audits),
        combined=combine_parts([order], others),
        generation=generation,
    )
    if sealed.held_out is None:
        return audit
    return with_sides(audit, None)  # texts say nothing of single records


def _plan_of_all(plans: Sequence[ScoringPlan]) -> ScoringPlan:
    """Return the first plan with the work of all: what is written needs no passes of ours."""
    work = Workload(
        sequences=sum(plan.work.sequences for plan in plans),
        scored=sum(plan.work.scored for plan in plans),
        read=sum(plan.work.read for plan in plans),
        windows=sum(plan.work.windows for plan in plans),
        attended=sum(plan.work.attended for plan in plans),
    )
    return replace(plans[0], work=work, missing=sum(plan.missing for plan in plans))


# --- statistics -----------------------------------------------------------------------


def known_records(scores: NDArray[np.float64], *, level: float) -> int:
    """Return a lower bound, of confidence 1 - level, on how many records were known.

    `scores` has a row for each record, shape (n, N), the published variant first. A hit
    is a record whose published one has the largest score. Given its scores, the
    published one is as likely in any column under H0, so the chance of a hit is the
    share of columns with the largest.

    >>> known_records(np.tile([3.0, 1.0, 2.0, 0.0], (20, 1)), level=0.05)
    18
    """
    best = scores == scores.max(axis=1, keepdims=True)
    hits = int(best[:, 0].sum())
    return statistics.known_at_least(hits, best.mean(axis=1), level=level)


def combine_parts(order: Sequence[TestResult], others: Sequence[TestResult]) -> CombinedP:
    """Return the p-value of all that the key has drawn, by Fisher's method.

    Several tests of the order count as one: the smallest p-value times their number, at
    most 1. See the module for why that is exact.

    >>> order = statistics.sharded_exact_test([[3.0, 1.0], [5.0, 2.0]])
    >>> options = statistics.sharded_exact_test([[1.0, 2.0], [4.0, 0.0]])
    >>> round(combine_parts([order], [options]).p, 3)
    0.501
    """
    log10_p = [_bonferroni([result.log10_p for result in order])]
    floors = [_bonferroni([log10_floor(result) for result in order])]
    for result in others:
        log10_p.append(result.log10_p)
        floors.append(log10_floor(result))
    return combine_by_fisher(log10_p, floors)


def _bonferroni(log10_p: Sequence[float]) -> float:
    """Return log10 of the smallest p-value times their number, at most of 1."""
    return min(0.0, min(log10_p) + float(np.log10(len(log10_p))))


def records_needed(effect: float, variants: int, *, level: float) -> int:
    """Return the number of records by which an effect is found with a power of POWER.

    Parameters
    ----------
    effect
        Number of standard deviations (of the score over a record's variants) by which
        reading the published variant raises its score.
    variants
        Number of variants of each record, the published one included. Two make a sign
        test, whose law is that of fair coins; with more, the sum of scores is taken as
        normal.
    level
        Level at which the test rejects, at least 1e-12.

    >>> records_needed(0.5, 24, level=0.05)
    26
    >>> records_needed(0.5, 2, level=0.05)
    82
    """
    if variants > 2:
        z = max(0.0, norm.isf(level) + norm.ppf(POWER))  # 0 where chance has that power
        return max(1, int(np.ceil((z / effect) ** 2 * variants / (variants - 1))))
    won = norm.cdf(effect / np.sqrt(2))
    enough = binom.sf(_wins_of_chance(level), COUNTS, won) >= POWER
    return int(COUNTS[enough][0])


@cache
def _wins_of_chance(level: float) -> np.ndarray:
    """Return the most wins of a sign test that are not rejected, for each of COUNTS."""
    return np.asarray(binom.isf(level, COUNTS, 0.5))
