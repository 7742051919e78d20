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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.signal import fftconvolve
from scipy.special import logsumexp, softmax

from contamination.errors import InputError
from contamination.statistics.results import ROUNDING, TestResult, as_log_probs, log10_least

Weights = Literal["equal", "inverse_sd"]

# Fine enough that the rounding moves log10 p by a hundredth at z = 6 with 50 shards of 250
# permutations, coarse enough that this takes tens of milliseconds.
_STEPS_PER_SHARD = 4096
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False, kw_only=True)
class ShardedExactResult(TestResult):
    """`sharded_exact_test`.

    Attributes
    ----------
    z : statistic by its exact sd under H0 (0 if that is 0): a description, never the source of p.
    resolution : width of the conservative rounding, in units of the statistic:
        P(T >= t) <= p <= P(T >= t - resolution), the upper end up to the bound on float error
        that p includes: about 1e-7 of p for 50 shards, 1e-6 for some hundred.
    """

    z: float
    resolution: float


def sharded_exact_test(
    log_probs: ArrayLike, *, weights: Weights = "inverse_sd"
) -> ShardedExactResult:
    """Exact one-sided test that the canonical orderings are more likely, summed over shards.

    T = sum_i w_i (L[i, 0] - mean_j L[i, j]), mean over all m+1 orderings;
    p = P(sum_i w_i (L[i, J_i] - mean_i) >= T), J_i uniform on {0..m} and independent.

    Its p is never below the true p, and above it by no more than `resolution` allows: 0 if the
    weights are "equal" and the scores are whole numbers, up to some thousand apart. Raises
    InputError for a wrong number of dimensions, no shard, fewer than 1 permutation, a value that is
    not finite, or an unknown weighting.

    Parameters
    ----------
    log_probs : (r, m+1) log-probability (nats), or any other score, of each shard in each ordering;
        column 0 is canonical. Larger is more evidence.
    weights : "inverse_sd" is w_i = 1 / sd of the m+1 scores of shard i (0 for a constant shard), so
        that no loud shard drowns the others and T is the sum of the shards' z-scores; "equal" is
        w_i = 1, with T in nats. Both are symmetric in the m+1 scores, which keeps the test exact.

    Notes
    -----
    H0: within each shard the m+1 orderings are exchangeable given the model, independently over
    shards. Then P(p <= alpha) <= alpha exactly, for every r and m and any distribution of scores.
    Shards may differ in law; neither normality nor many shards are assumed. Ties count against the
    canonical ordering. (m+1)^-r <= p <= 1, with the lower end reached where every canonical score
    is the strict maximum of its shard. With "equal", raising a canonical score never raises the
    true p; with "inverse_sd" it also changes the weight of its shard, and no such promise holds.

    Shards and permutations: Oren et al. (2024), section 3.2. Exponential tilting: Daniels (1954),
    "Saddlepoint approximations in statistics", Annals of Mathematical Statistics 25(4).
    """
    return _tested("sharded_exact", [as_log_probs(log_probs, ndim=2)], weights)


def sampling_error(log_probs: ArrayLike, *, blocks: int = 10) -> float:
    """Standard error of log10 p over the draw of the orderings, where these are sampled.

    A jackknife: the test is repeated without each of so many blocks of the m orderings in turn. p
    is valid for every draw; this says how much another draw would move it. `log_probs` and errors
    as in `sharded_exact_test`; columns 1 to m are independent draws.
    """
    scores = as_log_probs(log_probs, ndim=2)
    parts = np.array_split(np.arange(1, scores.shape[1]), blocks)
    left = [sharded_exact_test(np.delete(scores, part, axis=1)).log10_p for part in parts]
    return float(np.std(left) * np.sqrt(blocks - 1))


