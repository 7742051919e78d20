import mpmath
import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from contamination.statistics.multiple_testing import (
    adjust,
    cauchy,
    dkw_band,
    ecdf,
    fisher,
    harmonic_mean,
)

RULES = [fisher, cauchy, harmonic_mean]
EACH = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)


def of(rule, p):
    return rule(np.log10(p))


LOG10_P = st.lists(st.floats(-5000, 0), min_size=1, max_size=8)

STATSMODELS = {"holm": "holm", "benjamini_hochberg": "fdr_bh"}
EACH_METHOD = pytest.mark.parametrize("method", STATSMODELS)


@given(st.lists(st.floats(1e-300, 1), min_size=1, max_size=8))
def test_fisher_agrees_with_scipy(p_values):
    expected = scipy.stats.combine_pvalues(p_values, method="fisher")
    result = of(fisher, p_values)
    assert 0 < result.p <= 1
    assert result.statistic == pytest.approx(expected.statistic)
    if expected.pvalue > 1e-290:
        assert result.p == pytest.approx(expected.pvalue, rel=1e-9, abs=0)
        assert result.log10_p == pytest.approx(np.log10(expected.pvalue), abs=1e-9)


def test_fisher_has_no_floor():
    result = fisher([-200] * 10)
    with mpmath.workdps(30):
        exact = mpmath.log10(mpmath.gammainc(10, result.statistic / 2, regularized=True))
    assert result.log10_p == pytest.approx(float(exact), rel=1e-12)
    assert result.log10_p < -1900
    assert result.p > 0


CAUCHY = [[-1e-3, -2.0], [-300.0, -5.0, -0.1], [-2000.0, -1990.0], [-1e-9, -1e-10], [-0.7]]
CAUCHY += [[-8.0, -8.0001], [-9.0, -7.9], [-12.0, -8.5]]  # both sides of each switch of formulas
CAUCHY += [[-0.3, -0.31], [-1e-12, -12.0]]  # on both sides of 1/2, nearly cancelling
CAUCHY += [[np.log10(0.25), np.log10(0.5)]]  # cot(pi / 4) = 1 and cot(pi / 2) = 0


@pytest.mark.parametrize("log10_p", CAUCHY)
def test_cauchy_against_many_digits(log10_p):
    with mpmath.workdps(60):
        terms = [mpmath.cot(mpmath.pi * mpmath.mpf(10) ** mpmath.mpf(x)) for x in log10_p]
        mean = sum(terms) / len(terms)
        exact = mpmath.log10(mpmath.atan2(1, mean) / mpmath.pi)
    result = cauchy(log10_p=log10_p)
    assert result.log10_p == pytest.approx(float(exact), rel=1e-9)
    if abs(mean) < 1e300:
        assert result.statistic == pytest.approx(float(mean), rel=1e-6)


def test_harmonic_mean_by_hand():
    result = of(harmonic_mean, [0.02, 0.06])
    assert result.statistic == pytest.approx(0.03)
    assert result.p == pytest.approx(0.06)  # twice: a_2 = 2
    assert of(harmonic_mean, [0.7, 0.7]).p == 1.0


@pytest.mark.parametrize("n", [2, 3, 5, 10])
def test_harmonic_mean_at_the_worst_dependence(n):
    """Rearrangement (Embrechts, Puccetti and Rüschendorf 2013) makes all harmonic means equal."""
    rng = np.random.default_rng(0)
    cells = 2000
    inverse = cells / (np.arange(cells) + 0.5)
    columns = np.stack([rng.permutation(inverse) for _ in range(n)], axis=1)
    for _ in range(30):
        for column in columns.T:
            others = columns.sum(axis=1) - column
            column[np.argsort(-others)] = np.sort(inverse)
    harmonic = n / columns.sum(axis=1).min()
    p = of(harmonic_mean, [0.01 * harmonic] * n).p / 0.01  # below the cap at 1
    assert 1 - 1e-3 <= p <= 1.002


@EACH
@given(LOG10_P)
def test_one_p_value_is_itself_and_the_order_of_many_does_not_count(rule, log10_p):
    assert rule(log10_p[:1]).log10_p == pytest.approx(log10_p[0], rel=1e-9, abs=1e-9)
    assert rule([0.0, -300.0]).log10_p < -70  # a silent test hides nothing
    result = rule(log10_p)
    assert result.log10_p <= 0 < result.p <= 1
    assert np.isfinite([result.log10_p, result.statistic]).all()
    least = np.finfo(float).tiny
    assert result.p == pytest.approx(max(10.0**result.log10_p, least), rel=1e-9, abs=0)
    assert rule(log10_p[::-1]).log10_p == pytest.approx(result.log10_p, rel=1e-9, abs=1e-9)


@EACH_METHOD
def test_agrees_with_statsmodels(method):
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 10, 56):
        p = np.round(rng.random(n) ** 6, 3 if n == 10 else 16) + 1e-12  # with ties for n = 10
        p[0] = 1.0
        expected = multipletests(p, method=STATSMODELS[method])[1]
        result = adjust(np.log10(p), method=method)
        np.testing.assert_allclose(result.p, expected, rtol=1e-12)
        np.testing.assert_allclose(result.log10_p, np.log10(expected), atol=1e-12)


@EACH_METHOD
def test_adjusted_p_has_no_floor(method):
    """Subtracting a constant from all log10 p subtracts it from the adjusted ones."""
    shallow = np.array([-2.0, -2.5, -3.0, -7.0])
    adjusted = adjust(log10_p=shallow, method=method).log10_p
    assert (adjusted < 0).all()
    deep = adjust(log10_p=shallow - 4000, method=method)
    np.testing.assert_allclose(deep.log10_p, adjusted - 4000, rtol=1e-12)
    assert (deep.p == np.finfo(float).tiny).all()


def test_the_band_and_the_law_that_it_is_around():
    assert dkw_band(100, 0.95) == pytest.approx(1.3581 / 10, rel=1e-4)  # as in textbooks
    x, heights = ecdf([0.5, 0.1, 1.0, 0.5])
    assert x.tolist() == [0.1, 0.5, 0.5, 1]
    assert heights.tolist() == [0.25, 0.5, 0.75, 1]
