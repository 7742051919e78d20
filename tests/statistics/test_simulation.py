"""Planted effects are found as often as stated, by the exact test itself."""

import numpy as np
import pytest
import scipy.stats

from contamination.statistics import sharded_exact_p_values, sharded_exact_test, simulated_p_values

LAWS = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "heavy tails": lambda rng, shape: rng.standard_t(3, size=shape),
    "ties": lambda rng, shape: np.rint(4 * rng.normal(size=shape)),
    "skew, shards of their own": lambda rng, shape: (
        rng.exponential(size=shape) * 10.0 ** np.arange(-3, shape[0] - 3)[:, None]
    ),
}
SETS = 200


def band(rate, trials):
    """Four standard errors of a rate, and what a normal law is off by in so few shards."""
    return 4 * np.sqrt(max(rate * (1 - rate), 0.01) / trials) + 0.02


FEW = (4, 200)  # shards, and orderings of each
MANY = (6, 25)


@pytest.mark.parametrize(
    ("law", "shape", "effect"),
    [  # every law under both shapes and both effects, and every shape under both effects
        ("normal", FEW, 0.9),
        ("normal", MANY, 0.0),
        ("heavy tails", FEW, 0.0),
        ("heavy tails", MANY, 0.9),
        ("ties", FEW, 0.9),
        ("ties", MANY, 0.0),
        ("skew, shards of their own", FEW, 0.0),
        ("skew, shards of their own", MANY, 0.9),
    ],
)
def test_raised_scores_are_found_at_the_stated_rate(law, shape, effect):
    """The reference raises one entry of each shard for real and runs the test, set by set."""
    shards, orderings = shape
    rng = np.random.default_rng([shards, int(10 * effect)])
    scores = LAWS[law](rng, (shards, orderings + 1))
    effects = np.full((20_000, shards), effect)
    p = simulated_p_values(scores, effects, rng=rng)
    shuffled = scores[:, 1:]
    rows = np.arange(shards)
    found = np.empty(SETS)
    for trial in range(SETS):
        raised = shuffled.copy()
        drawn = rng.integers(orderings, size=shards)
        raised[rows, drawn] += effect * shuffled.std(axis=1, ddof=1)
        (found[trial],) = sharded_exact_p_values(raised, drawn[None])
    for alpha in (0.05, 0.2):
        stated = (p <= alpha).mean()
        assert abs(stated - (found <= alpha).mean()) <= band(stated, SETS)


def test_sets_that_were_never_seen_are_found_at_the_rate_that_another_set_states():
    rng = np.random.default_rng(1)
    effect = 0.9
    shape = (10, 51)
    effects = np.full((20_000, 10), effect)
    stated = (simulated_p_values(rng.normal(size=shape), effects, rng=rng) <= 0.05).mean()
    found = np.empty(SETS)
    for trial in range(SETS):
        scores = rng.normal(size=shape)
        scores[:, 0] += effect
        found[trial] = sharded_exact_test(scores).p <= 0.05
    assert 0.6 < stated < 0.95
    assert abs(stated - found.mean()) <= band(stated, SETS)


@pytest.mark.parametrize("shape", [(1, 201), (2, 26)])
def test_no_power_is_stated_below_the_least_p_of_the_test(shape):
    """The test itself has that p where one score of each shard is far above the others."""
    rng = np.random.default_rng(4)
    scores = rng.normal(size=shape)
    p = simulated_p_values(scores, np.full((100, shape[0]), 50.0), rng=rng)
    scores[:, 0] = 50
    least = sharded_exact_test(scores).p
    assert p == pytest.approx(np.full(100, least))


def test_the_published_order_moves_nothing_and_flat_shards_have_no_say():
    rng = np.random.default_rng(2)
    scores = rng.normal(size=(6, 30))
    effects = rng.normal(1, 0.3, size=(50, 6))
    p = simulated_p_values(scores, effects, rng=np.random.default_rng(3))
    seen = scores + 100 * (np.arange(30) == 0)
    assert np.array_equal(p, simulated_p_values(seen, effects, rng=np.random.default_rng(3)))
    assert (np.sort(p) != p).any()
    flat = np.vstack([scores, np.full((2, 30), -7.0)])
    wider = np.hstack([effects, np.full((50, 2), 9.0)])
    assert np.array_equal(p, simulated_p_values(flat, wider, rng=np.random.default_rng(3)))
    assert (simulated_p_values(flat[6:], wider[:, 6:], rng=rng) == 1).all()


def test_p_is_that_of_the_raised_scores_by_a_normal_law():
    """The moments of few orderings, one of which is raised, against numpy's."""
    scores = np.random.default_rng(4).normal(size=(3, 7))
    shuffled = scores[:, 1:]
    effects = np.array([[0.5, 1.0, 2.0]])
    found = simulated_p_values(scores, effects, rng=np.random.default_rng(5))
    drawn = np.random.default_rng(5).integers(6, size=(1, 3))[0]
    rows = np.arange(3)
    raised = shuffled.copy()
    raised[rows, drawn] += effects[0] * shuffled.std(axis=1, ddof=1)
    z = scipy.stats.zscore(raised, axis=1)[rows, drawn]
    assert found[0] == pytest.approx(scipy.stats.norm.sf(z.sum() / np.sqrt(3)), rel=1e-9, abs=0)
