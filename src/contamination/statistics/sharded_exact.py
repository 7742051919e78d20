"""The exact test on shards: a stratified permutation test, with one stratum for each shard.

New here, on the shards and permutations of Oren section 3.2. Under H0, given the m+1 scores of a
shard, each of them is equally likely to be the canonical one, independently over shards. So the
null law of a sum over shards is the convolution of r discrete uniform laws, known exactly from
scores already paid for.

How the tail is computed. Every score is measured from the canonical one of its shard, in whole
steps of a common lattice, *rounded up*; the canonical score sits at step 0 without rounding. The
event {T >= t} then becomes {sum of steps >= 0} and can only have grown. Exponential tilting moves
the mean of the sum to 0 before the convolution, so that FFT round-off, which is relative to the
largest probability, stays small beside a tail of 1e-80 or less.
"""

import math
from typing import Any, Literal, get_args

import numpy as np
import scipy.stats
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.signal import fftconvolve
from scipy.special import logsumexp, softmax

from contamination.errors import InputError
from contamination.statistics.results import MonteCarloResult, ShardedExactResult, p_from_log10
from contamination.statistics.validation import ROUNDING, as_log_probs

Weights = Literal["equal", "inverse_sd"]

# Fine enough that the rounding moves log10 p by a hundredth at z = 6 with 50 shards of 250
# permutations, coarse enough that this takes tens of milliseconds.
_STEPS_PER_SHARD = 4096
_EPS = float(np.finfo(np.float64).eps)


def sharded_exact_test(
    log_probs: ArrayLike, *, weights: Weights = "inverse_sd"
) -> ShardedExactResult:
    """Exact one-sided test that the canonical orderings are more likely, summed over shards.

    T = sum_i w_i (L[i, 0] - mean_j L[i, j]), mean over all m+1 orderings;
    p = P(sum_i w_i (L[i, J_i] - mean_i) >= T), J_i uniform on {0..m} and independent.

    Parameters
    ----------
    log_probs : array_like, shape (r, m+1)
        Log-probability (nats), or any other score, of each shard in each ordering; column 0 is
        canonical. Larger is more evidence.
    weights : {"inverse_sd", "equal"}
        w_i = 1 / sd of the m+1 scores of shard i (0 for a constant shard), so that no loud shard
        drowns the others and T is the sum of the shards' z-scores; or w_i = 1, with T in nats.
        Both are symmetric in the m+1 scores, which is what keeps the test exact.

    Returns
    -------
    ShardedExactResult
        p is never below the true p, and above it by no more than `resolution` allows.

    Raises
    ------
    InputError
        Wrong number of dimensions, no shard, fewer than 1 permutation, a value that is not finite,
        or an unknown weighting.

    Notes
    -----
    H0: within each shard the m+1 orderings are exchangeable given the model, independently over
    shards. Then P(p <= alpha) <= alpha exactly, for every r and m and any distribution of scores.
    Shards may differ in law; neither normality nor many shards are assumed. Ties count against the
    canonical ordering. (m+1)^-r <= p <= 1, with the lower end reached where every canonical score
    is the strict maximum of its shard. With "equal", raising a canonical score never raises the
    true p; with "inverse_sd" it also changes the weight of its shard, and no such promise holds.

    References
    ----------
    Shards and permutations: Oren et al. (2024), section 3.2. Exponential tilting: Daniels (1954),
    "Saddlepoint approximations in statistics", Annals of Mathematical Statistics 25(4).
    """
    values = as_log_probs(log_probs, ndim=2)
    gaps, _ = _gaps(values, weights)
    if gaps.max() <= 0:  # the largest value that T can take: count the ties, no lattice needed
        resolution, log_p = 0.0, float(np.log((gaps == 0).mean(axis=1)).sum())
    else:
        step = float(np.ptp(gaps, axis=1).sum()) / (_STEPS_PER_SHARD * len(gaps))
        resolution = step * len(gaps)
        log_p = _log_tail(np.ceil(gaps / step).astype(np.int64))
    log10_p = min(0.0, log_p / math.log(10))
    return ShardedExactResult(
        test="sharded_exact",
        p=p_from_log10(log10_p),
        log10_p=log10_p,
        resolution=resolution,
        **_described(values, weights),
    )


