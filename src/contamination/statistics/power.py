"""How often would an effect have been found? Power of the exact test on shards, without theory.

One of the shuffled orderings of a shard, drawn at random and called canonical, is an exact draw
from H0 given the scores, whatever the model has read. Raised by an effect it is a draw from the
alternative, with the spread, the ties and the number of orderings of these very scores.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from contamination.errors import InputError
from contamination.statistics.results import ROUNDING, as_log_probs

FEWEST_PERMUTATIONS = 5  # fewer leave the spread of a shard, and with it the effect, unknown


def planted_p_values(
    log_probs: ArrayLike, effects: ArrayLike, *, rng: np.random.Generator
) -> NDArray[np.float64]:
    """p-values of `sharded_exact_test` on redrawn canonical orders with planted effects, (b,).

    The share of them that is at most alpha is the power at alpha. Raises InputError for scores of
    another shape, a value that is not finite, fewer than 5 shuffled orderings, or effects that do
    not fit.

    Parameters
    ----------
    log_probs : (r, m+1), as in `sharded_exact_test`. Column 0 is the published order, and takes no
        part: what it shows cannot move the power.
    effects : (b, r), by how many standard deviations of the shuffled scores of a shard the
        canonical one is raised, in each draw. 0 is H0.

    Notes
    -----
    With weights "inverse_sd" the statistic is a sum of r standardised scores z_i, of which every
    one has variance 1 under H0 by construction, or is 0 where all orderings score the same. Raising
    one of n scores by d changes their mean by d / n and their sd, which is in closed form here. The
    sum is then compared with a normal law of the same variance, to the order of a central limit
    theorem in r. One ordering fewer than the test has makes the power a little too small.
    """
    values = as_log_probs(log_probs, ndim=2)
    shuffled, raised = values[:, 1:], np.asarray(effects, dtype=np.float64)
    shards, n = shuffled.shape
    if n < FEWEST_PERMUTATIONS:
        raise InputError(f"{n} shuffled orderings: give at least {FEWEST_PERMUTATIONS} for a power")
    if raised.ndim != 2 or raised.shape[1] != shards:
        raise InputError(f"effects have shape {raised.shape}: give (draws, {shards})")
    varies = np.ptp(shuffled, axis=1) > ROUNDING * np.abs(shuffled).max(axis=1)
    if not varies.any():
        return np.ones(len(raised))
    shuffled, raised = shuffled[varies], raised[:, varies]
    centred = shuffled - shuffled.mean(axis=1, keepdims=True)
    raised = raised * centred.std(axis=1, ddof=1)
    drawn = rng.integers(n, size=raised.shape)
    chosen = centred[np.arange(len(centred)), drawn]
    before = centred.var(axis=1)
    variance = before + 2 * raised * chosen / n + raised**2 * (n - 1) / n**2
    # An effect that makes all scores equal leaves a z of 0, not 0 / 0.
    z = (chosen + raised * (n - 1) / n) / np.sqrt(np.maximum(variance, ROUNDING * before))
    return np.asarray(ndtr(-z.sum(axis=1) / np.sqrt(len(centred))))
