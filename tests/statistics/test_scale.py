"""Results do not depend on the unit of the scores, nor on a constant that is added to them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from contamination.statistics import (
    anytime_test,
    permutation_test,
    pooled_exact_test,
    sharded_exact_monte_carlo,
    sharded_exact_p_values,
    sharded_exact_test,
    sharded_t_p_values,
    sharded_t_test,
    simulated_p_values,
    westfall_young_test,
)
from contamination.statistics.exchangeability import max_z, order_test

Scores = NDArray[np.float64]


def stream() -> np.random.Generator:
    return np.random.default_rng(3)


# log10 p of a test, or what else it gives that has no unit.
WITHOUT_UNIT: dict[str, Callable[[Scores], Any]] = {
    "permutation": lambda x: permutation_test(x[0]).log10_p,
    "sharded t": lambda x: sharded_t_test(x).log10_p,
    "sharded exact": lambda x: sharded_exact_test(x).log10_p,
    "equal weights": lambda x: sharded_exact_test(x, weights="equal").log10_p,
    "pooled": lambda x: pooled_exact_test([x, x[:1]], weights="equal").log10_p,
    "Monte Carlo": lambda x: sharded_exact_monte_carlo(x, resamples=99, rng=stream()).log10_p,
    "all choices": lambda x: sharded_exact_p_values(x, np.zeros((1, len(x)), dtype=int)),
    "all choices, t": lambda x: sharded_t_p_values(x, np.zeros((1, len(x)), dtype=int)),
    "anytime": lambda x: anytime_test(x, alpha=0.05).log10_p,
    "min-p": lambda x: westfall_young_test([x, x[::-1]], resamples=99, rng=stream()).log10_p,
    "order": lambda x: order_test(x[0], alternative="two-sided").log10_p,
    "largest z": max_z,
    "power": lambda x: simulated_p_values(np.hstack([x] * 3), np.ones((3, len(x))), rng=stream()),
}
SHARDS = st.tuples(st.integers(2, 6), st.integers(2, 7), st.integers(0, 2**32 - 1))
# Powers of two from about 1e-300 to 1e300, by which a float is multiplied without rounding.
EXPONENTS = st.integers(-996, 990)


def draw_scores(shards: tuple[int, int, int]) -> Scores:
    """Whole numbers, some of them equal, with unlike shards."""
    rows, columns, seed = shards
    rng = np.random.default_rng(seed)
    scores = rng.integers(-40, 40, (rows, columns)).astype(float)
    scores[0] *= 16
    scores[:, 0] += rng.integers(0, 30)
    return scores


@pytest.mark.parametrize("name", WITHOUT_UNIT)
@settings(deadline=None, max_examples=25)
@given(shards=SHARDS, exponent=EXPONENTS)
def test_the_unit_of_the_scores_changes_no_bit(name, shards, exponent):
    scores = draw_scores(shards)
    test = WITHOUT_UNIT[name]
    np.testing.assert_array_equal(test(np.ldexp(scores, exponent)), test(scores))


@pytest.mark.parametrize("name", WITHOUT_UNIT)
@settings(deadline=None, max_examples=25)
@given(shards=SHARDS, exponent=EXPONENTS, shift=st.integers(-(10**6), 10**6))
def test_a_constant_that_is_added_changes_nothing_but_rounding(name, shards, exponent, shift):
    scores = draw_scores(shards)
    test = WITHOUT_UNIT[name]
    shifted = np.ldexp(scores + shift, exponent)
    np.testing.assert_allclose(test(shifted), test(scores), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-310, 1e-300, 1e-154, 3e-7, 0.1, 1e154, 1e300])
@pytest.mark.parametrize("name", WITHOUT_UNIT)
def test_another_unit_changes_nothing_but_rounding(name, scale):
    scores = np.random.default_rng(0).normal(size=(6, 8))
    scores[:, 0] += 2
    test = WITHOUT_UNIT[name]
    tolerance = 1e-5 if scale > 1e-305 else 1e-3  # below it, floats have fewer digits
    np.testing.assert_allclose(test(scores * scale), test(scores), rtol=tolerance)


@pytest.mark.parametrize("exponent", [-1000, -3, 0, 900])
def test_statistics_keep_their_unit(exponent):
    scores = np.random.default_rng(1).normal(size=(5, 9))
    result = sharded_exact_test(scores, weights="equal")
    scaled = sharded_exact_test(np.ldexp(scores, exponent), weights="equal")
    assert scaled.statistic == np.ldexp(result.statistic, exponent)
    assert scaled.resolution == np.ldexp(result.resolution, exponent)
    assert scaled.z == result.z
