"""The decision: one verdict from p-values and their controls, all given as plain values.

A test proves something only where its p-value is small after all corrections *and*
nothing but training can have made the order special: the order is quiet without a
model, or a key or a seed has drawn it, and every control is silent (Oren, section 4.3,
leave sets out by their controls).

Under H0, and for an order that is exchangeable, `decide` says "proven" or "evidence"
with probability at most alpha: one of the corrected p-values has to be that small, and
whatever else is looked at can only take the words away.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from contamination.audit.power import Power, SimulatedPower

if TYPE_CHECKING:  # the help of the command does without pandas
    from contamination.audit.controls.diagnosis import OrderState
    from contamination.statistics.results import TestResult

Conclusion = Literal[
    "proven",
    "evidence",
    "no evidence",
    "order is no evidence here",
    "sides are no evidence here",
    "cannot say",
]
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
CONTROL_LEVEL = 0.05  # a control rejects at this level, or at alpha if that is larger
# By how much they object.
ORDERS: tuple["OrderState", ...] = (
    "quiet",
    "suspicious",
    "too few records",
    "order carries information",
)
ZLIB_BASELINE = "a compressor"  # for people: the control that every p-value has


@dataclass(frozen=True)
class Evidence:
    """One p-value, with its controls.

    Attributes
    ----------
    test
        That gave the p-value, for people.
    p
        After every correction that it needs, in (0, 1].
    floor
        The least that `p` can be.
    order
        What diagnostics without a model say of what the test permutes.
    controls
        Uncorrected p under what cannot have read the set, by name: a compressor, a
        model.
    ordering_bias
        Whether the way people write options could explain a small p; excluding that
        takes a control model.
    simulated_power
        Simulated copies of this set (`contamination.audit.power`).
    corrected_for
        Number of tests over which p was corrected.
    drawn
        Whether a key or a seed has drawn what is tested, so that it needs no control.
    declared
        Whether the author alone states that an order was drawn.
    answers_problem
        Why a large p says nothing, such as too few texts of use; "" if it does. A small
        p stays valid.
    of_sides
        Whether published and held-out records are compared, and not orders.
    differs
        Why these sides differ without a model; "" if they do not.
    standing_out
        The statistics of a suspicious order that stand out, for people.
    """

    test: str
    p: float
    floor: float = 0.0
    order: "OrderState" = "quiet"
    controls: Mapping[str, float] = field(default_factory=dict)
    ordering_bias: bool = False
    simulated_power: Sequence[SimulatedPower] = ()
    corrected_for: int = 1
    drawn: bool = False
    declared: bool = False
    answers_problem: str = ""
    of_sides: bool = False
    differs: str = ""
    standing_out: str = ""

    @property
    def control_models(self) -> dict[str, float]:
        """p under each control that is a model, by its name."""
        return {name: p for name, p in self.controls.items() if name != ZLIB_BASELINE}


@dataclass(frozen=True)
class Verdict:
    """The conclusion of an audit.

    Attributes
    ----------
    reason
        For people; it names every objection.
    p
        Corrected p-value that the conclusion rests on.
    power
        Of the best test, if nothing was found and something could have been.
    objections
        Of the order and of controls, whatever p is.
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


@dataclass(frozen=True)
class Objection:
    """Why a small p-value is not evidence, and what is then concluded."""

    conclusion: Conclusion
    reason: str


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
    if p > alpha:
        return "no evidence"
    if p > PROOF:
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
        p-values of the set, at least one. An objection counts against its own p-value;
        that of a control model, corrected over the tests, against all of them.
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
    against_all = _control_model_objections(evidence, alpha)
    objections = [against_all + _objections(of_test, alpha) for of_test in evidence]
    pairs = list(zip(evidence, objections, strict=True))
    believed = [of_test for of_test, against in pairs if not against]
    named = _reasons(objections)

    significant = [of_test for of_test in believed if of_test.p <= alpha]
    if significant:
        return _positive(significant, named)
    least, against_least = min(pairs, key=_p_of_pair)
    measured = f"p = {least.p:.3g} ({least.test})"
    if least.p <= alpha:
        why = "; ".join(_reasons([against_least]))
        first = against_least[0]
        reason = f"{measured}, but {why}"
        return Verdict(first.conclusion, reason, least.p, objections=named)

    problems = []
    for of_test in evidence:
        if of_test.answers_problem:
            problems.append(of_test.answers_problem)
    silent = "; ".join(dict.fromkeys([*problems, *named]))
    if len(problems) == len(evidence):
        reason = f"{measured}, but {silent}"
        return Verdict("cannot say", reason, least.p, objections=named)
    if all(_too_few_records(of_test) for of_test in evidence):
        reason = f"{measured}, but {'; '.join(named)}"
        return Verdict("cannot say", reason, least.p, objections=named)
    floor = min(of_test.floor for of_test in evidence)
    if floor > alpha:
        reason = (
            f"so few orderings differ that p is never below {floor:.2g}: ask for more, "
            "or for larger shards"
        )
        if any(of_test.of_sides for of_test in evidence):
            reason = f"with so few records p is never below {floor:.2g}: hold back more"
        reason = "; ".join([reason, *named])
        return Verdict("cannot say", reason, least.p, objections=named)
    if least.differs and not believed:
        reason = f"{measured}, but {'; '.join(named)}"
        return Verdict("sides are no evidence here", reason, least.p, objections=named)
    if not believed:
        why = "; ".join(named)
        tested = "these sides" if least.of_sides else "this order"
        reason = f"{measured}, and {tested} could not have shown any: {why}; so no power is given"
        return Verdict("no evidence", reason, least.p, objections=named)
    informative = [of_test for of_test in believed if not of_test.answers_problem]
    if not informative:
        reason = f"{measured}, but {silent}"
        return Verdict("cannot say", reason, least.p, objections=named)
    usable = min(informative, key=_p_of)
    measured = (
        f"p = {usable.p:.3g} ({usable.test}); contamination that the test cannot see is possible"
    )
    return Verdict(
        "no evidence",
        "; ".join([measured, *dict.fromkeys(problems), *named]),
        usable.p,
        power=_best_power(informative, alpha),
        objections=named,
    )


