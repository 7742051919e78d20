"""Single records: which published ones were read, and how many at least.

New here, on conformal p-values: the scores of records that a draw held back say how high an unread
record scores. The draw has no strata, since records of unlike strata do not compare.
"""

import numpy as np
import scipy.stats
from numpy.typing import ArrayLike

from contamination.statistics.inputs import as_level
from contamination.statistics.sides import Floats, Sides, check_records, side_scores

# Shares of the held-out records, above which published ones are counted.
_BOUND_SHARES = (0.05, 0.25, 0.5)


def conformal_p_values(scores: ArrayLike, published: ArrayLike) -> Floats:
    """Return a p-value for each published record, from the scores of those that were held back.

    p_i = (1 + #{held-out j : s_j >= s_i}) / (h + 1)

    Parameters
    ----------
    scores
        (n,), one membership score of n records; larger is more likely read.
    published
        (n,), True or 1 for a published record; the other h were held back.

    Returns
    -------
    p-values in the order of the published records.

    Raises
    ------
    InputError
        For shapes that do not fit, a score that is not a finite number, or a side
        without records.

    Notes
    -----
    H0 of record i: it was not read, so that its score and those of the held-out records
    are exchangeable. P(p_i <= alpha) <= alpha then holds exactly. The p-values depend
    on each other through the held-out scores, positively (PRDS), so that the procedure
    of Benjamini and Hochberg keeps its false discovery rate: Bates, Candes, Lei, Romano
    and Sesia (2023), "Testing for outliers with conformal p-values", Annals of
    Statistics 51(1), Theorem 2.

    Examples
    --------
    >>> conformal_p_values([5.0, 1.0, 2.0, 3.0, 4.0], [1, 1, 0, 0, 0])
    array([0.25, 1.  ])
    """
    sides = Sides.of(published)
    values = side_scores(scores)
    check_records(values, sides)
    members = values[0][sides.published]
    others = np.sort(values[0][~sides.published])
    at_least = len(others) - np.searchsorted(others, members, side="left")
    return np.asarray((1.0 + at_least) / (len(others) + 1))


def read_at_least(scores: ArrayLike, published: ArrayLike, *, level: float) -> int:
    """Return a lower bound, of confidence 1 - level, on how many published records were read.

    Parameters
    ----------
    scores, published
        Same as in `conformal_p_values`.
    level
        At most with this probability, fewer records were read than the bound says.

    Raises
    ------
    InputError
        For shapes that do not fit, a score that is not a finite number, a side without
        records, or a level that is not between 0 and 1.

    Notes
    -----
    Let K published records have been read. The n - K others and the h held-out ones are
    exchangeable, so that the number of those others above the k-th largest held-out
    score has a negative hypergeometric law. With K read, at least N_k - K of the others
    are above it, where N_k counts all published records that are. K is rejected where
    that is too many; `level` is divided over three choices of k. The bound is the
    smallest K that is not rejected, and it is too large only if the true K is rejected,
    whose chance is at most `level`. Ties count as below.

    Examples
    --------
    >>> scores = np.concatenate([np.full(20, 9.0), np.arange(20) / 20, np.arange(40) / 40])
    >>> read_at_least(scores, np.arange(80) < 40, level=0.05)
    15
    """
    held = as_level(level, "level")
    sides = Sides.of(published)
    values = side_scores(scores)
    check_records(values, sides)
    members = values[0][sides.published]
    others = np.sort(values[0][~sides.published])[::-1]
    ranks = sorted({max(1, round(share * len(others))) for share in _BOUND_SHARES})
    read = np.arange(len(members) + 1)
    rejected = np.zeros(len(read), dtype=np.bool_)
    for k in ranks:
        above = np.count_nonzero(members > others[k - 1])
        excess = np.maximum(above - read, 0)
        # At least `excess` others are above the k-th held-out record if the first
        # excess + k - 1 of all records have at most k - 1 held-out ones.
        records = len(members) - read + len(others)
        p = scipy.stats.hypergeom.cdf(k - 1, records, len(others), excess + k - 1)
        rejected |= (excess > 0) & (p <= held / len(ranks))
    return int(np.argmin(rejected))
