"""The exact test on shards: a stratified permutation test, with one stratum for each shard.

New here, on the shards and permutations of Oren section 3.2. Under H0, given the m+1
scores of a shard, each of them is equally likely to be the canonical one, independently
over shards. So the null law of a sum over shards is the convolution of r discrete
uniform laws, known exactly from scores already paid for.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from contamination.errors import InputError
from contamination.statistics.inputs import (
    as_count,
    as_list,
    as_log_probs,
    as_whole_numbers,
    check_generator,
)
from contamination.statistics.lattice import (
    STEPS_PER_SHARD,
    convolve,
    lattice_step,
    log_tail,
)
from contamination.statistics.results import TestResult, log10_least
from contamination.statistics.scale import with_scale
from contamination.statistics.shard_weights import (
    Floats,
    Weights,
    float_noise,
    gaps_of,
    gaps_of_blocks,
    log_share_of_ties,
    weighted,
    without_units,
)

_MOST_BLOCKS = 1000  # of a jackknife: each repeats the test


@dataclass(frozen=True, eq=False, kw_only=True)
class ShardedExactResult(TestResult):
    """Outcome of `sharded_exact_test`.

    Attributes
    ----------
    z
        Statistic by its exact sd under H0 (0 if that is 0): a description, never the
        source of p.
    resolution
        Width of the conservative rounding, in units of the statistic: P(T >= t) <= p <=
        P(T >= t - resolution). The upper end holds up to ties within rounding, and up
        to the bound on float error that p includes. This bound grows with the square of
        the number r of shards: below 4e-11 r^2 of p where p is below 0.1 (1e-7 for 50
        shards), and below 4e-10 r^2 of p up to 1.
    """

    z: float
    resolution: float


def sharded_exact_test(
    log_probs: ArrayLike, *, weights: Weights = "inverse_sd"
) -> ShardedExactResult:
    """Test that the canonical orderings are more likely, summed over shards: exact, one-sided.

    T = sum_i w_i (L[i, 0] - mean_j L[i, j]), mean over all m+1 orderings;
    p = P(sum_i w_i (L[i, J_i] - mean_i) >= T), J_i uniform on {0..m} and independent.

    Parameters
    ----------
    log_probs
        (r, m+1) log-probability (nats), or any other score, of each shard in each
        ordering; column 0 is canonical. Larger is more evidence.
    weights
        "inverse_sd" is w_i = 1 / sd of the m+1 scores of shard i (0 for a constant
        shard, whose scores differ by at most 1e-12 of the largest), so that no loud
        shard drowns the others and T is the sum of the shards' z-scores; "equal" is
        w_i = 1, with T in nats. Both are symmetric in the m+1 scores, which keeps the
        test exact.

    Returns
    -------
    ShardedExactResult. Its p is never below the true p, and above it by no more than
    `resolution` allows: 0 if the weights are "equal" and the scores are whole multiples
    of one power of two, up to some thousand apart.

    Raises
    ------
    InputError
        For a wrong number of dimensions, no shard, fewer than 1 permutation, a value
        that is not a finite number, or an unknown weighting.

    Notes
    -----
    H0: within each shard the m+1 orderings are exchangeable given the model,
    independently over shards. Then P(p <= alpha) <= alpha exactly, for every r and m
    and any distribution of scores. Shards may differ in law; neither normality nor many
    shards are assumed. Ties count against the canonical ordering. (m+1)^-r <= p <= 1,
    with the lower end reached where every canonical score is the strict maximum of its
    shard. With "equal", raising a canonical score never raises the true p; with
    "inverse_sd" it also changes the weight of its shard, and no such promise holds.

    Shards and permutations: Oren et al. (2024), section 3.2. Exponential tilting:
    Daniels (1954), "Saddlepoint approximations in statistics", Annals of Mathematical
    Statistics 25(4).

    Examples
    --------
    Both canonical orderings are the likeliest of their three:

    >>> scores = [[-9.0, -10.0, -11.0], [-7.0, -8.0, -9.0]]
    >>> round(sharded_exact_test(scores, weights="equal").p, 6)
    0.111111
    """
    return _test_shards("sharded_exact", [as_log_probs(log_probs, ndim=2)], weights)


def sampling_error(log_probs: ArrayLike, *, blocks: int = 10) -> float:
    """Estimate the standard error of log10 p over the draw of the orderings, where it is sampled.

    A jackknife: the test is repeated without each of `blocks` blocks of the m orderings
    in turn. p is valid for every draw; this says how much another draw would move it.

    Parameters
    ----------
    log_probs
        Same as in `sharded_exact_test`; columns 1 to m are independent draws.
    blocks
        2 to 1,000. There are no more blocks than shuffled orderings.

    Raises
    ------
    InputError
        For a wrong number of dimensions, no shard, fewer than 2 permutations, a value
        that is not a finite number, or another number of blocks.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> sampling_error(rng.normal(size=(10, 201))) < 0.1
    True
    """
    scores = as_log_probs(log_probs, ndim=2)
    count = as_count(blocks, "blocks", 2, _MOST_BLOCKS)
    permutations = scores.shape[1] - 1
    if permutations < 2:
        raise InputError("log_probs has 1 permutation: a sampling error needs at least 2")
    count = min(count, permutations)
    parts = np.array_split(np.arange(1, permutations + 1), count)
    log10_p: list[float] = []
    for part in parts:
        others = np.delete(scores, part, axis=1)
        log10_p.append(sharded_exact_test(others).log10_p)
    return float(np.std(log10_p) * np.sqrt(count - 1))


def pooled_exact_test(
    sets: Sequence[ArrayLike], *, weights: Weights = "inverse_sd"
) -> ShardedExactResult:
    """Test the shards of several sets at once by `sharded_exact_test`: one T, one exact p.

    Parameters
    ----------
    sets
        Scores (r_i, m_i + 1) of each set, as `sharded_exact_test` takes them; r and m
        may differ.
    weights
        As in `sharded_exact_test`. With "inverse_sd" every shard is in units of its own
        spread, so sets may even differ in what their scores are.

    Returns
    -------
    ShardedExactResult, whose `shards` counts those of all sets, and whose
    `permutations` is the fewest of a set.

    Raises
    ------
    InputError
        For no set, or scores of one that `sharded_exact_test` refuses.

    Notes
    -----
    T adds the shards of all sets, and its null law is the convolution of all their
    laws: where each set shows a little, the sum shows more than any of them, and
    nothing is scored for it.

    H0: in every set the orderings of a shard are exchangeable given the model. Given
    the model, orders of different sets are independent draws (each author ordered their
    own), so all shards are independent, and P(p <= alpha) <= alpha exactly. One model
    scoring all sets does not break that: its scores are given, only which ordering is
    canonical is random.

    Which sets are pooled must not depend on the order. If something that knows the
    order may leave sets out, as a diagnosis or a control does, the test is not exact.
    P(p <= alpha) is then at most alpha + P(some set is left out), and given that none
    is left out, at most alpha / P(none is left out).

    Examples
    --------
    >>> one = [[3.0, 1.0, 2.0]]
    >>> other = [[5.0, 4.0], [8.0, 7.0]]
    >>> round(pooled_exact_test([one, other]).p, 6)
    0.083333
    """
    blocks = [as_log_probs(scores, ndim=2) for scores in as_list(sets, "sets")]
    if not blocks:
        raise InputError("there is no set to pool: give the scores of at least one")
    return _test_shards("pooled_exact", blocks, weights)


def sharded_exact_monte_carlo(
    log_probs: ArrayLike,
    *,
    weights: Weights = "inverse_sd",
    resamples: int,
    rng: np.random.Generator,
) -> TestResult:
    """Estimate p of `sharded_exact_test` by sampling: p = (1 + hits) / (1 + resamples).

    With the +1 (Phipson and Smyth 2010), P(p <= alpha) <= alpha holds exactly for any
    number of draws; p cannot be below 1 / (1 + resamples).

    Parameters
    ----------
    log_probs, weights
        Same as in `sharded_exact_test`, with the same H0.
    resamples
        Number of draws of the canonical indices, 1 or more.
    rng
        Draws them.

    Raises
    ------
    InputError
        For a wrong number of dimensions, no shard, fewer than 1 permutation, a value
        that is not a finite number, or an unknown weighting; or for no
        resample.

    Examples
    --------
    >>> scores = [[-9.0, -10.0, -11.0], [-7.0, -8.0, -9.0]]
    >>> rng = np.random.default_rng(0)
    >>> sharded_exact_monte_carlo(scores, resamples=999, rng=rng).p
    0.104
    """
    check_generator(rng)
    count = as_count(resamples, "resamples", 1)
    (values,), exponent = without_units([as_log_probs(log_probs, ndim=2)], weights)
    draws = np.zeros(count)
    for row in gaps_of(values, weights):
        draws += row[rng.integers(len(row), size=count)]
    hits = int(np.count_nonzero(draws >= -float_noise(values, weights)))
    p = (1 + hits) / (1 + count)
    shares = weighted(values, weights)
    return TestResult(
        test="sharded_exact_monte_carlo",
        statistic=with_scale(float(shares[:, 0].sum()), exponent),
        p=p,
        log10_p=math.log10(p),
        shards=len(values),
        permutations=values.shape[1] - 1,
    )


def sharded_exact_p_values(
    log_probs: ArrayLike, canonical: ArrayLike, *, weights: Weights = "inverse_sd"
) -> Floats:
    """Compute p of `sharded_exact_test` for each of b choices of the canonical orderings, (b,).

    Means and weights do not ask which ordering is canonical, so all choices have one
    null law, and a thousand of them cost one convolution.

    Parameters
    ----------
    log_probs
        (r, m+1) as in `sharded_exact_test`, except that no column is special.
    canonical
        (b, r), the column of each shard that is called canonical, 0 to m.
    weights
        As in `sharded_exact_test`.

    Returns
    -------
    p-values, (b,): never below the true p, and above it by no more than `resolution` of
    `sharded_exact_test` and ties within rounding allow, and a bound on float error.
    Without the tilting of that function the bound is absolute, so there is no far tail:
    below 4e-10 r^2 (1e-6 for 50 shards, 4e-4 for 1,000).

    Raises
    ------
    InputError
        For a wrong number of dimensions, no shard, fewer than 1 permutation, a value
        that is not a finite number, or an unknown weighting; or for
        choices of another shape or of columns that do not exist.

    Examples
    --------
    >>> scores = [[-9.0, -10.0, -11.0], [-7.0, -8.0, -9.0]]
    >>> sharded_exact_p_values(scores, [[0, 0], [2, 2]]).round(4)
    array([0.1111, 1.    ])
    """
    (values,), _ = without_units([as_log_probs(log_probs, ndim=2)], weights)
    shards, orderings = values.shape
    chosen = as_whole_numbers(
        canonical,
        "canonical",
        (None, shards),
        least=0,
        most=orderings - 1,
    )
    shares = weighted(values, weights)
    sums = shares[np.arange(shards), chosen].sum(axis=1)
    width = float(np.ptp(shares, axis=1).sum())
    if width == 0:
        return np.ones(len(chosen))
    step = width / (STEPS_PER_SHARD * shards)
    least = shares.min(axis=1, keepdims=True)
    # Rounded up: tails only grow.
    steps = np.ceil((shares - least) / step).astype(np.int64)
    law, error = convolve([np.bincount(row) / orderings for row in steps])
    tails = np.minimum(1.0, np.cumsum((law + error)[::-1])[::-1])
    # Sums that are equal but for float noise must count as ties.
    noise = float_noise(values, weights)
    reached = np.ceil((sums - float(least.sum()) - noise) / step).astype(np.int64)
    return np.asarray(tails[np.maximum(reached, 0)])


def contributions(log_probs: ArrayLike, *, weights: Weights) -> Floats:
    """Return what each ordering would add to T were it canonical: w_i (L[i, j] - mean_i).

    Parameters
    ----------
    log_probs, weights
        As in `sharded_exact_test`.

    Returns
    -------
    (r, m+1). Rows have mean 0; with "inverse_sd" they are z-scores, or 0 for a constant
    shard. The sum of column 0 is the statistic.

    Raises
    ------
    InputError
        For a wrong number of dimensions, no shard, fewer than 1 permutation, a value
        that is not a finite number, or an unknown weighting.

    Examples
    --------
    >>> contributions([[3.0, 1.0, 2.0]], weights="equal")
    array([[ 1., -1.,  0.]])
    """
    (values,), exponent = without_units([as_log_probs(log_probs, ndim=2)], weights)
    shares = weighted(values, weights)
    largest = np.finfo(np.float64).max
    with np.errstate(over="ignore"):
        return np.clip(np.ldexp(shares, exponent), -largest, largest)


def _test_shards(
    test: str,
    blocks: Sequence[Floats],
    weights: Weights,
) -> ShardedExactResult:
    """Test the shards of all blocks (r_i, m_i + 1)."""
    scaled, exponent = without_units(blocks, weights)
    gaps = gaps_of_blocks(scaled, weights)
    shards = sum(len(block) for block in gaps)
    if max(block.max() for block in gaps) <= 0:  # the most that T can be: count the ties
        resolution = 0.0
        log_p = sum(log_share_of_ties(block) for block in gaps)
    else:
        step, resolution = lattice_step(gaps)
        log_p = log_tail([np.ceil(block / step).astype(np.int64) for block in gaps])
    shares = [weighted(values, weights) for values in scaled]
    statistic = sum(float(block[:, 0].sum()) for block in shares)
    null_sd = math.sqrt(sum(float((block**2).mean(axis=1).sum()) for block in shares))
    return ShardedExactResult.of(
        log_p / math.log(10),
        test=test,
        statistic=with_scale(statistic, exponent),
        shards=shards,
        permutations=min(values.shape[1] for values in blocks) - 1,
        log10_least=sum(log10_least(block) for block in gaps),
        z=statistic / null_sd if null_sd > 0 else 0.0,
        resolution=with_scale(resolution, exponent),
    )