def _p_of(of_test: Evidence) -> float:
    return of_test.p


def _p_of_pair(pair: tuple[Evidence, list[Objection]]) -> float:
    return pair[0].p


def _too_few_records(of_test: Evidence) -> bool:
    """Return whether the records are too few to judge an order that nobody has drawn."""
    return of_test.order == "too few records" and not of_test.drawn


def _positive(significant: Sequence[Evidence], objections: tuple[str, ...]) -> Verdict:
    """Return "proven", or "evidence" where p or the order is not good enough."""
    proofs = []
    for of_test in significant:
        if of_test.p <= PROOF and _order_is_good(of_test):
            proofs.append(of_test)
    conclusion: Conclusion = "proven" if proofs else "evidence"
    best = min(proofs or significant, key=_p_of)
    parts = [f"p = {best.p:.3g} ({best.test})"]
    if not _order_is_good(best):
        parts.append(_standing_out_in_words(best))
    elif conclusion == "evidence":
        parts.append(f"1 unread set in {int(1 / best.p):,} looks like this")
    parts.append(_controls_in_words(best))
    if best.ordering_bias:
        parts.append("no theorem says how often two models that read alike differ so")
    return Verdict(
        conclusion,
        "; ".join([*parts, *objections]),
        best.p,
        objections=objections,
    )


def _order_is_good(of_test: Evidence) -> bool:
    return of_test.drawn or of_test.order == "quiet"


def _standing_out_in_words(of_test: Evidence) -> str:
    told = "a statistic of the order stands out before correction"
    if of_test.standing_out:
        return f"{told} ({of_test.standing_out})"
    return told


def _controls_in_words(of_test: Evidence) -> str:
    stated = "the author states that the order was drawn at random"
    if of_test.control_models:
        silent = []
        for name, p in of_test.control_models.items():
            silent.append(f"{name} is silent (p = {p:.3g})")
        if of_test.declared:
            silent.append(stated)
        return ", ".join(silent)
    if of_test.declared:
        return stated
    if of_test.drawn:
        return "a key or a seed has drawn what is tested, so it needs no control"
    return "no control model was given"


def _best_power(believed: Sequence[Evidence], alpha: float) -> tuple[Power, ...]:
    """Return the power of the test that finds most, at Bonferroni's level.

    Holm finds more.
    """
    best: tuple[Power, ...] = ()
    best_total = 0.0
    for of_test in believed:
        level = alpha / of_test.corrected_for
        powers = tuple(simulated.at(level) for simulated in of_test.simulated_power)
        total = sum(power.probability for power in powers)
        if total > best_total:
            best = powers
            best_total = total
    return best


def _reasons(objections: Sequence[Sequence[Objection]]) -> tuple[str, ...]:
    """Return the reason of each objection once."""
    reasons = dict[str, None]()
    for against in objections:
        reasons |= dict.fromkeys(objection.reason for objection in against)
    return tuple(reasons)


def _control_model_objections(
    evidence: Sequence[Evidence],
    alpha: float,
) -> list[Objection]:
    """Return the objections of control models that reject a test, after correction."""
    names = dict[str, None]()
    for of_test in evidence:
        names |= dict.fromkeys(of_test.control_models)
    objections = []
    for name in names:
        tested = [of_test for of_test in evidence if name in of_test.controls]
        first = min(tested, key=lambda of_test: of_test.controls[name])
        if first.controls[name] * len(tested) <= max(alpha, CONTROL_LEVEL):
            objections.append(_control_objection(name, first))
    return objections


def _objections(of_test: Evidence, alpha: float) -> list[Objection]:
    """Return why a small p of this test would not be evidence; the first decides."""
    objections = []
    if of_test.order == ORDERS[-1]:
        reason = f"the order carries information without a model ({of_test.test})"
        if of_test.drawn:
            reason += ", so it was hardly drawn by a seed"
        objections.append(Objection("order is no evidence here", reason))
    if _too_few_records(of_test):
        reason = "the records are too few to judge their order without a model"
        objections.append(Objection("cannot say", reason))
    if of_test.differs:
        objections.append(Objection("sides are no evidence here", of_test.differs))
    for name, p in of_test.controls.items():
        if p <= max(alpha, CONTROL_LEVEL):
            objections.append(_control_objection(name, of_test))
    explained = of_test.ordering_bias and not of_test.control_models
    if explained and not objections:  # else a control model changes nothing
        reason = (
            "people write options in orders that readers expect: name a control model "
            "of like competence that cannot have read the set"
        )
        objections.append(Objection("cannot say", reason))
    return objections


def _control_objection(name: str, of_test: Evidence) -> Objection:
    """Return the objection of a control that rejects a test."""
    measured = f"p = {of_test.controls[name]:.3g}, {of_test.test}"
    if of_test.of_sides:
        reason = f"{name} scores the published side higher as well ({measured})"
        return Objection("sides are no evidence here", reason)
    reason = f"{name} prefers the order as well ({measured})"
    return Objection("order is no evidence here", reason)
