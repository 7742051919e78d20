"""Counting hits on what a key has drawn: whether anything was known, and of how many records.

A *hit* is a record whose drawn variant a model names: the published answer among equally good ones,
the published arrangement in a quiz. The null law of the number of hits is known exactly, since the
draws were made here: each is a coin of known chance, and the coins are independent.

In a *quiz* a model is asked which of K arrangements of an item's options is the published one, or
which of K records comes next. A place is drawn for it, so that no habit of position helps, by a
seed that is kept from whoever answers.
"""

import math
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contamination.errors import InputError
from contamination.statistics.results import TestResult


@dataclass(frozen=True, eq=False, kw_only=True)
class KnownResult(TestResult):
    """A test of what was drawn for each record, and a lower bound on the records that were known.

    `known_at_least` is that of the function of this name; it counts hits, not `statistic`.
    """

    known_at_least: int


def hits_log10_p(hits: int, chances: ArrayLike) -> float:
    """Return log10 P(N >= hits), N the number of heads of independent coins (Poisson-binomial).

    Exact, by convolution in logarithms, so it has no floor; at most 0. H0: no answer depends on
    what was drawn, given all that it may depend on. Alternative: more hits. Raises InputError for a
    chance outside (0, 1], or hits that no n coins have.

    Parameters
    ----------
    hits : how many of n records are hits.
    chances : shape (n,); the probability of each under H0, such as 1/k where one of k equally good
        answers was drawn. n may be 0.
    """
    law = reduce(_with_coin, _checked(hits, chances), np.zeros(1))  # log P(N = 0 ... n)
    return min(0.0, float(np.logaddexp.reduce(law[hits:])) / math.log(10))


def known_at_least(hits: int, chances: ArrayLike, *, level: float = 0.05) -> int:
    """Return a lower bound on how many records were known, with confidence 1 - level.

    Parameters and errors as `hits_log10_p`; InputError for a level outside (0, 1), too.

    Notes
    -----
    Let K be the number of known records: those whose answer depends on the draw. The other n - K
    are coins, so the number of hits is at most K + N', where N' is the number of heads among them.
    Of any n - K coins N' is stochastically no larger than of those with the largest chances. So if
    P(K + N_(n - K) >= hits) <= level for these, a K that small is rejected by a test of that level.
    The probability grows with K, and the least K that is not rejected is the bound. It is never
    below hits - q, q the 1 - level quantile of all n coins: there P(N > q) <= level, and K + N >=
    hits is N > q for every K < hits - q. It needs that the draws of unknown records are independent
    of which records are known, and nothing else about these.
    """
    if not 0 < level < 1:
        raise InputError(f"level is {level}: give a number between 0 and 1")
    sorted_chances = np.sort(_checked(hits, chances))[::-1]
    count, law = len(sorted_chances), np.zeros(1)
    for unknown, chance in enumerate(sorted_chances, start=1):
        law = _with_coin(law, chance)
        least = max(0, hits - (count - unknown))
        if np.logaddexp.reduce(law[least:]) <= math.log(level):
            return count - unknown + 1
    return 0


def quiz_test(hits: ArrayLike, *, choices: int, test: str, alpha: float) -> KnownResult:
    """Exact one-sided test that more answers hit than chance hits: P(Bin(n, 1/choices) >= hits).

    `hits` (n,) says whether each answer named the published one of `choices` (K) versions, `test`
    is the name in the result, whose statistic is the number of hits, and 1 - alpha the confidence
    of its `known_at_least`. Errors as in that.

    H0: given what the model reads, the published one stands in each of the K places with
    probability 1/K, independently over questions. Whatever the model answers by that, by habit and
    by chance then hits with probability 1/K. An answer that is no letter cannot hit, and counts as
    a miss: the hits are then stochastically at most Bin(n, 1/K), and P(p <= alpha) <= alpha still.

    The seed of places and of other arrangements must be unknown to whoever answers: by one that is
    known the places can be computed, and H0 is false without any contamination.

    - Arrangements of an item: H0 holds if the published one was drawn uniformly from those that are
      permitted, independently over items and without regard to the model. The others are drawn from
      the same law without replacement, and the place of each by us.
    - Records: a cue, and in places that we draw the K records after it. No record stands in two
      questions. Given which K records they are, every order of them is as likely if the published
      order is exchangeable; so the one that comes next is each of them with probability 1/K,
      independently over questions.
    """
    count, chances = int(np.sum(hits)), np.full(np.shape(hits), 1 / choices)
    return KnownResult.of(
        hits_log10_p(count, chances),
        test=test,
        statistic=float(count),
        shards=len(chances),
        permutations=choices - 1,
        known_at_least=known_at_least(count, chances, level=alpha),
    )


def _with_coin(law: NDArray[np.float64], chance: float) -> NDArray[np.float64]:
    """Add one more coin to a law of counts, in logarithms."""
    tails = np.append(law + (math.log1p(-chance) if chance < 1 else -np.inf), -np.inf)
    heads = np.insert(law + math.log(chance), 0, -np.inf)
    return np.asarray(np.logaddexp(tails, heads))


def _checked(hits: int, chances: ArrayLike) -> NDArray[np.float64]:
    values = np.asarray(chances, dtype=np.float64)
    if values.ndim != 1 or not ((values > 0) & (values <= 1)).all():
        raise InputError(f"chances, shape {values.shape}: give numbers in (0, 1], shape (n,)")
    if not 0 <= hits <= len(values):
        raise InputError(f"hits is {hits}: {len(values)} records have 0 to {len(values)}")
    return values
