"""The permutation test on a whole set (Oren section 3.1)."""

import numpy as np
from numpy.typing import ArrayLike

from contamination.statistics.results import TestResult
from contamination.statistics.validation import as_log_probs


def permutation_test(log_probs: ArrayLike) -> TestResult:
    """Rank the canonical ordering among m shuffled ones.

    p = (1 + #{j >= 1 : L[j] >= L[0]}) / (1 + m)

    Parameters
    ----------
    log_probs : array_like, shape (m+1,)
        Log-probability (nats) of the whole set in each ordering; entry 0 is canonical, the others
        are independent uniform permutations. Larger is more evidence.

    Returns
    -------
    TestResult
        The statistic is L[0] in nats.

    Raises
    ------
    InputError
        Wrong number of dimensions, fewer than 1 permutation, or a value that is not finite.

    Notes
    -----
    H0: the orderings are exchangeable given the model, which has never seen the set in its order;
    so the rank of L[0] is uniform. Alternative: the canonical ordering is more likely.
    P(p <= alpha) <= alpha holds exactly for every m and every distribution; ties count against the
    canonical ordering. The smallest p is 1 / (1 + m).

    References
    ----------
    Oren et al. (2024), section 3.1. Phipson and Smyth (2010), "Permutation p-values should never be
    zero", Statistical Applications in Genetics and Molecular Biology 9(1), article 39.
    """
    values = as_log_probs(log_probs, ndim=1)
    canonical, null = values[0], values[1:]
    p = (1 + int(np.count_nonzero(null >= canonical))) / (1 + len(null))
    return TestResult(
        test="permutation",
        statistic=float(canonical),
        p=p,
        log10_p=float(np.log10(p)),
        shards=1,
        permutations=len(null),
    )
