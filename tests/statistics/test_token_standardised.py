import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from contamination.errors import InputError
from contamination.statistics import sharded_exact_test
from contamination.statistics.token_standardised import (
    centred_tokens,
    scaled_tokens,
    token_standardised_scores,
)


def draw_shard(rng, *, m=7, examples=3, length=4, shift=0.0):
    """Heavy-tailed tokens of unequal scale; those after their true predecessor gain `shift`."""
    example = np.repeat(np.arange(examples), length)
    orders = np.tile(np.arange(examples), (m + 1, 1))
    orders[1:] = rng.permuted(orders[1:], axis=1)
    before = np.full_like(orders, -9)
    np.put_along_axis(before, orders[:, 1:], orders[:, :-1], axis=1)
    scale = np.exp(rng.normal(size=example.size))
    logprobs = -5 * rng.random(example.size) + scale * rng.standard_t(2, (m + 1, example.size))
    logprobs += shift * (before[:, example] == example - 1)
    leading = example == orders[:, :1]
    return logprobs - 3 * leading, leading


def by_loops(logprobs, leading, floor, clip):
    """The definition, one token and one ordering at a time."""
    scores = [0.0] * len(logprobs)
    for t in range(logprobs.shape[1]):
        rows = [j for j in range(len(logprobs)) if not leading[j, t]]
        if not rows:
            continue
        mean = sum(logprobs[j, t] for j in rows) / len(rows)
        values = {j: logprobs[j, t] - mean for j in rows}
        if clip is not None:
            values = {j: min(max(v, -clip), clip) for j, v in values.items()}
        sd = (sum(v * v for v in values.values()) / len(rows)) ** 0.5
        for j, value in values.items():
            scores[j] += value if floor is None else value / (sd + floor)
    return scores


SEEDS = st.integers(0, 2**32 - 1)
STAGES = [(None, None), (0.3, None), (None, 1.0), (0.1, 2.0)]


@pytest.mark.parametrize(("floor", "clip"), STAGES)
def test_equals_the_definition(floor, clip):
    rng = np.random.default_rng(0)
    for _ in range(20):
        logprobs, leading = draw_shard(rng, m=int(rng.integers(1, 6)))
        scores = token_standardised_scores(logprobs, leading, floor=floor, clip=clip)
        np.testing.assert_allclose(scores, by_loops(logprobs, leading, floor, clip), atol=1e-12)


def test_by_hand():
    logprobs = [[-1.0, -9.0], [-3.0, -2.0], [-2.0, -4.0]]
    leading = [[False, True], [False, False], [False, False]]
    np.testing.assert_allclose(centred_tokens(logprobs, leading), [[1, 0], [-1, 1], [0, -1]])
    first, second = 1 / (np.sqrt(2 / 3) + 0.3), 1 / (1 + 0.3)
    expected = [first, -first + second, -second]
    np.testing.assert_allclose(token_standardised_scores(logprobs, leading), expected)


def test_a_token_that_leads_everywhere_or_nearly_so_says_nothing():
    leading = np.array([[True, True], [True, False], [True, True]])
    values = centred_tokens(np.arange(6.0).reshape(3, 2), leading)
    np.testing.assert_array_equal(values, 0)
    np.testing.assert_array_equal(scaled_tokens(values, leading), 0)


def test_silent_tokens_are_zero_to_the_last_bit():
    """The mean of ten times 0.1 is not 0.1: no rounding may be left to vote."""
    leading = np.zeros((10, 3), dtype=bool)
    leading[0, 0] = True
    scores = token_standardised_scores(np.full((10, 3), -0.1), leading, floor=1e-6)
    np.testing.assert_array_equal(scores, 0)


@given(SEEDS)
@settings(max_examples=40, deadline=None)
def test_permuting_the_orderings_permutes_the_scores(seed):
    """The property that makes the test exact."""
    rng = np.random.default_rng(seed)
    logprobs, leading = draw_shard(rng)
    order = rng.permutation(len(logprobs))
    for floor, clip in STAGES:
        scores = token_standardised_scores(logprobs, leading, floor=floor, clip=clip)
        again = token_standardised_scores(logprobs[order], leading[order], floor=floor, clip=clip)
        np.testing.assert_allclose(again, scores[order], rtol=1e-9, atol=1e-9)


@given(SEEDS)
@settings(max_examples=40, deadline=None)
def test_what_the_scores_ignore(seed):
    """A constant per token, the values of leading tokens, and the order of the tokens."""
    rng = np.random.default_rng(seed)
    logprobs, leading = draw_shard(rng)
    scores = token_standardised_scores(logprobs, leading, clip=1.5)
    moved = logprobs + rng.normal(size=logprobs.shape[1])
    moved[leading] = -100 * rng.random(leading.sum())
    order = rng.permutation(logprobs.shape[1])
    again = token_standardised_scores(moved[:, order], leading[:, order], clip=1.5)
    np.testing.assert_allclose(again, scores, rtol=1e-9, atol=1e-9)


def test_input_is_left_alone():
    logprobs, leading = draw_shard(np.random.default_rng(1))
    copies = logprobs.copy(), leading.copy()
    values = centred_tokens(logprobs, leading)
    kept = values.copy()
    scaled_tokens(values, leading)
    token_standardised_scores(logprobs, leading, clip=0.5)
    np.testing.assert_array_equal(logprobs, copies[0])
    np.testing.assert_array_equal(leading, copies[1])
    np.testing.assert_array_equal(values, kept)


def test_calibrated_on_heavy_tails():
    rng = np.random.default_rng(2)
    trials, p = 2000, []
    for _ in range(trials):
        shards = [draw_shard(rng) for _ in range(3)]
        p.append(sharded_exact_test([token_standardised_scores(*shard) for shard in shards]).p)
    for alpha in (0.01, 0.05, 0.2):
        low, high = scipy.stats.binom.ppf([1e-4, 1 - 1e-4], trials, alpha)
        assert low <= (np.array(p) <= alpha).sum() <= high


def test_finds_what_loud_tokens_drown():
    rng = np.random.default_rng(3)
    shards = [draw_shard(rng, m=19, length=20, shift=0.6) for _ in range(30)]
    plain = sharded_exact_test([logprobs.sum(axis=1) for logprobs, _ in shards])
    assert plain.p > 1e-4
    for stages in ({}, {"floor": None, "clip": 0.5}):
        tamed = [token_standardised_scores(*shard, **stages) for shard in shards]
        assert sharded_exact_test(tamed).p < 1e-5


def test_bad_input():
    good, led = np.zeros((2, 3)), np.zeros((2, 3), dtype=bool)
    with pytest.raises(InputError, match=r"leading is int64 of shape \(2, 3\)"):
        centred_tokens(good, led.astype(np.int64))
    with pytest.raises(InputError, match=r"give bool of the shape of logprobs, \(2, 3\)"):
        centred_tokens(good, led[:, :2])
    for shape in ((6,), (1, 3), (2, 0)):
        with pytest.raises(InputError, match="one row per ordering"):
            centred_tokens(np.zeros(shape), np.zeros(shape, dtype=bool))
    with pytest.raises(InputError, match="ordering 1, token 2 is -inf"):
        centred_tokens([[0, 0, 0], [0, 0, -np.inf]], led)
    with pytest.raises(InputError, match="floor is 0"):
        token_standardised_scores(good, led, floor=0)
    with pytest.raises(InputError, match="clip is nan"):
        token_standardised_scores(good, led, clip=np.nan)
    with pytest.raises(InputError, match="leading is bool"):
        scaled_tokens(good, led[:1])
