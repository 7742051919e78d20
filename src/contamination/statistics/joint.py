"""Several statistics on one set, tested together rather than picking the best.

New here, on `recombination`. Full, token-standardised, boundary and successor scores of the same
orderings are dependent, and how is known: under H0 the canonical index J_i of a shard is uniform on
{0..m}, and it is the same J_i in all statistics. So their joint null law is known exactly too.
`westfall_young_test` asks whether the best of them is better than the best of them would be under
H0; `sum_z_test` adds them up.
"""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, logsumexp, ndtri_exp, softmax

from contamination.errors import InputError
from contamination.statistics.joint_results import SumZResult, WestfallYoungResult
from contamination.statistics.recombination import Weights, contributions, recombination_test
from contamination.statistics.results import p_from_log10
from contamination.statistics.validation import ROUNDING, as_log_probs

Scale = Literal["p", "z"]

# Neighbouring tilts are this many of their standard deviations apart: half of it away from the
# nearest, a draw weighs within a factor e^(1/2) of what the best tilt would give it.
_SPACING = 2.0
_NULL_SHARE = 0.5  # of the mixture: no weight exceeds 2, and p-values in the bulk are accurate
_NEAR = 1e-6  # values this close to the largest of a shard count as the largest
_BLOCK = 1 << 20  # draws times shards held in memory at a time


class _Tilt(NamedTuple):
    """The null law of one statistic, times exp(theta z(J) - log_mgf), with its mean and sd of z."""

    theta: float
    log_mgf: float
    mean: float
    sd: float


def westfall_young_test(
    scores: Sequence[ArrayLike] | NDArray[np.float64],
    *,
    scale: Scale = "p",
    weights: Weights = "inverse_sd",
    resamples: int,
    rng: np.random.Generator,
) -> WestfallYoungResult:
    """Test the best of q statistics against the joint null law of the best.

    T = max_q u_q(z_q(0)), z_q(J) = sum_i w_qi (L_q[i, J_i] - mean_qi) / null sd of that sum;
    p estimates P(max_q u_q(z_q(J)) >= T), J_i uniform on {0..m}, independent over shards and shared
    by the statistics.

    Parameters
    ----------
    scores : array_like, shape (q, r, m+1)
        Score of each shard in each ordering by each statistic; entry [:, :, 0] is canonical, and an
        ordering has the same place in all statistics. Larger is more evidence.
    scale : {"p", "z"}
        u_q(z) = z, the max-z test; or the normal deviate whose tail is that of statistic q at z (by
        a saddlepoint formula), the min-p test. Standardised sums differ in their tails, most where
        shards are loud or nearly all won: with "z", a heavy tail hides the evidence of a light one.
    weights : {"inverse_sd", "equal"}
        As in `recombination_test`, within each statistic.
    resamples : int
        Number of draws. 10000 give log10 p within about 0.1 for 50 shards, down to the smallest p;
        hundreds of shards reach further into the tail and take 100000 for the same.
    rng : numpy.random.Generator
        Source of the draws.

    Returns
    -------
    WestfallYoungResult
        The statistic is T, a z-score or normal deviate. log10_p has no floor: the far tail is
        sampled where it lies.

    Raises
    ------
    InputError
        As in `recombination_test`, an unknown scale, no statistic, statistics of different shapes,
        or fewer than 1 resample.

    Notes
    -----
    H0: in each shard the m+1 orderings, each with its q scores, are exchangeable, independently
    over shards. The group is all (m+1)^r choices of canonical indices, common to the statistics: so
    their dependence is taken as it is, and statistics that agree cost nothing. With "p", the true p
    is at most q times the smallest marginal p (Bonferroni), up to the error of the saddlepoint.

    Draws come from a mixture Q: the null, and the null tilted exponentially along z_q, for every q
    and a ladder of strengths up to the largest attainable z_q. With w = dP/dQ, which z alone
    determines, p = (w(0) + sum_i w(J^i) 1{T(J^i) >= T}) / (resamples + 1).

    Exact for any number of draws: P(p <= alpha) <= alpha. Proof idea: Q and the u_q are symmetric
    in the m+1 orderings and know nothing of which is canonical. Weighting by w(0) turns "0 from P,
    draws from Q" into resamples + 1 exchangeable draws from Q; of these, the ones with p <= alpha
    are the largest by T, and weigh at most (resamples + 1) alpha together. Their own weight w(0) is
    the price: it biases p upwards, by a share that falls as 1 / resamples and grows with the depth
    of the tail and the number of tilts. With the null alone as Q, all w = 1 and
    p = (1 + hits) / (1 + resamples).

    Ties, within rounding, count against the canonical ordering. A statistic silent on every shard
    has z = 0 throughout. p need not be monotone in one canonical score, as with "inverse_sd" in
    `recombination_test`: the score also moves its shard's weight and the null sd.

    References
    ----------
    New here. Westfall and Young (1993), Resampling-Based Multiple Testing. Harrison (2012),
    "Conservative hypothesis tests and confidence intervals using importance sampling", Biometrika
    99(1), 57-69. Mixture proposals: Hesterberg (1995), Technometrics 37(2).
    """
    if resamples < 1:
        raise InputError(f"resamples is {resamples}: draw at least 1, better 10000")
    if scale not in get_args(Scale):
        raise InputError(f'scale is {scale!r}: give "p" or "z"')
    values = _as_statistics(scores)
    marginals = tuple(recombination_test(each, weights=weights) for each in values)
    z = _standardised(values, weights)
    ladders = [_ladder(each) for each in z]
    # Equal sums may differ by the rounding of the scores they are made of. Raising all draws by as
    # much can only enlarge p.
    draws = _draw(z, ladders, resamples, rng) + _rounding(values, z)[:, None]
    sums = np.column_stack([z[:, :, 0].sum(axis=1), draws])
    best = _best(sums, z, ladders, scale)
    statistic = float(best[0])
    hits = best >= statistic - ROUNDING * abs(statistic)  # the canonical ordering is one of them
    log_w = _log_weights(sums[:, hits], ladders)
    log_total = float(logsumexp(log_w))
    log10_p = min(0.0, (log_total - math.log(resamples + 1)) / math.log(10))
    drawn = np.exp(log_w[1:] - log_total)
    variance = float((drawn**2).sum()) - float(drawn.sum()) ** 2 / resamples
    return WestfallYoungResult(
        test="min_p" if scale == "p" else "max_z",
        statistic=statistic,
        p=p_from_log10(log10_p),
        log10_p=log10_p,
        shards=values.shape[1],
        permutations=values.shape[2] - 1,
        weights=weights,
        scale=scale,
        marginals=marginals,
        resamples=resamples,
        relative_error=math.sqrt(max(0.0, variance)),
    )


