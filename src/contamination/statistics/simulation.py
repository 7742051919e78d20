"""Null calibration and simulated power: further experiments made of scores that exist already.

Under H0 any ordering of a shard may have been the canonical one. Relabelling a random
ordering of each shard as canonical, independently over shards, is an exact draw from
the null given the scores, and costs no scoring. The rejection rate over such draws is
the level of a test on these scores, whatever made them. Adding an effect to the
relabelled score gives a draw from the alternative; the rejection rate is then the power.
"""

import numpy as np
import scipy.special
from numpy.typing import ArrayLike, NDArray

from contamination.errors import InputError
from contamination.statistics.inputs import (
    as_array,
    as_floats,
    as_log_probs,
    as_whole_numbers,
    check_finite,
    check_generator,
)
from contamination.statistics.scale import ROUNDING, without_scale

FEWEST_PERMUTATIONS = 5  # fewer do not show the spread of a shard
_LARGEST_EFFECT = 1e100  # in standard deviations; a larger one shows no more


def relabel_canonical(scores: ArrayLike, canonical: ArrayLike) -> NDArray[np.float64]:
    """Return the scores with another ordering of each shard in the place of the canonical one.

    Parameters
    ----------
    scores
        (..., r, m+1), the canonical ordering in column 0.
    canonical
        (r,), whole numbers from 0 to m: the column of each shard that trades places
        with column 0.

    Returns
    -------
    A new array of the same shape.

    Raises
    ------
    InputError
        For other shapes, a column that does not exist, or a score that is not a finite
        number.

    Examples
    --------
    >>> relabel_canonical([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [2, 0])
    array([[3., 2., 1.],
           [4., 5., 6.]])
    """
    values = as_floats(scores, "scores")
    if values.ndim < 2 or values.shape[-1] < 2:
        raise InputError(
            f"scores has shape {values.shape}: give (..., r, m+1) with m of 1 or more",
        )
    check_finite(values, "scores")
    count, orderings = values.shape[-2:]
    last = orderings - 1
    chosen = as_whole_numbers(canonical, "canonical", (count,), least=0, most=last)
    shards = np.arange(count)
    relabelled = values.copy()
    relabelled[..., shards, 0] = values[..., shards, chosen]
    relabelled[..., shards, chosen] = values[..., shards, 0]
    return relabelled


def simulated_p_values(
    log_probs: ArrayLike, effects: ArrayLike, *, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Simulate p-values of `sharded_exact_test` on redrawn canonical orders with planted effects.

    The share of them that is at most alpha is the power at alpha.

    Parameters
    ----------
    log_probs
        (r, m+1), as in `sharded_exact_test`, with m of 5 or more: fewer leave the
        spread of a shard unknown, and are refused. Column 0 is the published order, and
        takes no part: what it shows cannot move the power.
    effects
        (b, r), by how many standard deviations of the shuffled scores of a shard the
        canonical one is raised, in each draw. 0 is H0.
    rng
        Draws which shuffled ordering is called canonical.

    Returns
    -------
    p-values, (b,).

    Raises
    ------
    InputError
        For scores or effects of another shape, fewer than 5 permutations, or a value
        that is not a finite number.

    Notes
    -----
    With weights "inverse_sd" the statistic is a sum of r standardised scores z_i, of
    which every one has variance 1 under H0 by construction, or is 0 where all orderings
    score the same. Raising one of n scores by d changes their mean by d / n and their
    sd, which is in closed form here. The sum is then compared with a normal law of the
    same variance, to the order of a central limit theorem in r, and p is not below (m +
    1)^-r, the least that the test has. One ordering fewer than the test has makes the
    power a little too small. With up to three shards and a level little above the least
    p, it is too large, since the test has few p-values there.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = simulated_p_values(rng.normal(size=(20, 26)), np.full((1000, 20), 0.8), rng=rng)
    >>> bool(0.9 < np.mean(p <= 0.05) < 1)
    True
    """
    return ShuffledScores(log_probs).p_values(effects, rng=rng)


class ShuffledScores:
    """The shuffled scores of all shards, (r, m+1), read once for the p-values of many effects.

    Raises InputError for scores of another shape, fewer than 5 permutations, or a value
    that is not a finite number.
    """

    def __init__(self, log_probs: ArrayLike) -> None:
        values = without_scale(as_log_probs(log_probs, ndim=2), axis=1)[0]
        permutations = values.shape[1] - 1
        if permutations < FEWEST_PERMUTATIONS:
            raise InputError(
                f"log_probs has {permutations} permutation(s): a power needs at least "
                f"{FEWEST_PERMUTATIONS}; score more orderings"
            )
        self._shards = len(values)
        shuffled = values[:, 1:]
        largest = np.abs(shuffled).max(axis=1)
        self._varies = np.ptp(shuffled, axis=1) > ROUNDING * largest
        shuffled = shuffled[self._varies]
        self._centred = shuffled - shuffled.mean(axis=1, keepdims=True)
        self._sd = self._centred.std(axis=1, ddof=1)
        self._variance = self._centred.var(axis=1)

    def p_values(self, effects: ArrayLike, *, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return the p-values of `simulated_p_values`, (b,).

        Raises InputError for effects of another shape, or one that is not a finite
        number.
        """
        check_generator(rng)
        raised = as_array(effects, "effects", (None, self._shards))
        raised = np.clip(raised, -_LARGEST_EFFECT, _LARGEST_EFFECT)
        if not self._varies.any():
            return np.ones(len(raised))
        shards, count = self._centred.shape
        raised = raised[:, self._varies] * self._sd
        drawn = rng.integers(count, size=raised.shape)
        chosen = self._centred[np.arange(shards), drawn]
        before = self._variance
        after = before + 2 * raised * chosen / count + raised**2 * (count - 1) / count**2
        # An effect that makes all scores equal leaves a z of 0, not 0 / 0.
        sd = np.sqrt(np.maximum(after, ROUNDING * before))
        z = (chosen + raised * (count - 1) / count) / sd
        normal = scipy.special.ndtr(-z.sum(axis=1) / np.sqrt(shards))
        least = float(count + 1) ** -shards  # of the test
        p_values: NDArray[np.float64] = np.maximum(normal, least)
        return p_values
