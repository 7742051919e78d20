"""Scores of the orderings of one shard from its tokens, where loud tokens do not drown the many.

New here, on the per-token log-probabilities behind Oren section 3.2. Their L[i, j] is a
plain sum over tokens, so its noise is that of the few tokens whose log-probability
swings by nats from one ordering to the next. Here every token is first compared with
itself in the other orderings of its shard; then it is tamed
(`token_standardised_scores`), or only the first tokens of each example count
(`boundary_scores`). The example that stands first in an ordering has no predecessor;
its tokens say nothing about the order of the set, and they are left out.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contamination.errors import InputError
from contamination.statistics.inputs import (
    as_array,
    as_count,
    as_floats,
    as_number,
    as_whole_numbers,
)
from contamination.statistics.scale import ROUNDING, without_scale

# Median and 90th percentile of the sd of a token over orderings are about 0.13 and 0.36
# nats in small models: tokens that hardly move stay below their share, and those that
# swing are tamed. A small one counts tokens alike however little they move, numerical
# noise included; a large one returns to the sum of centred log-probabilities.
_FLOOR = 0.3
# Nats; sums of larger numbers may overflow, and none is a log-probability.
_LARGEST = 1e300


def token_standardised_scores(
    logprobs: ArrayLike, leading: ArrayLike, *, resolution: float = 0.0
) -> NDArray[np.float64]:
    """Return a score for each ordering of a shard: the sum of standardised log-probabilities.

    score[j] = sum_t (l[j, t] - mean_t) / (sd_t + 0.3 nats), over tokens t not leading
    in j; mean_t and sd_t are over the orderings in which t does not lead.

    Parameters
    ----------
    logprobs
        (m+1, T), log-probabilities (nats) of the tokens of one shard in each ordering:
        a column is the same token of the same example in every ordering, row 0 is
        canonical.
    leading
        (m+1, T), bool, whether the example of the token stands first in that ordering.
    resolution
        Nats; a token that moves by no more counts 0.

    Returns
    -------
    (m+1,). Larger is more evidence: stack those of shards to (r, m+1) for
    `sharded_exact_test`.

    Raises
    ------
    InputError
        For other shapes, `leading` that is not bool, or a value that is not a finite
        number.

    Notes
    -----
    H0: the orderings of the shard, each a row of `logprobs` and `leading`, are
    exchangeable given the model, independently over shards. Exactness: mean_t and sd_t
    are symmetric in the rows, and besides them, score j depends on row j alone. So
    permuting the rows permutes the scores, and exchangeable rows give exchangeable
    scores, which is all that `sharded_exact_test` asks. Nothing is asymptotic.

    The score is not monotone in the canonical row: raising one value also raises its
    sd_t. 1 / sd_t is the best weight for shifts proportional to sd_t, the plain centred
    sum for loud tokens'.

    Examples
    --------
    >>> logprobs = [[-1.0, -2.0], [-1.4, -2.6]]
    >>> token_standardised_scores(logprobs, np.zeros((2, 2), dtype=bool))
    array([ 0.9, -0.9])
    """
    values = centred_tokens(logprobs, leading, resolution=resolution)
    follows = ~np.asarray(leading)
    scaled, exponent = without_scale(values)
    squares = np.einsum("jt,jt->t", scaled, scaled)  # without an array of squares
    scaled_sd = np.sqrt(squares / np.maximum(follows.sum(axis=0), 1))
    sd = np.ldexp(scaled_sd, int(exponent.item()))
    values /= sd + _FLOOR
    return np.asarray(values.sum(axis=1))


def boundary_scores(
    logprobs: ArrayLike,
    leading: ArrayLike,
    position: ArrayLike,
    *,
    tokens_per_example: int,
    resolution: float = 0.0,
) -> NDArray[np.float64]:
    """Return a score for each ordering of a shard: the centred sum of first tokens of examples.

    score[j] = sum over tokens t with position[t] < tokens_per_example, not leading in
    j, of l[j, t] - mean_t; mean_t is over the orderings in which t does not lead.

    What a model remembers of an order shows most where it must guess the next example:
    in the first tokens after a boundary, before the example itself gives its
    continuation away. Leaving the rest out spares its noise at no cost, since the store
    holds every token.

    Parameters
    ----------
    logprobs, leading, resolution
        Same as in `token_standardised_scores`.
    position
        (T,), place of each token within its example, from 0.
    tokens_per_example
        How many first tokens of an example count, 1 or more.

    Returns
    -------
    (m+1,), in nats, and monotone in the canonical row. Larger is more evidence.

    Raises
    ------
    InputError
        For other shapes, `leading` that is not bool, a value that is not a finite
        number, or places or a number of tokens that are not whole numbers.

    Notes
    -----
    H0 and exactness as in `token_standardised_scores`.

    Examples
    --------
    >>> logprobs = [[-1.0, -2.0], [-1.5, -2.5]]
    >>> leading = np.zeros((2, 2), dtype=bool)
    >>> boundary_scores(logprobs, leading, [0, 1], tokens_per_example=1)
    array([ 0.25, -0.25])
    """
    values = centred_tokens(logprobs, leading, resolution=resolution)
    places = as_whole_numbers(position, "position", (values.shape[1],), least=0)
    first = places < as_count(tokens_per_example, "tokens_per_example", 1)
    # Rows are summed one by one, not by a matrix product: equal rows must give equal
    # scores.
    return np.asarray(values[:, first].sum(axis=1))


def centred_tokens(
    logprobs: ArrayLike, leading: ArrayLike, *, resolution: float = 0.0
) -> NDArray[np.float64]:
    """Return each token (nats) minus its mean over orderings in which it does not lead, else 0.

    A leading token is thereby given its mean over the others, so the score does not
    depend on how likely the example that happens to lead is: without centring, leaving
    it out would add minus its own log-probability to the score, far more noise than any
    order effect.

    Parameters
    ----------
    logprobs, leading
        Same as in `token_standardised_scores`.
    resolution
        nats. A token that moves by no more is 0 throughout: the engine cannot tell its
        log-probabilities apart.

    Returns
    -------
    (m+1, T). Permuting the rows of the input permutes those of the output.

    Raises
    ------
    InputError
        For other shapes, `leading` that is not bool, or a value that is not a finite
        number.

    Examples
    --------
    The second token leads in the first ordering, so its mean is that of the others:

    >>> leading = np.array([[False, True], [False, False], [False, False]])
    >>> centred_tokens([[-1.0, -9.0], [-2.0, -3.0], [-3.0, -4.0]], leading)
    array([[ 1. ,  0. ],
           [ 0. ,  0.5],
           [-1. , -0.5]])
    """
    values = as_array(logprobs, "logprobs", (None, None))
    as_floats(leading, "leading")  # raises for masked entries and ragged rows
    leads = np.asarray(leading)
    if leads.dtype != np.bool_ or leads.shape != values.shape or not values.size:
        raise InputError(
            f"logprobs has shape {values.shape} and leading, {leads.dtype}, "
            f"{leads.shape}: give both as (m+1, T), one row per ordering, canonical "
            "first, and leading as bool"
        )
    if np.abs(values).max() > _LARGEST:
        raise InputError(
            f"logprobs has a number beyond {_LARGEST:g}: give log-probabilities",
        )
    resolution = as_number(resolution, "resolution", 0.0, _LARGEST)
    rounding = ROUNDING * np.abs(values).max(axis=0)
    values -= values.sum(axis=0, where=~leads) / np.maximum((~leads).sum(axis=0), 1)
    # A token that never moves must come out as zeros, or a silent shard would vote by
    # its rounding.
    values[leads | (np.abs(values) <= rounding)] = 0
    values[:, np.ptp(values, axis=0) <= resolution] = 0
    return values
