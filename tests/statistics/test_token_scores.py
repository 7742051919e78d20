import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from contamination.statistics import sharded_exact_test
from contamination.statistics.token_scores import (
    boundary_scores,
    centred_tokens,
    token_standardised_scores,
)

SEEDS = st.integers(0, 2**32 - 1)


def draw_shard(rng, *, m=7, lengths=(3, 1, 4), df=2.0, loudness=1.0, shift=0.0, shifted=None):
    """Heavy-tailed tokens; the first `shifted` after a true predecessor gain `shift`."""
    example = np.repeat(np.arange(len(lengths)), lengths)
    position = np.concatenate([np.arange(length) for length in lengths])
    orders = np.tile(np.arange(len(lengths)), (m + 1, 1))
    orders[1:] = rng.permuted(orders[1:], axis=1)
    before = np.full_like(orders, -9)
    np.put_along_axis(before, orders[:, 1:], orders[:, :-1], axis=1)
    scale = np.exp(loudness * rng.normal(size=example.size))
    logprobs = -30 * rng.random(example.size) + scale * rng.standard_t(df, (m + 1, example.size))
    gains = (before[:, example] == example - 1) & (position < (shifted or max(lengths)))
    leading = example == orders[:, :1]
    return logprobs + shift * gains - 3 * leading, leading, position


def all_scores(logprobs, leading, position):
    """Every kind of score of the same shard."""
    yield from (boundary_scores(logprobs, leading, position, tokens_per_example=b) for b in (1, 2))
    yield token_standardised_scores(logprobs, leading)


def by_loops(logprobs, leading, floor=None):
    """The definition, one token and one ordering at a time."""
    scores = [0.0] * len(logprobs)
    for t in range(logprobs.shape[1]):
        rows = [j for j in range(len(logprobs)) if not leading[j, t]]
        if not rows:
            continue
        mean = sum(logprobs[j, t] for j in rows) / len(rows)
        values = {j: logprobs[j, t] - mean for j in rows}
        sd = (sum(v * v for v in values.values()) / len(rows)) ** 0.5
        for j, value in values.items():
            scores[j] += value if floor is None else value / (sd + floor)
    return scores


def test_equals_the_definition():
    rng = np.random.default_rng(0)
    for _ in range(20):
        logprobs, leading, position = draw_shard(rng, m=int(rng.integers(1, 6)))
        expected = [
            *(by_loops(logprobs[:, position < b], leading[:, position < b]) for b in (1, 2)),
            by_loops(logprobs, leading, 0.3),
        ]
        scores = [*all_scores(logprobs, leading, position)]
        np.testing.assert_allclose(scores, expected, atol=1e-11)


def test_a_token_that_leads_everywhere_or_nearly_so_says_nothing():
    leading = np.array([[True, True], [True, False], [True, True]])
    for scores in all_scores(np.arange(6.0).reshape(3, 2), leading, np.array([0, 1])):
        np.testing.assert_array_equal(scores, 0)


@given(SEEDS)
@settings(max_examples=40)
def test_permuting_the_orderings_permutes_the_scores(seed):
    """The property that makes the test exact."""
    rng = np.random.default_rng(seed)
    logprobs, leading, position = draw_shard(rng)
    order = rng.permutation(len(logprobs))
    moved = all_scores(logprobs[order], leading[order], position)
    for scores, again in zip(all_scores(logprobs, leading, position), moved, strict=True):
        np.testing.assert_allclose(again, scores[order], rtol=1e-9, atol=1e-9)


def test_equal_orderings_tie():
    """Two examples have two orderings: equal rows must score equal, to the bit."""
    rng = np.random.default_rng(0)
    logprobs, leading, position = draw_shard(rng, m=1, lengths=(300, 201))
    for size in range(30, 50):  # how a matrix product splits its rows depends on their number
        pick = rng.integers(0, 2, size=size)
        scores = boundary_scores(logprobs[pick], leading[pick], position, tokens_per_example=190)
        assert len(set(scores)) == 2


def test_centring_and_the_boundary_find_what_sums_do_not():
    """The effect sits on the first 2 of 30 tokens, and what leads differs by many nats."""
    rng = np.random.default_rng(2)
    shards = []
    for _ in range(30):
        shard = draw_shard(
            rng,
            m=19,
            lengths=(30,) * 4,
            df=5,
            loudness=0.0,
            shift=1.5,
            shifted=2,
        )
        shards.append(shard)
    boundary = [boundary_scores(*shard, tokens_per_example=2) for shard in shards]
    everything = [boundary_scores(*shard, tokens_per_example=30) for shard in shards]
    raw = [np.where(led | (at >= 2), 0, x).sum(axis=1) for x, led, at in shards]
    p = [sharded_exact_test(scores).p for scores in (boundary, everything, raw)]
    assert p[0] < 1e-12
    assert min(p[1:]) > 1e-6


def test_a_token_that_moves_by_less_than_the_engine_rounds_is_silent():
    rng = np.random.default_rng(0)
    logprobs = rng.normal(-3, 1e-5, (9, 4))
    leading = np.zeros((9, 4), dtype=bool)
    logprobs[:, 2] += rng.normal(size=9)
    leading[3, 0] = True
    logprobs[3, 0] = -20  # leads: what it is there does not count
    found = centred_tokens(logprobs, leading, resolution=1e-3)
    assert (found != 0).any(axis=0).tolist() == [False, False, True, False]
    np.testing.assert_array_equal(found[:, 2], centred_tokens(logprobs, leading)[:, 2])


def test_a_token_that_moves_by_the_resolution_is_silent():
    logprobs = np.array([[-1.0, -1.0], [-1.5, -1.5], [-1.25, -1.75]])
    centred = centred_tokens(logprobs, np.zeros((3, 2), dtype=bool), resolution=0.5)
    np.testing.assert_array_equal(centred[:, 0], 0)
    assert np.ptp(centred[:, 1]) == 0.75
