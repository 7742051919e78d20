"""Counting hits on what a key has drawn: whether anything was known, and of how many records.

A *hit* is a record whose drawn variant a model names: the published answer among
equally good ones, the published arrangement in a quiz. The null law of the number of
hits is known exactly, since the draws were made here: each is a coin of known chance,
and the coins are independent.

In a *quiz* a model is asked which of K arrangements of an item's options is the
published one, or which of K records comes next. A place is drawn for it, so that no
habit of position helps, by a seed that is kept from whoever answers.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contamination.errors import InputError
from contamination.statistics.inputs import (
    as_booleans,
    as_count,
    as_floats,
    as_level,
    check_finite,
)
from contamination.statistics.results import TestResult


@dataclass(frozen=True, eq=False, kw_only=True)
class KnownResult(TestResult):
    """Outcome of a test of what was drawn for each record, with a bound on the records known.

    Attributes
    ----------
    known_at_least
        The lower bound of the function of this name; it counts hits, not `statistic`.
    level
        1 - level is the confidence of the bound.
    """

    known_at_least: int
    level: float


def hits_log10_p(hits: int, chances: ArrayLike) -> float:
    """Return log10 P(N >= hits), N the number of heads of independent coins (Poisson-binomial).

    Exact, by convolution in logarithms, so it has no floor; at most 0. H0: no answer
    depends on what was drawn, given all that it may depend on. Alternative: more hits.

    Parameters
    ----------
    hits
        How many of n records are hits.
    chances
        Shape (n,); the probability of each under H0, such as 1/k where one of k equally
        good answers was drawn. n may be 0.

    Raises
    ------
    InputError
        For a chance outside (0, 1], or hits that no n coins have.

    Examples
    --------
    >>> round(hits_log10_p(3, [0.5, 0.25, 0.1]), 4)  # 1 in 80
    -1.9031
    """
    count = _as_hits(hits, chances)
    law = np.zeros(1)  # log P(N = 0 ... n)
    for chance in _as_chances(chances):
        law = _with_coin(law, chance)
    return min(0.0, float(np.logaddexp.reduce(law[count:])) / math.log(10))


def known_at_least(hits: int, chances: ArrayLike, *, level: float = 0.05) -> int:
    """Return a lower bound on how many records were known, with confidence 1 - level.

    Parameters
    ----------
    hits
        How many of n records are hits.
    chances
        (n,), the probability of each under H0, as in `hits_log10_p`.
    level
        One minus the confidence.

    Raises
    ------
    InputError
        For a chance outside (0, 1], hits that no n coins have, or a level outside (0,
        1).

    Notes
    -----
    Let K be the number of known records: those whose answer depends on the draw. The
    other n - K are coins, so the number of hits is at most K + N', where N' is the
    number of heads among them. Of any n - K coins N' is stochastically no larger than
    of those with the largest chances. So if P(K + N_(n - K) >= hits) <= level for
    these, a K that small is rejected by a test of that level. The probability grows
    with K, and the least K that is not rejected is the bound. It is never below hits -
    q, q the 1 - level quantile of all n coins: there P(N > q) <= level, and K + N >=
    hits is N > q for every K < hits - q. It needs that the draws of unknown records are
    independent of which records are known, and nothing else about these.

    Examples
    --------
    >>> known_at_least(100, [0.25] * 100)
    98
    """
    log_level = math.log(as_level(level, "level"))
    observed = _as_hits(hits, chances)
    largest_first = np.sort(_as_chances(chances))[::-1]
    count = len(largest_first)
    law = np.zeros(1)
    for unknown, chance in enumerate(largest_first, start=1):
        law = _with_coin(law, chance)
        least = max(0, observed - (count - unknown))
        if np.logaddexp.reduce(law[least:]) <= log_level:
            return count - unknown + 1
    return 0


def quiz_test(hits: ArrayLike, *, choices: int, test: str, alpha: float) -> KnownResult:
    """Test that more answers hit than chance hits: P(Bin(n, 1/choices) >= hits), exact.

    Parameters
    ----------
    hits
        (n,), whether each answer named the published one of `choices` (K) versions.
    choices
        K, 2 or more.
    test
        Name in the result.
    alpha
        1 - alpha is the confidence of `known_at_least`.

    Returns
    -------
    KnownResult, whose statistic is the number of hits.

    Raises
    ------
    InputError
        For a hit that is neither true nor false, fewer than 2 choices, or an alpha
        outside (0, 1).

    Notes
    -----
    H0: given what the model reads, the published one stands in each of the K places
    with probability 1/K, independently over questions. Whatever the model answers by
    that, by habit and by chance then hits with probability 1/K. An answer that is no
    letter cannot hit, and counts as a miss: the hits are then stochastically at most
    Bin(n, 1/K), and P(p <= alpha) <= alpha still.

    The seed of places and of other arrangements must be unknown to whoever answers: by
    one that is known the places can be computed, and H0 is false without any
    contamination.

    - Arrangements of an item: H0 holds if the published one was drawn uniformly from
      those that are permitted, independently over items and without regard to the
      model. The others are drawn from the same law without replacement, and the place
      of each by us.
    - Records: a cue, and in places that we draw the K records after it. No record
      stands in two questions. Given which K records they are, every order of them is as
      likely if the published order is exchangeable; so the one that comes next is each
      of them with probability 1/K, independently over questions.

    Examples
    --------
    >>> result = quiz_test([True, True, True, False], choices=4, test="quiz", alpha=0.05)
    >>> round(result.p, 4), result.known_at_least
    (0.0508, 0)
    """
    named = as_booleans(hits, "hits", (None,))
    versions = as_count(choices, "choices", 2)
    count = int(named.sum())
    chances = np.full(len(named), 1 / versions)
    return KnownResult.of(
        hits_log10_p(count, chances),
        test=test,
        statistic=float(count),
        shards=len(chances),
        permutations=versions - 1,
        known_at_least=known_at_least(count, chances, level=alpha),
        level=alpha,
    )


def _with_coin(law: NDArray[np.float64], chance: float) -> NDArray[np.float64]:
    """Add one more coin to a law of counts, in logarithms."""
    log_tails = math.log1p(-chance) if chance < 1 else -math.inf
    tails = np.append(law + log_tails, -np.inf)
    heads = np.insert(law + math.log(chance), 0, -np.inf)
    return np.asarray(np.logaddexp(tails, heads))


def _as_chances(chances: ArrayLike) -> NDArray[np.float64]:
    values = as_floats(chances, "chances")
    if values.ndim != 1:
        raise InputError(f"chances has shape {values.shape}: give (n,)")
    check_finite(values, "chances")
    if not ((values > 0) & (values <= 1)).all():
        raise InputError(
            "chances are not all in (0, 1]: give the probability of each hit under H0",
        )
    return values


def _as_hits(hits: int, chances: ArrayLike) -> int:
    count = len(_as_chances(chances))
    observed = as_count(hits, "hits", 0)
    if observed > count:
        raise InputError(f"hits is {observed}: {count} records have 0 to {count}")
    return observed