def sharded_exact_monte_carlo(
    log_probs: ArrayLike,
    *,
    weights: Weights = "inverse_sd",
    resamples: int,
    rng: np.random.Generator,
) -> MonteCarloResult:
    """`sharded_exact_test` by sampling the canonical indices: p = (1 + hits) / (1 + resamples).

    With the +1 (Phipson and Smyth 2010), P(p <= alpha) <= alpha holds exactly for any number of
    draws, `resamples`; p cannot be below 1 / (1 + resamples). The interval of the result is that of
    Clopper and Pearson (1934). Parameters, H0 and errors as in `sharded_exact_test`, or fewer than
    1 resample.
    """
    if resamples < 1:
        raise InputError(f"resamples is {resamples}: draw at least 1, better 10000")
    values = as_log_probs(log_probs, ndim=2)
    gaps, tolerance = _gaps(values, weights)
    draws = np.zeros(resamples)
    for row in gaps:
        draws += row[rng.integers(len(row), size=resamples)]
    hits = int(np.count_nonzero(draws >= -tolerance))
    p = (1 + hits) / (1 + resamples)
    interval = scipy.stats.binomtest(hits, resamples).proportion_ci(method="exact")
    return MonteCarloResult(
        test="sharded_exact_monte_carlo",
        p=p,
        log10_p=math.log10(p),
        p_low=float(interval.low),
        p_high=float(interval.high),
        **_described(values, weights),
    )


def sharded_exact_p_values(
    log_probs: ArrayLike, canonical: ArrayLike, *, weights: Weights = "inverse_sd"
) -> NDArray[np.float64]:
    """p of `sharded_exact_test` for each of b choices of the canonical orderings, (b,).

    Means and weights do not ask which ordering is canonical, so all choices have one null law, and
    a thousand of them cost one convolution.

    Parameters
    ----------
    log_probs : array_like, shape (r, m+1)
        As in `sharded_exact_test`, except that no column is special.
    canonical : array_like of int, shape (b, r)
        The column of each shard that is called canonical, 0 to m.

    Returns
    -------
    ndarray, shape (b,)
        Never below the true p; above it by no more than `resolution` of `sharded_exact_test` allows
        and 1e-6. Without the tilting of that function there is no far tail here.

    Raises
    ------
    InputError
        As in `sharded_exact_test`, or `canonical` does not hold one column for each shard.
    """
    values, chosen = as_log_probs(log_probs, ndim=2), np.asarray(canonical)
    shards, orderings = values.shape
    if chosen.shape[1:] != (shards,) or not np.isin(chosen, np.arange(orderings)).all():
        raise InputError(
            f"canonical is not (b, {shards}) with columns 0 to {orderings - 1} of log_probs"
        )
    shares = contributions(values, weights=weights)
    sums = shares[np.arange(shards), chosen].sum(axis=1)
    width = float(np.ptp(shares, axis=1).sum())
    if width == 0:
        return np.ones(len(chosen))
    step = width / (_STEPS_PER_SHARD * shards)
    least = shares.min(axis=1, keepdims=True)
    steps = np.ceil((shares - least) / step).astype(np.int64)  # rounded up: tails only grow
    law, error = _convolved([np.bincount(row) / orderings for row in steps])
    tails = np.minimum(1.0, np.cumsum((law + error)[::-1])[::-1])
    # Sums that are equal but for float noise must count as ties.
    noise = float((_weights(values, weights) * _rounding(values)).sum())
    reached = np.ceil((sums - float(least.sum()) - noise) / step).astype(np.int64)
    return np.asarray(tails[np.maximum(reached, 0)])


def contributions(log_probs: ArrayLike, *, weights: Weights) -> NDArray[np.float64]:
    """What each ordering would add to T were it canonical: w_i (L[i, j] - mean_i), (r, m+1).

    Rows have mean 0; with "inverse_sd" they have variance 1, or are 0 for a constant shard.
    Parameters and errors as in `sharded_exact_test`.
    """
    values = as_log_probs(log_probs, ndim=2)
    centred = values - values.mean(axis=1, keepdims=True)
    return np.asarray(_weights(values, weights) * centred)


def shard_z_scores(log_probs: ArrayLike) -> NDArray[np.float64]:
    """z-score of the canonical ordering among all m+1 of its shard, (r,); 0 for a constant shard.

    Their sum is the statistic of `sharded_exact_test` with weights "inverse_sd"; errors as there.
    """
    return contributions(log_probs, weights="inverse_sd")[:, 0]


