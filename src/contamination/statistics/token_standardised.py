"""Token scores in which a few loud tokens do not drown the many.

New here, on the per-token log-probabilities behind Oren section 3.2. Their L[i, j] is a plain sum
over tokens, so its noise is that of the few tokens whose log-probability swings by nats from one
ordering to the next. Here every token is first compared with itself in the other orderings of its
shard. The stages compose, and each acts on the orderings alike:

`centred_tokens` -> `np.clip` or `scaled_tokens` -> sum, or `boundary.position_scores`.

The example that stands first in an ordering has no predecessor; its tokens say nothing about the
order of the set, and they are left out.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contamination.errors import InputError
from contamination.statistics.validation import ROUNDING

# Median and 90th percentile of the sd of a token over orderings are about 0.13 and 0.36 nats in
# small models: tokens that hardly move stay below their share, and those that swing are tamed.
_FLOOR = 0.3


def token_standardised_scores(
    logprobs: ArrayLike,
    leading: ArrayLike,
    *,
    floor: float | None = _FLOOR,
    clip: float | None = None,
) -> NDArray[np.float64]:
    """One score per ordering of a shard: the sum over tokens of centred, tamed log-probabilities.

    score[j] = sum_t clip(l[j, t] - mean_t) / (sd_t + floor), over tokens t not leading in j; mean_t
    and sd_t are over the orderings in which t does not lead, sd_t after clipping.

    Parameters
    ----------
    logprobs : array_like, shape (m+1, T)
        Log-probability (nats) of each token of one shard in each ordering. A column is the same
        token of the same example in every ordering; row 0 is canonical.
    leading : array_like of bool, shape (m+1, T)
        Whether the example of the token stands first in that ordering.
    floor : float or None
        Nats added to the standard deviation, above 0; None divides by nothing. A small floor counts
        tokens alike however little they move, numerical noise included; a large one returns to the
        sum of centred log-probabilities.
    clip : float or None
        Centred values are held within +-clip nats. A bound instead of a division (floor=None) keeps
        nats as the unit; 1 nat touches about one value in a hundred in small models.

    Returns
    -------
    ndarray, shape (m+1,)
        Larger is more evidence. Stack the shards to (r, m+1) for `sharded_exact_test`.

    Raises
    ------
    InputError
        As in `centred_tokens`, or a floor or clip that is not above 0.

    Notes
    -----
    H0: the orderings of the shard, each a row of `logprobs` and `leading`, are exchangeable given
    the model. Exactness: mean_t and sd_t are symmetric in the rows, and row j enters score[j] alone
    besides; so permuting the rows permutes the scores, and exchangeable rows give exchangeable
    scores, which is all that `sharded_exact_test` asks. Nothing is asymptotic.

    The score is unchanged by a constant added to a token in every ordering. It is not monotone in
    the canonical row: raising one value also raises its sd_t, and clipping ignores what is beyond.
    Which floor is best depends on where memory sits: 1 / sd_t is the best weight for shifts
    proportional to sd_t, while shifts of the loud tokens above all favour the plain centred sum.
    """
    values = centred_tokens(logprobs, leading)
    if clip is not None:
        np.clip(values, -_above_zero(clip, "clip"), clip, out=values)
    if floor is not None:
        values = scaled_tokens(values, leading, floor=floor)
    return np.asarray(values.sum(axis=1))


def centred_tokens(logprobs: ArrayLike, leading: ArrayLike) -> NDArray[np.float64]:
    """Each token minus its mean over the orderings in which it does not lead; 0 where it leads.

    A leading token is thereby given its mean over the others, so the score does not depend on how
    likely the example that happens to lead is: without centring, leaving it out would add minus its
    own log-probability to the score, far more noise than any order effect.

    Parameters
    ----------
    logprobs, leading
        As in `token_standardised_scores`.

    Returns
    -------
    ndarray, shape (m+1, T)
        Nats. Permuting the rows of the input permutes the rows of the output.

    Raises
    ------
    InputError
        Not (m+1, T) with m >= 1 and T >= 1, shapes that differ, `leading` not boolean, or a value
        that is not finite.
    """
    values = np.array(logprobs, dtype=np.float64)
    follows = ~_leading(leading, values.shape)
    if values.ndim != 2 or len(values) < 2 or not values.shape[1]:
        raise InputError(
            f"logprobs has shape {values.shape}: give (m+1, T), one row per ordering, canonical "
            "first, with at least 1 shuffled ordering and 1 token"
        )
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        ordering, token = (int(index) for index in bad[0])
        raise InputError(
            f"logprobs of ordering {ordering}, token {token} is {values[ordering, token]}: "
            "score it again, or leave its shard out"
        )
    rounding = ROUNDING * np.abs(values).max(axis=0)
    values -= values.sum(axis=0, where=follows) / np.maximum(follows.sum(axis=0), 1)
    # A token that never moves must come out as zeros, or a silent shard would vote by its rounding.
    values[~follows | (np.abs(values) <= rounding)] = 0
    return values


def scaled_tokens(
    values: NDArray[np.float64], leading: ArrayLike, *, floor: float = _FLOOR
) -> NDArray[np.float64]:
    """Centred tokens divided by (root mean square over the orderings in which they follow + floor).

    Parameters
    ----------
    values : ndarray, shape (m+1, T)
        From `centred_tokens`, clipped or not.
    leading, floor
        As in `token_standardised_scores`.

    Returns
    -------
    ndarray, shape (m+1, T)
        Without unit. Permuting the rows of the input permutes the rows of the output.

    Raises
    ------
    InputError
        `leading` not boolean or of another shape, or a floor that is not above 0.
    """
    follows = ~_leading(leading, values.shape)
    squares = np.einsum("jt,jt->t", values, values)  # without an array of squares
    sd = np.sqrt(squares / np.maximum(follows.sum(axis=0), 1))
    return np.asarray(values / (sd + _above_zero(floor, "floor")))


def _leading(leading: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    mask = np.asarray(leading)
    if mask.dtype != np.bool_ or mask.shape != shape:
        raise InputError(
            f"leading is {mask.dtype} of shape {mask.shape}: give bool of the shape of logprobs, "
            f"{shape}"
        )
    return mask


def _above_zero(nats: float, name: str) -> float:
    if not nats > 0:
        raise InputError(f"{name} is {nats} nats: give a number above 0, or None to leave it out")
    return nats
