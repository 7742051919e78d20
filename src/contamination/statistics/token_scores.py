"""Scores of the orderings of one shard from its tokens, where loud tokens do not drown the many.

New here, on the per-token log-probabilities behind Oren section 3.2. Their L[i, j] is a plain sum
over tokens, so its noise is that of the few tokens whose log-probability swings by nats from one
ordering to the next. Here every token is first compared with itself in the other orderings of its
shard; then it is tamed (`token_standardised_scores`), or only the first tokens of each example
count (`boundary_scores`). The example that stands first in an ordering has no predecessor; its
tokens say nothing about the order of the set, and they are left out.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contamination.errors import InputError
from contamination.statistics.results import ROUNDING, check_finite

# Median and 90th percentile of the sd of a token over orderings are about 0.13 and 0.36 nats in
# small models: tokens that hardly move stay below their share, and those that swing are tamed.
# A small one counts tokens alike however little they move, numerical noise included; a large one
# returns to the sum of centred log-probabilities.
_FLOOR = 0.3


def token_standardised_scores(
    logprobs: ArrayLike, leading: ArrayLike, *, resolution: float = 0.0
) -> NDArray[np.float64]:
    """One score per ordering of a shard: the sum over tokens of standardised log-probabilities.

    score[j] = sum_t (l[j, t] - mean_t) / (sd_t + 0.3 nats), over tokens t not leading in j; mean_t
    and sd_t are over the orderings in which t does not lead. Larger is more evidence: stack the
    shards' (m+1,) to (r, m+1) for `sharded_exact_test`. Parameters and errors as in
    `centred_tokens`.

    Notes
    -----
    H0: the orderings of the shard, each a row of `logprobs` and `leading`, are exchangeable given
    the model. Exactness: mean_t and sd_t are symmetric in the rows, and row j enters score[j] alone
    besides; so permuting the rows permutes the scores, and exchangeable rows give exchangeable
    scores, which is all that `sharded_exact_test` asks. Nothing is asymptotic.

    The score is not monotone in the canonical row: raising one value also raises its sd_t. 1 / sd_t
    is the best weight for shifts proportional to sd_t, the plain centred sum for loud tokens'.
    """
    values = centred_tokens(logprobs, leading, resolution=resolution)
    follows = ~np.asarray(leading)
    squares = np.einsum("jt,jt->t", values, values)  # without an array of squares
    sd = np.sqrt(squares / np.maximum(follows.sum(axis=0), 1))
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
    """One score per ordering of a shard: centred sum of the first tokens of every example.

    score[j] = sum over tokens t with position[t] < tokens_per_example, not leading in j, of
    l[j, t] - mean_t; mean_t is over the orderings in which t does not lead.

    What a model remembers of an order shows most where it must guess the next example: in the first
    tokens after a boundary, before the example itself gives its continuation away. Leaving the rest
    out spares its noise at no cost, since the store holds every token.

    In nats, and monotone in the canonical row. `position` (T,) is that of each token within its
    example, from 0. The rest, what is returned, H0, exactness and errors are as in
    `token_standardised_scores`.
    """
    values = centred_tokens(logprobs, leading, resolution=resolution)
    # Rows are summed one by one, not by a matrix product: equal rows must give equal scores.
    return np.asarray(values[:, np.asarray(position) < tokens_per_example].sum(axis=1))


def centred_tokens(
    logprobs: ArrayLike, leading: ArrayLike, *, resolution: float = 0.0
) -> NDArray[np.float64]:
    """Each token (nats) minus its mean over the orderings in which it does not lead, else 0.

    A leading token is thereby given its mean over the others, so the score does not depend on how
    likely the example that happens to lead is: without centring, leaving it out would add minus its
    own log-probability to the score, far more noise than any order effect.

    `logprobs` (m+1, T) are the log-probabilities (nats) of each token of one shard in each
    ordering: a column is the same token of the same example in every ordering, row 0 is canonical.
    `leading`, of the same shape, says whether the example of the token stands first there. A token
    that moves by no more than `resolution` (nats) is 0 throughout: the engine cannot tell its
    log-probabilities apart. Permuting the rows of the input permutes those of the output. Raises
    InputError for another shape, `leading` that is not boolean, or a value that is not finite.
    """
    values, leads = np.array(logprobs, dtype=np.float64), np.asarray(leading)
    if leads.dtype != np.bool_ or leads.shape != values.shape or values.ndim != 2:
        raise InputError(
            f"logprobs has shape {values.shape} and leading, {leads.dtype}, {leads.shape}: give "
            "both as (m+1, T), one row per ordering, canonical first, and leading as bool"
        )
    check_finite(values, "logprobs")
    rounding = ROUNDING * np.abs(values).max(axis=0)
    values -= values.sum(axis=0, where=~leads) / np.maximum((~leads).sum(axis=0), 1)
    # A token that never moves must come out as zeros, or a silent shard would vote by its rounding.
    values[leads | (np.abs(values) <= rounding)] = 0
    values[:, np.ptp(values, axis=0) <= resolution] = 0
    return values
