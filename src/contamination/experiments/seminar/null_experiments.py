"""Experiments in which there is nothing to find, and what tests make of them.

Under H0 any ordering may be called canonical. So the scores of a model that has not read a set are
a supply of true null experiments: draw the canonical one at random, again and again (Oren, section
3.1, turned round).
"""

import numpy as np
import pandas as pd

from contamination.statistics import (
    null_scores,
    permutation_test,
    sharded_exact_monte_carlo,
    sharded_t_test,
    westfall_young_test,
)

RESAMPLES = 999  # of each experiment


def null_permutation_p_values(
    pool: np.ndarray, *, permutations: int, trials: int, rng: np.random.Generator
) -> np.ndarray:
    """p-values of permutation tests under H0, (trials,): the canonical score is drawn like others.

    `pool` (r, m+1) holds the scores of shards; a trial takes one shard and so many of its scores.
    """
    rows = pool[rng.integers(len(pool), size=trials)]
    return np.array([permutation_test(rng.permutation(row)[: permutations + 1]).p for row in rows])


def null_p_values(
    pool: np.ndarray, *, shards: int, trials: int, rng: np.random.Generator
) -> pd.DataFrame:
    """p-values of the sharded tests on experiments in which H0 holds.

    Parameters
    ----------
    pool : scores of shards under a model that has not read them, (shards or more, m+1).
    shards : of each experiment, drawn from the pool.

    Returns
    -------
    DataFrame
        A row for each trial; "sharded_t", "sharded_t, ddof=0" and "sharded_exact".
    """
    rows = []
    for _ in range(trials):
        scores = null_scores(pool, shards, rng=rng)
        exact = sharded_exact_monte_carlo(scores, resamples=RESAMPLES, rng=rng)
        rows.append(
            {
                "sharded_t": sharded_t_test(scores).p,
                "sharded_t, ddof=0": sharded_t_test(scores, ddof=0).p,
                "sharded_exact": exact.p,
            }
        )
    return pd.DataFrame(rows)


def chosen_afterwards(scores: np.ndarray, *, trials: int, rng: np.random.Generator) -> pd.DataFrame:
    """The smallest p-value of several statistics where H0 holds, taken as it is and paid for.

    Parameters
    ----------
    scores : (q, r, m+1), of a model that has not read the set; an ordering has the same place in
        all statistics.

    Returns
    -------
    DataFrame
        A row for each trial; "fixed in advance" (the first statistic alone), "best, as it is",
        "best, times q" and "min_p".
    """
    count, shards, orderings = scores.shape
    where, rows = np.arange(shards), []
    for _ in range(trials):
        swapped, canonical = scores.copy(), rng.integers(orderings, size=shards)
        swapped[:, where, 0] = scores[:, where, canonical]
        swapped[:, where, canonical] = scores[:, where, 0]
        joint = westfall_young_test(swapped, resamples=RESAMPLES, rng=rng)
        single = [each.p for each in joint.marginals]
        rows.append(
            {
                "fixed in advance": single[0],
                "best, as it is": min(single),
                "best, times q": min(1.0, count * min(single)),
                "min_p": joint.p,
            }
        )
    return pd.DataFrame(rows)