def pooled_exact_test(
    sets: Sequence[ArrayLike], *, weights: Weights = "inverse_sd"
) -> ShardedExactResult:
    """`sharded_exact_test` on the shards of several sets at once: one T, one exact p.

    `sets` hold scores (r_i, m_i + 1) as `sharded_exact_test` takes them; r and m may differ. T adds
    the shards of all sets, and its null law is the convolution of all their laws: where each set
    shows a little, the sum shows more than any of them, and nothing is scored for it. With
    "inverse_sd" every shard is in units of its own spread, so sets may even differ in what their
    scores are. Of the result, `shards` counts those of all sets, and `permutations` is the fewest
    of a set. Raises InputError for no set, or as `sharded_exact_test` of one.

    H0: in every set the orderings of a shard are exchangeable given the model. Given the model,
    orders of different sets are independent draws (each author ordered their own), so all shards
    are independent, and P(p <= alpha) <= alpha exactly. One model scoring all sets does not break
    that: its scores are given, only which ordering is canonical is random.

    Which sets are pooled must not depend on these scores. Where a control that knows the order
    decides, as the compressor of an audit does, P(p <= alpha) is at most alpha / P(all pass).
    """
    if not len(sets):
        raise InputError("there is no set to pool: give the scores of at least one")
    return _tested("pooled_exact", [as_log_probs(each, ndim=2) for each in sets], weights)


def _tested(
    test: str, blocks: Sequence[NDArray[np.float64]], weights: Weights
) -> ShardedExactResult:
    """Test the shards of all blocks (r_i, m_i + 1)."""
    gaps = [_gaps(values, weights)[0] for values in blocks]
    shards = sum(map(len, gaps))
    if max(each.max() for each in gaps) <= 0:  # the most that T can be: count the ties, no lattice
        resolution, log_p = 0.0, sum(float(np.log((x == 0).mean(axis=1)).sum()) for x in gaps)
    else:
        width = sum(float(np.ptp(each, axis=1).sum()) for each in gaps)
        step = width / (_STEPS_PER_SHARD * shards)
        whole = all((each == np.rint(each)).all() for each in gaps)
        if step < 1 and whole:  # whole numbers are a lattice of their own
            step, resolution = 1.0, 0.0
        else:
            resolution = step * shards
        log_p = _log_tail([np.ceil(each / step).astype(np.int64) for each in gaps])
    shares = [contributions(values, weights=weights) for values in blocks]
    statistic = sum(float(each[:, 0].sum()) for each in shares)
    null_sd = math.sqrt(sum(float((each**2).mean(axis=1).sum()) for each in shares))
    return ShardedExactResult.of(
        log_p / math.log(10),
        test=test,
        statistic=statistic,
        shards=shards,
        permutations=min(values.shape[1] for values in blocks) - 1,
        log10_least=sum(map(log10_least, gaps)),
        z=statistic / null_sd if null_sd > 0 else 0.0,
        resolution=resolution,
    )


def sharded_exact_monte_carlo(
    log_probs: ArrayLike,
    *,
    weights: Weights = "inverse_sd",
    resamples: int,
    rng: np.random.Generator,
) -> TestResult:
    """`sharded_exact_test` by sampling the canonical indices: p = (1 + hits) / (1 + resamples).

    With the +1 (Phipson and Smyth 2010), P(p <= alpha) <= alpha holds exactly for any number of
    draws, `resamples`; p cannot be below 1 / (1 + resamples). Parameters, H0 and errors as in
    `sharded_exact_test`.
    """
    values = as_log_probs(log_probs, ndim=2)
    gaps, tolerance = _gaps(values, weights)
    draws = np.zeros(resamples)
    for row in gaps:
        draws += row[rng.integers(len(row), size=resamples)]
    hits = int(np.count_nonzero(draws >= -tolerance))
    p = (1 + hits) / (1 + resamples)
    statistic = float(contributions(values, weights=weights)[:, 0].sum())
    outcome = {"p": p, "log10_p": math.log10(p), "statistic": statistic}
    shards, test = len(values), "sharded_exact_monte_carlo"
    return TestResult(test=test, shards=shards, permutations=values.shape[1] - 1, **outcome)


