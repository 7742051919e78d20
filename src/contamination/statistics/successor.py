"""Successor scores: all orderings of a shard for the price of its pairs.

New here. S[a, b] is the log-probability (nats) of the first tokens of example x_b right
after x_a, and the score of an ordering is the sum of S along it. So k (k-1) short
continuations score every one of the k! orderings: the null law is sampled by the ten
thousand, without another pass of the model. The examples of a shard are numbered in
canonical order; the diagonal of S is ignored.

Where a model gives no log-probabilities, S comes from what it writes: a model that has
read the records in their published order writes some of record b when it continues
record a, if b came after a. A few short texts a record give a matrix of pairs, the
*generated successors*.
"""

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contamination.errors import InputError
from contamination.statistics.inputs import (
    as_count,
    as_floats,
    as_list,
    as_number,
    as_whole_numbers,
    check_finite,
    check_generator,
)
from contamination.statistics.scale import ROUNDING, without_scale
from contamination.statistics.sharded_exact import ShardedExactResult, sharded_exact_test

LONGEST = 4  # units of an n-gram
_BLOCK = 1 << 16  # entries of orderings at once, which stay in the processor's cache

_LARGEST = float(np.finfo(np.float64).max)

Units = Sequence[Hashable]  # words, or ids of tokens


def centred_successors(
    successors: ArrayLike,
    *,
    resolution: float = 0.0,
) -> NDArray[np.float64]:
    """Return S without what an example adds to all its pairs: least squares off the diagonal.

    S[a, b] ~ mu + alpha_a + beta_b: how helpful x_a is before anything, and how likely
    x_b is after anything.

    Parameters
    ----------
    successors
        S, (k, k) with k >= 3, nats; the diagonal is ignored.
    resolution
        nats. Where no residual exceeds it, the engine cannot tell the pairs apart, and
        all are zeros.

    Returns
    -------
    The residuals (nats), (k, k), NaN on the diagonal.

    Raises
    ------
    InputError
        Unless S is a square of at least 3 examples, with finite numbers off the
        diagonal.

    Notes
    -----
    Every ordering uses all successors but its first example and all predecessors but
    its last, so sum S = constant - beta_first - alpha_last + residuals: noise of two
    ends, removed here. Exact: S is fixed by the unordered examples, and relabelling
    them relabels the residuals; so under H0 the score of the canonical ordering remains
    one draw among those of all k! orderings.

    beta varies with the length and the words of x_b: removing it doubles the z of a
    contaminated set in small models. Estimating alpha takes some of the effect away in
    small shards: about a quarter of z at k = 3, nothing from about k = 7 on.

    Examples
    --------
    Here one pair is 3 nats likelier than its row and its column say:

    >>> centred_successors([[0, 3, 0], [0, 0, 0], [0, 0, 0]]).round(1)
    array([[ nan,  0.5, -0.5],
           [-0.5,  nan,  0.5],
           [ 0.5, -0.5,  nan]])
    """
    pairs = _as_pairs(successors)
    k = len(pairs)
    if k < 3:
        raise InputError(
            f"successors has {k} examples: centring needs at least 3 per shard",
        )
    threshold = as_number(resolution, "resolution", 0.0, _LARGEST)
    scores, exponents = without_scale(pairs)
    exponent = int(exponents.item())
    off = ~np.eye(k, dtype=bool)
    centred = np.where(off, scores - scores.sum() / (k * (k - 1)), 0.0)
    rows = centred.sum(axis=1)
    columns = centred.sum(axis=0)
    # Normal equations: (k-1) alpha_a - beta_a = row_a and (k-1) beta_b - alpha_b =
    # column_b.
    alpha = ((k - 1) * rows + columns) / (k * (k - 2))
    beta = ((k - 1) * columns + rows) / (k * (k - 2))
    residuals = centred - (alpha[:, None] + beta)
    # An additive S must come out as zeros, or the shard would vote by its rounding.
    residuals[np.abs(residuals) <= ROUNDING * np.abs(scores).max()] = 0
    residuals = np.ldexp(residuals, exponent)
    if np.abs(residuals[off]).max() <= threshold:
        residuals[:] = 0
    return np.where(off, residuals, np.nan)


