"""One verdict from p-values and what stands beside them."""

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
