import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from contamination.errors import InputError
from contamination.statistics.multiplicity import adjust

METHODS = ("holm", "benjamini_hochberg", "benjamini_yekutieli")
STATSMODELS = {"holm": "holm", "benjamini_hochberg": "fdr_bh", "benjamini_yekutieli": "fdr_by"}
EACH = pytest.mark.parametrize("method", METHODS)
LOG10_P = st.lists(st.floats(-5000, 0), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("holm", [0.03, 0.06, 0.06, 0.02]),
        ("benjamini_hochberg", [0.02, 0.04, 0.04, 0.02]),
        ("benjamini_yekutieli", [1 / 24, 1 / 12, 1 / 12, 1 / 24]),
    ],
)
def test_by_hand(method, expected):
    result = adjust([0.01, 0.04, 0.03, 0.005], method=method)
    np.testing.assert_allclose(result.p, expected)
    np.testing.assert_allclose(result.log10_p, np.log10(expected))


def test_the_fifteen_p_values_of_benjamini_and_hochberg():
    """Their section 3.2: at level 0.05, Bonferroni and Holm reject 3 of them, and BH 4."""
    p = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344]
    p += [0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000]
    rejected = {method: int(adjust(p, method=method).rejected(0.05).sum()) for method in METHODS}
    assert rejected == {"holm": 3, "benjamini_hochberg": 4, "benjamini_yekutieli": 3}


@EACH
def test_agrees_with_statsmodels(method):
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 10, 56):
        p = np.round(rng.random(n) ** 6, 3 if n == 10 else 16) + 1e-12  # with ties for n = 10
        p[0] = 1.0
        expected = multipletests(p, method=STATSMODELS[method])[1]
        np.testing.assert_allclose(adjust(p, method=method).p, expected, rtol=1e-12)


@EACH
def test_no_floor(method):
    """Subtracting a constant from all log10 p subtracts it from the adjusted ones."""
    shallow = np.array([-2.0, -2.5, -3.0, -7.0])
    adjusted = adjust(log10_p=shallow, method=method).log10_p
    assert (adjusted < 0).all()
    deep = adjust(log10_p=shallow - 4000, method=method)
    np.testing.assert_allclose(deep.log10_p, adjusted - 4000, rtol=1e-12)
    assert (deep.p == np.finfo(float).tiny).all()
    mixed = adjust(log10_p=[-4000.0, -0.1], method=method)
    assert mixed.log10_p[0] < -3999


@EACH
@given(LOG10_P, st.randoms())
@settings(max_examples=40, deadline=None)
def test_properties(method, log10_p, random):
    result = adjust(log10_p=log10_p, method=method)
    raw, n = np.array(log10_p), len(log10_p)
    assert (result.log10_p >= raw).all()
    harmonic = np.log10((1 / np.arange(1, n + 1)).sum()) if "yekutieli" in method else 0
    assert (result.log10_p <= np.minimum(0, raw + np.log10(n) + harmonic) + 1e-9).all()
    assert (np.diff(result.log10_p[np.argsort(raw)]) >= 0).all()
    assert ((result.p > 0) & (result.p <= 1)).all()
    order = random.sample(range(n), n)
    again = adjust(log10_p=raw[order], method=method)
    np.testing.assert_array_equal(again.log10_p, result.log10_p[order])
    np.testing.assert_array_equal(result.raw_log10_p, raw)


def _rejections(method, p):
    return np.array([adjust(row, method=method).rejected(0.1) for row in p])


@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_error_rates_hold(correlation):
    """5 true null hypotheses among 10; equicorrelated normal statistics are PRDS."""
    rng = np.random.default_rng(1)
    trials = 1500
    shared = rng.normal(size=(trials, 1)) * np.sqrt(correlation)
    z = shared + rng.normal(size=(trials, 10)) * np.sqrt(1 - correlation)
    z[:, 5:] += 2.5
    p = scipy.stats.norm.sf(z)
    holm, bh, by = (_rejections(method, p) for method in METHODS)
    assert holm[:, :5].any(axis=1).sum() <= scipy.stats.binom.ppf(1 - 1e-4, trials, 0.1)
    if not correlation:
        assert bh[:, :5].any(axis=1).mean() > 0.12  # more than one promise would be suspicious
    for found in (bh, by):
        share = found[:, :5].sum(axis=1) / np.maximum(1, found.sum(axis=1))
        assert share.mean() <= 0.1 + 4 * share.std() / np.sqrt(trials)
    assert holm.sum() < bh.sum()
    assert (by <= bh).all()


@EACH
def test_the_guarantee_is_named(method):
    words = {
        "holm": "family-wise error rate, any dependence",
        "benjamini_hochberg": "PRDS",
        "benjamini_yekutieli": "false discovery rate, any dependence",
    }
    result = adjust([0.5], method=method)
    assert words[method] in result.guarantee
    assert result.method == method


def test_bad_input():
    with pytest.raises(InputError, match=r"p_values\[2\]"):
        adjust([0.2, 0.3, 0.0], method="holm")
    with pytest.raises(InputError, match="method is 'bonferroni': give one of holm, benjamini"):
        adjust([0.2], method="bonferroni")
    with pytest.raises(InputError, match="either p_values or log10_p"):
        adjust(method="holm")
    for alpha in (0.0, 1.0, float("nan")):
        with pytest.raises(InputError, match="alpha is"):
            adjust([0.2], method="holm").rejected(alpha)
