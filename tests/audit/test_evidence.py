"""The evidence of an audit: what p-values are corrected for, and the least they can be."""

import math

import pytest

from contamination.audit.controls.diagnosis import Diagnosis
from contamination.audit.decision import decide
from contamination.audit.evidence import ControlModel, evidence_of
from contamination.audit.finding import Finding
from contamination.audit.run import combine_axes
from contamination.seal.audit import combine_parts
from contamination.seal.held_out import combine_with_sides
from contamination.statistics import TestResult, adjust, fisher

QUIET = Diagnosis((), "quiet", (), "order", {})


def result(test: str, p: float, least: float | None) -> TestResult:
    log10_p = math.log10(p)
    log10_least = None if least is None else math.log10(least)
    return TestResult(
        test=test,
        statistic=0.0,
        p=p,
        log10_p=log10_p,
        shards=1,
        permutations=1,
        log10_least=log10_least,
    )


def evidence_of_both(order: TestResult, options: TestResult, **others):
    """Return the evidence of an audit of both axes."""
    holm = adjust(log10_p=[order.log10_p, options.log10_p], method="holm").p
    return evidence_of(
        [Finding(order, diagnosis=QUIET), Finding(options, diagnosis=QUIET)],
        p_values=holm.tolist(),
        corrected_for=2,
        combined=combine_axes(order, options),
        **others,
    )


def test_without_a_control_the_order_of_both_axes_is_alone_and_uncorrected():
    evidence = evidence_of_both(result("successor", 0.0355, 0.0355), result("options", 0.501, 1e-9))
    order = evidence[0]
    assert (order.p, order.floor, order.corrected_for) == (0.0355, pytest.approx(0.0355), 1)
    assert "evidence: p = 0.0355 (successor)" in str(decide(evidence, alpha=0.05))


@pytest.mark.parametrize("least", [1 / 3, 1 / 10])
@pytest.mark.parametrize(
    "others", [{"options_drawn": True}, {"control": ControlModel("gpt2", (0.5, 0.5), 0.5)}]
)
def test_both_axes_are_not_below_fishers_rule_on_the_least_of_each(least, others):
    order = result("successor", 1.0, least)
    (both,) = evidence_of_both(order, result("options", 0.5, 1 / 4), **others)
    assert both.floor == pytest.approx(fisher([math.log10(least), math.log10(1 / 4)]).p)
    assert decide([both], alpha=0.05).conclusion == "cannot say"
    assert decide([both], alpha=0.4).conclusion == "no evidence"


def test_a_part_without_a_least_p_leaves_both_axes_without_one():
    results = [result("sharded_t", 0.3, None), result("options", 0.5, 1 / 4)]
    assert combine_axes(*results).least == 0


@pytest.mark.parametrize(("permutations", "word"), [(5, "cannot say"), (19, "no evidence")])
def test_what_a_key_has_drawn_cannot_be_told_from_too_few_orderings(permutations, word):
    order = result("permutation", 1.0, 1 / (permutations + 1))
    combined = combine_parts([order], [])
    assert combined.least == pytest.approx(order.p / (permutations + 1))
    (together,) = evidence_of([Finding(order)], p_values=[1.0], corrected_for=1, combined=combined)
    assert decide([together], alpha=0.05).conclusion == word


def test_two_tests_of_the_order_and_the_sides_each_double_the_least_p():
    orders = [result("permutation", 0.5, 1 / 20), result("successor", 0.9, 1 / 10)]
    parts = combine_parts(orders, [])
    assert parts.least == pytest.approx(2 / 20)
    assert combine_with_sides(parts, None).least == pytest.approx(4 / 20)
    sides = result("held_out", 0.2, 1e-5)
    assert combine_with_sides(parts, sides).least == pytest.approx(2e-5)
    assert combine_with_sides(combine_parts(orders[1:], []), None).least == pytest.approx(0.2)
    assert combine_with_sides(combine_parts([result("t", 1.0, 0.9)], []), None).least == 1
