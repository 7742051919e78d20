"""p-values and their readings, as people are told them."""

from types import SimpleNamespace

import numpy as np
import pytest

from contamination.audit.diagnostics import Verdict, diagnose
from contamination.report.explorer.wording import _MEANING, plain_p, reading, verdict


@pytest.mark.parametrize(
    ("log10_p", "text"),
    [
        (0.0, "1.000"),
        (np.log10(0.0466), "0.047"),
        (np.log10(0.0012), "0.001"),
        (np.log10(3.44e-5), "3.4 × 10⁻⁵"),
        (-37.4, "4.0 × 10⁻³⁸"),
        (-1234.5, "3.2 × 10⁻¹²³⁵"),
    ],
)
def test_plain_p(log10_p: float, text: str) -> None:
    assert plain_p(log10_p) == text


@pytest.mark.parametrize(("p", "small"), [(0.0499, True), (0.05, True), (0.0501, False)])
def test_verdict(p: float, small: bool) -> None:
    assert (verdict(float(np.log10(p))) == "The model prefers the published order") is small


def _said(test: str, p: float, judged: str) -> str:
    result = SimpleNamespace(log10_p=float(np.log10(p)), permutations=19)
    outcome = SimpleNamespace(test=test, result=result)
    return reading(outcome, SimpleNamespace(verdict=judged))


def test_a_small_p_is_evidence_only_where_the_order_is_quiet() -> None:
    assert "this is evidence" in _said("successor", 1e-4, "quiet")
    for judged in ("suspicious", "order carries information", "too few records"):
        assert "this is evidence" not in _said("successor", 1e-4, judged)
    assert "no evidence" in _said("successor", 1e-4, "order carries information")
    for judged in _MEANING:
        assert "evidence" not in _said("successor", 0.2, judged)


def test_every_verdict_has_a_meaning() -> None:
    assert set(_MEANING) == set(Verdict.__args__)
    few = diagnose(["a", "b"], shards=1, rng=np.random.default_rng(0))
    assert few.verdict in _MEANING


def test_limits_of_the_papers_tests_are_told() -> None:
    assert "0.05" in _said("permutation", 0.05, "quiet").split("cannot fall below")[1]
    assert "approximation" in _said("sharded_t", 0.3, "quiet")
    assert "approximation" not in _said("sharded_exact", 0.3, "quiet")
