"""One verdict from p-values and their controls, given as plain values."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import binom

from contamination.audit.control_fit import ControlFit
from contamination.audit.decision import decide, exit_status, strength
from contamination.audit.evidence import CombinedP, both_axes, worst_order
from contamination.audit.objections import ORDERS, ZLIB_BASELINE, Evidence, objections_to
from contamination.audit.power import Effect, SimulatedPower
from contamination.statistics import adjust, sharded_exact_test

POSITIVE = ("proven", "evidence")
SILENT = {ZLIB_BASELINE: 0.5, "gpt2": 0.9}


@pytest.mark.parametrize(
    ("evidence", "conclusion", "status"),
    [
        (Evidence("successor", 0.001), "proven", 1),
        (Evidence("successor", 0.0011), "evidence", 1),
        (Evidence("successor", 0.05), "evidence", 1),
        (Evidence("successor", 0.051), "no evidence", 0),
        (Evidence("successor", 1e-9, order="suspicious"), "evidence", 1),
        (
            Evidence("successor", 1e-9, order="order carries information"),
            "order is no evidence here",
            3,
        ),
        (Evidence("successor", 1e-9, order="too few records"), "cannot say", 3),
        (Evidence("successor", 1e-9, controls={"zlib": 0.04}), "order is no evidence here", 3),
        (Evidence("successor", 1e-9, controls=SILENT), "proven", 1),
        (Evidence("successor", 0.4, order="too few records"), "cannot say", 3),
        (Evidence("successor", 1e-9, order="too few records", drawn=True), "proven", 1),
        (Evidence("successor", 1e-9, order="suspicious", drawn=True), "proven", 1),
        (Evidence("permutation", 0.2, floor=0.1), "cannot say", 3),
        (
            Evidence("options", 1e-9, controls={ZLIB_BASELINE: 0.5}, ordering_bias=True),
            "cannot say",
            3,
        ),
        (Evidence("options", 1e-9, controls={"gpt2": 0.5}, ordering_bias=True), "proven", 1),
        (Evidence("options", 0.3, ordering_bias=True), "no evidence", 0),
        (Evidence("quiz", 1e-9, answers_problem="464 of 480 are empty"), "proven", 1),
        (Evidence("quiz", 0.7, answers_problem="464 of 480 are empty"), "cannot say", 3),
    ],
)
def test_one_p_value(evidence, conclusion, status):
    verdict = decide([evidence], alpha=0.05)
    assert verdict.conclusion == conclusion
    assert verdict.status == status
    assert verdict.p == evidence.p
    assert str(verdict).startswith(conclusion)


@pytest.mark.parametrize(
    "loud",
    [
        Evidence("permutation", 1e-9, order="order carries information"),
        Evidence("permutation", 1e-9, controls={ZLIB_BASELINE: 1e-4}),
    ],
)
def test_an_objection_to_one_test_leaves_the_others_and_is_named(loud):
    verdict = decide([loud, Evidence("successor", 1e-3)], alpha=0.05)
    assert verdict.conclusion == "proven"
    assert verdict.p == 1e-3
    assert decide([loud], alpha=0.05).reason.partition("but ")[2] in verdict.reason


@pytest.mark.parametrize("p", [1e-9, 0.5])
def test_a_control_model_that_rejects_any_test_objects_to_the_set_and_is_named(p):
    evidence = [
        Evidence("successor", p, controls={"gpt2": 0.7}, simulated_power=planted([0.01])),
        Evidence("sharded_t", 0.6, controls={"gpt2": 0.01}, simulated_power=planted([0.01])),
    ]
    verdict = decide(evidence, alpha=0.05)
    word = "order is no evidence here" if p < 0.05 else "no evidence"
    assert verdict.conclusion == word
    assert verdict.power == ()
    assert "gpt2" in verdict.reason and "p = 0.01, sharded_t" in verdict.reason
    if p > 0.05:
        assert "could not have shown any" in verdict.reason and "no power" in verdict.reason


def test_a_test_that_is_not_believed_lends_no_floor():
    few = Evidence("permutation", 1.0, floor=0.18)
    objected = Evidence("successor", 0.3, floor=1e-9, controls={ZLIB_BASELINE: 0.01})
    assert decide([few, objected], alpha=0.05).conclusion == "cannot say"
    assert decide([few, Evidence("successor", 0.3)], alpha=0.05).conclusion == "no evidence"


def test_a_test_without_usable_answers_lends_no_floor():
    few = Evidence("successor", 1.0, floor=0.08)
    useless = Evidence("quiz", 1.0, answers_problem="all are empty")
    assert decide([useless, few], alpha=0.05).conclusion == "cannot say"


@pytest.mark.parametrize(
    ("scores", "alpha", "conclusion"),
    [
        ([range(20, 0, -1)], 0.05, "evidence"),
        ([range(10, 0, -1)] * 3, 0.001, "proven"),
        ([range(10, 0, -1)] * 2, 0.01, "evidence"),
    ],
)
def test_the_least_p_of_a_number_of_orderings_may_be_the_level(scores, alpha, conclusion):
    result = sharded_exact_test([list(map(float, shard)) for shard in scores])
    evidence = Evidence("sharded_exact", result.p, floor=10**result.log10_least)
    verdict = decide([evidence], alpha=alpha)
    assert verdict.conclusion == conclusion
    if conclusion == "evidence":
        assert f"1 unread set in {round(1 / alpha)} looks" in verdict.reason


@pytest.mark.parametrize("tests", range(2, 30))
def test_holms_p_of_the_level_over_the_number_of_tests_is_the_level(tests):
    log10_p = [np.log10(0.05 / tests), *[0.0] * (tests - 1)]
    corrected = adjust(log10_p=log10_p, method="holm").p
    evidence = [Evidence("t", float(p)) for p in corrected]
    assert decide(evidence, alpha=0.05).conclusion == "evidence"
    assert decide(evidence, alpha=0.05 - 1e-9).conclusion == "no evidence"


def test_a_control_model_is_corrected_over_its_tests():
    """One of two innocent controls would object to every tenth set otherwise."""
    evidence = [
        Evidence("successor", 1e-9, controls={"gpt2": 0.7}),
        Evidence("sharded_t", 0.6, controls={"gpt2": 0.04}),
    ]
    verdict = decide(evidence, alpha=0.05)
    assert verdict.conclusion == "proven"
    assert "gpt2 prefers the order as well (p = 0.04, sharded_t)" in verdict.reason


@pytest.mark.parametrize(
    "evidence",
    [
        [Evidence("successor", 1e-9, controls={ZLIB_BASELINE: 0.05})],
        [Evidence("successor", 1e-9, controls={"gpt2": 0.05})],
        [  # twice the smaller p of the control is 0.05
            Evidence("successor", 1e-9, controls={"gpt2": 0.7}),
            Evidence("sharded_t", 0.6, controls={"gpt2": 0.025}),
        ],
    ],
)
def test_a_control_rejects_at_its_own_level_however_small_alpha_is(evidence):
    assert decide(evidence, alpha=0.001).conclusion == "order is no evidence here"


@pytest.mark.parametrize("p", [1e-9, 0.5])
@pytest.mark.parametrize("controls", [{ZLIB_BASELINE: 0.01}, {ZLIB_BASELINE: 0.5, "gpt2": 0.01}])
def test_whatever_rejects_is_named_whatever_p_is(p, controls):
    reason = decide([Evidence("successor", p, controls=controls)], alpha=0.05).reason
    assert min(controls, key=controls.get) in reason and "p = 0.01" in reason


@pytest.mark.parametrize("p", [1e-9, 0.5])
@pytest.mark.parametrize("floor", [0, 0.2])
def test_everything_that_objects_is_named_and_not_the_first_alone(p, floor):
    controls = {ZLIB_BASELINE: 0.01, "gpt2": 0.02}
    order = "order carries information"
    evidence = Evidence("successor", p, floor=floor, order=order, controls=controls)
    reason = decide([evidence], alpha=0.05).reason
    assert all(name in reason for name in ("carries information", *controls))


def test_an_order_that_carries_information_is_named_where_p_is_large():
    evidence = Evidence(
        "successor", 0.4, order="order carries information", simulated_power=planted([0])
    )
    verdict = decide([evidence], alpha=0.05)
    assert verdict.conclusion == "no evidence"
    assert verdict.power == ()
    assert "this order could not have shown any" in verdict.reason


@pytest.mark.parametrize("p", [1e-5, 0.4, 1.0])
def test_sides_that_differ_are_no_evidence_whatever_p_is(p):
    sides = Evidence("held_out", p, of_sides=True, blind_p=0.05, blind_best="dates")
    verdict = decide([sides], alpha=0.05)
    assert verdict.conclusion == "sides are no evidence here"
    assert verdict.status == 3
    assert "dates" in verdict.reason


@pytest.mark.parametrize(
    "sides",
    [
        Evidence("held_out", 0.08, of_sides=True, blind_p=0.07, blind_best="dates"),
        Evidence("held_out", 0.08, of_sides=True, controls={"gpt2": 0.07}),
    ],
)
def test_baselines_of_sides_reject_at_alpha_as_controls_do(sides):
    assert decide([sides], alpha=0.1).conclusion == "sides are no evidence here"
    assert not decide([sides], alpha=0.05).objections


def test_sides_that_differ_leave_a_test_of_order_its_verdict():
    sides = Evidence("held_out", 0.2, of_sides=True, blind_p=0.05, blind_best="dates")
    order = Evidence("successor", 0.4, simulated_power=planted([0]))
    verdict = decide([sides, order], alpha=0.05)
    assert verdict.conclusion == "no evidence"
    assert "dates" in verdict.reason


def test_evidence_says_how_many_unread_sets_look_like_it():
    assert "1 unread set in 36 looks" in decide([Evidence("t", 0.0276)], alpha=0.05).reason
    assert "unread" not in decide([Evidence("t", 1e-9)], alpha=0.05).reason
    # Of a suspicious order p does not say how rare it is.
    assert "unread" not in decide([Evidence("t", 0.01, order="suspicious")], alpha=0.05).reason


@pytest.mark.parametrize("p", [1e-9, 0.01])
def test_a_suspicious_order_is_evidence_and_its_statistic_is_named(p):
    """Up to 8% of good sets have one, so it takes the word of proof and not the finding."""
    suspicious = Evidence("t", p, order="suspicious", standing_out="length_trend, p = 0.004")
    verdict = decide([suspicious], alpha=0.05)
    assert verdict.conclusion == "evidence"
    assert "length_trend, p = 0.004" in verdict.reason
    quiet = replace(suspicious, order="quiet", standing_out="")
    assert "stands out" not in decide([quiet], alpha=0.05).reason


def test_the_reason_says_whether_p_is_corrected():
    corrected = Evidence("successor", 0.58, corrected_for=2)
    assert "p (Holm) = 0.58 (successor)" in decide([corrected], alpha=0.05).reason
    assert "Holm" not in decide([Evidence("successor", 0.58)], alpha=0.05).reason


@pytest.mark.parametrize(
    ("evidence", "named"),
    [
        (Evidence("t", 1e-9, controls={ZLIB_BASELINE: 0.5}), "no control model was given"),
        (Evidence("t", 1e-9, controls=SILENT), "gpt2 is silent (p = 0.9)"),
        (Evidence("t", 1e-9, drawn=True), "a key or a seed has drawn"),
    ],
)
def test_a_verdict_says_which_control_model_stood_beside_it(evidence, named):
    assert named in decide([evidence], alpha=0.05).reason


@pytest.mark.parametrize(
    ("control", "named", "weak"),
    [(2.9, "learnt less", True), (1.42, "about as well", False), (1.1, "better", False)],
)
def test_the_silence_of_a_control_that_predicts_less_well_is_called_weak(control, named, weak):
    """It stays a verdict: a model that has read the texts predicts them better as well."""
    fit = ControlFit(model=1.3, control=control)
    verdict = decide([Evidence("t", 1e-9, controls=SILENT, fit=fit)], alpha=0.05)
    assert verdict.conclusion == "proven"
    assert named in verdict.reason
    assert f"{control} nats a character, the model 1.3" in verdict.reason
    assert ("weak" in verdict.reason) == weak


@pytest.mark.parametrize(
    ("controls", "fit", "warned"),
    [
        ({}, None, True),
        ({ZLIB_BASELINE: 0.5}, None, True),
        (SILENT, None, False),
        (SILENT, ControlFit(model=1.3, control=2.9), True),
        (SILENT, ControlFit(model=1.3, control=1.4), False),
    ],
)
def test_an_order_in_time_asks_for_an_able_control(controls, fit, warned):
    evidence = Evidence("t", 1e-9, controls=controls, fit=fit, years="years follow the order")
    verdict = decide([evidence], alpha=0.05)
    assert verdict.conclusion == "proven"
    assert ("years follow the order" in verdict.reason) == warned
    assert "years" not in decide([replace(evidence, p=0.5)], alpha=0.05).reason


def test_a_verdict_is_positive_only_where_p_is_small_and_nothing_objects():
    for p, order, control, habit in product(
        np.linspace(0.001, 1, 40), ORDERS, (0.01, 0.5), (False, True)
    ):
        evidence = Evidence("successor", float(p), 0.0, order, {ZLIB_BASELINE: control}, habit)
        positive = decide([evidence], alpha=0.05).conclusion in POSITIVE
        believed = order in ("quiet", "suspicious") and control > 0.05 and not habit
        assert positive == (p <= 0.05 and believed)


pieces = st.builds(
    Evidence,
    test=st.sampled_from(["successor", "sharded_t", "options"]),
    p=st.floats(1e-12, 1),
    floor=st.floats(0, 1),
    order=st.sampled_from(ORDERS),
    controls=st.dictionaries(st.sampled_from([ZLIB_BASELINE, "gpt2"]), st.floats(1e-6, 1)),
    ordering_bias=st.booleans(),
    drawn=st.booleans(),
    answers_problem=st.sampled_from(["", "all are empty"]),
)


@example([Evidence("successor", 0.001)], 0.05)
@given(st.lists(pieces, min_size=1, max_size=4), st.floats(1e-6, 0.5))
def test_the_level_is_that_of_the_smallest_p_and_whatever_else_is_known_only_takes_away(
    evidence, alpha
):
    """P(positive) <= P(smallest corrected p <= alpha) <= alpha; a proof needs 0.001 as well."""
    verdict = decide(evidence, alpha=alpha)
    smallest = min(each.p for each in evidence)
    bare = decide([Evidence(each.test, each.p) for each in evidence], alpha=alpha)
    assert bare.conclusion == strength(smallest, alpha)
    if verdict.conclusion in POSITIVE:
        assert smallest <= verdict.p <= alpha
    if verdict.conclusion == "proven":
        assert verdict.p <= 0.001
    assert (verdict.status == 1) == (verdict.conclusion in POSITIVE)


@given(st.lists(pieces, min_size=1, max_size=4))
def test_answers_of_no_use_are_told_wherever_no_other_test_is_left(evidence):
    """What objects to a test leaves it out; where it leaves out all, all count."""
    large = [replace(each, p=0.5) for each in evidence]
    pairs = zip(large, objections_to(large, 0.05), strict=True)
    left = [each for each, against in pairs if not against] or large
    verdict = decide(large, alpha=0.05)
    told = "all are empty" in verdict.reason
    if all(each.answers_problem for each in left):
        assert verdict.conclusion == "cannot say" and told
    elif verdict.conclusion == "cannot say":
        assert not told


def test_the_level_holds_for_unread_sets_after_holms_correction():
    """Uniform p-values of three tests: at most alpha positive, at most 0.001 proven."""
    rng = np.random.default_rng(0)
    words = []
    for log10_p in np.log10(rng.random((4_000, 3))):
        corrected = adjust(log10_p=log10_p, method="holm").p
        evidence = [Evidence("t", float(p), controls=SILENT) for p in corrected]
        words.append(decide(evidence, alpha=0.05).conclusion)
    for level, allowed in ((0.05, POSITIVE), (0.001, ("proven",))):
        count = sum(word in allowed for word in words)
        assert binom.sf(count - 1, len(words), level) > 1e-4


@pytest.mark.parametrize(
    ("order", "of_options", "drawn", "worst"),
    [
        ("quiet", "quiet", False, "quiet"),
        ("suspicious", "order carries information", False, "order carries information"),
        ("suspicious", "too few records", False, "too few records"),
        ("quiet", "suspicious", True, "quiet"),
        ("suspicious", "too few records", True, "suspicious"),
        ("quiet", "order carries information", True, "order carries information"),
    ],
)
def test_of_both_axes_the_order_that_objects_most_counts(order, of_options, drawn, worst):
    parts = [
        Evidence("successor", 0.1, order=order),
        Evidence("options", 0.1, order=of_options, drawn=drawn),
    ]
    assert worst_order(parts) == worst


def test_a_control_model_that_rejects_one_axis_objects_to_both():
    parts = [
        Evidence("successor", 0.1, controls={ZLIB_BASELINE: 0.3, "gpt2": 0.01}),
        Evidence("options", 0.1, controls={ZLIB_BASELINE: 0.2, "gpt2": 0.9}),
    ]
    combined = CombinedP.of(-9.0, statistic=0.0, log10_least=-20.0)
    both = both_axes(combined, parts, {"gpt2": 0.06})
    assert both.controls == {ZLIB_BASELINE: 0.2, "gpt2": 0.02}
    assert decide([both], alpha=0.05).conclusion == "order is no evidence here"


@pytest.mark.parametrize(
    ("conclusions", "status"),
    [
        ([], 0),
        (["no evidence"], 0),
        (["no evidence", "cannot say"], 3),
        (["failed", "no evidence"], 3),
        (["cannot say", "evidence"], 1),
        (["order is no evidence here", "proven"], 1),
    ],
)
def test_the_status_of_several_verdicts(conclusions, status):
    assert exit_status(conclusions) == status


def planted(*p_values):
    """Return simulated power for 1, 2, ... copies."""
    return tuple(
        SimulatedPower(
            effect=Effect("successor", "a model", copies, 3, 16, 0.5, 0.1),
            records=100,
            shards=10,
            p_values=np.array(each),
        )
        for copies, each in enumerate(p_values, start=1)
    )


def test_power_is_that_of_the_best_test_at_the_corrected_level():
    evidence = [
        Evidence("sharded_t", 0.3),
        Evidence("boundary", 0.4, simulated_power=planted([0.9, 0.2], [0.04, 0.9])),
        Evidence("successor", 0.2, simulated_power=planted([0.01, 0.9], [0.01, 0.03])),
    ]
    powers = decide(evidence, alpha=0.05).power
    assert [(power.copies, power.probability) for power in powers] == [(1, 0.5), (2, 1.0)]
    corrected = replace(evidence[2], corrected_for=2)
    powers = decide([corrected], alpha=0.05).power
    assert [power.probability for power in powers] == [0.5, 0.5]
    assert decide(evidence[:1], alpha=0.05).power == ()
    assert decide(evidence, alpha=0.3).power == ()  # evidence