def successor_scores(successors: ArrayLike, orderings: ArrayLike) -> NDArray[np.float64]:
    """Sum S along each ordering: score[j] = sum_i S[o[j, i], o[j, i+1]].

    Parameters
    ----------
    successors
        S, (k, k), nats, as scored or centred; the diagonal is ignored.
    orderings
        (n, k), permutations of 0 to k-1 in rows.

    Returns
    -------
    (n,), nats; larger is more evidence where row 0 is canonical. Scores of the same
    orderings by other statistics can be tested jointly (`westfall_young_test`).

    Raises
    ------
    InputError
        Unless S is a square of at least 2 examples, with finite numbers off the
        diagonal, and the rows of `orderings` are permutations.

    Notes
    -----
    H0: the model does not depend on the order of the examples, so each of the k!
    orderings is equally likely to be the one called canonical. S has no ordering in it;
    scores of independent uniform orderings are therefore exchangeable with the
    canonical one, exactly.

    Examples
    --------
    >>> successor_scores([[0, 3, 1], [0, 0, 2], [0, 0, 0]], [[0, 1, 2], [2, 1, 0]])
    array([5., 0.])
    """
    scores = _as_pairs(successors)
    k = len(scores)
    refusal = f"orderings is not (n, {k}) with permutations of 0 to {k - 1} in its rows"
    try:
        orders = as_whole_numbers(orderings, "orderings", (None, k), least=0, most=k - 1)
    except InputError as error:
        raise InputError(f"{refusal}: {error}") from error
    if (np.sort(orders, axis=1) != np.arange(k)).any():
        raise InputError(refusal)
    return _sums_along(scores, orders)


