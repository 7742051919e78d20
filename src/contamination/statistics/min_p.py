"""Several statistics on one set, tested together rather than picking the best.

New here, on the exact test on shards. Full, token-standardised, boundary and successor
scores of the same orderings depend on each other in a way that is known: under H0 the
canonical index J_i of a shard is uniform on {0..m}, and it is the same J_i in all
statistics. So their joint null law is known exactly too, and `westfall_young_test` asks
whether the best of them is better than the best would be under H0. Its far tail is
sampled from tilted laws: tilting by theta along a statistic multiplies the law of J by
exp(theta z(J)), makes large sums common, and leaves shards independent.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, logsumexp, ndtri_exp, softmax

from contamination.errors import InputError
from contamination.statistics.inputs import (
    as_count,
    as_list,
    as_log_probs,
    as_names,
    check_generator,
)
from contamination.statistics.results import TestResult
from contamination.statistics.scale import ROUNDING, without_scale
from contamination.statistics.sharded_exact import (
    ShardedExactResult,
    contributions,
    sharded_exact_test,
)

# Neighbouring tilts are this many of their standard deviations apart: half of it away
# from the nearest, a draw weighs within a factor e^(1/2) of what the best tilt would
# give it.
_SPACING = 2.0
# Of the mixture: no weight exceeds 2, and p-values in the bulk are accurate.
_NULL_SHARE = 0.5
_NEAR = 1e-6  # values this close to the largest of a shard count as the largest
_BLOCK = 1 << 20  # draws times shards held in memory at a time


@dataclass(frozen=True, eq=False, kw_only=True)
class WestfallYoungResult(TestResult):
    """Outcome of `westfall_young_test`.

    Attributes
    ----------
    names
        Names of the q statistics.
    best
        The one that gave T. The p-value has paid for the choice.
    marginals
        Each statistic's own exact test, *not* corrected for there being q of them.
    """

    names: tuple[str, ...]
    best: str
    marginals: tuple[ShardedExactResult, ...]


def westfall_young_test(
    scores: Sequence[ArrayLike] | NDArray[np.float64],
    *,
    names: Sequence[str] | None = None,
    resamples: int,
    rng: np.random.Generator,
) -> WestfallYoungResult:
    """Test the best of q statistics against the joint null law of the best.

    T = max_q u_q(z_q(0)), z_q(J) = sum_i w_qi (L_q[i, J_i] - mean_qi) / null sd of that
    sum; p estimates P(max_q u_q(z_q(J)) >= T), J_i uniform on {0..m}, independent over
    shards and shared by the statistics. u_q(z) is the normal deviate whose tail is that
    of statistic q at z (by a saddlepoint formula), which makes it a min-p test:
    standardised sums differ in their tails, most where shards are loud or nearly all
    won, and the largest z would hide the evidence of a light tail behind a heavy one.
    The statistic is T, a normal deviate.

    Parameters
    ----------
    scores
        (q, r, m+1), score of each shard in each ordering by each statistic; entry [:,
        :, 0] is canonical, and an ordering has one place in all statistics. Larger is
        more evidence.
    names
        Names of the statistics; "0", "1" and so on if not given.
    resamples
        Number of draws. 10000 give log10 p within about 0.1 for 50 shards, down to the
        smallest p; hundreds of shards reach further into the tail and take 100000 for
        the same.
    rng
        Draws the canonical indices.

    Returns
    -------
    WestfallYoungResult.

    Raises
    ------
    InputError
        For no statistic, statistics of different shapes, names of another number, no
        resample, or scores that `sharded_exact_test` refuses.

    Notes
    -----
    H0: in each shard the m+1 orderings, each with its q scores, are exchangeable,
    independently over shards. The dependence of the statistics is taken as it is, so
    those that agree cost nothing. The true p is at most q times the smallest marginal p
    (Bonferroni), up to the error of the saddlepoint.

    Draws come from a mixture Q: the null, and the null tilted exponentially along z_q,
    for every q and a ladder of strengths up to the largest attainable z_q. With w =
    dP/dQ, which z alone determines, p = (w(0) + sum_i w(J^i) 1{T(J^i) >= T}) /
    (resamples + 1).

    Exact for any number of draws: P(p <= alpha) <= alpha. Proof idea: Q and the u_q are
    symmetric in the m+1 orderings and know nothing of which is canonical. Weighting by
    w(0) turns "0 from P, draws from Q" into resamples + 1 exchangeable draws from Q; of
    these, the ones with p <= alpha are the largest by T, and weigh at most (resamples +
    1) alpha together. The price is w(0), which biases p upwards by a share that falls
    as 1 / resamples.

    Ties, within rounding, count against the canonical ordering. A statistic silent on
    every shard has z = 0 throughout. p need not be monotone in one canonical score, as
    in `sharded_exact_test`: the score also moves its shard's weight and the null sd.

    Westfall and Young (1993), Resampling-Based Multiple Testing. Harrison (2012),
    "Conservative hypothesis tests and confidence intervals using importance sampling",
    Biometrika 99(1), 57-69. Mixture proposals: Hesterberg (1995), Technometrics 37(2).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=(2, 20, 8))
    >>> scores[1, :, 0] += 2
    >>> result = westfall_young_test(scores, names=["sum", "boundary"], resamples=999, rng=rng)
    >>> result.best, result.p < 1e-6
    ('boundary', True)
    """
    check_generator(rng)
    count = as_count(resamples, "resamples", 1)
    values = _as_statistics(scores)
    labels = as_names(names, len(values))
    marginals = tuple(sharded_exact_test(block) for block in values)
    values = without_scale(values, axis=2)[0]
    shares = np.stack([contributions(block, weights="inverse_sd") for block in values])
    null_sd = np.sqrt((shares**2).mean(axis=2).sum(axis=1))[:, None, None]
    z = np.divide(shares, null_sd, out=np.zeros_like(shares), where=null_sd > 0)
    ladders = [ladder(block) for block in z]
    draws = mixture_draws(z, ladders, resamples=count, rng=rng)
    canonical = z[:, :, 0].sum(axis=1)
    # Equal sums may differ by the rounding of the scores they are made of, here in the
    # units of z. Raising all draws by as much can only enlarge p. Their weights, and
    # all else, treat the orderings alike.
    raised = np.column_stack([canonical, draws + _rounding_of_sums(values, z)])
    rows: list[NDArray[np.float64]] = []
    for along, block, tilts in zip(raised, z, ladders, strict=True):
        rows.append(normal_deviates(along, block, tilts))
    deviates = np.stack(rows)
    best = deviates.max(axis=0)
    statistic = float(deviates[:, 0].max())
    # The canonical ordering is one of them.
    hits = best >= statistic - ROUNDING * abs(statistic)
    sums = np.column_stack([canonical, draws])
    log_total = float(logsumexp(log_weights(sums[:, hits], ladders)))
    return WestfallYoungResult.of(
        (log_total - math.log(count + 1)) / math.log(10),
        test="min_p",
        statistic=statistic,
        shards=values.shape[1],
        permutations=values.shape[2] - 1,
        names=labels,
        best=labels[int(deviates[:, 0].argmax())],
        marginals=marginals,
        log10_least=min(marginal.log10_least or 0.0 for marginal in marginals),
    )


def _rounding_of_sums(
    values: NDArray[np.float64],
    z: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return by how much rounding of scores may move the sum of a statistic, (q, 1)."""
    spread = np.ptp(values, axis=2)
    no_units = np.zeros_like(spread)
    units = np.divide(np.ptp(z, axis=2), spread, out=no_units, where=spread > 0)
    largest = np.abs(values).max(axis=2)
    return np.asarray(ROUNDING * (units * largest).sum(axis=1, keepdims=True))


