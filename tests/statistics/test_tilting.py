"""The mixture of tilts, against sums over all canonical indices."""

import numpy as np
import pytest
import scipy.stats

from contamination.statistics.tilting import ladder, log_weights, mixture_draws, normal_deviates


def draw_z(rng, *, q=1, r=4, size=6):
    """Contributions of heavy-tailed shards: centred, and with null variance 1 when summed."""
    z = rng.standard_t(3, (q, r, size))
    z -= z.mean(axis=2, keepdims=True)
    return z / np.sqrt((z**2).mean(axis=2).sum(axis=1))[:, None, None]


def all_sums(z):
    """Sum of every statistic under all canonical indices, (q, (m+1)^r)."""
    sums = np.zeros((len(z), 1))
    for shard in range(z.shape[1]):
        sums = (sums[:, :, None] + z[:, shard, None, :]).reshape(len(z), -1)
    return sums


def test_a_tilt_is_the_null_times_an_exponential():
    z = draw_z(np.random.default_rng(0))
    sums = all_sums(z)[0]
    tilts = ladder(z[0])
    assert len(tilts) > 1
    for tilt in tilts:
        law = np.exp(tilt.theta * sums)
        assert tilt.log_mgf == pytest.approx(np.log(law.mean()))
        law /= law.sum()
        assert tilt.mean == pytest.approx((law * sums).sum())
        assert tilt.sd == pytest.approx(np.sqrt((law * (sums - tilt.mean) ** 2).sum()))
    assert law[sums >= sums.max() - 1e-9].sum() >= 0.5
    assert np.all(np.diff([tilt.theta for tilt in tilts]) > 0)


def test_weighted_draws_have_the_null_law():
    rng = np.random.default_rng(1)
    z = draw_z(rng, q=2)
    ladders = [ladder(each) for each in z]
    sums = all_sums(z)
    draws = mixture_draws(z, ladders, resamples=200_000, rng=rng)
    weights = np.exp(log_weights(draws, ladders))
    assert weights.max() <= 2 + 1e-9
    assert weights.mean() == pytest.approx(1, abs=0.02)
    for drawn, every in zip(draws, sums, strict=True):
        for level in np.quantile(every, [0.5, 0.9, 0.99, 1 - 1 / every.size]):
            exact = (every >= level - 1e-9).mean()
            found = (weights * (drawn >= level - 1e-9)).mean()
            assert found == pytest.approx(exact, rel=0.1)
    both = ((draws[0] > 1) & (draws[1] > 1)) @ weights / weights.size
    assert both == pytest.approx(((sums[0] > 1) & (sums[1] > 1)).mean(), rel=0.1)


def test_the_null_alone_where_there_is_nothing_to_tilt():
    z = np.zeros((1, 3, 4))
    assert ladder(z[0]) == []
    draws = mixture_draws(z, [[]], resamples=5, rng=np.random.default_rng(2))
    np.testing.assert_array_equal(draws, np.zeros((1, 5)))
    np.testing.assert_array_equal(log_weights(draws, [[]]), np.zeros(5))


def test_deviates_have_about_the_tail_of_the_sum_and_never_decrease():
    rng = np.random.default_rng(3)
    z = draw_z(rng, r=5, size=8)[0]
    every = np.sort(all_sums(z[None])[0])
    deviates = normal_deviates(every, z, ladder(z))
    assert np.all(np.diff(deviates) >= 0)
    np.testing.assert_array_equal(deviates[every < 0], every[every < 0])
    assert deviates[-1] == pytest.approx(scipy.stats.norm.isf(1 / every.size))
    tails = 1 - np.arange(every.size) / every.size
    far = (tails < 0.05) & (tails > 50 / every.size)
    np.testing.assert_allclose(scipy.stats.norm.logsf(deviates[far]), np.log(tails[far]), atol=0.3)
