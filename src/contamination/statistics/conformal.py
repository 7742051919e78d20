"""Single records: which published ones were read, and how many at least.

New here, on conformal p-values: the scores of records that a draw held back say how high an unread
record scores. The draw has no strata, since records of unlike strata do not compare.
"""

from functools import cache

import numpy as np
import scipy.stats
from numpy.typing import ArrayLike

from contamination.errors import InputError
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
    H0 of record i: it was not read, and its score and those of the held-out records are
    exchangeable. P(p_i <= alpha) <= alpha then holds exactly. Of records that were left
    unread for what they score (only long ones were read, and short ones score higher),
    it holds on average over all published ones, but not for each one. The p-values depend on
    each other through the held-out scores, positively (PRDS), so that the procedure
    of Benjamini and Hochberg keeps its false discovery rate: Bates, Candes, Lei, Romano
    and Sesia (2023), "Testing for outliers with conformal p-values", Annals of
    Statistics 51(1), Theorem 2.

    Examples
    --------
    >>> conformal_p_values([5.0, 1.0, 2.0, 3.0, 4.0], [1, 1, 0, 0, 0])
    array([0.25, 1.  ])
    """
    sides = Sides.of(published)
    values = _one_score(scores, sides)
    members = values[sides.published]
    others = np.sort(values[~sides.published])
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
    The bound holds whichever records were read: a crawler may have kept the long ones.
    It needs that the draw divided the records, and that reading a record changes the
    score of no other one.

    Let u_i be the score of record i had it not been read, and N_k the number of
    published records above the k-th largest held-out score. The draw does not depend on
    u, so the number U_k of published records whose u_i is above that score has a
    negative hypergeometric law: that of the published records before the k-th held-out
    one, in a random order of all n + h. Held-out records and unread ones have s_i =
    u_i, so N_k is at most U_k plus the number K of those that were read. Hence K >= N_k
    - q_k wherever U_k <= q_k, its quantile at 1 - `level` / 3. Three k are used, and
    all three hold with probability 1 - `level`. Ties count as below.

    These are the "effects attributable to treatment" of Rosenbaum (2001), Biometrika
    88, 219-231: a randomised treatment, reading, may change any of the treated.

    Examples
    --------
    >>> scores = np.concatenate([np.full(20, 9.0), np.arange(20) / 20, np.arange(40) / 40])
    >>> read_at_least(scores, np.arange(80) < 40, level=0.05)
    13
    """
    held = as_level(level, "level")
    sides = Sides.of(published)
    values = _one_score(scores, sides)
    members = values[sides.published]
    others = np.sort(values[~sides.published])[::-1]
    ranks = sorted({max(1, round(share * len(others))) for share in _BOUND_SHARES})
    total = len(members) + len(others)
    bound = 0
    for k in ranks:
        above = int(np.count_nonzero(members > others[k - 1]))
        by_chance = _most_above(k, total, len(members), held / len(ranks))
        bound = max(bound, above - by_chance)
    return bound


def _one_score(scores: ArrayLike, sides: Sides) -> Floats:
    """Return one score of the records of both sides; raise InputError for several."""
    values = side_scores(scores)
    if len(values) != 1:
        raise InputError(f"scores has {len(values)} scores of each record: give one, (n,)")
    check_records(values, sides)
    return np.asarray(values[0])


@cache
def _most_above(k: int, total: int, members: int, level: float) -> int:
    """Return how many published records chance puts above the k-th held-out one, at a level.

    It asks for no score: many draws of as many records have it in common.
    """
    return int(scipy.stats.nhypergeom.isf(level, total, members, k))
