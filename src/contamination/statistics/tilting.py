"""Draws from the far tail of sums over shards, by exponential tilting (new here).

Under H0 the canonical index J of a shard is uniform on {0..m}, so a sum that all shards make large
is never drawn. Tilting by theta along a statistic multiplies the law of J by exp(theta z(J)), makes
large sums common, and leaves the shards independent. A mixture of such laws, from the null to the
largest attainable sum, is drawn from instead, and each draw is weighed by how much rarer it is
under H0. Nothing here knows which ordering is canonical.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri_exp, softmax

# Neighbouring tilts are this many of their standard deviations apart: half of it away from the
# nearest, a draw weighs within a factor e^(1/2) of what the best tilt would give it.
_SPACING = 2.0
_NULL_SHARE = 0.5  # of the mixture: no weight exceeds 2, and p-values in the bulk are accurate
_NEAR = 1e-6  # values this close to the largest of a shard count as the largest
_BLOCK = 1 << 20  # draws times shards held in memory at a time


class Tilt(NamedTuple):
    """The null law of one statistic, times exp(theta z(J) - log_mgf), with its mean and sd of z."""

    theta: float
    log_mgf: float
    mean: float
    sd: float


def ladder(z: NDArray[np.float64]) -> list[Tilt]:
    """Tilts of one statistic, from just above the null to the largest attainable sum.

    z[i, j], shape (r, m+1), is what shard i would add to the statistic were its ordering j
    canonical. The last tilt reaches the largest sum with probability at least 1/2. There is none
    for a statistic that is 0 on every shard.
    """
    below = z - z.max(axis=1, keepdims=True)
    tilts: list[Tilt] = []
    theta = 0.0
    while True:
        powers = np.exp(theta * below)
        chances = powers / powers.sum(axis=1, keepdims=True)
        means = (chances * z).sum(axis=1, keepdims=True)
        sd = math.sqrt(float((chances * (z - means) ** 2).sum()))
        if theta > 0:
            log_mgf = float((theta * z.max(axis=1) + np.log(powers.mean(axis=1))).sum())
            tilts.append(Tilt(theta, log_mgf, float(means.sum()), sd))
        if np.log((chances * (below >= -_NEAR)).sum(axis=1)).sum() >= -math.log(2):
            return tilts
        theta += _SPACING / sd


def mixture_draws(
    z: NDArray[np.float64],
    ladders: Sequence[Sequence[Tilt]],
    *,
    resamples: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Sums of independent J from the mixture Q of the null and all tilts, (q, resamples).

    z, shape (q, r, m+1), is as in `ladder`, of q statistics that share J; each has its `ladders`.
    The draws of a component stand together; their order carries no information.
    """
    shards, size = z.shape[1:]
    rows = np.arange(shards)
    flat = z.reshape(len(z), -1)
    components = [(0, 0.0), *[(q, tilt.theta) for q, each in enumerate(ladders) for tilt in each]]
    counts = rng.multinomial(resamples, _shares(len(components)))
    parts = []
    for count, (q, theta) in zip(counts, components, strict=True):
        # Inverse distribution functions of all shards, end to end: shard i is the stretch i to i+1.
        steps = (np.cumsum(softmax(theta * z[q], axis=1), axis=1) + rows[:, None]).ravel()
        block = max(1, _BLOCK // shards)
        for start in range(0, count, block):
            uniform = rng.random((min(block, count - start), shards)) + rows
            places = np.searchsorted(steps, uniform, side="right")
            places = np.minimum(places, rows * size + size - 1)  # where rounding went past i+1
            parts.append(np.stack([each[places].sum(axis=1) for each in flat]))
    return np.concatenate(parts, axis=1)


def log_weights(
    sums: NDArray[np.float64], ladders: Sequence[Sequence[Tilt]]
) -> NDArray[np.float64]:
    """log dP/dQ of n draws, (n,), with P the null and Q the mixture of `mixture_draws`.

    The sum of each statistic, (q, n), determines the weight of a draw. Weights are at most 2, and
    their mean over draws from Q is 1.
    """
    shares = _shares(1 + sum(len(each) for each in ladders))
    log_q = np.full(sums.shape[1], math.log(shares[0]))
    # One tilt at a time: all at once would hold draws times tilts in memory.
    for along, each in zip(sums, ladders, strict=True):
        for tilt in each:
            log_q = np.logaddexp(log_q, math.log(shares[-1]) + tilt.theta * along - tilt.log_mgf)
    return -log_q


def normal_deviates(
    sums: NDArray[np.float64], z: NDArray[np.float64], tilts: Sequence[Tilt]
) -> NDArray[np.float64]:
    """Normal deviate with about the tail probability of one statistic at each of n sums, (n,).

    z and its tilts are as in `ladder`, in units of the null sd of the sum. At the mean of a tilt,
    P(sum >= mean) = exp(K - theta mean) E[exp(-theta X); X >= 0], with X taken as normal with the
    tilted sd (Daniels 1954); exact at the largest sum; linear in between, where deviates are nearly
    so. Below 0 the sum is its own deviate. It never decreases.
    """
    top = z >= z.max(axis=1, keepdims=True) - _NEAR
    means, log_tails = [0.0], [-math.log(2)]
    for theta, log_mgf, mean, sd in tilts:
        means.append(mean)
        overshoot = (theta * sd) ** 2 / 2 + float(log_ndtr(-theta * sd))
        log_tails.append(log_mgf - theta * mean + overshoot)
    deviates = np.maximum.accumulate(-ndtri_exp(log_tails))
    largest, rarest = float(z.max(axis=1).sum()), -float(ndtri_exp(np.log(top.mean(axis=1)).sum()))
    # The formula may overshoot just before the largest sum, which must stay above all others.
    below = deviates < rarest
    knots = [*np.minimum(means, largest)[below], largest]
    heights = [*deviates[below], max(0.0, rarest)]
    return np.where(sums < 0, sums, np.interp(sums, knots, heights))


def _shares(components: int) -> NDArray[np.float64]:
    """Shares of the mixture, the null first."""
    if components == 1:
        return np.ones(1)
    others = components - 1
    return np.array([_NULL_SHARE, *[(1 - _NULL_SHARE) / others] * others])
