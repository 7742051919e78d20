"""Tests on what a model writes, where it gives no log-probabilities: pure functions of arrays.

New here. The *generated successor*: a model that has read the records in their published order
writes some of record b when it continues record a, if b came after a. A matrix S of pairs then
comes from a few short texts a record, and `contamination.statistics.successor` applies to it.

A *quiz*: a model is asked which of K arrangements of an item's options is the published one, or
which of K records comes next. A place is drawn for it, so that no habit of position helps.
"""

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contamination.errors import InputError
from contamination.statistics.known import hits_log10_p, known_at_least
from contamination.statistics.results import KnownResult, p_from_log10
from contamination.statistics.sharded_exact import ShardedExactResult, sharded_exact_test
from contamination.statistics.successor import centred_successors, sampled_successor_scores

LONGEST = 4  # units of an n-gram
_BLOCK = 1 << 24  # entries of orderings at once: some hundreds of megabytes at most

Units = Sequence[Hashable]  # words, or ids of tokens


def generated_successors(
    records: Sequence[Units], written: Sequence[Sequence[Units]], *, longest: int = LONGEST
) -> NDArray[np.float64]:
    """How much of record b is in what was written after record a: S[a, b], float64 (n, n).

    S[a, b] = sum_g idf(g) log(1 + W[a, g]) / sqrt(sum_g idf(g)^2), over the distinct n-grams g of
    record b, of 1 to `longest` units. W[a, g] is how often g stands in all texts written after a
    (`written[a]`, any number, some perhaps empty); idf(g) = log(n / records with g). The
    denominator keeps long records from winning; a record whose n-grams stand in all records has a
    column of zeros. Larger is more of b, and the diagonal means nothing. Raises InputError unless
    every record has its texts.

    Notes
    -----
    H0: given the texts, every order of the records is equally likely to be the published one. It
    holds if the published order is exchangeable and each text was made from its record alone, by a
    model that does not depend on the order. S is made from the unordered records, and relabels
    with them, so `generated_successor_test` is exact.
    """
    from sklearn.feature_extraction.text import CountVectorizer  # here: it imports pandas
    from sklearn.preprocessing import normalize

    if len(written) != len(records):
        raise InputError(f"{len(written)} records were continued, and there are {len(records)}")

    def grams(texts: Sequence[Units]) -> list[Units]:
        sizes = range(1, longest + 1)
        return [tuple(t[i : i + n]) for t in texts for n in sizes for i in range(len(t) - n + 1)]

    counts = CountVectorizer(analyzer=grams, dtype=np.float64)
    try:
        own = counts.fit_transform([record] for record in records).sign()
    except ValueError:  # sklearn: no record has a unit
        return np.zeros((len(records), len(records)))
    idf = np.log(len(records) / np.asarray(own.sum(axis=0)).ravel())
    return np.asarray(
        (counts.transform(written).log1p() @ normalize(own.multiply(idf)).T).toarray()
    )


def generated_successor_test(
    successors: ArrayLike, *, resamples: int, rng: np.random.Generator
) -> ShardedExactResult:
    """Exact one-sided test that S is larger along the published order than along others.

    `successors` are S (n, n) in published order. The whole set is one shard, and its score the sum
    of S, centred (`centred_successors`), along the order. p = (1 + #{orderings that score as
    much}) / (1 + resamples), over independent uniform orderings. H0 as `generated_successors` says;
    then P(p <= alpha) <= alpha exactly. Raises InputError as `centred_successors`, hence for fewer
    than 3 records, and for fewer than 1 resample.
    """
    centred = centred_successors(successors)
    step = max(1, _BLOCK // len(centred))
    blocks = [min(step, resamples - start) for start in range(0, resamples, step)] or [resamples]
    drawn = [sampled_successor_scores(centred, resamples=each, rng=rng) for each in blocks]
    scores = np.concatenate([drawn[0][:1], *(each[1:] for each in drawn)])
    return replace(sharded_exact_test(scores[None]), test="generated_successor")


def quiz_test(hits: ArrayLike, *, choices: int, test: str, alpha: float) -> KnownResult:
    """Exact one-sided test that more answers hit than chance hits: P(Bin(n, 1/choices) >= hits).

    `hits` (n,) says whether each answer named the published one of `choices` (K) versions, `test`
    is the name in the result, whose statistic is the number of hits, and 1 - alpha the confidence
    of its `known_at_least`. Raises InputError for no question, fewer than 2 choices.

    H0: given what the model reads, the published one stands in each of the K places with
    probability 1/K, independently over questions. Whatever the model answers by that, by habit and
    by chance then hits with probability 1/K. An answer that is no letter cannot hit, and counts as
    a miss: the hits are then stochastically at most Bin(n, 1/K), and P(p <= alpha) <= alpha still.

    - Arrangements of an item: H0 holds if the published one was drawn uniformly from those that are
      permitted, independently over items and without regard to the model. The others are drawn from
      the same law without replacement, and the place of each by us.
    - Records: a cue, and in places that we draw the K records after it. No record stands in two
      questions. Given which K records they are, every order of them is as likely if the published
      order is exchangeable; so the one that comes next is each of them with probability 1/K,
      independently over questions.
    """
    found = np.asarray(hits, dtype=bool)
    if found.ndim != 1 or not len(found) or choices < 2:
        raise InputError(f"{found.shape} hits of {choices} choices: give (n,) of 2 or more")
    n, count = len(found), int(found.sum())
    chances = np.full(n, 1 / choices)
    log10_p = hits_log10_p(count, chances)
    return KnownResult(
        test=test,
        statistic=float(count),
        p=p_from_log10(log10_p),
        log10_p=log10_p,
        shards=n,
        permutations=choices - 1,
        known_at_least=known_at_least(count, chances, level=alpha),
    )
