"""Are p-values under H0 uniform? The empirical law and a band around it (calibration studies)."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contamination.errors import InputError
from contamination.statistics.validation import as_p_values


def ecdf(p_values: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Empirical distribution function as sorted p-values and its heights i/n there, both (n,).

    Raises InputError for an entry that is NaN, zero or outside (0, 1], or no entry.
    """
    x = np.sort(as_p_values(p_values))
    return x, np.arange(1, len(x) + 1) / len(x)


def dkw_band(n: int, level: float) -> float:
    """Half-width of the band that holds the whole true law with probability at least `level`.

    sqrt(log(2 / alpha) / (2 n)) with alpha = 1 - level, for n independent p-values; valid for every
    n and every law (Dvoretzky, Kiefer and Wolfowitz 1956, with the constant of Massart 1990).
    Raises InputError for n below 1, or a level outside (0, 1).
    """
    if n < 1:
        raise InputError(f"n is {n}: a band needs at least 1 p-value")
    if not 0 < level < 1:
        raise InputError(f"level is {level}: give a coverage between 0 and 1, such as 0.95")
    return math.sqrt(math.log(2 / (1 - level)) / (2 * n))


def null_scores(pool: np.ndarray, shards: int, *, rng: np.random.Generator) -> np.ndarray:
    """Scores of `shards` random shards of the pool, a random ordering of each called canonical."""
    rows = pool[rng.choice(len(pool), size=shards, replace=False)]
    canonical = rng.integers(pool.shape[1], size=shards)
    where = np.arange(shards)
    rows[where, 0], rows[where, canonical] = rows[where, canonical], rows[where, 0].copy()
    return rows