def sharded_exact_p_values(
    log_probs: ArrayLike, canonical: ArrayLike, *, weights: Weights = "inverse_sd"
) -> NDArray[np.float64]:
    """p of `sharded_exact_test` for each of b choices of the canonical orderings, (b,).

    Means and weights do not ask which ordering is canonical, so all choices have one null law, and
    a thousand of them cost one convolution. `log_probs` (r, m+1) and errors as in
    `sharded_exact_test`, except that no column is special; `canonical` (b, r) is the column of each
    shard that is called canonical, 0 to m.

    What is returned is never below the true p, and above it by no more than `resolution` of
    `sharded_exact_test` allows and 1e-6. Without the tilting of that function there is no far tail.
    """
    values, chosen = as_log_probs(log_probs, ndim=2), np.asarray(canonical)
    shards, orderings = values.shape
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

    Rows have mean 0; with "inverse_sd" they are z-scores, or 0 for a constant shard. The sum of
    column 0 is the statistic. Parameters and errors as in `sharded_exact_test`.
    """
    values = as_log_probs(log_probs, ndim=2)
    centred = values - values.mean(axis=1, keepdims=True)
    return np.asarray(_weights(values, weights) * centred)


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


def _log_tail(blocks: Sequence[NDArray[np.int64]]) -> float:
    """Upper bound, tight to float precision, of log P(sum_i steps[i, J_i] >= 0), J_i uniform.

    The rows of all blocks (r, m + 1) are summed. With K(theta) = sum_i log mean_j
    exp(theta steps[i, j]) and q the tilted law of the sum,
    P(sum >= 0) = sum_{k >= 0} q(k) exp(K(theta) - theta k), for any theta. The one with K' = 0 puts
    the bulk of q where the tail begins. Needs a positive step somewhere, or no such theta exists.
    """
    theta = 0.0
    if _tilted_mean(theta, blocks) < 0:
        high = 1 / max(int(np.abs(steps).max()) for steps in blocks)
        while _tilted_mean(high, blocks) < 0:
            high *= 2
        theta = brentq(_tilted_mean, 0.0, high, args=(blocks,), xtol=1e-6 * high)
    logits = [theta * steps for steps in blocks]
    log_mgf = sum(float((logsumexp(x, axis=1) - math.log(x.shape[1])).sum()) for x in logits)
    laws = [
        np.bincount(row - row.min(), weights=mass)
        for steps, each in zip(blocks, logits, strict=True)
        for row, mass in zip(steps, softmax(each, axis=1), strict=True)
    ]
    law, error = _convolved(laws)
    tail = law[-sum(int(steps.min(axis=1).sum()) for steps in blocks) :]
    decay = np.exp(-theta * np.arange(len(tail)))
    # The masses themselves carry the relative error of exp and of the sums that normalise them.
    largest = sum(float(np.abs(each).max(axis=1).sum()) for each in logits)
    relative = _EPS * (4 * largest + sum(steps.size for steps in blocks))
    return log_mgf + math.log(float(((tail + error) * decay).sum())) + relative


def _convolved(laws: list[NDArray[Any]]) -> tuple[NDArray[np.float64], float]:
    """Law of the sum of independent variables on 0, 1, 2 ..., and a bound on an entry's error."""
    count = len(laws)
    while len(laws) > 1:  # in pairs: neighbours are short, and few convolutions are long
        # Directly where one is so short that an FFT takes longer.
        pairs = [
            np.convolve(a, b) if min(len(a), len(b)) <= 64 else fftconvolve(a, b)
            for a, b in zip(laws[::2], laws[1::2], strict=False)
        ]
        laws = pairs + laws[2 * len(pairs) :]
    # Round-off of one FFT of length n in the 2-norm is below 5 eps log2 n of its result (Higham,
    # Accuracy and Stability, theorem 24.2, rounded up for mixed radices). A convolution has three,
    # and probability vectors have norms at most 1, so no entry is off by 16 eps log2 n. Convolving
    # with another probability vector does not enlarge an entrywise error: the count - 1 errors add.
    # A direct one of up to 64 terms is off by 64 eps of each entry at most, which is less.
    return laws[0], (count - 1) * 16 * _EPS * math.log2(2 * len(laws[0]) + 2)


def _tilted_mean(theta: float, blocks: Sequence[NDArray[np.int64]]) -> float:
    """K'(theta): mean of the sum of steps under the law tilted by theta; it grows with theta."""
    return sum(float((softmax(theta * steps, axis=1) * steps).sum()) for steps in blocks)
