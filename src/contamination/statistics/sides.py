"""Two sides of a set, published and held out, and the draw that has divided them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.special
from numpy.typing import ArrayLike, NDArray

from contamination.errors import InputError
from contamination.statistics.inputs import as_booleans, as_codes, as_floats, check_finite
from contamination.statistics.scale import without_scale

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

_BLOCK = 1 << 22  # drawn labels in memory at a time


@dataclass(frozen=True, eq=False)
class Sides:
    """The records of both sides, and the draw that has divided them.

    Attributes
    ----------
    published
        (n,), True for a published record and False for one that was held out.
    strata
        (n,), whole numbers from 0; labels were drawn within them.
    """

    published: Booleans
    strata: NDArray[np.intp]

    @classmethod
    def of(cls, published: ArrayLike, strata: ArrayLike | None = None) -> "Sides":
        """Check the labels and strata of n records; without strata there is one.

        Raises InputError for other shapes or labels, or where no stratum has both
        sides.
        """
        count = np.size(np.asarray(published))
        labels = as_booleans(published, "published", (count,))
        codes = np.zeros(count, dtype=np.intp)
        if strata is not None:
            codes = as_codes(strata, "strata")
            if len(codes) != count:
                raise InputError(f"strata has {len(codes)} entries: give {count}, one a record")
        sides = cls(labels, codes)
        if not count or not sides.informative.any():
            raise InputError(
                "no stratum has published and held-out records: nothing could trade places"
            )
        return sides

    @property
    def informative(self) -> Booleans:
        """Whether records are in a stratum with both sides, (n,)."""
        sizes = np.bincount(self.strata)
        members = np.bincount(self.strata, weights=self.published)
        return ((members > 0) & (members < sizes))[self.strata]

    @property
    def log_divisions(self) -> float:
        """Return the natural logarithm of the number of divisions that were as likely."""
        sizes = np.bincount(self.strata)
        members = np.bincount(self.strata, weights=self.published)
        ways = scipy.special.gammaln(sizes + 1)
        ways -= scipy.special.gammaln(members + 1) + scipy.special.gammaln(sizes - members + 1)
        return float(ways.sum())

    def draws(self, count: int, *, rng: np.random.Generator) -> Iterator[Booleans]:
        """Yield `count` divisions in blocks, (b, n) each, uniform and independent.

        Strata of one size are drawn together.
        """
        order = np.argsort(self.strata, kind="stable")
        sizes = np.bincount(self.strata)
        starts = np.cumsum(sizes) - sizes
        places = []
        for size in np.unique(sizes[sizes > 0]):
            first = starts[sizes == size]
            places.append(order[first[:, None] + np.arange(size)])  # (strata, size)
        block = max(1, _BLOCK // len(order))
        for start in range(0, count, block):
            rows = min(block, count - start)
            drawn = np.empty((rows, len(order)), dtype=np.bool_)
            for columns in places:
                labels = np.broadcast_to(self.published[columns], (rows, *columns.shape))
                drawn[:, columns] = rng.permuted(labels, axis=-1)
            yield drawn


def side_scores(scores: ArrayLike) -> Floats:
    """Return finite scores, (q, n), of any scale."""
    values = as_floats(scores, "scores")
    if values.ndim == 1:
        values = values[None]
    if values.ndim != 2 or not values.size:
        raise InputError(f"scores has shape {values.shape}: give (n,) or (q, n)")
    check_finite(values, "scores")
    return without_scale(values, axis=1)[0]


def check_records(values: Floats, sides: Sides) -> None:
    """Raise InputError unless scores and labels are of as many records."""
    if values.shape[1] != len(sides.published):
        raise InputError(
            f"scores are of {values.shape[1]} records, and published of {len(sides.published)}"
        )
