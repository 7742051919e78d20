"""Inputs that statistics take and refuse, and p-values that are never zero."""

import inspect
import re
import warnings

import numpy as np
import pytest

from contamination import statistics
from contamination.errors import InputError
from contamination.statistics import (
    PValue,
    anytime_test,
    boundary_scores,
    contributions,
    exchangeability,
    fisher,
    generated_successors,
    hits_log10_p,
    inputs,
    known_at_least,
    min_p,
    multiple_testing,
    option_order,
    permutation_test,
    quiz_test,
    relabel_canonical,
    results,
    sharded_exact,
    sharded_t_p_values,
    sharded_t_test,
    simulated_p_values,
    successor,
    token_scores,
)

RNG = np.random.default_rng(0)
PAIR = [[0.0, 1.0]]
LED = np.zeros((2, 3), dtype=bool)
ORDERINGS = np.array([[0, 1, 2], [2, 1, 0]])
MASKED = np.ma.masked_invalid([[1.0, np.nan, 2.0], [1.0, 2.0, 3.0]])
IN_ITSELF: list[object] = [1.0, 2.0]
IN_ITSELF.append(IN_ITSELF)


def two(scores, named):
    """Input of a test on shards that is refused, and what the message names."""
    return (lambda: inputs.as_log_probs(scores, ndim=2)), named


# What is not a plain array of numbers, and what the message names.
NOT_NUMBERS = {
    "masked": (MASKED, "masked"),
    "rows of which one is masked": ([MASKED[0], MASKED[1]], "masked"),
    "complex": (np.ones((2, 3)) * 1j, "complex128"),
    "text": ([["1", "2", "3"], ["1", "2", "3"]], "real numbers"),
    "ragged": ([[1.0, 2.0], [1.0, 2.0, 3.0]], "equal length"),
    "an integer that no float holds": ([[10**400, 1, 2], [1, 2, 3]], "no float holds"),
    "nothing": (None, "real numbers"),
    "a list in itself": (IN_ITSELF, "not an array of numbers"),
    "dates": (np.zeros((2, 3), dtype="datetime64[s]"), "real numbers"),
}
# Each public function that takes scores of shards, or another array.
TAKE_SHARDS = {
    "sharded_t_test": sharded_t_test,
    "sharded_exact_test": sharded_exact.sharded_exact_test,
    "pooled_exact_test": lambda x: sharded_exact.pooled_exact_test([x]),
    "sampling_error": sharded_exact.sampling_error,
    "monte carlo": lambda x: sharded_exact.sharded_exact_monte_carlo(x, resamples=9, rng=RNG),
    "p_values": lambda x: sharded_exact.sharded_exact_p_values(x, [[0, 0]]),
    "t p_values": lambda x: sharded_t_p_values(x, [[0, 0]]),
    "contributions": lambda x: contributions(x, weights="equal"),
    "westfall_young_test": lambda x: min_p.westfall_young_test([x], resamples=9, rng=RNG),
    "anytime_test": lambda x: anytime_test([x], alpha=0.05),
    "permutation_test": permutation_test,
    "simulated_p_values": lambda x: simulated_p_values(x, [[0.0, 0.0]], rng=RNG),
    "effects": lambda x: simulated_p_values(np.eye(3, 9), x, rng=RNG),
    "relabel_canonical": lambda x: relabel_canonical(x, [0, 0]),
    "canonical": lambda x: sharded_exact.sharded_exact_p_values(np.eye(3), x),
    "canonical of t": lambda x: sharded_t_p_values(np.eye(3), x),
    "order_test": lambda x: exchangeability.order_test(x, alternative="greater"),
    "max_z": exchangeability.max_z,
    "trend": lambda x: exchangeability.trend(x, ORDERINGS, [(0, 3)]),
    "sum_test": option_order.sum_test,
    "largest_test": option_order.largest_test,
    "in_turn": lambda x: option_order.in_turn(x, ORDERINGS),
    "centred_tokens": lambda x: token_scores.centred_tokens(x, LED),
    "leading": lambda x: token_scores.centred_tokens(np.zeros((2, 3)), x),
    "centred_successors": successor.centred_successors,
    "successor_scores": lambda x: successor.successor_scores(x, [[0, 1]]),
    "orderings": lambda x: successor.successor_scores(np.zeros((3, 3)), x),
    "fisher": fisher,
    "cauchy": multiple_testing.cauchy,
    "harmonic_mean": multiple_testing.harmonic_mean,
    "adjust": lambda x: multiple_testing.adjust(x, method="holm"),
    "ecdf": multiple_testing.ecdf,
    "hits": lambda x: quiz_test(x, choices=4, test="t", alpha=0.05),
    "chances": lambda x: hits_log10_p(1, x),
}

