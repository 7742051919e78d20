"""The held-out part of a sealed set: its test, and the p-value of all that a key has drawn.

H0 is that of `contamination.seal.audit`: the model does not depend on what the key has
drawn, given the author's records. Let C be these records, M the model, delta the
division, and rho all other draws: orders of options, wordings, answers, and the order
of records.

- The sides. The text of a record depends on the key by rho alone, on both sides. Given
  C, M and rho, delta is uniform over all choices of that number of records, so
  `statistics.held_out_test` is exact, whatever the scores are.
- Everything else. Given C, M and delta, the published records are an author's set whose
  variants and order are drawn as before, so the p-value of `combine_parts` is valid as
  well.

These two p-values are *not* independent, although the draws are: both look at the
variants of the published records. A model that likes one wording of each record may find
more of it on the published side, which makes both small at once, and Fisher's method would
reject too often (docs/trust.md has the measurement). So twice the smaller one is taken,
at most 1, which is valid under any dependence (Bonferroni).

It stays twice the other one where the sides are not compared: the seal states that they
are, and nobody gains by leaving them out.
"""

import math
from dataclasses import replace
from pathlib import Path

from contamination.audit.comparison import Comparison
from contamination.audit.decision import log10_floor
from contamination.audit.evidence import CombinedP
from contamination.audit.finding import Finding
from contamination.audit.held_out import SidesRequest, compare
from contamination.audit.request import Request
from contamination.audit.result import Audit
from contamination.audit.sides_plan import SidesPlan, plan_comparison
from contamination.scoring.contract import Scorer
from contamination.seal.division import PARTS, RESAMPLES
from contamination.seal.files import SealedSet
from contamination.statistics import TestResult

COMBINED_BY = "twice the smaller of held_out and of Fisher's rule on the others"
NOT_COMPARED_BY = "twice Fisher's rule, since the seal states a comparison with held-out records"


def compare_sides(scorer: Scorer, sealed: SealedSet, request: Request) -> Comparison:
    """Return the comparison of published and held-out records under a model, as stated.

    Both sides are scored, so an endpoint is sent the records that were held back. The
    request gives the folder of the scores, and the name of the model in them. Raises
    InputError for a record of one token, no score that all records have, and a
    log-probability that is not finite.
    """
    assert sealed.held_out is not None  # the caller has verified their file
    sides = stated_sides(sealed, request)
    level = sealed.seal.level
    return compare(scorer, sealed.test_set, sealed.held_out, sides, level=level)


def plan_sides(scorer: Scorer, sealed: SealedSet, request: Request) -> SidesPlan:
    """Return what `compare_sides` has to score, before anything is scored."""
    assert sealed.held_out is not None  # the caller has verified their file
    sides = stated_sides(sealed, request)
    return plan_comparison(scorer, sealed.test_set, sealed.held_out, sides)


def stated_sides(sealed: SealedSet, request: Request) -> SidesRequest:
    """Return the comparison of the sides that a seal states, with stores where asked."""
    return SidesRequest(
        scores=sealed.seal.scores or (),
        resamples=RESAMPLES,
        directory=Path(request.directory),
        name=request.name,
        drawn=True,
    )


def with_sides(audit: Audit, comparison: Comparison | None) -> Audit:
    """Return the audit of all that a key has drawn, the division of the records included.

    The audit of everything else has a combined p-value. Sides that are not compared
    (None) cost the factor of two all the same.
    """
    assert audit.combined is not None  # every audit of a sealed set has one
    if comparison is None:
        combined = combine_with_sides(audit.combined, None)
        return replace(audit, combined=combined, combined_by=NOT_COMPARED_BY)
    sides = sides_result(comparison)
    return replace(
        audit,
        findings=(*audit.findings, Finding(result=sides)),
        combined=combine_with_sides(audit.combined, sides),
        seconds=audit.seconds + comparison.seconds,
        combined_by=COMBINED_BY,
        held_out=comparison,
    )


def sides_result(comparison: Comparison) -> TestResult:
    """Return the result of a comparison as that of any test, whose shard are all records."""
    result = comparison.result
    return TestResult(
        test=result.test,
        statistic=result.statistic,
        p=result.p,
        log10_p=result.log10_p,
        shards=result.strata,
        permutations=result.resamples,
        log10_least=result.log10_least,
    )


def combine_with_sides(others: CombinedP, sides: TestResult | None) -> CombinedP:
    """Return twice the smaller p-value, at most 1; see the module for why.

    The result has the statistic of `others`, the p-value of all other draws. `sides` is
    None where they are not compared.

    >>> others = CombinedP.of(-1.0, statistic=0.0, log10_least=-2.0)
    >>> combined = combine_with_sides(others, None)
    >>> round(combined.p, 6), round(combined.least, 6)
    (0.2, 0.02)
    """
    smallest = others.log10_p
    least = others.log10_least
    if sides is not None:
        smallest = min(smallest, sides.log10_p)
        least = min(least, log10_floor(sides))
    return CombinedP.of(
        smallest + math.log10(PARTS),
        statistic=others.statistic,
        log10_least=min(0.0, least + math.log10(PARTS)),
    )
