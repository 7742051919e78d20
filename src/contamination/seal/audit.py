"""Test a sealed set: the order of its records, of their options, and the choice of wordings.

H0: the model does not depend on what the key has drawn, given the author's records. It needs no
diagnosis and no control, since the arrangement was drawn from the law that the tests assume: this
is a fact if the key was drawn once and kept from those who trained the model.
`contamination.seal.files.verify` has checked everything else.

Why the tests hold. Let C be the author's records, M the model, and w, rho, sigma the wordings,
arrangements of options and order of records that the key has drawn: uniform, and independent of
each other and, under H0, of M given C.

- Wordings. Each record's r wordings are scored with the options in the author's order, so the
  scores depend on the key by w alone. The published one is uniform among the r, independently over
  records, so `statistics.sharded_exact_test` is exact given C and M.
- Options. The scores depend on the key by rho and w. Given w, C and M, the published arrangement of
  an item is uniform among those that are free, independently over items: exact again. Where not
  all arrangements are scored, which others are is drawn afresh for each item.
- Order. Given rho, w, C and M, sigma is uniform over all n! orders. The whole-set `permutation`
  test redraws from that law itself. A test within shards is exact as well: given which records are
  in which shard, and the order in all others, every order within a shard is as likely.

Why they combine. Each p-value is at most alpha with probability at most alpha given all that the
ones before it depend on (C, M; then w; then w and rho). So all three together are stochastically no
smaller than independent uniform numbers, and Fisher's rule on them keeps its level: a sum that
falls with each p-value is at most what it is for such numbers. Several tests of the order share
sigma, so they enter as one p-value, the smallest times their number (Bonferroni).
"""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import fields, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, norm

from contamination import statistics
from contamination.audit.generation import GenerationAudit, audit_generation
from contamination.audit.plan import Work
from contamination.audit.registry import OPTION_TEST, TESTS
from contamination.audit.request import CHOICES, Request
from contamination.audit.result import Audit
from contamination.audit.run import apply_tests, make_audit, score_work
from contamination.audit.wordings import WORDINGS_TEST, token_scores, wordings_test
from contamination.scoring.contract import Scorer
from contamination.scoring.endpoint import EndpointScorer
from contamination.scoring.generation import Generator
from contamination.scoring.store import Store
from contamination.seal.files import SealedSet
from contamination.statistics import KnownResult, PValue, TestResult
from contamination.testsets.templates import render
from contamination.testsets.variants import FEWEST, VariantSet, option_variants

EFFECTS = (0.1, 0.2, 0.5, 1.0)
POWER = 0.8
NOT_CLAIMED = (
    "how the model came by the set, or whether it has read paraphrases or translations of it",
    "anything, if the key was known before training",
    "a date: that of the commitment is as good as the place where it was published",
)
NOT_STATED = "the tests that the seal states take log-probabilities; these take text alone"
NOT_SENT = (
    "wordings were not tested: an endpoint would be sent the unpublished ones, and could keep them"
)


def not_claimed(sealed: SealedSet, audit: Audit) -> tuple[str, ...]:
    """Return what a result does not prove, and what was not tested."""
    if audit.generation is not None:
        return (*NOT_CLAIMED, NOT_STATED)
    tested = [result.test for result in audit.results]
    if sealed.listed("wordings") >= FEWEST and WORDINGS_TEST not in tested:
        return (*NOT_CLAIMED, NOT_SENT)
    return NOT_CLAIMED


def sealed_works(scorer: Scorer, asked: Request, sealed: SealedSet) -> tuple[Work]:
    """Return the stated test of a verified set under one model.

    Everything is tested that the key has drawn, but an endpoint is not sent wordings that are not
    published. Where stores lie, and what they call the model, is as asked. Raises InputError as
    `contamination.audit.plan.Work`.
    """
    request = sealed.seal.request(asked.directory, asked.name)
    alternatives = list[VariantSet]()
    if sealed.seal.options:
        alternatives.append(_arranged(sealed, request.arrangements - 1))
    if sealed.listed("wordings") >= FEWEST and not isinstance(scorer, EndpointScorer):
        alternatives.append(wording_variants(sealed))
    return (Work(scorer, sealed.test_set, request, alternatives),)


def _arranged(sealed: SealedSet, others: int, seed: int = 0) -> VariantSet:
    """Render the published arrangement of each item, and so many others, which we draw."""
    free = [one.variants.given("options") for one in sealed.drawn]
    return option_variants(sealed.test_set, permutations=others, seed=seed, keep=free)


def sealed_writings(
    by: Generator, asked: Request, sealed: SealedSet, **how: Any
) -> tuple[GenerationAudit, ...]:
    """Return what a model is to write about a verified set: on the order, and on the options.

    `how` are further fields of `GenerationAudit` for the order of records; else as `sealed_works`.
    Options are a quiz, if any item has enough arrangements. Raises InputError as `GenerationAudit`.
    """
    request = Request(directory=asked.directory, name=asked.name)
    order = GenerationAudit(by, sealed.test_set, request, **how)
    quiz = copy(by)
    arranged = _arranged(sealed, CHOICES - 1) if sealed.seal.options else None
    if arranged is None or max(arranged.distinct) < CHOICES:
        return (order,)
    quiz.instruction = ""
    options = replace(request, axis="options", drawn=True)
    arrange = partial(_arranged, sealed, CHOICES - 1)
    sampling = how.get("sampling") if how.get("next_record") else None  # that of a quiz
    return order, GenerationAudit(
        quiz, sealed.test_set, options, sampling=sampling, arrange=arrange
    )