def sampled_successor_scores(
    successors: ArrayLike, *, resamples: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Score the canonical ordering and independent uniform ones, (resamples + 1,).

    Parameters
    ----------
    successors
        S, (k, k), nats, as in `successor_scores`.
    resamples
        Number of uniform orderings, 1 or more.
    rng
        Draws them.

    Returns
    -------
    (resamples + 1,), the canonical ordering first. Stack shards, of any sizes, to
    (r, resamples + 1) for `sharded_exact_test`. Its smallest p is (resamples + 1)^-r:
    few large shards need more of them than many small ones.

    Raises
    ------
    InputError
        Unless S is a square of at least 2 examples, with finite numbers off the
        diagonal; or for no resample.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> sampled_successor_scores([[0, 3, 1], [0, 0, 2], [0, 0, 0]], resamples=3, rng=rng)
    array([5., 3., 0., 3.])
    """
    check_generator(rng)
    count = as_count(resamples, "resamples", 1)
    pairs = _as_pairs(successors)
    canonical = np.arange(len(pairs))[None]
    scores = [_sums_along(pairs, canonical)]
    rows = max(1, _BLOCK // canonical.size)
    for start in range(0, count, rows):
        orders = np.repeat(canonical, min(rows, count - start), axis=0)
        rng.permuted(orders, axis=1, out=orders)
        scores.append(_sums_along(pairs, orders))
    return np.concatenate(scores)


def generated_successors(
    records: Sequence[Units],
    written: Sequence[Sequence[Units]],
    *,
    longest: int = LONGEST,
) -> NDArray[np.float64]:
    """Measure how much of record b is in the texts that were generated after record a.

    S[a, b] = sum_g idf(g) log(1 + W[a, g]) / sqrt(sum_g idf(g)^2), over the distinct
    n-grams g of record b, of 1 to `longest` units. W[a, g] is how often g stands in all
    texts generated after a; idf(g) = log(n / records with g). The denominator keeps
    long records from winning.

    Parameters
    ----------
    records
        n records, each a sequence of words or ids of tokens, in published order.
    written
        The texts generated after each record, any number of them, some perhaps empty.
    longest
        Units of the longest n-gram, 1 or more.

    Returns
    -------
    S, (n, n). Larger is more of b, and the diagonal means nothing. A record whose
    n-grams stand in all records has a column of zeros.

    Raises
    ------
    InputError
        Where records and texts differ in number, no record has a unit, or `longest` is
        below 1.

    Notes
    -----
    H0: given the texts, every order of the records is equally likely to be the
    published one. It holds if the published order is exchangeable and each text was
    made from its record alone, by a model that does not depend on the order. S is made
    from the unordered records, and relabels with them, so `generated_successor_test` is
    exact.

    Examples
    --------
    >>> records = ["a red stone".split(), "a blue lake".split(), "a green hill".split()]
    >>> written = [["a blue lake".split()], [], ["no idea".split()]]
    >>> generated_successors(records, written, longest=1).round(2)
    array([[0.  , 0.98, 0.  ],
           [0.  , 0.  , 0.  ],
           [0.  , 0.  , 0.  ]])
    """
    # Here: it imports pandas.
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.preprocessing import normalize

    most_units = as_count(longest, "longest", 1)
    units = [as_list(record, "a record") for record in as_list(records, "records")]
    texts_of_records = as_list(written, "written")
    texts_after = [as_list(texts, "texts of a record") for texts in texts_of_records]
    if len(units) != len(texts_after):
        raise InputError(
            f"there are texts of {len(texts_after)} records and {len(units)} records",
        )
    if not any(units):
        raise InputError("no record has a word: give the words of at least one")

    def grams(texts: Sequence[Units]) -> list[Units]:
        grams_of_texts: list[Units] = []
        for text in texts:
            for size in range(1, min(most_units, len(text)) + 1):
                starts = range(len(text) - size + 1)
                grams_of_texts += [tuple(text[i : i + size]) for i in starts]
        return grams_of_texts

    counts = CountVectorizer(analyzer=grams, dtype=np.float64)
    try:
        own = counts.fit_transform([record] for record in units).sign()
        generated = counts.transform(texts_after).log1p()
    except TypeError as error:
        raise InputError(
            "records hold units that cannot be counted: give words or ids",
        ) from error
    idf = np.log(len(units) / np.asarray(own.sum(axis=0)).ravel())
    weights = normalize(own.multiply(idf))
    return np.asarray((generated @ weights.T).toarray())


def generated_successor_test(
    successors: ArrayLike, *, resamples: int, rng: np.random.Generator
) -> ShardedExactResult:
    """Test that S is larger along the published order than along others: exact, one-sided.

    The whole set is one shard, and its score the sum of S, centred
    (`centred_successors`), along the order. p is at least (1 + #{orderings that score
    as much}) / (1 + resamples), over independent uniform orderings, and above it by no
    more than the conservative rounding of `sharded_exact_test`: that also counts
    orderings that score less by up to `resolution`.

    Parameters
    ----------
    successors
        S, (n, n), in published order, with n >= 3.
    resamples
        Number of uniform orderings, 1 or more.
    rng
        Draws them.

    Returns
    -------
    ShardedExactResult of one shard.

    Raises
    ------
    InputError
        For fewer than 3 records, a matrix that is not square, a number off its diagonal
        that is not finite, or no resample.

    Notes
    -----
    H0 as `generated_successors` says; then P(p <= alpha) <= alpha exactly.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> generated_successor_test(np.eye(20, k=1), resamples=999, rng=rng).p <= 0.0011
    True
    """
    centred = centred_successors(successors)
    scores = sampled_successor_scores(centred, resamples=resamples, rng=rng)
    return replace(sharded_exact_test(scores[None]), test="generated_successor")


def _sums_along(
    pairs: NDArray[np.float64],
    orders: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Sum the successors along each ordering, (n,)."""
    steps = orders[:, :-1] * len(pairs)  # in the flat matrix, which is read faster
    steps += orders[:, 1:]
    with np.errstate(over="ignore"):
        sums = pairs.ravel().take(steps).sum(axis=1)
    check_finite(sums, "the sum of successors")
    return np.asarray(sums)


def _as_pairs(successors: ArrayLike) -> NDArray[np.float64]:
    """Return S as float64 with zeros on the diagonal."""
    scores = as_floats(successors, "successors")
    if scores.ndim != 2 or scores.shape[0] != scores.shape[1] or len(scores) < 2:
        raise InputError(f"successors has shape {scores.shape}: give (k, k) with k >= 2")
    np.fill_diagonal(scores, 0.0)
    check_finite(scores, "successors")
    return scores
