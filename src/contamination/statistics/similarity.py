"""The similarity of records that stand close to each other, in each ordering.

It is a statistic of an order, as those of `contamination.statistics.exchangeability`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix

from contamination.errors import InputError
from contamination.statistics.exchangeability import CHUNK, Bounds, Floats, check_orderings
from contamination.statistics.inputs import (
    as_codes,
    as_number,
    as_whole_numbers,
)


class NeighbourSimilarity(NamedTuple):
    """The result of `neighbour_similarity`."""

    means: Floats  # (c, m+1), cosine of records `lags[c]` places apart; 0 where none are
    close: Floats  # (m+1,), share of neighbours that are near-duplicates
    has_twin: NDArray[np.bool_]  # (n,), of a near-duplicate anywhere in the set


def neighbour_similarity(
    features: Any,
    orderings: NDArray[np.int32],
    bounds: Bounds,
    *,
    lags: Sequence[int],
    threshold: float,
    copies: ArrayLike,
) -> NeighbourSimilarity:
    """Measure the similarity of records that stand `lags` places apart, in each ordering.

    The n x n matrix of cosines is computed a block of rows at a time, so memory grows
    as n * m.

    Parameters
    ----------
    features
        (n, v), sparse or not: rows of Euclidean length 1 (or 0, similar to nothing).
    orderings
        (m+1, n), from `random_orderings`.
    bounds
        Bounds of the shards.
    lags
        Whole numbers, the first of them 1.
    threshold
        Records are near-duplicates where their cosine is above it and they are not
        copies.
    copies
        (n,), equal for records that are exact copies of each other.

    Returns
    -------
    NeighbourSimilarity.

    Raises
    ------
    InputError
        For orderings or copies that are not those of n records, or lags that do not
        start with 1.

    Examples
    --------
    >>> orderings = np.array([[0, 1, 2], [0, 2, 1]], dtype=np.int32)
    >>> features = [[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]]
    >>> settings = {"lags": [1], "threshold": 0.7, "copies": [0, 1, 2]}
    >>> neighbour_similarity(features, orderings, [(0, 3)], **settings).means
    array([[0.7, 0.3]])
    """
    vectors = csr_matrix(features)
    codes = as_codes(copies, "copies")
    check_orderings(orderings, bounds, vectors.shape[0])
    limit = as_number(threshold, "threshold", -1.0, 2.0)
    distances = as_whole_numbers(lags, "lags", (None,), least=1)
    if len(codes) != vectors.shape[0]:
        raise InputError(
            f"copies are {len(codes)} of {vectors.shape[0]} records: give one each",
        )
    if not len(distances) or distances[0] != 1:
        raise InputError(f"lags are {distances.tolist()}: start with 1")
    orderings_count, n = orderings.shape
    transposed = vectors.T.tocsr()
    sizes = [stop - start for start, stop in bounds]
    distances = np.minimum(distances, max(sizes))  # nobody stands further behind, either
    # Behind each shard there is room for a record n, which is similar to none.
    gap = int(distances.max())
    shard_of = np.repeat(np.arange(len(bounds)), sizes)
    columns = np.arange(n, dtype=np.int32) + gap * shard_of.astype(np.int32)
    width = n + gap * len(bounds)
    standing = np.full((orderings_count, width), n, dtype=np.int32)
    standing[:, columns] = orderings
    place = np.empty((orderings_count, n), dtype=np.int32)
    np.put_along_axis(place, orderings, columns[None], axis=1)
    first_of_ordering = width * np.arange(orderings_count)[:, None]
    sums = np.zeros((len(distances), orderings_count))
    close = np.zeros(orderings_count)
    has_twin = np.zeros(n, dtype=bool)
    for rows in np.array_split(np.arange(n), 1 + n * max(n, orderings_count) // CHUNK):
        cosine = np.zeros((len(rows), n + 1))
        cosine[:, :n] = (vectors[rows] @ transposed).toarray()
        near = np.zeros((len(rows), n + 1), dtype=bool)
        near[:, :n] = (cosine[:, :n] > limit) & (codes[rows][:, None] != codes)
        has_twin[rows] = near.any(axis=1)
        own_place = first_of_ordering + place[:, rows]  # in the flat matrix, read faster
        first_of_row = (n + 1) * np.arange(len(rows))
        for index, lag in enumerate(distances):
            pick = first_of_row + standing.ravel().take(own_place + lag)
            sums[index] += cosine.ravel().take(pick).sum(axis=1)
            if lag == 1 and has_twin[rows].any():
                close += near.ravel().take(pick).sum(axis=1)
    pairs = np.array([_pairs_apart(bounds, int(lag)) for lag in distances])
    pairs = np.maximum(pairs, 1)
    return NeighbourSimilarity(
        means=sums / pairs[:, None],
        close=close / pairs[0],
        has_twin=has_twin,
    )


def _pairs_apart(bounds: Bounds, lag: int) -> int:
    """Count the pairs of records that stand `lag` places apart in one shard."""
    return sum(max(0, stop - start - lag) for start, stop in bounds)
