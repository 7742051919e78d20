"""Scores of the tokens where one example hands over to the next.

New here. What a model remembers of an order shows most where it must guess the next example: in the
first tokens after a boundary, before the example itself gives its continuation away. Leaving the
rest out spares its noise at no cost, since the store holds every token.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contamination.errors import InputError
from contamination.statistics.token_standardised import centred_tokens


def boundary_scores(
    logprobs: ArrayLike, leading: ArrayLike, position: ArrayLike, *, tokens_per_example: int | None
) -> NDArray[np.float64]:
    """One score per ordering of a shard: centred sum of the first tokens of every example.

    score[j] = sum over tokens t with position[t] < first, not leading in j, of l[j, t] - mean_t;
    mean_t is over the orderings in which t does not lead.

    Parameters
    ----------
    logprobs, leading
        As in `token_standardised_scores`.
    position : array_like of int, shape (T,)
        Position of each token within its example, from 0.
    tokens_per_example : int or None
        Tokens of each example that count, at least 1; None for all of them.

    Returns
    -------
    ndarray, shape (m+1,)
        Nats; larger is more evidence. Stack the shards to (r, m+1) for `sharded_exact_test`.

    Raises
    ------
    InputError
        As in `centred_tokens` and `position_scores`, or `tokens_per_example` below 1.

    Notes
    -----
    H0 and exactness as in `token_standardised_scores`: means symmetric in the rows, weights that do
    not depend on the row, hence permuting the rows permutes the scores. Monotone: raising one value
    of the canonical row by x raises its score by x (1 - 1/n) and lowers the other scores in which
    that token follows by x / n, with n the number of orderings in which it follows.

    Without centring, an ordering would be credited with minus the log-probability of its leading
    example, whose spread over examples hides the effect. Tamed tokens and other weights compose:
    ``position_scores(scaled_tokens(centred_tokens(l, leading), leading), position, weights)``.
    """
    values = centred_tokens(logprobs, leading)
    if tokens_per_example is None:
        tokens_per_example = int(np.max(position, initial=0)) + 1
    if tokens_per_example < 1:
        raise InputError(
            f"tokens_per_example is {tokens_per_example}: count at least 1, or None for all"
        )
    return position_scores(values, position, np.ones(tokens_per_example))


def position_scores(
    values: NDArray[np.float64], position: ArrayLike, weights: ArrayLike
) -> NDArray[np.float64]:
    """Sum over tokens weighted by their position: score[j] = sum_t weights[position[t]] v[j, t].

    Parameters
    ----------
    values : ndarray, shape (m+1, T)
        Centred tokens, clipped or scaled or as they are; 0 where a token leads.
    position : array_like of int, shape (T,)
        Position of each token within its example, from 0.
    weights : array_like, shape (b,)
        Weight of positions 0 to b-1; later positions have weight 0. The test stays exact for
        weights fixed in advance or learned on other sets, not for weights fitted to these scores.

    Returns
    -------
    ndarray, shape (m+1,)

    Raises
    ------
    InputError
        Positions that are not T integers from 0, or weights that are not a list of finite numbers.
    """
    where, by_position = np.asarray(position), np.asarray(weights, dtype=np.float64)
    if where.shape != values.shape[1:] or where.dtype.kind not in "iu" or (where < 0).any():
        raise InputError(
            f"position is {where.dtype} of shape {where.shape}: give {values.shape[1]} integers, "
            "each token's place within its example, from 0"
        )
    if by_position.ndim != 1 or not np.isfinite(by_position).all():
        raise InputError("weights are not a list of finite numbers: give one per position, from 0")
    counts = where < len(by_position)
    # Rows are summed one by one, not by a matrix product: equal rows must give equal scores.
    return np.asarray((values[:, counts] * by_position[where[counts]]).sum(axis=1))