REFUSED = [
    two([1.0, 2.0], "shape"),
    two(np.zeros((2, 2, 2)), "shape"),
    two(np.zeros((0, 3)), "at least 1"),
    two(np.zeros((3, 1)), "at least 1 permutation"),
    two([[1, 2, 3], [1, 2, np.nan]], r"log_probs\[1, 2\] is nan"),
    two([[1, -np.inf, 3]], r"log_probs\[0, 1\] is -inf"),
    *(
        (lambda bad=bad: PValue.of(bad, statistic=0.0), "log10_p")
        for bad in (np.nan, None, "-1", -1j, [-1.0], np.ma.masked)
    ),
    *((lambda bad=bad: sharded_exact.pooled_exact_test(bad), "sets is") for bad in (None, 5)),
    (lambda: min_p.westfall_young_test(5, resamples=9, rng=RNG), "scores is 5"),
    (lambda: min_p.westfall_young_test([PAIR], names=5, resamples=9, rng=RNG), "names is 5"),
    (lambda: anytime_test(5.0, alpha=0.05), "shards is 5.0"),
    (lambda: generated_successors(5, []), "records is 5"),
    (lambda: generated_successors([["a"]], None), "written is None"),
    (lambda: generated_successors([[["a"]], [["b"]]], [[], []]), "units"),
    *((lambda bad=bad: fisher(bad), "shape") for bad in ([], [[-0.5]], -0.5)),
    *((lambda b=b: fisher([-0.2, b]), r"log10_p\[1\].* of at most 0") for b in (0.01, -np.inf)),
    (lambda: multiple_testing.adjust([-0.2], method="bonferroni"), "'bonferroni'"),
    *((lambda bad=bad: multiple_testing.ecdf(bad), "p_values has shape") for bad in ([], 0.5)),
    *((lambda b=b: multiple_testing.ecdf([0.5, b]), r"p_values\[1\] is") for b in (np.nan, 1.5)),
    (lambda: multiple_testing.dkw_band(0, 0.95), "1 or more"),
    (lambda: multiple_testing.dkw_band(10, np.nan), "level is nan"),
    (lambda: permutation_test(np.zeros((2, 3))), "shape"),
    (lambda: sharded_t_test(np.zeros((1, 5))), "at least 2"),
    (lambda: sharded_t_test([[0.3, 0.1, 0.1, 0.1]] * 7), "same difference"),
    *((lambda d=d: sharded_t_test(np.eye(3), ddof=d), "ddof is") for d in (100, -1, 0.5)),
    (lambda: sharded_t_p_values(np.eye(3), [[0, 0, 0]], ddof=2), "ddof is"),
    (lambda: sharded_t_p_values(np.eye(3), [[0, 1, 0], [0, 1, 2]]), "same difference"),
    (lambda: sharded_t_p_values(np.eye(3), [[0, 0, 3]]), "canonical"),
    (lambda: sharded_exact.sharded_exact_test(PAIR, weights="variance"), "'variance'"),
    (lambda: sharded_exact.pooled_exact_test([]), "no set to pool"),
    (lambda: sharded_exact.pooled_exact_test([PAIR, [[1.0, np.nan]]]), r"\[0, 1\] is nan"),
    *(
        (lambda c=c: sharded_exact.sharded_exact_p_values(np.eye(3), c), "canonical")
        for c in ([[0, 0]], [[0, 0, 3]], [[0, -1, 0]], [[0, 0.5, 0]], [0, 0, 0])
    ),
    (lambda: sharded_exact.sharded_exact_monte_carlo(PAIR, resamples=0, rng=RNG), "resamples"),
    (lambda: sharded_exact.sharded_exact_monte_carlo(PAIR, resamples=9, rng=7), "rng is 7"),
    *((lambda c=c: relabel_canonical(np.eye(3), c), "canonical") for c in ([0, 0], [0, 0, 3])),
    (lambda: simulated_p_values(np.eye(3, 9), [[0.0, np.nan, 0.0]], rng=RNG), r"effects\[0, 1\]"),
    (lambda: simulated_p_values(np.eye(3, 9), [[0.0, 0.0]], rng=RNG), "effects has shape"),
    (lambda: simulated_p_values(np.eye(3, 5), [[0.0] * 3], rng=RNG), "4 permutation"),
    (lambda: min_p.westfall_young_test([], resamples=9, rng=RNG), "at least one statistic"),
    (lambda: min_p.westfall_young_test([PAIR, [[1.0, 2, 3]]], resamples=9, rng=RNG), "shapes"),
    (lambda: min_p.westfall_young_test([PAIR], names="ab", resamples=9, rng=RNG), "names has 2"),
    (lambda: anytime_test([], alpha=0.05), "shards is empty"),
    (lambda: anytime_test([[1.0, 2.0], [1.0, np.nan]], alpha=0.05), r"log_probs\[1\] is nan"),
    *((lambda a=a: anytime_test(PAIR, alpha=a), "alpha is") for a in (0.0, 1.0, np.nan)),
    (lambda: exchangeability.order_test([1.0], alternative="greater"), "1 permutation"),
    (lambda: exchangeability.order_test([1.0, 2.0], alternative="less"), "'less'"),
    (lambda: exchangeability.trend([1.0, 2.0], ORDERINGS, [(0, 2)]), "orderings"),
    (lambda: exchangeability.trend([1.0, 2.0, 3.0], ORDERINGS, [(0, 2)]), "bounds end at 2"),
    (lambda: exchangeability.trend([1.0, 2.0, 3.0], ORDERINGS + 1, [(0, 3)]), "outside 0 to 2"),
    (lambda: exchangeability.random_orderings([(0, 2), (3, 4)], 2, rng=RNG), "contiguous"),
    (lambda: exchangeability.random_orderings([(0, 2)], 10**12, rng=RNG), "permutations"),
    (lambda: exchangeability.random_orderings([(0, 10**6)], 10**5, rng=RNG), "at most 1,072"),
    (lambda: sharded_exact.sampling_error(np.eye(3, 9), blocks=10**9), "blocks is too large"),
    (lambda: sharded_exact.sampling_error(np.eye(3, 2)), "1 permutation"),
    *(
        (lambda draw=draw: draw(PAIR, resamples=10**12, rng=RNG), "resamples is too large")
        for draw in (
            sharded_exact.sharded_exact_monte_carlo,
            successor.sampled_successor_scores,
            lambda pair, **draws: min_p.westfall_young_test([pair], **draws),
        )
    ),
    (lambda: option_order.sum_test([[0.5, 1.0]]), r"values\[0, 0\] is 0.5"),
    (lambda: option_order.in_turn(np.eye(2), [[0, 2]]), r"arrangements\[0, 1\] is 2"),
    *((lambda s=s: successor.centred_successors(np.zeros(s)), "k >= 2") for s in ((2, 3), 4)),
    (lambda: successor.centred_successors(np.zeros((2, 2))), "at least 3"),
    (lambda: successor.centred_successors(np.eye(3), resolution=-1.0), "resolution"),
    (lambda: successor.successor_scores([[0.0, 1.0], [np.nan, 0.0]], [[0, 1]]), r"\[1, 0\] is nan"),
    *(
        (lambda o=o: successor.successor_scores(np.zeros((3, 3)), o), "permutations of 0 to 2")
        for o in ([[0, 1, 1]], [[0, 1]], [0, 1, 2], [[0, 1, np.nan]])
    ),
    (lambda: generated_successors([["a"]], []), "texts of 0 records"),
    (lambda: generated_successors([[]], [[]]), "no record has a word"),
    (lambda: token_scores.centred_tokens(np.zeros((2, 3)), LED.astype(int)), "leading as bool"),
    (lambda: token_scores.centred_tokens(np.zeros((2, 3)), LED[:, :2]), r"\(2, 2\)"),
    (lambda: token_scores.centred_tokens([[0, 0, 0], [0, 0, -np.inf]], LED), r"\[1, 2\] is -inf"),
    (lambda: token_scores.centred_tokens(np.full((2, 3), -1e305), LED), "log-probabilities"),
    (lambda: boundary_scores(LED, LED, [0, 1], tokens_per_example=2), "position has shape"),
    (lambda: boundary_scores(LED, LED, [0, 1, 2], tokens_per_example=0), "tokens_per_example"),
    (lambda: quiz_test([2, 2, 2], choices=4, test="t", alpha=0.05), r"hits\[0\] is 2"),
    (lambda: quiz_test([1, 0], choices=1, test="t", alpha=0.05), "choices is 1"),
    (lambda: known_at_least(1, [0.5], level=np.nan), "level is nan"),
    (lambda: hits_log10_p(0.5, [0.5]), "hits is 0.5"),
]


