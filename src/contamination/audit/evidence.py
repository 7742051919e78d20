"""The evidence of an audit: p-values and controls, as plain values to decide by."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from contamination import statistics
from contamination.audit.control_fit import ControlFit
from contamination.audit.controls.diagnosis import OrderState
from contamination.audit.decision import log10_floor
from contamination.audit.finding import Finding
from contamination.audit.objections import ORDERS, ZLIB_BASELINE, Evidence
from contamination.audit.registry import ITEM_TESTS
from contamination.statistics import PValue


@dataclass(frozen=True, eq=False, kw_only=True)
class CombinedP(PValue):
    """The p-value of several tests together.

    Attributes
    ----------
    log10_least
        Decimal logarithm of the least p that their combination can give; -inf if it has
        no least.
    """

    log10_least: float

    @property
    def least(self) -> float:
        """The least p that the combination can give; 0 if it has no least."""
        return float(10**self.log10_least)


def combine_by_fisher(log10_p: Sequence[float], log10_floors: Sequence[float]) -> CombinedP:
    """Return Fisher's combination of p-values, and of the least that each of them can be.

    >>> round(combine_by_fisher([-0.5, -1.0], [-1.0, -1.0]).least, 4)
    0.0561
    """
    combined = statistics.fisher(log10_p)
    least = -math.inf
    if least not in log10_floors:
        least = statistics.fisher(log10_floors).log10_p
    return CombinedP.of(combined.log10_p, statistic=combined.statistic, log10_least=least)


@dataclass(frozen=True)
class ControlModel:
    """The p-values of a model that cannot have read the set.

    Attributes
    ----------
    name
        Name of the model, for people.
    p_values
        Uncorrected p-values, in the order of the tests.
    combined_p
        p-value of all tests together, if they were combined.
    fit
        How well it predicts the texts, beside the model; None if unknown.
    """

    name: str
    p_values: tuple[float, ...]
    combined_p: float | None = None
    fit: ControlFit | None = None

    @property
    def title(self) -> str:
        """Return what sentences call it."""
        return f"the control {self.name}"


def evidence_of(
    findings: Sequence[Finding],
    *,
    p_values: Sequence[float],
    corrected_for: int,
    options_drawn: bool = False,
    order_drawn: bool = False,
    combined: CombinedP | None = None,
    control: ControlModel | None = None,
) -> list[Evidence]:
    """Return the evidence of an audit: of each test, corrected, or of all together.

    The p-values of the tests are corrected over `corrected_for` tests. If there is a
    `combined` p-value of all tests together, the verdict rests on it. Where authors
    have arranged the options and there is no control model, the order of records alone
    can speak for both axes, by its uncorrected p-value. `options_drawn` says that a
    seed alone has arranged the options, and `order_drawn` that the author states that
    the order of records was drawn at random.
    """
    if combined is None:
        return _evidence_of_each(
            findings,
            p_values=p_values,
            corrected_for=corrected_for,
            options_drawn=options_drawn,
            order_drawn=order_drawn,
            control=control,
        )
    if findings[0].diagnosis is None:  # a key has drawn all that is tested
        return [_evidence_of_drawn(findings, combined)]
    uncorrected = [finding.result.p for finding in findings]
    parts = _evidence_of_each(
        findings,
        p_values=uncorrected,
        corrected_for=1,
        options_drawn=options_drawn,
        order_drawn=order_drawn,
        control=control,
    )
    combined_controls = {}
    if control is not None and control.combined_p is not None:
        combined_controls[control.title] = control.combined_p
    both = both_axes(combined, parts, combined_controls)
    if both.ordering_bias and control is None:
        return [parts[0], both]
    return [both]


def _evidence_of_each(
    findings: Sequence[Finding],
    *,
    p_values: Sequence[float],
    corrected_for: int,
    options_drawn: bool,
    order_drawn: bool,
    control: ControlModel | None,
) -> list[Evidence]:
    """Return the evidence of each test, with its controls."""
    evidence = []
    for number, (finding, p) in enumerate(zip(findings, p_values, strict=True)):
        result = finding.result
        of_items = result.test in ITEM_TESTS
        declared = order_drawn and not of_items
        controls = {}
        if finding.zlib is not None and not declared:  # else it is a remark
            controls[ZLIB_BASELINE] = finding.zlib.p
        if control is not None:
            controls[control.title] = control.p_values[number]
        by_key = finding.diagnosis is None
        order: OrderState = "quiet"
        standing_out = ""
        years = ""
        if finding.diagnosis is not None and not declared:
            order = finding.diagnosis.verdict
            standing_out = finding.diagnosis.standing_out
            years = "" if of_items else finding.diagnosis.remark
        evidence.append(
            Evidence(
                test=result.test,
                p=p,
                floor=min(1.0, corrected_for * 10 ** log10_floor(result)),
                order=order,
                standing_out=standing_out,
                years=years,
                controls=controls,
                ordering_bias=of_items and not options_drawn,
                simulated_power=finding.simulated_power,
                corrected_for=corrected_for,
                drawn=by_key or declared or (of_items and options_drawn),
                declared=declared,
                answers_problem=finding.answers_problem,
                fit=None if control is None else control.fit,
            )
        )
    return evidence


def _evidence_of_drawn(findings: Sequence[Finding], combined: CombinedP) -> Evidence:
    """Return the evidence of tests of which a key has drawn all: it needs no control."""
    problems = dict.fromkeys(finding.answers_problem for finding in findings)
    problem = "; ".join(problem for problem in problems if problem)
    return Evidence(
        test="all together",
        p=combined.p,
        floor=combined.least,
        drawn=True,
        answers_problem=problem,
    )


def both_axes(
    combined: CombinedP,
    parts: Sequence[Evidence],
    joint_controls: Mapping[str, float],
) -> Evidence:
    """Return the evidence of several axes together: an objection to one is to all.

    `combined` is the p-value of all parts together, of which that of options comes last;
    `joint_controls` has p of all parts together under each control model.
    """
    controls = {}
    compressed = [part.controls[ZLIB_BASELINE] for part in parts if ZLIB_BASELINE in part.controls]
    if compressed:  # it is a remark on an order that was drawn
        controls[ZLIB_BASELINE] = min(compressed)
    for name, joint_p in joint_controls.items():
        smallest = min(part.controls[name] for part in parts)
        controls[name] = min(joint_p, len(parts) * smallest)
    problems = [part.answers_problem for part in parts if part.answers_problem]
    standing_out = [part.standing_out for part in parts if part.standing_out and not part.drawn]
    return Evidence(
        test="both axes",
        p=combined.p,
        floor=combined.least,
        order=worst_order(parts),
        standing_out="; ".join(standing_out),
        controls=controls,
        ordering_bias=parts[-1].ordering_bias,
        declared=any(part.declared for part in parts),
        answers_problem="; ".join(problems),
        years=parts[0].years,
        fit=parts[0].fit,
    )


def worst_order(parts: Sequence[Evidence]) -> OrderState:
    """Return the order that objects most.

    What was drawn objects only where its order carries information.

    >>> worst_order([Evidence("successor", 0.2, order="suspicious")])
    'suspicious'
    >>> worst_order([Evidence("options", 0.2, order="suspicious", drawn=True)])
    'quiet'
    """
    orders = list[OrderState]()
    for part in parts:
        if not part.drawn or part.order == ORDERS[-1]:
            orders.append(part.order)
    return max(orders, key=ORDERS.index, default="quiet")
