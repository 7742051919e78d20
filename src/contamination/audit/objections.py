"""Objections to a p-value: the order without a model, controls, sides that differ.

Oren et al. (section 4.3) leave out sets that are also preferred by a model that cannot
have read them. An objection takes the words "proven" and "evidence" away from a small
p-value; it never makes a large one small.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from contamination.audit.control_fit import ControlFit
from contamination.audit.power import SimulatedPower

if TYPE_CHECKING:  # the help of the command does without pandas
    from contamination.audit.controls.diagnosis import OrderState

Conclusion = Literal[
    "proven",
    "evidence",
    "no evidence",
    "order is no evidence here",
    "sides are no evidence here",
    "cannot say",
]
CONTROL_LEVEL = 0.05  # see `_rejects`
ROUNDING = 1e-9  # of a p-value, relative
# In the order of their weight, the least first.
ORDERS: tuple["OrderState", ...] = (
    "quiet",
    "suspicious",
    "too few records",
    "order carries information",
)
ZLIB_BASELINE = "the zlib baseline"  # for people: the control that every p-value has


@dataclass(frozen=True)
class Evidence:
    """One p-value, with its controls.

    Attributes
    ----------
    test
        Name of the test that gave the p-value, for people.
    p
        The p-value after every correction that it needs, in (0, 1].
    floor
        The least that `p` can be while no other test rejects: the least uncorrected p
        times the number of tests. A sampled p may be slightly below it.
    order
        State of what the test permutes, by diagnostics without a model.
    controls
        Name -> uncorrected p, for each control that cannot have read the set: the zlib
        baseline, a model.
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
    blind_p
        p by which baselines without a model tell these sides apart; 1 without any.
    blind_best
        The baseline that does so best, for people.
    standing_out
        The statistics of a suspicious order that stand out, for people.
    years
        That years in the texts follow their order, for people; "" if they do not.
    fit
        How well the control model predicts the texts; None without one, or unknown.
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
    blind_p: float = 1.0
    blind_best: str = ""
    standing_out: str = ""
    years: str = ""
    fit: ControlFit | None = None

    @property
    def control_models(self) -> dict[str, float]:
        """p under each control that is a model, by its name."""
        return {name: p for name, p in self.controls.items() if name != ZLIB_BASELINE}

    @property
    def has_able_control(self) -> bool:
        """Whether there is a control model that is not known to be weaker than the model."""
        if not self.control_models:
            return False
        return self.fit is None or not self.fit.is_weaker


@dataclass(frozen=True)
class Objection:
    """Why a small p-value is not evidence, and what is then concluded."""

    conclusion: Conclusion
    reason: str


def objections_to(evidence: Sequence[Evidence], alpha: float) -> list[list[Objection]]:
    """Return why a small p of each test would not be evidence; the first of each decides.

    Parameters
    ----------
    evidence
        p-values of one set. An objection counts against its own p-value; that of a
        control model, corrected over the tests, against all of them.
    alpha
        Level of "evidence".
    """
    control_objections = _control_model_objections(evidence, alpha)
    return [control_objections + _objections(test, alpha) for test in evidence]


def too_few_records(evidence: Evidence) -> bool:
    """Return whether the records are too few to judge an order that nobody has drawn."""
    return evidence.order == "too few records" and not evidence.drawn


def at_most(p: float, level: float) -> bool:
    """Return whether a p-value is at most a level, where both may be rounded.

    The exact p of 20 orderings is 1 / 20, and as a power of ten 0.05000000000000002.
    """
    return p <= level * (1 + ROUNDING)


def sides_differ(evidence: Evidence, alpha: float) -> bool:
    """Return whether baselines without a model tell the sides apart."""
    return _rejects(evidence.blind_p, alpha)


def _rejects(p: float, alpha: float) -> bool:
    """Return whether a control rejects: at its own level, or at alpha if that is larger."""
    return at_most(p, max(alpha, CONTROL_LEVEL))


def _control_model_objections(
    evidence: Sequence[Evidence],
    alpha: float,
) -> list[Objection]:
    """Return the objections of control models that reject a test, after correction."""
    names = dict[str, None]()
    for test in evidence:
        names |= dict.fromkeys(test.control_models)
    objections = []
    for name in names:
        tested = [test for test in evidence if name in test.controls]
        first = min(tested, key=lambda test: test.controls[name])
        if _rejects(first.controls[name] * len(tested), alpha):
            objections.append(_control_objection(name, first))
    return objections


def _objections(evidence: Evidence, alpha: float) -> list[Objection]:
    """Return why a small p of this test would not be evidence; the first decides."""
    objections = []
    if evidence.order == ORDERS[-1]:
        reason = f"the order carries information without a model ({evidence.test})"
        if evidence.drawn:
            reason += ", so it was hardly drawn by a seed"
        objections.append(Objection("order is no evidence here", reason))
    if too_few_records(evidence):
        reason = "the records are too few to judge their order without a model"
        objections.append(Objection("cannot say", reason))
    if sides_differ(evidence, alpha):
        measured = f"{evidence.blind_best}, p = {evidence.blind_p:.3g}"
        reason = f"the sides differ without a model ({measured})"
        objections.append(Objection("sides are no evidence here", reason))
    for name, p in evidence.controls.items():
        if _rejects(p, alpha):
            objections.append(_control_objection(name, evidence))
    explained = evidence.ordering_bias and not evidence.control_models
    if explained and not objections:  # else a control model changes nothing
        reason = (
            "people write options in orders that readers expect: name a control model "
            "of like competence that cannot have read the set"
        )
        objections.append(Objection("cannot say", reason))
    return objections


def _control_objection(name: str, evidence: Evidence) -> Objection:
    """Return the objection of a control that rejects a test."""
    measured = f"p = {evidence.controls[name]:.3g}, {evidence.test}"
    if evidence.of_sides:
        reason = f"{name} scores the published side higher as well ({measured})"
        return Objection("sides are no evidence here", reason)
    reason = f"{name} prefers the order as well ({measured})"
    return Objection("order is no evidence here", reason)