def sum_z_test(
    scores: Sequence[ArrayLike] | NDArray[np.float64],
    *,
    weights: Weights = "inverse_sd",
    votes: ArrayLike | None = None,
) -> SumZResult:
    """Exact test of the weighted sum of q standardised statistics: T = sum_q votes_q z_q.

    Parameters
    ----------
    scores, weights
        As in `westfall_young_test`.
    votes : array_like, shape (q,), optional
        Weight of each statistic, at least 0 and fixed in advance; all 1 if not given.

    Returns
    -------
    SumZResult
        p never below the true p, as in `recombination_test`, and as deep in the tail.

    Raises
    ------
    InputError
        As in `recombination_test`, no statistic, statistics of different shapes, or votes that are
        not q finite numbers of at least 0, one of them above.

    Notes
    -----
    H0 and group as in `westfall_young_test`. The sum over q goes inside the sum over shards: T is
    the recombination statistic of sum_q votes_q w_qi (L_q[i, j] - mean_qi) / sd_q, one score per
    shard and ordering, symmetric in the orderings. So its null law is a convolution, and p is as
    exact as that of `recombination_test`; nor is it monotone in one canonical score, for the same
    reason. It gains on the best-of-q test where several statistics see the effect, and loses where
    one does.

    References
    ----------
    New here. Sums of dependent statistics under their joint permutation law: Pesarin and Salmaso
    (2010), Permutation Tests for Complex Data.
    """
    values = _as_statistics(scores)
    ballot = np.ones(len(values)) if votes is None else np.asarray(votes, dtype=np.float64)
    valid = ballot.shape == (len(values),) and np.isfinite(ballot).all() and (ballot >= 0).all()
    if not (valid and ballot.any()):
        raise InputError(
            f"votes is {ballot}: give {len(values)} numbers of at least 0, not all of them 0"
        )
    total = np.tensordot(ballot, _standardised(values, weights), axes=1)
    combined = recombination_test(total, weights="equal")
    marginals = tuple(recombination_test(each, weights=weights) for each in values)
    named = {"test": "sum_z", "weights": weights, "marginals": marginals}
    return SumZResult(**{**vars(combined), **named})