def _weights(values: NDArray[np.float64], scheme: Weights) -> NDArray[np.float64]:
    """w_i as a column, (r, 1)."""
    if scheme not in get_args(Weights):
        raise InputError(f'weights is {scheme!r}: give "inverse_sd" or "equal"')
    if scheme == "equal":
        return np.ones((len(values), 1))
    # Dividing rounding noise by its own sd would give a constant shard a full vote.
    varies = np.ptp(values, axis=1, keepdims=True) > _rounding(values)
    sd = values.std(axis=1, keepdims=True)
    return np.asarray(np.divide(1.0, sd, out=np.zeros_like(sd), where=varies))


def _rounding(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(ROUNDING * np.abs(values).max(axis=1, keepdims=True))


def _gaps(values: NDArray[np.float64], scheme: Weights) -> tuple[NDArray[np.float64], float]:
    """w_i (L[i, j] - L[i, 0]), and the float noise of a sum of them over shards.

    T >= t is now {sum of gaps >= 0}. Equal scores must stay ties although they may differ in their
    last bits, or p would be too small: gaps at rounding level are set to 0 here, and sums are
    compared with a tolerance (Monte Carlo) or rounded up by far more than that (lattice).
    """
    rounding, weights = _rounding(values), _weights(values, scheme)
    gaps = values - values[:, :1]
    gaps = weights * np.where(np.abs(gaps) <= rounding, 0.0, gaps)
    return gaps, float((weights * rounding).sum())


def _described(values: NDArray[np.float64], scheme: Weights) -> dict[str, Any]:
    """What both results say of T besides its p."""
    shares = contributions(values, weights=scheme)
    statistic = float(shares[:, 0].sum())
    null_sd = math.sqrt(float((shares**2).mean(axis=1).sum()))
    return {
        "statistic": statistic,
        "shards": len(values),
        "permutations": values.shape[1] - 1,
        "null_sd": null_sd,
        "z": statistic / null_sd if null_sd > 0 else 0.0,
    }


def _log_tail(steps: NDArray[np.int64]) -> float:
    """Upper bound, tight to float precision, of log P(sum_i steps[i, J_i] >= 0), J_i uniform.

    With K(theta) = sum_i log mean_j exp(theta steps[i, j]) and q the tilted law of the sum,
    P(sum >= 0) = sum_{k >= 0} q(k) exp(K(theta) - theta k), for any theta. The one with K' = 0 puts
    the bulk of q where the tail begins. Needs a positive step somewhere, or no such theta exists.
    """
    theta = 0.0
    if _tilted_mean(theta, steps) < 0:
        high = 1 / int(np.abs(steps).max())
        while _tilted_mean(high, steps) < 0:
            high *= 2
        theta = brentq(_tilted_mean, 0.0, high, args=(steps,), xtol=1e-6 * high)
    logits = theta * steps
    log_mgf = float((logsumexp(logits, axis=1) - math.log(steps.shape[1])).sum())
    laws = [
        np.bincount(row - row.min(), weights=mass)
        for row, mass in zip(steps, softmax(logits, axis=1), strict=True)
    ]
    law, error = _convolved(laws)
    tail = law[-int(steps.min(axis=1).sum()) :]
    decay = np.exp(-theta * np.arange(len(tail)))
    # The masses themselves carry the relative error of exp and of the sums that normalise them.
    relative = _EPS * (4 * float(np.abs(logits).max(axis=1).sum()) + steps.size)
    return log_mgf + math.log(float(((tail + error) * decay).sum())) + relative


def _convolved(laws: list[NDArray[Any]]) -> tuple[NDArray[np.float64], float]:
    """Law of the sum of independent variables on 0, 1, 2 ..., and a bound on an entry's error."""
    count = len(laws)
    while len(laws) > 1:  # in pairs: neighbours are short, and few convolutions are long
        pairs = [fftconvolve(a, b) for a, b in zip(laws[::2], laws[1::2], strict=False)]
        laws = pairs + laws[2 * len(pairs) :]
    # Round-off of one FFT of length n in the 2-norm is below 5 eps log2 n of its result (Higham,
    # Accuracy and Stability, theorem 24.2, rounded up for mixed radices). A convolution has three,
    # and probability vectors have norms at most 1, so no entry is off by 16 eps log2 n. Convolving
    # with another probability vector does not enlarge an entrywise error: the count - 1 errors add.
    return laws[0], (count - 1) * 16 * _EPS * math.log2(2 * len(laws[0]) + 2)


def _tilted_mean(theta: float, steps: NDArray[np.int64]) -> float:
    """K'(theta): mean of the sum of steps under the law tilted by theta; it grows with theta."""
    return float((softmax(theta * steps, axis=1) * steps).sum())
