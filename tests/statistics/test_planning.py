import math

import numpy as np
import pytest
import scipy.special
import scipy.stats

from contamination.statistics import sharded_exact_monte_carlo
from contamination.statistics.planning import FRESH_SHARDS, NO_EVIDENCE, plan


def scores(rng, shards, permutations, effect, spread=1.0):
    x = rng.normal(size=(shards, permutations + 1))
    x[:, 0] = effect + spread * x[:, 0]
    return x


def pilot_of(effect, *, shards=2000, noise=0.5):
    """Scores of which Hedges' g is `effect` on average, with an sd of `noise` over shards."""
    shuffled = scipy.stats.norm.ppf((np.arange(20) + 0.5) / 20)
    shuffled /= shuffled.std(ddof=1)
    g = effect + noise * scipy.stats.zscore(np.linspace(-1, 1, shards), ddof=1)
    unbias = scipy.special.gamma(19 / 2) / scipy.special.gamma(9) / math.sqrt(19 / 2)
    return np.column_stack([g / unbias, np.tile(shuffled, (shards, 1))])


def planned(pilot, **settings):
    defaults = {"tokens_per_shard": 100, "alpha": 0.05, "power": 0.8}
    return plan(pilot, **{"rng": np.random.default_rng(0)} | defaults | settings)


def shards_for(pilot, m, **settings):
    return planned(pilot, permutations=[m], **settings).designs[0].shards[0]


CASES = [(0.7, 1.0, 1, 0.05), (0.7, 1.0, 2, 0.05), (0.7, 1.0, 25, 0.05)]
CASES += [(2.0, 1.0, 2, 0.01), (1.0, 1.8, 5, 0.01)]


@pytest.mark.parametrize(("effect", "spread", "m", "alpha"), CASES)
def test_the_planned_shards_have_the_wanted_power(effect, spread, m, alpha):
    rng = np.random.default_rng(1)
    pilot = scores(rng, 3000, 40, effect, spread)  # so large that only the model can be wrong
    shards = int(shards_for(pilot, m, alpha=alpha, power=0.75))
    trials = 300
    tests = (  # the exact test by sampling, for once the quicker way
        sharded_exact_monte_carlo(scores(rng, shards, m, effect, spread), resamples=999, rng=rng)
        for _ in range(trials)
    )
    rejected = sum(test.p <= alpha for test in tests)
    assert rejected / trials == pytest.approx(0.75, abs=0.1)


@pytest.mark.parametrize("power", [0.55, 0.75, 0.95])
def test_one_permutation_is_a_sign_test(power):
    """Power from the binomial law, averaged over the teeth of its saw."""
    shards = np.arange(-8, 9) + shards_for(pilot_of(0.5), 1, power=power)
    q = scipy.stats.norm.cdf(0.5 / math.sqrt(2))
    exact = scipy.stats.binom.sf(scipy.stats.binom.isf(0.05, shards, 0.5), shards, q)
    assert exact.mean() == pytest.approx(power, abs=0.03)


@pytest.mark.parametrize("m", [50, 250])
def test_many_permutations_of_a_small_effect_are_a_z_test(m):
    z = scipy.stats.norm.isf(0.01) + scipy.stats.norm.ppf(0.8)
    shards = shards_for(pilot_of(0.1), m, alpha=0.01)
    assert shards == pytest.approx((z / 0.1) ** 2 * (1 + 1 / m), rel=0.05)


@pytest.mark.parametrize(("pilot_shards", "spread"), [(3, 1.0), (6, 1.6), (20, 1.0)])
def test_intervals_cover(pilot_shards, spread):
    rng = np.random.default_rng(2)
    truth = planned(scores(rng, 4000, 100, 1.0, spread), permutations=[1])
    trials, effects, shards = 250, 0, 0
    for _ in range(trials):
        found = planned(scores(rng, pilot_shards, 10, 1.0, spread), permutations=[1], rng=rng)
        _, low, high = found.effect
        effects += low <= 1.0 <= high
        _, low, high = found.designs[0].shards
        shards += low <= truth.designs[0].shards[0] <= high
    for covered in (effects, shards):
        assert covered >= scipy.stats.binom.ppf(1e-4, trials, 0.95)


def test_estimates():
    rng, n = np.random.default_rng(3), 20_000
    pilot = scores(rng, n, 8, 0.7, 1.5) * rng.gamma(2, size=(n, 1)) - 1000
    found = planned(pilot, permutations=[1])
    assert found.effect[0] == pytest.approx(0.7, abs=0.03)  # Hedges: else 10% too large
    assert found.spread == pytest.approx(1.5, abs=0.03)
    assert found.designs[0].tokens == tuple(each * 200 for each in found.designs[0].shards)
    calm = pilot.copy()
    calm[:, 0] = calm[:, 1:].mean(axis=1)
    assert planned(calm, permutations=[1]).spread == 1.0


def test_as_many_shards_as_alpha_asks_for():
    """(m+1)^-r <= alpha, however large the effect."""
    certain = pilot_of(50.0)
    designs = planned(certain, alpha=1 / 125, permutations=[2, 4, 11, 12, 50]).designs
    assert [design.shards[0] for design in designs] == [5, 3, 2, 2, 2]


def test_without_evidence_there_is_no_upper_end_and_with_it_there_is():
    found = planned(pilot_of(0.3, shards=4, noise=1.0))
    assert found.effect[0] > 0 > found.effect[1]
    assert found.notes == (FRESH_SHARDS, NO_EVIDENCE)
    for design in found.designs:
        assert math.isfinite(design.shards[0])
        assert design.shards[2] == design.tokens[2] == math.inf
    negative = planned(-pilot_of(1.0))
    assert negative.effect[0] < 0
    assert all(design.shards[1] == math.inf for design in negative.designs)
    found = planned(pilot_of(1.0, shards=40, noise=1.0))
    assert found.effect[1] > 0
    assert found.notes == (FRESH_SHARDS,)
    assert all(math.isfinite(design.tokens[2]) for design in found.designs)
