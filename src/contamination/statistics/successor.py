"""Successor scores: all orderings of a shard for the price of its pairs.

New here. S[a, b] is the log-probability of the first tokens of example x_b right after x_a, and the
score of an ordering is the sum of S along it. So k (k-1) short continuations score every one of the
k! orderings: the null law is sampled by the ten thousand, or listed in full, without another pass
of the model.
"""

import itertools
import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contamination.errors import InputError
from contamination.statistics.results import TestResult
from contamination.statistics.validation import ROUNDING

Effects = Literal["both", "successor"]

_LARGEST_LISTED = 8  # 40320 orderings; beyond, a sample of ten thousand says as much for less


@dataclass(frozen=True, eq=False, kw_only=True)
class SuccessorResult(TestResult):
    """`successor_test` and `successor_monte_carlo`: one shard, in all or in `permutations` orders.

    `null_mean` and `null_sd` are the exact moments over all k! orderings; `z` = (statistic -
    null_mean) / null_sd describes the effect and is never the source of p (0 if null_sd is 0).
    """

    null_mean: float
    null_sd: float
    z: float


def centred_successors(successors: ArrayLike, *, effects: Effects = "both") -> NDArray[np.float64]:
    """Return S without what an example adds to all its pairs: least squares off the diagonal.

    Parameters
    ----------
    successors : array_like, shape (k, k)
        S[a, b] in nats; the diagonal is ignored.
    effects : {"both", "successor"}
        S[a, b] ~ mu + alpha_a + beta_b: how helpful x_a is before anything, and how likely x_b is
        after anything; or mu + beta_b alone. Either needs k >= 3, or nothing would be left.

    Returns
    -------
    ndarray, shape (k, k)
        Residuals, NaN on the diagonal.

    Raises
    ------
    InputError
        As in `successor_scores`, k < 3, or unknown effects.

    Notes
    -----
    Every ordering uses all successors but its first example and all predecessors but its last, so
    sum S = constant - beta_first - alpha_last + residuals: noise of two ends, removed here. Exact:
    S is fixed by the unordered examples, and relabelling them relabels the residuals; so under H0
    the score of the canonical ordering remains one draw among those of all k! orderings.

    beta varies with the length and the words of x_b: in small models its variance is some tens to
    two hundred times that of the residuals, and removing it doubles the z of a contaminated set.
    alpha varies less than the residuals there, and estimating it takes some of the effect away,
    most in small shards: against "successor", "both" loses about a quarter of z at k = 3, a tenth
    or less at k = 4 and nothing from about k = 7 on, and it doubles z where contexts differ much
    (sd of alpha several times that of the residuals).
    """
    scores = _pairs(successors)
    k = len(scores)
    if k < 3:
        raise InputError(f"successors has {k} examples: centring needs at least 3 per shard")
    if effects not in get_args(Effects):
        raise InputError(f'effects is {effects!r}: give "both" or "successor"')
    off = ~np.eye(k, dtype=bool)
    centred = np.where(off, scores - scores.sum() / (k * (k - 1)), 0.0)
    columns = centred.sum(axis=0)
    if effects == "successor":
        fitted = np.broadcast_to(columns / (k - 1), (k, k))
    else:  # normal equations: (k-1) alpha_a - beta_a = row_a and (k-1) beta_b - alpha_b = column_b
        rows = centred.sum(axis=1)
        alpha = ((k - 1) * rows + columns) / (k * (k - 2))
        beta = ((k - 1) * columns + rows) / (k * (k - 2))
        fitted = alpha[:, None] + beta
    residuals = centred - fitted
    # An additive S must come out as zeros, or the shard would vote by its rounding.
    residuals[np.abs(residuals) <= ROUNDING * np.abs(scores).max()] = 0
    return np.where(off, residuals, np.nan)


