"""One verdict from p-values and what stands beside them."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from contamination.audit.conclusion import COMPRESSOR, Evidence, conclude

ORDERS = ("quiet", "suspicious", "order carries information", "too few records")


@pytest.mark.parametrize(
    ("evidence", "conclusion", "status"),
    [
        (Evidence("successor", 0.05), "proven", 1),
        (Evidence("successor", 0.051), "no evidence", 0),
        (Evidence("successor", 1e-9, order="suspicious"), "order is no evidence here", 3),
        (Evidence("successor", 1e-9, controls={"zlib": 0.04}), "order is no evidence here", 3),
        (Evidence("successor", 1e-9, controls={"zlib": 0.06, "gpt2": 0.9}), "proven", 1),
        (Evidence("successor", 0.4, order="too few records"), "cannot say", 3),
        (Evidence("permutation", 0.2, floor=0.1), "cannot say", 3),
        (Evidence("options", 1e-9, controls={COMPRESSOR: 0.5}, habit=True), "cannot say", 3),
        (Evidence("options", 1e-9, controls={"gpt2": 0.5}, habit=True), "proven", 1),
        (Evidence("options", 0.3, habit=True), "no evidence", 0),
    ],
)
def test_one_p_value(evidence, conclusion, status):
    verdict = conclude([evidence], alpha=0.05)
    assert (verdict.conclusion, verdict.status, verdict.p) == (conclusion, status, evidence.p)
    assert str(verdict).startswith(conclusion)
    # An objection counts against its own p-value alone.
    beside = conclude([evidence, Evidence("successor", 1e-3)], alpha=0.05)
    assert (beside.conclusion, beside.p <= 1e-3) == ("proven", True)


def test_nothing_that_stands_beside_p_raises_the_level():
    """Proven implies small, whatever the order, the controls and the axis."""
    for p, order, control, habit in product(
        np.linspace(0.001, 1, 40), ORDERS, (0.01, 0.5), (False, True)
    ):
        evidence = Evidence("successor", float(p), 0.0, order, {COMPRESSOR: control}, habit)
        proven = conclude([evidence], alpha=0.05).conclusion == "proven"
        assert proven == (p <= 0.05 and order == "quiet" and control > 0.05 and not habit)


def test_power_is_that_of_the_best_test_at_the_corrected_level():
    def planted(*p):
        return {("a study", n, 16): np.array(each) for n, each in enumerate(p, 1)}

    weak, strong = planted([0.9, 0.2], [0.04, 0.9]), planted([0.01, 0.9], [0.01, 0.03])
    asked = [
        Evidence("sharded_t", 0.3),
        Evidence("boundary", 0.4, planted=weak),
        Evidence("successor", 0.2, planted=strong),
    ]
    found = [
        (each.test, each.copies, each.probability) for each in conclude(asked, alpha=0.05).power
    ]
    assert found == [("successor", 1, 0.5), ("successor", 2, 1.0)]
    fewer = replace(asked[2], corrected_for=2)
    assert [each.probability for each in conclude([fewer], alpha=0.05).power] == [0.5, 0.5]
    assert conclude(asked[:1], alpha=0.05).power == ()
    loud = replace(asked[2], order="suspicious")  # a small p would prove nothing
    assert conclude([loud], alpha=0.05).power == ()
    assert conclude(asked, alpha=0.3).power == ()  # proven
