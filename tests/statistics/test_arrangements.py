"""Sums over items of whole-number statistics of arrangements, against enumeration."""

import itertools
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from contamination.statistics.arrangements import (
    ascents,
    in_turn,
    largest_test,
    neighbours,
    stands_at,
    sum_test,
)
from fakes.level import check_level

ALL = {k: np.array(list(itertools.permutations(range(k)))) for k in (2, 3, 4)}
VALUES = st.lists(st.integers(0, 3), min_size=2, max_size=4)
SMALL = arrays(
    np.int64, st.tuples(st.integers(1, 4), st.integers(2, 5)), elements=st.integers(-3, 3)
)


@given(VALUES)
def test_ascents_are_kendalls_s(values):
    found = ascents(values, ALL[len(values)])
    for arrangement, s in zip(ALL[len(values)], found, strict=True):
        pairs = itertools.combinations([values[i] for i in arrangement], 2)
        assert s == sum((b > a) - (b < a) for a, b in pairs)
    assert found.sum() == 0  # an order and its reverse cancel
    if len(set(values)) == len(values):
        tau = scipy.stats.kendalltau(range(len(values)), values).statistic
        assert found[0] == pytest.approx(tau * math.comb(len(values), 2))


@pytest.mark.parametrize("k", ALL)
def test_pairs_by_brute_force(k):
    pairs = np.random.default_rng(k).integers(-5, 6, (k, k))
    beside, anywhere = neighbours(pairs, ALL[k]), in_turn(pairs, ALL[k])
    for row, arrangement in enumerate(ALL[k].tolist()):
        assert beside[row] == sum(pairs[a, b] for a, b in itertools.pairwise(arrangement))
        assert anywhere[row] == sum(pairs[a, b] for a, b in itertools.combinations(arrangement, 2))


def test_where_an_option_stands():
    found = stands_at(1, ALL[3], 5)
    assert found.shape == (5, 6)
    np.testing.assert_array_equal(found.sum(axis=0), 1)  # somewhere, once
    np.testing.assert_array_equal(found.sum(axis=1), [2, 2, 2, 0, 0])
    assert [row.tolist().index(1) for row in ALL[3]] == found.argmax(axis=0).tolist()


def enumerated(values):
    """Two-sided p of the sum over rows, from all columns that could be drawn."""
    sums = np.array([sum(drawn) for drawn in itertools.product(*values.tolist())])
    observed = values[:, 0].sum()
    return min(1, 2 * min((sums >= observed).mean(), (sums <= observed).mean())), sums


@given(SMALL)
@settings(max_examples=80)
def test_sum_test_equals_enumeration(values):
    result, (p, sums) = sum_test(values), enumerated(values)
    assert result.p == pytest.approx(p, rel=1e-6)
    assert result.log10_p == pytest.approx(math.log10(p), abs=1e-6)
    z = (values[:, 0].sum() - sums.mean()) / sums.std() if sums.std() else 0
    assert result.z == pytest.approx(z, abs=1e-9)


def test_a_far_tail_has_no_floor():
    """All of 1,000 items of 24 arrangements at the only largest value."""
    values = np.zeros((1000, 24), dtype=int)
    values[:, 0] = 1
    assert sum_test(values).log10_p == pytest.approx(math.log10(2) - 1000 * math.log10(24))
    values[:, 1] = 2
    assert sum_test(values).log10_p < -300  # no longer the largest: a convolution


def test_the_largest_of_several_pays_for_the_choice():
    rng = np.random.default_rng(1)
    sums = rng.integers(0, 4, (3, 12, 6))
    sums[1, :, 0] = 3
    found = largest_test(sums)
    assert found.which == 1
    alone = sum_test(sums[1])
    assert found.result.p == pytest.approx(min(1, 3 * alone.p))
    assert found.result.z == alone.z
    assert largest_test(np.zeros((2, 3, 4), dtype=int)).result.p == 1


def test_calibrated_if_every_row_draws_its_column():
    """The level is kept, and reached as nearly as a sum of whole numbers can."""
    rng = np.random.default_rng(2)
    rows = rng.integers(0, 40, (10, 8))
    p, chosen = [], []
    for trial in range(1000):
        drawn = np.array([np.roll(row, rng.integers(8)) for row in rows])
        p.append(sum_test(drawn).p)
        if trial % 4 == 0:
            chosen.append(largest_test([drawn, drawn % 7, -(drawn // 9)]).result.p)
    check_level(p, 0.01, 0.05, 0.2)
    check_level(chosen, 0.05, reached=False)
