"""What tests take and refuse, and p-values that are never zero."""

import numpy as np
import pytest

from contamination.errors import InputError
from contamination.statistics import exchangeability as order
from contamination.statistics import multiple_testing, oren, successor
from contamination.statistics import results as given
from contamination.statistics import sharded_exact as exact
from contamination.statistics import token_scores as tokens
from contamination.statistics.anytime import anytime_test

RNG, PAIR, LED = np.random.default_rng(0), [[0.0, 1.0]], np.zeros((2, 3), dtype=bool)


def two(scores, named):
    """Input of a test on shards that is refused, and what the message names."""
    return (lambda: given.as_log_probs(scores, ndim=2)), named


REFUSED = [
    two([1.0, 2.0], "shape"),
    two(np.zeros((2, 2, 2)), "shape"),
    two(np.zeros((0, 3)), "at least 1"),
    two(np.zeros((3, 1)), "at least 1 permutation"),
    two([[1, 2, 3], [1, 2, np.nan]], r"log_probs\[1, 2\] is nan"),
    two([[1, -np.inf, 3]], r"log_probs\[0, 1\] is -inf"),
    *((lambda bad=bad: multiple_testing.fisher(bad), "shape") for bad in ([], [[-0.5]], -0.5)),
    *((lambda b=b: multiple_testing.fisher([-0.2, b]), r"log10_p\[1\]") for b in (0.01, -np.inf)),
    (lambda: multiple_testing.adjust([-0.2], method="bonferroni"), "'bonferroni'"),
    *((lambda bad=bad: multiple_testing.ecdf(bad), "p_values has shape") for bad in ([], 0.5)),
    *((lambda b=b: multiple_testing.ecdf([0.5, b]), r"p_values\[1\] is") for b in (np.nan, 1.5)),
    *((lambda b=b: multiple_testing.dkw_band(*b), "1 or more") for b in ((0, 0.95), (10, np.nan))),
    (lambda: oren.permutation_test(np.zeros((2, 3))), "shape"),
    (lambda: oren.sharded_t_test(np.zeros((1, 5))), "at least 2"),
    (lambda: oren.sharded_t_test([[0.3, 0.1, 0.1, 0.1]] * 7), "same difference"),
    (lambda: exact.sharded_exact_test(PAIR, weights="variance"), "'variance'"),
    (lambda: exact.pooled_exact_test([]), "no set to pool"),
    (lambda: exact.pooled_exact_test([PAIR, [[1.0, np.nan]]]), r"\[0, 1\] is nan"),
    (lambda: anytime_test([], alpha=0.05), "shards is empty"),
    (lambda: anytime_test([[1.0, 2.0], [1.0, np.nan]], alpha=0.05), r"log_probs\[1\] is nan"),
    *((lambda a=a: anytime_test(PAIR, alpha=a), "alpha is") for a in (0.0, 1.0, np.nan)),
    (lambda: order.order_test([1.0], alternative="greater"), "1 permutation"),
    *((lambda s=s: successor.centred_successors(np.zeros(s)), "k >= 2") for s in ((2, 3), 4)),
    (lambda: successor.centred_successors(np.zeros((2, 2))), "at least 3"),
    (lambda: successor.successor_scores([[0.0, 1.0], [np.nan, 0.0]], [[0, 1]]), r"\[1, 0\] is nan"),
    *(
        (lambda o=o: successor.successor_scores(np.zeros((3, 3)), o), "permutations of 0 to 2")
        for o in ([[0, 1, 1]], [[0, 1]], [0, 1, 2], [[0, 1, np.nan]])
    ),
    (lambda: tokens.centred_tokens(np.zeros((2, 3)), LED.astype(int)), "leading as bool"),
    (lambda: tokens.centred_tokens(np.zeros((2, 3)), LED[:, :2]), r"\(2, 2\)"),
    (lambda: tokens.centred_tokens([[0, 0, 0], [0, 0, -np.inf]], LED), r"\[1, 2\] is -inf"),
]


@pytest.mark.parametrize(("call", "named"), REFUSED)
def test_bad_input_is_named_in_one_line(call, named):
    with pytest.raises(InputError, match=named) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("log10_p", [-1e6, -308.0, -2.0, 0.0])
def test_p_is_never_zero_nor_below_what_log10_p_says(log10_p):
    assert 0 < given.p_from_log10(log10_p) <= 1
    assert given.p_from_log10(log10_p) >= 10.0**log10_p


def test_only_a_row_within_the_resolution_is_made_equal():
    scores = np.array([[-3.0, -3.001, -3.002], [-3.0, -3.001, -4.0]])
    tied = given.with_ties(scores, [0.01, 0.01])
    assert np.ptp(tied[0]) == 0
    np.testing.assert_array_equal(tied[1], scores[1])
    np.testing.assert_array_equal(given.with_ties(scores, 0.0), scores)