@pytest.mark.parametrize("kind", NOT_NUMBERS)
@pytest.mark.parametrize("name", TAKE_SHARDS)
def test_what_is_no_array_of_numbers_is_refused_everywhere(name, kind):
    values, named = NOT_NUMBERS[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InputError, match=named) as caught:
            TAKE_SHARDS[name](values)
    assert "\n" not in str(caught.value)


def test_a_mask_that_hides_nothing_is_no_mask():
    scores = np.ma.array([[3.0, 1.0, 2.0]], mask=False)
    assert sharded_exact.sharded_exact_test(scores).p == pytest.approx(1 / 3)


def test_a_sum_of_logarithms_that_no_float_holds_is_no_p_value_of_one():
    for combine in (fisher, multiple_testing.cauchy, multiple_testing.harmonic_mean):
        assert combine([-1e308, -1e308]).log10_p < -1e299


@pytest.mark.parametrize(("call", "named"), REFUSED)
def test_bad_input_is_named_in_one_line(call, named):
    with pytest.raises(InputError, match=named) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("log10_p", [-1e6, -308.0, -2.0, 0.0])
def test_p_is_never_zero_nor_below_what_log10_p_says(log10_p):
    assert 0 < results.p_from_log10(log10_p) <= 1
    assert results.p_from_log10(log10_p) >= 10.0**log10_p


def test_only_a_row_within_the_resolution_is_made_equal():
    scores = np.array([[-3.0, -3.001, -3.002], [-3.0, -3.001, -4.0]])
    tied = results.with_ties(scores, [0.01, 0.01])
    assert np.ptp(tied[0]) == 0
    np.testing.assert_array_equal(tied[1], scores[1])
    np.testing.assert_array_equal(results.with_ties(scores, 0.0), scores)


def test_every_function_that_gives_p_values_has_a_line_of_its_guarantee():
    given = {name for name in statistics.__all__ if name.endswith(("_test", "_p_values"))}
    lines = statistics.__doc__.splitlines()
    assert given <= {line.split("`")[1] for line in lines if line.startswith("`")}


def test_type_checkers_see_every_module_that_is_imported_late():
    """`__getattr__` alone would make all names of a module that is left out `Any`."""
    source = inspect.getsource(statistics)
    seen = re.findall(r"from contamination\.statistics\.(\w+) import \*", source)
    assert seen == sorted(set(statistics.HOMES.values()))
