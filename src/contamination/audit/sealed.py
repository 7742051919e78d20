"""Test a sealed set: the order of its records, of their options, and the choice of wordings.

H0: the model does not depend on what the key has drawn, given the content of the set. It needs no
diagnosis and no control, since the arrangement was drawn from the law that the tests assume: this
is a fact if the author drew the key once and kept it from whoever trained the model.
`contamination.testsets.sealed` has checked everything else.

Why the tests hold. Let C be the content, M the model, and w, rho, sigma the wordings, arrangements
of options and order of records that the key has drawn: uniform, and independent of each other and,
under H0, of M given C.

- Wordings. Each record's r wordings are scored with the options in the order of the content, so the
  scores depend on the key by w alone. The published one is uniform among the r, independently over
  records: `statistics.sharded_exact_test` is exact given C and M.
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

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from contamination import statistics
from contamination.audit.battery import OPTION_TEST, TESTS
from contamination.audit.option_axis import plan_options, score_options
from contamination.audit.outcome import IDENTITY, ScoringPlan, combined, describe
from contamination.audit.request import Request
from contamination.audit.verdict import fill_store, plan_audit
from contamination.scoring.contract import Scorer
from contamination.scoring.endpoint import EndpointScorer
from contamination.scoring.store import Store
from contamination.scoring.store_format import Header
from contamination.statistics import CombinedResult, TestResult
from contamination.testsets.alternatives import AlternativeSet, option_alternatives
from contamination.testsets.sealed import Seal, SealedSet, wording_alternatives

WORDINGS_TEST = "wordings"
GUARANTEE = (
    "chance alone drew this arrangement, if the author drew the key once and kept it from whoever "
    "trained the model: a fact to be judged by how it was kept, and no assumption about the set, "
    "which needs no diagnosis and no control"
)
NOT_CLAIMED = (
    "how the model came by the set, or whether it has read paraphrases or translations of it",
    "anything, if the key was known before training, or the author sealed again until a p came out",
    "a date: that of the commitment is as good as the place where it was published",
)
NOT_SENT = (
    "wordings were not tested: an endpoint would be sent the unpublished ones, and could keep them"
)


@dataclass(frozen=True, eq=False)
class SealedAudit:
    """What a model knows of what the key has drawn.

    Attributes
    ----------
    header : of a store that was read; it names the model and the set.
    results : the tests of the order of records that were asked for, then that of options and that
        of wordings, where there are any. Uncorrected.
    combined : of all parts, by Fisher's rule: the verdict.
    left_out : what was sealed and not tested, and why.
    plan, stores, seconds, noise : as in `contamination.audit.outcome.Audit`.
    """

    seal: Seal
    header: Header
    plan: ScoringPlan
    results: tuple[TestResult, ...]
    combined: CombinedResult
    left_out: tuple[str, ...]
    stores: tuple[Path, ...]
    seconds: float
    noise: float | None

    @property
    def tokens_scored(self) -> int:
        """Tokens scored in this run; 0 if all was stored."""
        return self.plan.missing

    def as_dict(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        return {name: getattr(self.header, name) for name in IDENTITY} | {
            "seal": self.seal.facts | {"commitment": self.seal.commitment},
            "plan": asdict(self.plan),
            "results": [describe(result) for result in self.results],
            "combined": asdict(self.combined),
            "guarantee": GUARANTEE,
            "not_claimed": list(NOT_CLAIMED),
            "left_out": list(self.left_out),
            "stores": [str(path) for path in self.stores],
            "tokens_scored": self.tokens_scored,
            "seconds": self.seconds,
            "noise": self.noise,
        }


@dataclass(frozen=True)
class SealedPlan:
    """What the tests of a sealed set read: a plan of the order, and the alternatives."""

    order: ScoringPlan
    alternatives: tuple[AlternativeSet, ...]
    total: ScoringPlan
    left_out: tuple[str, ...]


def plan_sealed(scorer: Scorer, sealed: SealedSet, request: Request) -> SealedPlan:
    """Count what there is to score of everything that the key has drawn.

    An endpoint is not sent wordings that are not published. Raises InputError as
    `contamination.audit.verdict.plan_audit`.
    """
    alternatives, left_out = [], []
    if sealed.seal.options:
        alternatives.append(
            option_alternatives(
                sealed.test_set,
                permutations=request.arrangements - 1,
                seed=request.seed,
                keep=sealed.free,
            )
        )
    if sealed.worded and isinstance(scorer, EndpointScorer):
        left_out.append(NOT_SENT)
    elif sealed.worded:
        alternatives.append(wording_alternatives(sealed))
    order = plan_audit(scorer, sealed.test_set, request)
    plans = [order, *(plan_options(scorer, each, request) for each in alternatives)]
    return SealedPlan(order, tuple(alternatives), combined(plans), tuple(left_out))


def audit_sealed(
    scorer: Scorer, sealed: SealedSet, request: Request, *, plan: SealedPlan | None = None
) -> SealedAudit:
    """Score what is missing of a sealed set, and test everything that its key has drawn.

    Parameters
    ----------
    sealed : verified, by `contamination.testsets.sealed.verify`.
    request : its tests are those of the order of records; the axis is "order".
    plan : what `plan_sealed` returned for the same arguments, if it was asked.
    """
    plan = plan or plan_sealed(scorer, sealed, request)
    started = time.perf_counter()
    order = {
        store: fill_store(store, scorer, sealed.test_set, request)
        for store in dict.fromkeys(plan.order.stores)
    }
    others = [score_options(scorer, each, request) for each in plan.alternatives]
    seconds = time.perf_counter() - started
    tests = [
        TESTS[test].result(order[store], request.permutations)
        for test, store in zip(request.order_tests, plan.order.stores, strict=True)
    ]
    parts = [
        TESTS[OPTION_TEST].result(store, request.arrangements - 1)
        if each.what == "options"
        else wordings_test(store)
        for each, store in zip(plan.alternatives, others, strict=True)
    ]
    stores = [*order.values(), *others]
    return SealedAudit(
        seal=sealed.seal,
        header=stores[0].header,
        plan=plan.total,
        results=(*tests, *parts),
        combined=combine_parts(tests, parts),
        left_out=plan.left_out,
        stores=tuple(store.directory for store in stores),
        seconds=seconds,
        noise=getattr(scorer, "noise", None),
    )


def wordings_test(store: Store) -> TestResult:
    """Test whether published wordings are likelier than the others, token for token.

    The score of a wording is the mean log-probability (nats) of its tokens after the beginning that
    all wordings of the record share: sums would compare lengths before anything else. Any score
    that treats the wordings of a record alike keeps the test exact.
    """
    scores = store.alternatives()
    tokens = np.reshape(store.header.example_tokens, scores.shape)
    return replace(statistics.sharded_exact_test(scores / tokens), test=WORDINGS_TEST)


def combine_parts(order: Sequence[TestResult], others: Sequence[TestResult]) -> CombinedResult:
    """Combine what the key has drawn by Fisher's rule; see the module for why that is exact.

    Several tests of the order count as one: the smallest p-value times their number, at most 1.
    """
    smallest = min(result.log10_p for result in order) + float(np.log10(len(order)))
    return statistics.fisher(log10_p=[min(smallest, 0.0), *(each.log10_p for each in others)])
