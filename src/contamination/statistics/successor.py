"""Successor scores: all orderings of a shard for the price of its pairs.

New here. S[a, b] is the log-probability (nats) of the first tokens of example x_b right after x_a,
and the score of an ordering is the sum of S along it. So k (k-1) short continuations score every
one of the k! orderings: the null law is sampled by the ten thousand, without another pass of the
model. The examples of a shard are numbered in canonical order; the diagonal of S is ignored.

Where a model gives no log-probabilities, S comes from what it writes: a model that has read the
records in their published order writes some of record b when it continues record a, if b came after
a. A few short texts a record give a matrix of pairs, the *generated successors*.
"""

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contamination.errors import InputError
from contamination.statistics.results import ROUNDING, check_finite
from contamination.statistics.sharded_exact import ShardedExactResult, sharded_exact_test

LONGEST = 4  # units of an n-gram
_BLOCK = 1 << 24  # entries of orderings at once: some hundreds of megabytes at most

Units = Sequence[Hashable]  # words, or ids of tokens


def centred_successors(successors: ArrayLike, *, resolution: float = 0.0) -> NDArray[np.float64]:
    """Return S without what an example adds to all its pairs: least squares off the diagonal.

    S[a, b] ~ mu + alpha_a + beta_b: how helpful x_a is before anything, and how likely x_b is after
    anything. Takes S, shape (k, k) with k >= 3, and returns the residuals (nats) in the same shape,
    NaN on the diagonal. Where no residual exceeds `resolution` (nats), the engine cannot tell the
    pairs apart, and all are zeros. Raises InputError as `successor_scores`, or for k < 3: nothing
    would be left.

    Every ordering uses all successors but its first example and all predecessors but its last, so
    sum S = constant - beta_first - alpha_last + residuals: noise of two ends, removed here. Exact:
    S is fixed by the unordered examples, and relabelling them relabels the residuals; so under H0
    the score of the canonical ordering remains one draw among those of all k! orderings.

    beta varies with the length and the words of x_b: removing it doubles the z of a contaminated
    set in small models. Estimating alpha takes some of the effect away in small shards: about a
    quarter of z at k = 3, nothing from about k = 7 on.
    """
    k = len(scores := _pairs(successors))
    if k < 3:
        raise InputError(f"successors has {k} examples: centring needs at least 3 per shard")
    off = ~np.eye(k, dtype=bool)
    centred = np.where(off, scores - scores.sum() / (k * (k - 1)), 0.0)
    rows, columns = centred.sum(axis=1), centred.sum(axis=0)
    # Normal equations: (k-1) alpha_a - beta_a = row_a and (k-1) beta_b - alpha_b = column_b.
    alpha = ((k - 1) * rows + columns) / (k * (k - 2))
    beta = ((k - 1) * columns + rows) / (k * (k - 2))
    residuals = centred - (alpha[:, None] + beta)
    # An additive S must come out as zeros, or the shard would vote by its rounding.
    residuals[np.abs(residuals) <= ROUNDING * np.abs(scores).max()] = 0
    if np.abs(residuals[off]).max() <= resolution:
        residuals[:] = 0
    return np.where(off, residuals, np.nan)


def successor_scores(successors: ArrayLike, orderings: ArrayLike) -> NDArray[np.float64]:
    """Sum of S along each ordering: score[j] = sum_i S[o[j, i], o[j, i+1]].

    Takes S (k, k), as scored or centred, and orderings (n, k), permutations of 0 to k-1 in rows;
    returns nats, (n,), larger is more evidence where row 0 is canonical. Scores of the same
    orderings by other statistics can be tested jointly (`westfall_young_test`). Raises InputError
    unless S is a square of at least 2 examples, finite off the diagonal, and the rows of
    `orderings` are permutations.

    H0: the model does not depend on the order of the examples, so each of the k! orderings is
    equally likely to be the one called canonical. S has no ordering in it; scores of independent
    uniform orderings are therefore exchangeable with the canonical one, exactly.
    """
    scores, orders = _pairs(successors), np.asarray(orderings)
    k = len(scores)
    if orders.shape[1:] != (k,) or (np.sort(orders, axis=1) != np.arange(k)).any():
        raise InputError(f"orderings is not (n, {k}) with permutations of 0 to {k - 1} in its rows")
    return np.asarray(scores[orders[:, :-1], orders[:, 1:]].sum(axis=1))


def sampled_successor_scores(
    successors: ArrayLike, *, resamples: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Scores of the canonical ordering and of independent uniform ones, (resamples + 1,).

    Stack shards, of any sizes, to (r, resamples + 1) for `sharded_exact_test`. Its smallest p is
    (resamples + 1)^-r: few large shards need more of them than many small ones. Errors as in
    `successor_scores`.
    """
    canonical = np.arange(len(_pairs(successors)))[None]
    scores, rows = [successor_scores(successors, canonical)], max(1, _BLOCK // canonical.size)
    for start in range(0, resamples, rows):
        orders = np.repeat(canonical, min(rows, resamples - start), axis=0)
        scores.append(successor_scores(successors, rng.permuted(orders, axis=1)))
    return np.concatenate(scores)


def generated_successors(
    records: Sequence[Units], written: Sequence[Sequence[Units]], *, longest: int = LONGEST
) -> NDArray[np.float64]:
    """How much of record b is in what was written after record a: S[a, b], float64 (n, n).

    S[a, b] = sum_g idf(g) log(1 + W[a, g]) / sqrt(sum_g idf(g)^2), over the distinct n-grams g of
    record b, of 1 to `longest` units. W[a, g] is how often g stands in all texts written after a
    (`written[a]`, any number, some perhaps empty); idf(g) = log(n / records with g). The
    denominator keeps long records from winning; a record whose n-grams stand in all records has a
    column of zeros. Larger is more of b, and the diagonal means nothing. Raises InputError if no
    record has a unit.

    Notes
    -----
    H0: given the texts, every order of the records is equally likely to be the published one. It
    holds if the published order is exchangeable and each text was made from its record alone, by a
    model that does not depend on the order. S is made from the unordered records, and relabels
    with them, so `generated_successor_test` is exact.
    """
    if not any(len(record) for record in records):
        raise InputError(f"none of {len(records)} records has a unit: give records with words")
    from sklearn.feature_extraction.text import CountVectorizer  # here: it imports pandas
    from sklearn.preprocessing import normalize

    def grams(texts: Sequence[Units]) -> list[Units]:
        sizes = range(1, longest + 1)
        return [tuple(t[i : i + n]) for t in texts for n in sizes for i in range(len(t) - n + 1)]

    counts = CountVectorizer(analyzer=grams, dtype=np.float64)
    own = counts.fit_transform([record] for record in records).sign()
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
    than 3 records.
    """
    centred = centred_successors(successors)
    scores = sampled_successor_scores(centred, resamples=resamples, rng=rng)
    return replace(sharded_exact_test(scores[None]), test="generated_successor")


def _pairs(successors: ArrayLike) -> NDArray[np.float64]:
    """S as float64 with zeros on the diagonal."""
    scores = np.array(successors, dtype=np.float64)
    if scores.ndim != 2 or scores.shape[0] != scores.shape[1] or len(scores) < 2:
        raise InputError(f"successors has shape {scores.shape}: give (k, k) with k >= 2")
    np.fill_diagonal(scores, 0.0)
    check_finite(scores, "successors")
    return scores
