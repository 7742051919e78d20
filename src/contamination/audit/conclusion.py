"""What p-values and controls amount to: one verdict, for the command, Python and every page.

A test proves something only where its p-value is small after all corrections *and* nothing but
training can have made the order special: the order is quiet without a model, and every control is
silent (Oren, section 4.3, leave sets out by their controls).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from contamination.audit.battery import ITEM_TESTS

if TYPE_CHECKING:  # `contamination --help` does without pandas
    from contamination.audit.diagnostics import Verdict as Order
    from contamination.audit.redrawn import Planted
    from contamination.audit.verdict import Audit
    from contamination.statistics.results import TestResult

Conclusion = Literal["proven", "no evidence", "order is no evidence here", "cannot say"]
STATUS = {"proven": 1, "no evidence": 0}  # 3: the order proves nothing, or nothing can be said
COMPRESSOR = "a compressor"  # the control that every p-value has


@dataclass(frozen=True)
class Evidence:
    """One p-value, and what stands beside it.

    Attributes
    ----------
    test : that gave it, for people.
    p : after every correction that it needs, in (0, 1].
    floor : the least that `p` can be.
    order : what diagnostics without a model say of what the test permutes (`Diagnosis.verdict`).
    controls : p under what cannot have read the set, by its name: a compressor, a model.
    habit : whether how people write options could explain a small p; it takes a control model.
    planted : p-values of copies of this set, by study (`contamination.audit.redrawn`).
    corrected_for : for how many tests p was corrected.
    silent : why a large p would say nothing, such as too few texts that are of use; "" where none.
    """

    test: str
    p: float
    floor: float = 0.0
    order: "Order" = "quiet"
    controls: Mapping[str, float] = field(default_factory=dict)
    habit: bool = False
    planted: "Planted" = field(default_factory=dict)
    corrected_for: int = 1
    silent: str = ""


@dataclass(frozen=True)
class Found:
    """With which probability a test would have found so many copies, remembered as in a study."""

    test: str
    model: str
    copies: int
    sets: int
    probability: float


@dataclass(frozen=True)
class Verdict:
    """What an audit concludes, why, and from which p-value; its power, if that is no proof."""

    conclusion: Conclusion
    reason: str
    p: float
    power: tuple[Found, ...] = ()

    @property
    def status(self) -> int:
        """Exit status of a command that ends with this verdict."""
        return STATUS.get(self.conclusion, 3)

    def __str__(self) -> str:
        """One line for people."""
        return f"{self.conclusion}: {self.reason}"


def log10_floor(result: "TestResult") -> float:
    """Return log10 of the least p that its shards and orderings permit; -inf if p has none.

    Orderings that are alike count as one where the test knows its scores (`log10_least`).
    """
    least = getattr(result, "log10_least", None)
    if least is not None:
        return float(least)
    if result.test == "sharded_t" or hasattr(result, "stopped_at"):
        return -math.inf
    return -result.shards * math.log10(1 + result.permutations)


def evidence_of(audit: "Audit", p: Sequence[float], corrected_for: int) -> list[Evidence]:
    """Return what an audit decides by: each test after correction, or both axes together.

    `p` are the p-values of the tests, corrected for so many. Of both axes the order of records
    counts by itself as well, where authors have arranged the options and no control model stands
    beside them.
    """
    if audit.joint and not audit.findings[0].diagnosis:  # a key has drawn all that is tested
        silent = next((each.silent for each in audit.findings if each.silent), "")
        return [Evidence("all together", audit.joint.p, silent=silent)]
    beside, found = audit.beside, []
    control = f"the control {beside.header.model}" if beside else ""
    for number, (each, after) in enumerate(zip(audit.findings, p, strict=True)):
        result = each.result
        controls = {COMPRESSOR: each.control.p} if each.control else {}
        if beside is not None:
            controls[control] = beside.results[number].p
        floor = min(1.0, corrected_for * 10 ** log10_floor(result))
        order = each.diagnosis.verdict if each.diagnosis else "quiet"
        habit = result.test in ITEM_TESTS and not audit.drawn
        decides = result.test, result.p if audit.joint else after, floor, order, controls, habit
        found.append(Evidence(*decides, each.planted, corrected_for, each.silent))
    if audit.joint is None:
        return found
    order = next((each.order for each in found if each.order != "quiet"), "quiet")
    controls = {COMPRESSOR: min(each.controls[COMPRESSOR] for each in found)}
    if beside is not None and beside.joint is not None:
        controls[control] = beside.joint.p
    both = Evidence("both axes", audit.joint.p, 0.0, order, controls, found[-1].habit)
    return [found[0], both] if both.habit and beside is None else [both]


def conclude(evidence: Sequence[Evidence], *, alpha: float) -> Verdict:
    """Judge the p-values of one model and one set, of which there is at least one.

    "proven" if one is at most `alpha` and nothing objects to it. Under H0, and for an order that is
    exchangeable, that happens with probability at most `alpha`: objections only take away.
    """
    least = min(evidence, key=lambda each: each.p)
    quiet = [each for each in evidence if _objection(each, alpha) is None]
    if proofs := [each for each in quiet if each.p <= alpha]:
        best = min(proofs, key=lambda each: each.p)
        reason = f"p = {best.p:.3g} ({best.test}), and no control objects"
        if best.habit:
            reason += "; no theorem says how often two models that read alike differ so"
        return Verdict("proven", reason, best.p)
    if least.p <= alpha and (objection := _objection(least, alpha)):
        conclusion, reason = objection
        return Verdict(conclusion, f"p = {least.p:.3g} ({least.test}), but {reason}", least.p)
    silent = next((each.silent for each in evidence if each.silent), "")
    if silent:
        return Verdict("cannot say", f"p = {least.p:.3g} ({least.test}), but {silent}", least.p)
    if all(each.order == "too few records" for each in evidence):
        reason = f"p = {least.p:.3g} ({least.test}), and the records are too few for an order"
        return Verdict("cannot say", reason, least.p)
    if (floor := min(each.floor for each in evidence)) > alpha:
        reason = f"so few orderings differ that p is never below {floor:.2g}: ask for more, or "
        reason += "for larger shards"
        return Verdict("cannot say", reason, least.p)
    reason = f"p = {least.p:.3g} ({least.test}); contamination that the test cannot see is possible"
    stated = [_power(each, alpha) for each in quiet]
    power = max(stated, key=lambda found: sum(each.probability for each in found), default=())
    if power:
        reason += (
            ". Had the model remembered as those of our studies, which nothing here shows, "
            f"{power[0].test} would have found this set with a probability of ({by_study(power)})"
        )
    return Verdict("no evidence", reason, least.p, power)


def _power(each: Evidence, alpha: float) -> tuple[Found, ...]:
    """How often the test would have found copies: Bonferroni's level, and Holm's finds as many."""
    level = alpha / each.corrected_for
    rates = {study: float((p <= level).mean()) for study, p in each.planted.items()}
    return tuple(Found(each.test, *study, rate) for study, rate in rates.items())


def by_study(power: Sequence[Found]) -> str:
    """Say the power in words, by the study whose sets were remembered so; never 0 or 100%."""
    studies: dict[str, list[str]] = {}
    for each in power:
        read = "once" if each.copies == 1 else f"{each.copies} times"
        chance = f"{min(max(each.probability, 0.01), 0.99):.0%} if read {read}"
        studies.setdefault(f"{each.model}, {each.sets} sets each", []).append(chance)
    return "; ".join(f"{study}: {', '.join(chances)}" for study, chances in studies.items())


def _objection(each: Evidence, alpha: float) -> tuple[Conclusion, str] | None:
    """What takes a small p-value its force, and what is then concluded."""
    if each.order == "too few records":
        return "cannot say", "the records are too few to judge their order without a model"
    if each.order != "quiet":
        return "order is no evidence here", f"the order is not quiet without a model: {each.order}"
    for name, p in each.controls.items():
        if p <= alpha:
            return "order is no evidence here", f"{name} prefers the order as well (p = {p:.3g})"
    if each.habit and each.controls.keys() <= {COMPRESSOR}:
        return "cannot say", (
            "people write options in orders that readers expect: name a --control model of like "
            "competence that cannot have read the set"
        )
    return None