def audit_sealed_texts(*works: GenerationAudit, level: float) -> Audit:
    """Have the model write what is missing, and test; see `audit_sealed`.

    The tests are exact for the same reason as those on log-probabilities: the texts after records,
    or answers about them, depend on the key by wordings and options alone, and the order is uniform
    given these; answers about options, by wordings and arrangements, in places that we draw.
    """
    audits = [audit_generation(work, alpha=level, drawn=True) for work in works]
    findings = tuple(chain.from_iterable(audit.findings for audit in audits))
    stores = tuple(chain.from_iterable(audit.stores for audit in audits))
    order, *others = [finding.result for finding in findings]
    combined = combine_parts([order], others)
    return replace(audits[0], findings=findings, stores=stores, combined=combined)


def audit_sealed(work: Work, *, level: float) -> Audit:
    """Score what is missing, and test: `combined` of the audit is the verdict on all parts.

    Its results are the stated tests of the order of records, then that of options and that of
    wordings, where there are any, uncorrected, each with its own bound at that level; there is no
    diagnosis and no control.
    """

    def bounded(test: Callable[[Store], TestResult], store: Store) -> TestResult:
        result = test(store)
        known = known_records(token_scores(store), level=level)
        named = {field.name: getattr(result, field.name) for field in fields(TestResult)}
        return KnownResult(**named, known_at_least=known)  # plain: all fields of a result

    options = partial(TESTS[OPTION_TEST].result, permutations=work.request.permutations)
    tests = {OPTION_TEST: partial(bounded, options), WORDINGS_TEST: partial(bounded, wordings_test)}
    scored = score_work(work)
    findings = apply_tests(work, scored, tests)
    results = [finding.result for finding in findings]
    orders = len(work.request.order_tests)
    combined = combine_parts(results[:orders], results[orders:])
    return make_audit(work, scored, findings, combined=combined)


def wording_variants(sealed: SealedSet) -> VariantSet:
    """Render every wording of every record, the published one first, records as the author's.

    The options stand in the author's order and not as published: so the texts depend on the key by
    its choice of wordings alone, and a test on them is independent of one on arrangements.
    """
    template = sealed.seal.template
    name = sealed.test_set.name
    texts = list[tuple[str, ...]]()
    most = max(len(one.variants.given("wordings")) for one in sealed.drawn)
    for number, one, picks in sorted(sealed.drawn):
        wordings = range(len(one.given("wordings")) or 1)
        published = picks.get("wordings", 0)
        others = [wording for wording in wordings if wording != published]
        place = f"record {number + 1}"
        records = [(place, one.variant({"wordings": i})) for i in [published, *others]]
        row = render(records, template, name)
        texts.append(row * (most // len(row)))
    return VariantSet(name, tuple(texts), sealed.test_set.template, "wordings")


def known_records(scores: NDArray[np.float64], *, level: float) -> int:
    """Return a lower bound, of confidence 1 - level, on how many records were known.

    `scores` has a row for each record, shape (n, N), the published alternative first. A hit is a
    record whose published one has the largest score. Given its scores, the published one is as
    likely in any column under H0, so the chance of a hit is the share of columns with the largest.
    """
    best = scores == scores.max(axis=1, keepdims=True)
    return statistics.known_at_least(int(best[:, 0].sum()), best.mean(axis=1), level=level)


def combine_parts(order: Sequence[TestResult], others: Sequence[TestResult]) -> PValue:
    """Combine what the key has drawn by Fisher's rule; see the module for why that is exact.

    Several tests of the order count as one: the smallest p-value times their number, at most 1.
    """
    smallest = min(result.log10_p for result in order) + float(np.log10(len(order)))
    return statistics.fisher(log10_p=[min(smallest, 0.0), *(each.log10_p for each in others)])


def records_needed(effect: float, variants: int, *, level: float) -> int:
    """Return the number of records by which an effect is found with a power of POWER.

    Parameters
    ----------
    effect : by how many standard deviations, of the score over a record's variants, reading the
        published one raises its score.
    variants : of each record, the published one included. Two are a sign test, whose law is that of
        fair coins; of more, the sum of scores is taken as normal.
    level : at which the test rejects.
    """
    if variants > 2:
        z = norm.isf(level) + norm.ppf(POWER)
        return int(np.ceil((z / effect) ** 2 * variants / (variants - 1)))
    counts = np.arange(1, 20_000)
    wins = binom.isf(level, counts, 0.5)  # rejected above
    enough = binom.sf(wins, counts, norm.cdf(effect / np.sqrt(2))) >= POWER
    return int(counts[enough][0])
