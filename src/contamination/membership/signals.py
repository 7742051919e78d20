"""Per-token signals: all that one pass of the model says of a text, for every score at once.

The rank of token t comes from the logits at position t-1, which predict it. The public
code of Fu et al. (2025) compares the logits at position t with the token at t, which
the model has just read; that rank is kept, too, under a name that says so.

One pass over the output layer gives all that the scores need; ranks, and the entropy of
the most probable tokens, take a third of it, and only if a score needs them. A block of
logits is a few megabytes and is gone once it has been read. Log-probabilities are in
float32.
"""

import math
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from contamination.membership.scores import TOP, Floats, TokenStatistics
from contamination.randomness import random_stream
from contamination.scoring.contract import Scorer
from contamination.scoring.head import Head
from contamination.scoring.local import TransformersScorer

LN2 = math.log(2)
BASIC = 3  # columns of `describe` without ranks
RANKED = 5 + len(TOP)  # and with them
BLOCK = {"cpu": 1 << 20, "cuda": 1 << 26}  # logits at a time: what a cache holds


def token_signals(
    scorer: Scorer,
    sequences: Sequence[np.ndarray],
    *,
    ranked: bool = True,
) -> list[TokenStatistics]:
    """Read token sequences, ids (T,) each, in one pass of the model, in their order.

    Long sequences are read in windows, and every token is scored once. A network that
    runs here is asked for everything, for ranks and the entropy of the most probable
    tokens only if `ranked`; any other scorer for log-probabilities. Raises InputError
    for unknown tokens, weights that give no numbers, and too little memory.
    """
    if not isinstance(scorer, TransformersScorer):
        return list(map(TokenStatistics, text_log_probs(scorer, sequences)))

    def described(hidden: Tensor, tokens: Tensor, read: Tensor) -> Tensor:
        return describe(scorer.head, hidden, tokens, read, ranked=ranked)

    columns = RANKED if ranked else BASIC
    results = scorer.token_values(sequences, None, described, (columns,))
    return [_as_statistics(values) for values in _in_order(results, sequences)]


def _as_statistics(values: Floats) -> TokenStatistics:
    """Name the columns of `describe` for one text, (T, BASIC) or (T, RANKED)."""
    log_probs, mean, std = np.ascontiguousarray(values[:, :BASIC].T)
    if values.shape[1] == BASIC:
        return TokenStatistics(log_probs=log_probs, mean=mean, std=std)
    # There, the token read is the start token, which is not of the text.
    values[:1, 4] = np.nan
    rank, rank_off_by_one = np.ascontiguousarray(values[:, BASIC:5].T)
    return TokenStatistics(
        log_probs=log_probs,
        rank=rank,
        rank_off_by_one=rank_off_by_one,
        mean=mean,
        std=std,
        top_entropy=np.ascontiguousarray(values[:, 5:]),
    )


def text_log_probs(scorer: Scorer, sequences: Sequence[np.ndarray]) -> list[Floats]:
    """Return the log-probabilities (nats) of the tokens of each sequence, (T,) each."""
    # A server may drift: members are not to be asked for before the others.
    order = random_stream(0, "order of texts").permutation(len(sequences))
    results = scorer.token_logprobs([sequences[i] for i in order])
    return _in_order(((order[i], values) for i, values in results), sequences)


def _in_order(
    results: Iterable[tuple[int, Floats]], sequences: Sequence[np.ndarray]
) -> list[Floats]:
    values_of: dict[int, Floats] = {}
    total = sum(len(ids) for ids in sequences)
    # Shown in a terminal alone.
    with tqdm(
        total=total,
        unit="tok",
        unit_scale=True,
        mininterval=1.0,
        leave=False,
        disable=None,
    ) as bar:
        for index, values in results:
            values_of[index] = values
            bar.update(len(values))
    return [values_of[index] for index in range(len(sequences))]


def describe(
    head: Head,
    hidden: Tensor,
    tokens: Tensor,
    read: Tensor,
    *,
    ranked: bool = True,
) -> Tensor:
    """Describe the distributions that hidden states predict.

    Parameters
    ----------
    head
        Output layer of the model.
    hidden
        States, [N, d].
    tokens
        Tokens that they predict, int64 [N].
    read
        Tokens that had just been read, one position before, int64 [N].
    ranked
        Whether all columns are wanted, or only the first `BASIC`.

    Returns
    -------
    Tensor
        float32 [N, RANKED] or [N, BASIC]. The columns: log-probability of the token
        (nats); mean and standard deviation of the log-probability under the
        distribution; its rank; the rank of the token read; for each k of `TOP` the sum
        of -p log p over the k most probable tokens. Rank 1 is the most probable.
    """
    shape = (len(tokens), RANKED if ranked else BASIC)
    result = torch.empty(shape, dtype=torch.float32, device=hidden.device)
    elements = BLOCK.get(hidden.device.type, BLOCK["cpu"])
    scratch = None
    for rows, logits in head.blocks(hidden, tokens[:, None], elements=elements):
        if scratch is None:
            scratch = torch.empty_like(logits)
        pair = torch.stack([tokens[rows], read[rows]], dim=1).to(logits.device)
        described = _block(logits, pair, scratch[: len(logits)], ranked=ranked)
        result[rows] = described.to(hidden.device)
    return result


def _block(logits: Tensor, pair: Tensor, scratch: Tensor, *, ranked: bool) -> Tensor:
    """Describe float32 logits [n, V], which are overwritten.

    `pair` [n, 2] is token and token read. `scratch` is a buffer of the same size as the
    logits: fresh memory costs more than the arithmetic.
    """
    picked = logits.gather(1, pair)
    if ranked:
        # Written as floats, comparisons and their sum use the vector units; exact up to
        # 2^24.
        columns = picked.T[..., None]
        above = [torch.gt(logits, column, out=scratch).sum(1) for column in columns]
        top = logits.topk(min(TOP[-1], logits.shape[1]), dim=1).values
        peak = top[:, :1].clone()
    else:
        peak = logits.amax(1, keepdim=True)
    # In base 2, whose exponential is the faster by far.
    torch.add(-peak / LN2, logits, alpha=1 / LN2, out=logits)
    weights = torch.exp2(logits, out=scratch)
    total = weights.sum(1)
    # A logit of -inf has weight 0 and no share in a mean, but 0 * -inf is NaN.
    mean = LN2 * weights.mul_(logits).nansum(1) / total
    square = LN2**2 * weights.mul_(logits).nansum(1) / total
    log_total = total.log()
    described = [
        picked[:, 0] - peak[:, 0] - log_total,
        mean - log_total,
        (square - mean.square()).clamp_(min=0).sqrt_(),
    ]
    if not ranked:
        return torch.stack(described, dim=1)
    log_top = top.sub_(peak).sub_(log_total[:, None])
    entropies = -(log_top.exp() * log_top).nan_to_num_(nan=0.0).cumsum(1)
    described += [above[0] + 1, above[1] + 1]
    described += [entropies[:, min(k, entropies.shape[1]) - 1] for k in TOP]
    return torch.stack(described, dim=1)
