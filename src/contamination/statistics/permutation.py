"""The permutation test of Oren et al. (2024), section 3.1: the whole set in one sequence."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contamination.statistics.inputs import as_log_probs
from contamination.statistics.results import TestResult, log10_least
from contamination.statistics.scale import rounding_of, without_scale


def permutation_test(log_probs: ArrayLike) -> TestResult:
    """Rank the canonical ordering among m shuffled ones.

    p = (1 + #{j >= 1 : L[j] >= L[0]}) / (1 + m)

    Parameters
    ----------
    log_probs
        (m+1,), log-probability L (nats) of the whole set in each ordering. Entry 0 is
        canonical, the others are independent uniform permutations; larger is more
        evidence.

    Returns
    -------
    TestResult, whose statistic is L[0].

    Raises
    ------
    InputError
        For a wrong number of dimensions, no permutation, or a value that is not a
        finite number.

    Notes
    -----
    H0: the orderings are exchangeable given the model, which has never seen the set in
    its order; so the rank of L[0] is uniform. Alternative: the canonical ordering is
    more likely.
    P(p <= alpha) <= alpha holds exactly for every m and every distribution; ties, within
    rounding, count against the canonical ordering. The smallest p is 1 / (1 + m).

    Oren et al. (2024), section 3.1. Phipson and Smyth (2010), "Permutation p-values
    should never be zero", Statistical Applications in Genetics and Molecular Biology
    9(1), article 39.

    Examples
    --------
    >>> permutation_test([-10.0, -11.0, -10.0, -12.0]).p
    0.5
    """
    values = as_log_probs(log_probs, ndim=1)
    scaled, _ = without_scale(values)
    p = share_at_least_first(scaled, rounding_of(scaled))
    return TestResult(
        test="permutation",
        statistic=float(values[0]),
        p=p,
        log10_p=math.log10(p),
        shards=1,
        permutations=len(values) - 1,
        log10_least=log10_least(values[None]),
    )


def share_at_least_first(values: NDArray[np.float64], rounding: float) -> float:
    """Return the share of values (m+1,) that are at least the first one, itself included.

    Values below it by no more than `rounding` are ties, and count.

    Examples
    --------
    >>> share_at_least_first(np.array([0.1 + 0.2, 0.3, 0.1, 0.5]), 1e-12)
    0.75
    """
    return int(np.count_nonzero(values >= values[0] - rounding)) / len(values)
