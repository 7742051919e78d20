"""The two tests of the paper by hand and by enumeration, and what is made of the same scores."""

import itertools

import mpmath
import numpy as np
import pytest
import scipy.stats

from contamination.statistics import (
    permutation_test,
    relabel_canonical,
    sharded_t_p_values,
    sharded_t_test,
)
from contamination.statistics.t_test import _log_t_survival
from fakes.level import check_every_level


def test_by_hand():
    result = permutation_test([-10.0, -11.0, -10.0, -9.0])
    assert result.p == (1 + 2) / 4
    assert result.log10_p == pytest.approx(np.log10(0.75))
    assert result.statistic == -10.0
    assert result.shards == 1
    assert result.permutations == 3
    assert permutation_test(np.arange(100)[::-1]).p == 0.01  # the smallest, 1 / (1 + m)
    assert permutation_test(np.zeros(100)).p == 1.0
    noisy = [-0.3, -(0.1 + 0.2), -1.0]  # the second ties with the first but for its last bit
    assert permutation_test(noisy).p == permutation_test([noisy[1], noisy[0], -1.0]).p == 2 / 3


@pytest.mark.parametrize("levels", [24, 5])
def test_exact_over_every_ordering_of_four_examples(levels):
    """Each of the 24 orderings in turn is canonical: P(p <= a) <= a, with equality without ties."""
    rng = np.random.default_rng(levels)
    values = np.arange(24) % levels
    scores = dict(zip(itertools.permutations(range(4)), rng.permutation(values), strict=True))
    p = []
    for canonical in scores:
        others = [score for order, score in scores.items() if order != canonical]
        p.append(permutation_test([scores[canonical], *others]).p)
    check_every_level(p)
    if levels == 24:
        assert sorted(p) == [count / 24 for count in range(1, 25)]


def log10_survival(t, df):
    """P(t_df >= t) at 40 digits, by a series of positive terms that holds for every t > 0."""
    with mpmath.workdps(40):
        a = mpmath.mpf(df) / 2
        x = df / (df + mpmath.mpf(t) ** 2)
        total = mpmath.mpf(1)
        term = mpmath.mpf(1)
        n = 0
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


def test_log_survival_where_scipy_has_no_value_of_the_series():
    log10_p = _log_t_survival(40, 999_999) / np.log(10)
    assert log10_p == pytest.approx(-349.1590067867, rel=1e-9)  # by mpmath's quadrature


@pytest.mark.parametrize("shift", [-3.0, 0.5])
def test_agrees_with_scipy_and_with_ddof_0_with_the_public_script(shift):
    scores = np.random.default_rng(0).normal(-500, 2, (20, 11))
    scores[:, 0] += shift
    differences = scores[:, 0] - scores[:, 1:].mean(axis=1)
    expected = scipy.stats.ttest_1samp(differences, 0, alternative="greater")
    result = sharded_t_test(scores)
    assert result.statistic == pytest.approx(expected.statistic)
    assert result.p == pytest.approx(expected.pvalue, rel=1e-9, abs=0)
    assert result.log10_p == pytest.approx(np.log10(expected.pvalue))
    assert result.shards == 20
    assert result.permutations == 10
    z = np.mean(differences) / np.std(differences) * np.sqrt(20)
    of_script = sharded_t_test(scores, ddof=0)
    assert of_script.p == pytest.approx(scipy.stats.t.sf(z, df=19), rel=1e-9, abs=0)
    silent = sharded_t_test([[0.1 + 0.2, 0.3, 0.3]] * 7)
    assert silent.statistic == 0.0
    assert silent.p == 1.0
    assert silent.log10_p == 0.0


@pytest.mark.parametrize("ddof", [0, 1])
def test_many_choices_at_once_have_the_p_value_of_each(ddof):
    rng = np.random.default_rng(4)
    scores = rng.normal(-500, 2, (6, 5))
    scores[:, 4] = scores[:, :4].mean(axis=1)  # called canonical, it shows nothing
    canonical = np.vstack([rng.integers(5, size=(20, 6)), np.full((1, 6), 4)])
    found = sharded_t_p_values(scores, canonical, ddof=ddof)
    for p, chosen in zip(found, canonical, strict=True):
        expected = sharded_t_test(relabel_canonical(scores, chosen), ddof=ddof).p
        assert p == pytest.approx(expected, rel=1e-9)
    assert found[-1] == 1.0


def test_the_chosen_column_of_each_shard_trades_places_with_the_first():
    scores = np.arange(24.0).reshape(2, 3, 4)  # two statistics of three shards
    kept = scores.copy()
    swapped = relabel_canonical(scores, [2, 0, 3])
    np.testing.assert_array_equal(swapped[0], [[2, 1, 0, 3], [4, 5, 6, 7], [11, 9, 10, 8]])
    np.testing.assert_array_equal(swapped[1], swapped[0] + 12)
    np.testing.assert_array_equal(scores, kept)
    np.testing.assert_array_equal(relabel_canonical(swapped, [2, 0, 3]), scores)