def _as_statistics(scores: Sequence[ArrayLike] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Finite scores, (q, r, m+1); those equal to the canonical one up to rounding made equal."""
    each = [as_log_probs(one, ndim=2) for one in scores]
    shapes = sorted({one.shape for one in each})
    if len(shapes) != 1:
        raise InputError(
            f"scores holds statistics of shapes {shapes}: give at least one, all of the same "
            "shards and orderings, (q, r, m+1)"
        )
    values = np.stack(each)
    rounding = ROUNDING * np.abs(values).max(axis=2, keepdims=True)
    canonical = values[:, :, :1]
    return np.where(np.abs(values - canonical) <= rounding, canonical, values)


def _standardised(values: NDArray[np.float64], weights: Weights) -> NDArray[np.float64]:
    """What each shard would add to z_q were its ordering j canonical, (q, r, m+1)."""
    shares = np.stack([contributions(each, weights=weights) for each in values])
    null_sd = np.sqrt((shares**2).mean(axis=2).sum(axis=1))[:, None, None]
    return np.asarray(np.divide(shares, null_sd, out=np.zeros_like(shares), where=null_sd > 0))


def _rounding(values: NDArray[np.float64], z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Float noise of each z_q(J), (q,): that of the scores, in the units of z."""
    spread = np.ptp(values, axis=2)
    per_unit = np.divide(np.ptp(z, axis=2), spread, out=np.zeros_like(spread), where=spread > 0)
    return np.asarray(ROUNDING * (per_unit * np.abs(values).max(axis=2)).sum(axis=1))


# Below, z (q, r, m+1) is what each shard would add to each statistic were its ordering j canonical.
# Tilting by theta along statistic q multiplies the null law of J by exp(theta z_q(J) - K_q(theta))
# and leaves the J_i independent. Nothing there knows which ordering is canonical.


def _best(
    sums: NDArray[np.float64],
    z: NDArray[np.float64],
    ladders: Sequence[Sequence[_Tilt]],
    scale: Scale,
) -> NDArray[np.float64]:
    """max_q u_q(z_q) of sums (q, n), shape (n,)."""
    if scale == "z":
        return np.asarray(sums.max(axis=0))
    deviates = [_normal_deviates(*each) for each in zip(sums, z, ladders, strict=True)]
    return np.asarray(np.max(deviates, axis=0))


def _ladder(z: NDArray[np.float64]) -> list[_Tilt]:
    """Tilts of one statistic, z (r, m+1), from just above the null to the largest attainable sum.

    The last one reaches that sum with probability at least 1/2. Empty for a silent statistic.
    """
    below = z - z.max(axis=1, keepdims=True)
    tilts: list[_Tilt] = []
    theta = 0.0
    while True:
        powers = np.exp(theta * below)
        chances = powers / powers.sum(axis=1, keepdims=True)
        means = (chances * z).sum(axis=1, keepdims=True)
        sd = math.sqrt(float((chances * (z - means) ** 2).sum()))
        if theta > 0:
            log_mgf = float((theta * z.max(axis=1) + np.log(powers.mean(axis=1))).sum())
            tilts.append(_Tilt(theta, log_mgf, float(means.sum()), sd))
        if np.log((chances * (below >= -_NEAR)).sum(axis=1)).sum() >= -math.log(2):
            return tilts
        theta += _SPACING / sd


def _draw(
    z: NDArray[np.float64],
    ladders: Sequence[Sequence[_Tilt]],
    resamples: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """z_q(J) of independent J from the mixture of all tilts and the null, (q, resamples).

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


def _log_weights(
    sums: NDArray[np.float64], ladders: Sequence[Sequence[_Tilt]]
) -> NDArray[np.float64]:
    """log dP/dQ at z_q(J) = sums[q], (q, n) to (n,), with Q the mixture that `_draw` draws from."""
    shares = _shares(1 + sum(len(each) for each in ladders))
    log_q = np.full(sums.shape[1], math.log(shares[0]))
    # One tilt at a time: all at once would hold draws times tilts in memory.
    for along, each in zip(sums, ladders, strict=True):
        for tilt in each:
            log_q = np.logaddexp(log_q, math.log(shares[-1]) + tilt.theta * along - tilt.log_mgf)
    return -log_q


def _normal_deviates(
    sums: NDArray[np.float64], z: NDArray[np.float64], tilts: Sequence[_Tilt]
) -> NDArray[np.float64]:
    """Normal deviate with about the tail probability of one statistic, z (r, m+1), at each sum.

    At the mean of each tilt, P(sum >= mean) = exp(K - theta mean) E[exp(-theta X); X >= 0], with X
    taken as normal with the tilted sd (Daniels 1954); exact at the largest sum; linear in between,
    where deviates are nearly so. Below 0 the sum is its own deviate. It never decreases.
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
