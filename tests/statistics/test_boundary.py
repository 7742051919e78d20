import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from contamination.errors import InputError
from contamination.statistics import sharded_exact_test
from contamination.statistics.boundary import boundary_scores, position_scores
from contamination.statistics.token_standardised import (
    centred_tokens,
    scaled_tokens,
    token_standardised_scores,
)

SEEDS = st.integers(0, 2**32 - 1)


def draw_shard(rng, *, m=7, lengths=(3, 1, 4), df=2.0, shift=0.0):
    """Examples of unequal length; the first 2 tokens after a true predecessor gain `shift`."""
    example = np.repeat(np.arange(len(lengths)), lengths)
    position = np.concatenate([np.arange(length) for length in lengths])
    orders = np.tile(np.arange(len(lengths)), (m + 1, 1))
    orders[1:] = rng.permuted(orders[1:], axis=1)
    before = np.full_like(orders, -9)
    np.put_along_axis(before, orders[:, 1:], orders[:, :-1], axis=1)
    logprobs = -30 * rng.random(example.size) + rng.standard_t(df, (m + 1, example.size))
    logprobs += shift * (before[:, example] == example - 1) * (position < 2)
    return logprobs, example == orders[:, :1], position


def test_by_hand():
    logprobs = [[-1.0, -5.0, -9.0], [-3.0, -6.0, -2.0], [-2.0, -1.0, -4.0]]
    leading = [[False, False, True], [False, False, False], [True, True, False]]
    position = [0, 1, 0]
    # Centred: [[1, 0.5, 0], [-1, -0.5, 1], [0, 0, -1]].
    np.testing.assert_allclose(
        boundary_scores(logprobs, leading, position, tokens_per_example=1), [1, 0, -1]
    )
    for first in (2, 100, None):
        scores = boundary_scores(logprobs, leading, position, tokens_per_example=first)
        np.testing.assert_allclose(scores, [1.5, -0.5, -1])
    values = centred_tokens(logprobs, leading)
    np.testing.assert_allclose(position_scores(values, position, [3, -2]), [2, 1, -3])
    np.testing.assert_allclose(position_scores(values, position, [0, 2, 5]), [1, -1, 0])
    np.testing.assert_array_equal(position_scores(values, position, []), 0)


@given(SEEDS)
@settings(max_examples=40, deadline=None)
def test_stages_compose_and_are_symmetric_in_the_orderings(seed):
    rng = np.random.default_rng(seed)
    logprobs, leading, position = draw_shard(rng)
    order = rng.permutation(len(logprobs))
    weights = rng.normal(size=3)

    def composed(logprobs, leading):
        values = np.clip(centred_tokens(logprobs, leading), -1, 1)
        return position_scores(scaled_tokens(values, leading, floor=0.2), position, weights)

    shifted = logprobs + rng.normal(size=position.size)
    for scores in (composed, lambda *rows: boundary_scores(*rows, position, tokens_per_example=2)):
        expected = scores(logprobs, leading)[order]
        np.testing.assert_allclose(scores(logprobs[order], leading[order]), expected, atol=1e-9)
        np.testing.assert_allclose(scores(shifted, leading)[order], expected, atol=1e-9)
    # Weights of 1 everywhere are no weights.
    scaled = scaled_tokens(centred_tokens(logprobs, leading), leading)
    whole = position_scores(scaled, position, np.ones(4))
    np.testing.assert_allclose(whole, token_standardised_scores(logprobs, leading))


@given(SEEDS, st.floats(0.01, 100))
@settings(max_examples=40, deadline=None)
def test_raising_a_canonical_value_raises_its_score_and_no_other(seed, rise):
    rng = np.random.default_rng(seed)
    logprobs, leading, position = draw_shard(rng)
    t = rng.choice(np.flatnonzero((position < 2) & ~leading[0]))
    raised = logprobs.copy()
    raised[0, t] += rise
    before, after = (
        boundary_scores(x, leading, position, tokens_per_example=2) for x in (logprobs, raised)
    )
    n = (~leading[:, t]).sum()
    expected = np.where(leading[:, t], 0, -rise / n)
    expected[0] += rise
    np.testing.assert_allclose(after - before, expected, atol=1e-9)


def test_equal_orderings_tie():
    """Two examples have two orderings: equal rows must score equal, to the bit."""
    rng = np.random.default_rng(0)
    logprobs, leading, position = draw_shard(rng, m=1, lengths=(300, 201))
    for size in range(30, 50):  # how a matrix product splits its rows depends on their number
        pick = rng.integers(0, 2, size=size)
        scores = boundary_scores(logprobs[pick], leading[pick], position, tokens_per_example=190)
        assert len(set(scores)) == 2


def test_calibrated_on_heavy_tails():
    rng = np.random.default_rng(1)
    trials, p = 2000, []
    for _ in range(trials):
        shards = [boundary_scores(*draw_shard(rng), tokens_per_example=2) for _ in range(3)]
        p.append(sharded_exact_test(shards).p)
    for alpha in (0.01, 0.05, 0.2):
        low, high = scipy.stats.binom.ppf([1e-4, 1 - 1e-4], trials, alpha)
        assert low <= (np.array(p) <= alpha).sum() <= high


def test_centring_and_the_boundary_find_what_sums_do_not():
    """The effect sits on the first 2 of 30 tokens, and what leads differs by many nats."""
    rng = np.random.default_rng(2)
    shards = [draw_shard(rng, m=19, lengths=(30,) * 4, df=5, shift=1.5) for _ in range(30)]
    boundary = [boundary_scores(*shard, tokens_per_example=2) for shard in shards]
    everything = [boundary_scores(*shard, tokens_per_example=None) for shard in shards]
    raw = [np.where(led | (at >= 2), 0, x).sum(axis=1) for x, led, at in shards]
    p = [sharded_exact_test(scores).p for scores in (boundary, everything, raw)]
    assert p[0] < 1e-12
    assert min(p[1:]) > 1e-6


def test_bad_input():
    logprobs, leading, position = draw_shard(np.random.default_rng(3))
    with pytest.raises(InputError, match="tokens_per_example is 0"):
        boundary_scores(logprobs, leading, position, tokens_per_example=0)
    for wrong in (position[:-1], position.astype(float), position - 1):
        with pytest.raises(InputError, match="give 8 integers"):
            boundary_scores(logprobs, leading, wrong, tokens_per_example=2)
    for weights in (1.0, [np.nan], [[1.0]]):
        with pytest.raises(InputError, match="one per position"):
            position_scores(logprobs, position, weights)
    with pytest.raises(InputError, match="leading"):
        boundary_scores(logprobs, leading[:2], position, tokens_per_example=2)