def successor_scores(successors: ArrayLike, orderings: ArrayLike) -> NDArray[np.float64]:
    """Sum of S along each ordering: score[j] = sum_i S[o[j, i], o[j, i+1]].

    Parameters
    ----------
    successors : array_like, shape (k, k)
        S[a, b] = log p(first tokens of x_b given x_a), nats, with the examples of one shard
        numbered in canonical order; as scored, or centred. The diagonal is ignored (NaN will do).
    orderings : array_like of int, shape (n, k)
        Permutations of 0 to k-1; `scores` of the same orderings by other statistics can then be
        tested jointly (`joint`).

    Returns
    -------
    ndarray, shape (n,)
        Nats; larger is more evidence where row 0 is canonical.

    Raises
    ------
    InputError
        S is not a square of at least 2 examples, finite off the diagonal, or a row of `orderings`
        is no permutation.

    Notes
    -----
    H0: the model does not depend on the order of the examples, so each of the k! orderings is
    equally likely to be the one called canonical. S has no ordering in it; scores of independent
    uniform orderings are therefore exchangeable with the canonical one, exactly.
    """
    scores, orders = _pairs(successors), np.asarray(orderings)
    k = len(scores)
    if orders.shape[1:] != (k,) or (np.sort(orders, axis=1) != np.arange(k)).any():
        raise InputError(f"orderings is not (n, {k}) with permutations of 0 to {k - 1} in its rows")
    return np.asarray(scores[orders[:, :-1], orders[:, 1:]].sum(axis=1))


def listed_successor_scores(successors: ArrayLike) -> NDArray[np.float64]:
    """Scores of all k! orderings, (k!,), the canonical one first; k <= 8.

    Rows of equal k stack to (r, k!) for `sharded_exact_test`, which then has no sampling in it.

    Raises
    ------
    InputError
        As in `successor_scores`, or more than 8 examples.
    """
    k = len(_pairs(successors))
    if k > _LARGEST_LISTED:
        raise InputError(
            f"successors has {k} examples, too many to list {k}! orderings: sample them with "
            "sampled_successor_scores or successor_monte_carlo"
        )
    return successor_scores(successors, list(itertools.permutations(range(k))))


