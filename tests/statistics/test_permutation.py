import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from contamination.errors import InputError
from contamination.statistics import permutation_test

SCORES = arrays(np.float64, st.integers(2, 12), elements=st.integers(-3, 3))


def test_by_hand():
    result = permutation_test([-10.0, -11.0, -10.0, -9.0])
    assert result.p == (1 + 2) / 4
    assert result.log10_p == pytest.approx(np.log10(0.75))
    assert (result.statistic, result.shards, result.permutations) == (-10.0, 1, 3)
    assert permutation_test(np.arange(100)[::-1]).p == 0.01  # the smallest, 1 / (1 + m)
    assert permutation_test(np.zeros(100)).p == 1.0


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
    for count in range(1, 25):
        rejected = np.mean(np.array(p) <= count / 24)
        assert rejected <= count / 24
        if levels == 24:
            assert rejected == count / 24


@given(SCORES, st.integers(-5, 5), st.randoms())
def test_invariances(scores, shift, random):
    shuffled = list(scores[1:])
    random.shuffle(shuffled)
    p = permutation_test(scores).p
    assert 0 < p <= 1
    assert permutation_test(scores + shift).p == p
    assert permutation_test([scores[0], *shuffled]).p == p
    raised = scores.copy()
    raised[0] += 1
    assert permutation_test(raised).p <= p


def test_bad_input():
    with pytest.raises(InputError, match="shape"):
        permutation_test(np.zeros((2, 3)))
    with pytest.raises(InputError, match="permutation"):
        permutation_test([1.0])
