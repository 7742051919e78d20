import mpmath
import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from contamination.errors import InputError
from contamination.statistics import sharded_t_test
from contamination.statistics.sharded_t import _log_t_survival


def log10_survival(t, df):
    """P(t_df >= t) at 40 digits, by a series of positive terms that holds for every t > 0."""
    with mpmath.workdps(40):
        a, x = mpmath.mpf(df) / 2, df / (df + mpmath.mpf(t) ** 2)
        total, term, n = mpmath.mpf(1), mpmath.mpf(1), 0
        while term > mpmath.mpf(10) ** -35:
            term *= (n + mpmath.mpf(1) / 2) / (n + 1) * x
            n += 1
            total += term * a / (a + n)
        return float(mpmath.log10(x**a * total / (2 * a * mpmath.beta(a, mpmath.mpf(1) / 2))))


FAR = [(1e20, 1, -20), (399, 9, -20), (1e4, 14, -50), (42.7, 49, -40), (283, 49, -80)]
FAR += [(32, 199, -80), (446, 199, -300), (9e6, 49, -301), (1e13, 30, -371)]
FAR += [(314, 999, -1000), (80, 9999, -1076), (38, 99999, -313)]


@pytest.mark.parametrize(("t", "df", "about"), FAR)
def test_log_survival_in_the_far_tail(t, df, about):
    exact = log10_survival(t, df)
    assert exact == pytest.approx(about, rel=0.05)
    assert _log_t_survival(t, df) / np.log(10) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("shift", [-3.0, 0.0, 0.5, 5.0])
def test_agrees_with_scipy(shift):
    rng = np.random.default_rng(0)
    scores = rng.normal(-500, 2, (20, 11))
    scores[:, 0] += shift
    differences = scores[:, 0] - scores[:, 1:].mean(axis=1)
    expected = scipy.stats.ttest_1samp(differences, 0, alternative="greater")
    result = sharded_t_test(scores)
    assert result.statistic == pytest.approx(expected.statistic)
    assert result.p == pytest.approx(expected.pvalue)
    assert result.log10_p == pytest.approx(np.log10(expected.pvalue))
    assert (result.shards, result.permutations, result.df) == (20, 10, 19)
    np.testing.assert_allclose(result.differences, differences)


def test_no_floor():
    scores = np.random.default_rng(1).normal(0, 1, (400, 5))
    scores[:, 0] += 1e4
    result = sharded_t_test(scores)
    assert result.log10_p == pytest.approx(log10_survival(result.statistic, 399), rel=1e-12)
    assert result.log10_p < -1000
    assert 0 < result.p < 1e-300


def test_ddof_0_repeats_the_public_script():
    scores = np.random.default_rng(2).normal(size=(5, 8))
    differences = scores[:, 0] - scores[:, 1:].mean(axis=1)
    z = np.mean(differences) / np.std(differences) * np.sqrt(5)
    assert sharded_t_test(scores, ddof=0).p == pytest.approx(1 - scipy.stats.t.cdf(z, df=4))


def test_calibrated_on_normal_scores_with_ddof_1_and_not_with_ddof_0():
    rng = np.random.default_rng(3)
    trials, alpha = 3000, 0.05
    low, high = scipy.stats.binom.ppf([1e-4, 1 - 1e-4], trials, alpha)
    draws = rng.normal(size=(trials, 4, 6))
    public, ours = (
        sum(sharded_t_test(scores, ddof=ddof).p <= alpha for scores in draws) for ddof in (0, 1)
    )
    assert low <= ours <= high < public


def test_all_shards_equal():
    with pytest.raises(InputError, match="same difference"):
        sharded_t_test([[0.3, 0.1, 0.1, 0.1]] * 7)
    silent = sharded_t_test([[0.1 + 0.2, 0.3, 0.3]] * 7)
    assert (silent.statistic, silent.p, silent.log10_p) == (0.0, 1.0, 0.0)


@given(st.integers(0, 2**32 - 1), st.floats(-50, 50))
def test_invariances(seed, shift):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(5, 7))
    result = sharded_t_test(scores)
    assert 0 < result.p <= 1
    moved = scores + np.array([shift, 0, 0, 0, 0])[:, None]
    assert sharded_t_test(moved).log10_p == pytest.approx(result.log10_p, abs=1e-9)
    moved[:, 1:] = rng.permuted(moved[:, 1:], axis=1)
    assert sharded_t_test(moved).log10_p == pytest.approx(result.log10_p, abs=1e-9)


def test_bad_input():
    with pytest.raises(InputError, match="at least 2"):
        sharded_t_test(np.zeros((1, 5)))
    with pytest.raises(InputError, match="ddof is 2"):
        sharded_t_test(np.zeros((3, 5)), ddof=2)
    with pytest.raises(InputError, match="shard 2, ordering 1"):
        sharded_t_test([[0, 1], [0, 1], [0, np.inf]])