def _as_statistics(
    scores: Sequence[ArrayLike] | NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the scores of all statistics as one array (q, r, m+1)."""
    blocks = [as_log_probs(block, ndim=2) for block in as_list(scores, "scores")]
    if not blocks:
        raise InputError("scores is empty: give the scores of at least one statistic")
    shapes = sorted({block.shape for block in blocks})
    if len(shapes) > 1:
        raise InputError(
            f"scores have shapes {shapes[0]} and {shapes[1]}: give each statistic the "
            "same shards and orderings"
        )
    return np.stack(blocks)


# --- draws from the far tail ----------------------------------------------------------


class Tilt(NamedTuple):
    """The null law of one statistic, times exp(theta z(J) - log_mgf), with its mean and sd of z."""

    theta: float
    log_mgf: float
    mean: float
    sd: float


def ladder(z: NDArray[np.float64]) -> list[Tilt]:
    """Return tilts of one statistic, from just above the null to the largest attainable sum.

    z, (r, m+1), is what a shard would add to the statistic were an ordering canonical.
    The last tilt reaches the largest sum with probability at least 1/2; a silent
    statistic has none.

    Examples
    --------
    >>> [round(tilt.mean, 2) for tilt in ladder(np.array([[1.0, -1.0]] * 4) / 2)]
    [1.52]
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
    """Draw sums of independent J from the mixture Q of the null and all tilts, (q, resamples).

    z, (q, r, m+1), is as in `ladder`, of q statistics that share J; each has a ladder
    of tilts. The draws of a component stand together; their order carries no
    information.

    Examples
    --------
    >>> z = np.array([[[1.0, -1.0]] * 4]) / 2
    >>> rng = np.random.default_rng(0)
    >>> mixture_draws(z, [ladder(z[0])], resamples=100, rng=rng).shape
    (1, 100)
    """
    shards, size = z.shape[1:]
    rows = np.arange(shards)
    flat = z.reshape(len(z), -1)
    components = [(0, 0.0)]
    for statistic, tilts in enumerate(ladders):
        components += [(statistic, tilt.theta) for tilt in tilts]
    counts = rng.multinomial(resamples, _shares(len(components)))
    parts = []
    for count, (statistic, theta) in zip(counts, components, strict=True):
        # Inverse distribution functions of all shards, end to end: shard i is the
        # stretch i to i+1.
        laws = np.cumsum(softmax(theta * z[statistic], axis=1), axis=1)
        steps = (laws + rows[:, None]).ravel()
        block = max(1, _BLOCK // shards)
        for start in range(0, count, block):
            uniform = rng.random((min(block, count - start), shards)) + rows
            places = np.searchsorted(steps, uniform, side="right")
            # Where rounding went past i+1.
            places = np.minimum(places, rows * size + size - 1)
            parts.append(np.stack([row[places].sum(axis=1) for row in flat]))
    return np.concatenate(parts, axis=1)


def log_weights(
    sums: NDArray[np.float64], ladders: Sequence[Sequence[Tilt]]
) -> NDArray[np.float64]:
    """Return log dP/dQ of n draws, (n,), with P the null and Q the mixture of `mixture_draws`.

    The sum of each statistic, (q, n), determines the weight of a draw. Weights are at
    most 2, and their mean over draws from Q is 1.

    Examples
    --------
    >>> log_weights(np.zeros((1, 3)), [[]])  # no tilt: Q is the null
    array([-0., -0., -0.])
    """
    shares = _shares(1 + sum(len(tilts) for tilts in ladders))
    log_q = np.full(sums.shape[1], math.log(shares[0]))
    # One tilt at a time: all at once would hold draws times tilts in memory.
    for along, tilts in zip(sums, ladders, strict=True):
        for tilt in tilts:
            tilted = math.log(shares[-1]) + tilt.theta * along - tilt.log_mgf
            log_q = np.logaddexp(log_q, tilted)
    return -log_q


def normal_deviates(
    sums: NDArray[np.float64], z: NDArray[np.float64], tilts: Sequence[Tilt]
) -> NDArray[np.float64]:
    """Return the normal deviate with about the tail probability of a statistic at each sum, (n,).

    Sums, z and tilts are in units of the null sd of the sum, as in `ladder`. At the
    mean of a tilt, P(sum >= mean) = exp(K - theta mean) E[exp(-theta X); X >= 0], with
    X taken as normal with the tilted sd (Daniels 1954); exact at the largest sum;
    linear in between, where deviates are nearly so. Below 0 the sum is its own deviate.
    It never decreases.

    Examples
    --------
    >>> z = np.array([[1.0, -1.0]] * 4) / 2  # all four shards won: 1 in 16
    >>> normal_deviates(np.array([-1.0, 2.0]), z, ladder(z)).round(3)
    array([-1.   ,  1.534])
    """
    top = z >= z.max(axis=1, keepdims=True) - _NEAR
    means = [0.0]
    log_tails = [-math.log(2)]
    for theta, log_mgf, mean, sd in tilts:
        means.append(mean)
        overshoot = (theta * sd) ** 2 / 2 + float(log_ndtr(-theta * sd))
        log_tails.append(log_mgf - theta * mean + overshoot)
    deviates = np.maximum.accumulate(-ndtri_exp(log_tails))
    largest = float(z.max(axis=1).sum())
    log_chance = float(np.log(top.mean(axis=1)).sum())
    rarest = -float(ndtri_exp(log_chance))
    # The formula may overshoot just before the largest sum, which must stay above all
    # others.
    below = deviates < rarest
    knots = [*np.minimum(means, largest)[below], largest]
    heights = [*deviates[below], max(0.0, rarest)]
    return np.where(sums < 0, sums, np.interp(sums, knots, heights))


def _shares(components: int) -> NDArray[np.float64]:
    """Return the shares of the mixture, the null first."""
    tilted = components - 1
    if not tilted:
        return np.ones(1)
    shares = np.full(components, (1 - _NULL_SHARE) / tilted)
    shares[0] = _NULL_SHARE
    return shares
