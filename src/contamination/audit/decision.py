"""The decision: one verdict from p-values and their controls, all given as plain values.

A test proves something only where its p-value is small after all corrections *and*
nothing but training can have made the order special: the order is quiet without a
model, or a key or a seed has drawn it, and every control is silent (Oren, section 4.3,
leave sets out by their controls).

Under H0, and for an order that is exchangeable, `decide` says "proven" or "evidence"
with probability at most alpha: one of the corrected p-values has to be that small, and
whatever else is looked at can only take the words away.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contamination.audit.objections import (
    ROUNDING,
    Conclusion,
    Evidence,
    Objection,
    at_most,
    objections_to,
    sides_differ,
    too_few_records,
)
from contamination.audit.power import Power

if TYPE_CHECKING:  # the help of the command does without pandas
    from contamination.statistics.results import TestResult

STATUSES: dict[str, int] = {
    "proven": 1,
    "evidence": 1,
    "no evidence": 0,
    "order is no evidence here": 3,
    "sides are no evidence here": 3,
    "cannot say": 3,
}
OTHER_STATUS = 3  # of what was not audited
PROOF = 0.001  # the largest corrected p of a proof, whatever alpha is


@dataclass(frozen=True)
class Verdict:
    """The conclusion of an audit.

    Attributes
    ----------
    reason
        Explanation for people; it names every objection.
    p
        Corrected p-value on which the conclusion rests.
    power
        Power of the best test, if nothing was found and something could have been.
    objections
        Objections by the diagnoses and by the controls, whatever p is.
    """

    conclusion: Conclusion
    reason: str
    p: float
    power: tuple[Power, ...] = ()
    objections: tuple[str, ...] = ()

    @property
    def status(self) -> int:
        """Exit status of a command that ends with this verdict."""
        return STATUSES[self.conclusion]

    def __str__(self) -> str:
        """One line for people."""
        return f"{self.conclusion}: {self.reason}"


def exit_status(conclusions: Iterable[str]) -> int:
    """Return the exit status of several verdicts: 1 before 3, and 3 before 0.

    What is no conclusion, such as "failed", counts as 3.

    Examples
    --------
    >>> exit_status(["no evidence", "cannot say", "proven"])
    1
    >>> exit_status(["no evidence", "failed"])
    3
    """
    statuses = {STATUSES.get(conclusion, OTHER_STATUS) for conclusion in conclusions}
    if 1 in statuses:
        return 1
    return max(statuses, default=0)


def strength(p: float, alpha: float) -> Conclusion:
    """Return the conclusion from a corrected p to which nothing objects.

    Examples
    --------
    >>> strength(0.01, alpha=0.05)
    'evidence'
    """
    if not at_most(p, alpha):
        return "no evidence"
    if not at_most(p, PROOF):
        return "evidence"
    return "proven"


def log10_floor(result: "TestResult") -> float:
    """Return log10 of the least p that a test can give; -inf if p has no least.

    A test of scores knows it (`log10_least`): orderings that are alike count as one.
    Where only shards and orderings are known, such as in a row of a table, it is
    (m + 1)^-r, which no exact p is below.
    """
    import math

    least = getattr(result, "log10_least", None)
    if least is not None:
        return float(least)
    if result.test == "sharded_t" or hasattr(result, "stopped_at"):
        return -math.inf
    return -result.shards * math.log10(1 + result.permutations)


def decide(evidence: Sequence[Evidence], *, alpha: float) -> Verdict:
    """Return the verdict on one model and one set.

    Parameters
    ----------
    evidence
        p-values of the set, at least one, with what may object to them.
    alpha
        Level of "evidence"; "proven" needs a p-value of at most `PROOF` as well.

    Examples
    --------
    >>> print(decide([Evidence("successor", p=0.0002)], alpha=0.05))
    proven: p = 0.0002 (successor); no control model was given
    >>> sorted_set = Evidence("successor", p=0.0002, order="order carries information")
    >>> decide([sorted_set], alpha=0.05).conclusion
    'order is no evidence here'
    """
    objections = objections_to(evidence, alpha)
    pairs = list(zip(evidence, objections, strict=True))
    believed = [test for test, its_objections in pairs if not its_objections]
    reasons = _reasons(objections)
    significant = [test for test in believed if at_most(test.p, alpha)]
    if significant:
        return _positive(significant, reasons)
    least, objections_to_least = min(pairs, key=_p_of_pair)
    if at_most(least.p, alpha):
        return _explained_away(least, objections_to_least, reasons)
    problem = _why_it_cannot_say(evidence, believed, reasons, alpha)
    if problem:
        return Verdict("cannot say", problem, least.p, objections=reasons)
    if not believed:
        return _nothing_could_be_shown(least, reasons, alpha)
    return _no_evidence(evidence, believed, reasons, alpha)


def _explained_away(
    least: Evidence, objections: Sequence[Objection], reasons: tuple[str, ...]
) -> Verdict:
    """Return the conclusion of the first objection to a small p."""
    why = "; ".join(_reasons([objections]))
    reason = f"{_measured(least)}, but {why}"
    return Verdict(objections[0].conclusion, reason, least.p, objections=reasons)


def _why_it_cannot_say(
    evidence: Sequence[Evidence],
    believed: Sequence[Evidence],
    reasons: Sequence[str],
    alpha: float,
) -> str:
    """Return why large p-values say nothing, "" if they do; the first reason is told.

    They say nothing where no answer of the model is of use, where the records are too
    few to judge their order, and where no test to which nothing objects could have given
    a small p. Nothing objects to the p-values that are `believed`; `reasons` has every
    objection in words.
    """
    measured = _measured(min(evidence, key=_p_of))
    judged_by = believed or evidence
    if all(test.answers_problem for test in judged_by):
        return f"{measured}, but {'; '.join([*_problems(evidence), *reasons])}"
    if all(too_few_records(test) for test in evidence):
        return f"{measured}, but {'; '.join(reasons)}"
    floor = min(test.floor for test in judged_by if not test.answers_problem)
    if not at_most(floor, alpha):
        advice = (
            f"so few orderings differ that p is never below {floor:.2g}: ask for more, "
            "or for larger shards"
        )
        if any(test.of_sides for test in judged_by):
            advice = f"with so few records p is never below {floor:.2g}: hold back more"
        return "; ".join([advice, *reasons])
    return ""


def _nothing_could_be_shown(least: Evidence, reasons: tuple[str, ...], alpha: float) -> Verdict:
    """Return the verdict on a large p where something objects to every test."""
    measured = _measured(least)
    why = "; ".join(reasons)
    if sides_differ(least, alpha):
        reason = f"{measured}, but {why}"
        return Verdict("sides are no evidence here", reason, least.p, objections=reasons)
    tested = "these sides" if least.of_sides else "this order"
    reason = f"{measured}, and {tested} could not have shown any: {why}; so no power is given"
    return Verdict("no evidence", reason, least.p, objections=reasons)


def _no_evidence(
    evidence: Sequence[Evidence],
    believed: Sequence[Evidence],
    reasons: tuple[str, ...],
    alpha: float,
) -> Verdict:
    """Return the verdict on a large p that says something, with its power.

    Nothing objects to the p-values that are `believed`; `reasons` has every objection
    in words.
    """
    informative = [test for test in believed if not test.answers_problem]
    least = min(informative, key=_p_of)
    measured = f"{_measured(least)}; contamination that the test cannot see is possible"
    return Verdict(
        "no evidence",
        "; ".join([measured, *_problems(evidence), *reasons]),
        least.p,
        power=_best_power(informative, alpha),
        objections=reasons,
    )


def _measured(evidence: Evidence) -> str:
    """Return a p-value in words, which say whether it is corrected over several tests."""
    name = "p (Holm)" if evidence.corrected_for > 1 else "p"
    return f"{name} = {evidence.p:.3g} ({evidence.test})"


def _problems(evidence: Sequence[Evidence]) -> list[str]:
    """Return why a large p of some tests says nothing, each reason once."""
    problems = [test.answers_problem for test in evidence if test.answers_problem]
    return list(dict.fromkeys(problems))


def _p_of(evidence: Evidence) -> float:
    return evidence.p


def _p_of_pair(pair: tuple[Evidence, list[Objection]]) -> float:
    return pair[0].p


def _positive(significant: Sequence[Evidence], objections: tuple[str, ...]) -> Verdict:
    """Return "proven", or "evidence" where p or the order is not good enough."""
    proofs = []
    for test in significant:
        if at_most(test.p, PROOF) and _order_is_good(test):
            proofs.append(test)
    conclusion: Conclusion = "proven" if proofs else "evidence"
    best = min(proofs or significant, key=_p_of)
    parts = [_measured(best)]
    if not _order_is_good(best):
        parts.append(_standing_out_in_words(best))
    elif conclusion == "evidence":
        rarity = int((1 + ROUNDING) / best.p)
        parts.append(f"1 unread set in {rarity:,} looks like this")
    parts.append(_controls_in_words(best))
    if best.years and not best.has_able_control:
        parts.append(
            f"{best.years}, so a model that knows them may prefer it without having read the "
            "set: name a control model of like competence"
        )
    if best.ordering_bias:
        parts.append("no theorem says how often two models that read alike differ so")
    return Verdict(
        conclusion,
        "; ".join([*parts, *objections]),
        best.p,
        objections=objections,
    )


def _order_is_good(evidence: Evidence) -> bool:
    return evidence.drawn or evidence.order == "quiet"


def _standing_out_in_words(evidence: Evidence) -> str:
    reason = "a statistic of the order stands out before correction"
    if evidence.standing_out:
        return f"{reason} ({evidence.standing_out})"
    return reason


def _controls_in_words(evidence: Evidence) -> str:
    stated = "the author states that the order was drawn at random"
    if evidence.control_models:
        silent = []
        for name, p in evidence.control_models.items():
            silent.append(f"{name} is silent (p = {p:.3g})")
        if evidence.fit is not None:
            silent.append(evidence.fit.in_words)
        if evidence.declared:
            silent.append(stated)
        return ", ".join(silent)
    if evidence.declared:
        return stated
    if evidence.drawn:
        return "a key or a seed has drawn what is tested, so it needs no control"
    return "no control model was given"


def _best_power(believed: Sequence[Evidence], alpha: float) -> tuple[Power, ...]:
    """Return the power of the test that finds most, at Bonferroni's level.

    Holm finds more.
    """
    best: tuple[Power, ...] = ()
    best_total = 0.0
    for test in believed:
        level = alpha / test.corrected_for
        powers = tuple(simulated.at(level) for simulated in test.simulated_power)
        total = sum(power.probability for power in powers)
        if total > best_total:
            best = powers
            best_total = total
    return best


def _reasons(objections: Sequence[Sequence[Objection]]) -> tuple[str, ...]:
    """Return the reason of each objection once."""
    reasons = dict[str, None]()
    for objections_to_test in objections:
        reasons |= dict.fromkeys(objection.reason for objection in objections_to_test)
    return tuple(reasons)
