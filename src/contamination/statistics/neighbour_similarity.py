"""How alike neighbours are, in every ordering at once, from rows of a similarity matrix.

The n x n matrix of cosines is computed a block of rows at a time and read at the entries that the
orderings ask for, so that it never stands in memory as a whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix

from contamination.statistics.exchangeability import Bounds

_BLOCK = 1 << 20  # entries of the similarity matrix, and of orderings, at once: some megabytes


@dataclass(frozen=True, eq=False, kw_only=True)
class NeighbourSimilarity:
    """`neighbour_similarity`.

    Attributes
    ----------
    means : (c, m+1)
        Mean cosine of records `lags[c]` places apart in one shard; 0 where no shard is long enough.
    close : (m+1,)
        Share of neighbours that are near-duplicates.
    has_twin : (n,)
        Whether the record has a near-duplicate anywhere in the set.
    """

    means: NDArray[np.float64]
    close: NDArray[np.float64]
    has_twin: NDArray[np.bool_]


def neighbour_similarity(
    features: Any,
    orderings: NDArray[np.int32],
    bounds: Bounds,
    *,
    lags: Sequence[int],
    threshold: float,
    copies: ArrayLike,
) -> NeighbourSimilarity:
    """Similarity of records that stand `lags` places apart, the first of them 1.

    Parameters
    ----------
    features : sparse matrix or array, shape (n, v)
        Rows of Euclidean length 1 (or 0, which is similar to nothing).
    orderings : ndarray of int32, shape (m+1, n)
        From `random_orderings`.
    bounds : sequence of (start, stop)
        The shards of the orderings.
    lags : sequence of int
        Distances, at least 1; the first one is that of `close`.
    threshold : float
        Records are near-duplicates where their cosine is above it and they are not copies.
    copies : array_like, shape (n,)
        Equal for records that are exact copies of each other.

    Notes
    -----
    Time grows as n times the non-zero features, and as n * m * len(lags); memory as n * m.
    """
    m1, n = orderings.shape
    codes, vectors = np.asarray(copies), csr_matrix(features)
    transposed = vectors.T.tocsr()
    place = np.empty_like(orderings)
    np.put_along_axis(place, orderings, np.arange(n, dtype=np.int32)[None, :], axis=1)
    stop = np.concatenate([np.full(b - a, b) for a, b in bounds])
    sums, close, has_twin = np.zeros((len(lags), m1)), np.zeros(m1), np.zeros(n, dtype=bool)
    for rows in np.array_split(np.arange(n), 1 + n * max(n, m1) // _BLOCK):
        cosine = (vectors[rows] @ transposed).toarray()
        near = (cosine > threshold) & (codes[rows][:, None] != codes)
        has_twin[rows] = near.any(axis=1)
        for index, lag in enumerate(lags):
            target = place[:, rows] + lag
            inside = target < stop[place[:, rows]]
            partner = np.take_along_axis(orderings, np.minimum(target, n - 1), axis=1)
            pick = (np.arange(len(rows)), partner)
            sums[index] += (cosine[pick] * inside).sum(axis=1)
            if index == 0:
                close += (near[pick] & inside).sum(axis=1)
    pairs = [sum(max(0, b - a - lag) for a, b in bounds) for lag in lags]
    return NeighbourSimilarity(
        means=sums / np.maximum(pairs, 1)[:, None], close=close / pairs[0], has_twin=has_twin
    )