def sampled_successor_scores(
    successors: ArrayLike, *, resamples: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Scores of the canonical ordering and of independent uniform ones, (resamples + 1,).

    Stack shards, of any sizes, to (r, resamples + 1) for `sharded_exact_test`; ten thousand
    orderings per shard cost it a fraction of a second. Its smallest p is (resamples + 1)^-r: few
    large shards need more of them than many small ones.

    Raises
    ------
    InputError
        As in `successor_scores`, or fewer than 1 resample.
    """
    if resamples < 1:
        raise InputError(f"resamples is {resamples}: draw at least 1, better 10000")
    orders = np.tile(np.arange(len(_pairs(successors))), (resamples + 1, 1))
    orders[1:] = rng.permuted(orders[1:], axis=1)
    return successor_scores(successors, orders)


def successor_moments(successors: ArrayLike) -> tuple[float, float]:
    """Mean and variance of the score over all k! orderings, in closed form.

    Raises
    ------
    InputError
        As in `successor_scores`.

    Notes
    -----
    An ordered pair (a, b) is adjacent with probability (k-1) / (k (k-1)) = 1/k: mean = sum S / k.
    Two distinct pairs occur together only if they share no predecessor and no successor and are not
    (a, b) and (b, a). Then the probability is 1 / (k (k-1)), be they linked, as k-2 places out of
    k (k-1) (k-2), or apart, as (k-2) (k-3) out of k (k-1) (k-2) (k-3). With S measured from its
    mean (which shifts all scores alike), E[T^2] = q/k + (g^2 - sum_a row_a^2 - sum_b column_b^2
    + q - sum_ab S_ab S_ba) / (k (k-1)), where g = sum S = 0 and q = sum S^2.
    """
    scores = _pairs(successors)
    k = len(scores)
    average = scores.sum() / (k * (k - 1))
    centred = np.where(np.eye(k, dtype=bool), 0.0, scores - average)
    squares = (centred**2).sum()
    ends = (centred.sum(axis=1) ** 2).sum() + (centred.sum(axis=0) ** 2).sum()
    together = squares - ends - (centred * centred.T).sum()
    variance = squares / k + together / (k * (k - 1))
    return float((k - 1) * average), max(0.0, float(variance))


def successor_test(successors: ArrayLike) -> SuccessorResult:
    """Exact test on one shard of at most 8 examples: p = #{orderings with score >= canonical} / k!.

    Parameters
    ----------
    successors
        As in `successor_scores`; best after `centred_successors`.

    Returns
    -------
    SuccessorResult
        `permutations` is k! - 1; the smallest p is 1 / k!.

    Raises
    ------
    InputError
        As in `listed_successor_scores`.

    Notes
    -----
    H0: each of the k! orderings is equally likely to be canonical. P(p <= alpha) <= alpha exactly,
    for any S; ties, up to float rounding, count against the canonical ordering. As scored, p falls
    as an S[i, i+1] rises; after centring all residuals move, and no such promise holds.

    References
    ----------
    New here. Permutation moments as in Mantel (1967), "The detection of disease clustering and a
    generalized regression approach", Cancer Research 27(2).
    """
    return _result("successor", successors, listed_successor_scores(successors))


def successor_monte_carlo(
    successors: ArrayLike, *, resamples: int, rng: np.random.Generator
) -> SuccessorResult:
    """`successor_test` by sampled orderings, for a shard, or a whole set, of any size.

    p = (1 + #{sampled >= canonical}) / (1 + resamples)

    Parameters
    ----------
    successors
        As in `successor_test`.
    resamples : int
        Number of sampled orderings; p cannot be below 1 / (1 + resamples).
    rng : numpy.random.Generator
        Source of the orderings.

    Returns
    -------
    SuccessorResult
        With the +1, P(p <= alpha) <= alpha holds exactly for any number of draws.

    Raises
    ------
    InputError
        As in `sampled_successor_scores`.

    References
    ----------
    Phipson and Smyth (2010) for the +1.
    """
    scores = sampled_successor_scores(successors, resamples=resamples, rng=rng)
    return _result("successor_monte_carlo", successors, scores)


def successor_cost(k: int, *, examples: int, mean_length: float, tokens_per_example: int) -> float:
    """Tokens read for a set cut into shards of k, each prefix shared by its k-1 continuations.

    A shard reads k prefixes of `mean_length` tokens and k (k-1) continuations of
    `tokens_per_example` tokens, and there are examples / k shards: examples (mean_length + (k-1)
    first). Reading the prefix again for every pair would cost examples (k-1) (mean_length + first).
    """
    return examples * (mean_length + (k - 1) * tokens_per_example)


def shard_size_for_budget(
    budget: float, *, examples: int, mean_length: float, tokens_per_example: int
) -> int:
    """Largest shard size k for which `successor_cost` stays within `budget` tokens.

    Larger shards lose fewer adjacent pairs to their ends, 1 in k, and centre better: the gain is
    steep up to about k = 10 and small after it.

    Returns
    -------
    int
        k, from 2 to `examples`. Shards of at most k examples keep within the budget also where k
        does not divide `examples`.

    Raises
    ------
    InputError
        The budget does not reach for shards of 2, or lengths and counts that make no sense.
    """
    if examples < 2 or tokens_per_example < 1 or not mean_length > 0:
        raise InputError(
            f"{examples} examples of mean length {mean_length} with {tokens_per_example} tokens "
            "each: give at least 2 examples and lengths above 0"
        )
    k = min(examples, 1 + math.floor((budget / examples - mean_length) / tokens_per_example))
    if k < 2:
        least = successor_cost(
            2, examples=examples, mean_length=mean_length, tokens_per_example=tokens_per_example
        )
        raise InputError(
            f"a budget of {budget:g} tokens is too small for {examples} examples: give at least "
            f"{least:g}, fewer examples, or fewer tokens of each"
        )
    return k


def _pairs(successors: ArrayLike) -> NDArray[np.float64]:
    """S as float64 with zeros on the diagonal."""
    scores = np.array(successors, dtype=np.float64)
    if scores.ndim != 2 or scores.shape[0] != scores.shape[1] or len(scores) < 2:
        raise InputError(f"successors has shape {scores.shape}: give (k, k) with k >= 2")
    np.fill_diagonal(scores, 0.0)
    bad = np.argwhere(~np.isfinite(scores))
    if len(bad):
        a, b = (int(index) for index in bad[0])
        raise InputError(
            f"successors[{a}, {b}] is {scores[a, b]}: score example {b} after example {a} again, "
            "or leave the shard out"
        )
    return scores


def _result(test: str, successors: ArrayLike, scores: NDArray[np.float64]) -> SuccessorResult:
    # Sums of k terms in another order differ by rounding: what is within it is a tie.
    tolerance = ROUNDING * float(np.abs(scores).max())
    p = int(np.count_nonzero(scores >= scores[0] - tolerance)) / len(scores)
    mean, variance = successor_moments(successors)
    statistic, sd = float(scores[0]), math.sqrt(variance)
    return SuccessorResult(
        test=test,
        statistic=statistic,
        p=p,
        log10_p=math.log10(p),
        shards=1,
        permutations=len(scores) - 1,
        null_mean=mean,
        null_sd=sd,
        z=(statistic - mean) / sd if sd > 0 else 0.0,
    )
