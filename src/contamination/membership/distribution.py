"""What the predictive distribution says of a token beside its log-probability, block by block.

One pass over the output layer gives all that the scores need: the rank of the token, the mean and
the spread of the log-probabilities, and the entropy of the most probable tokens. A block of logits
is a few megabytes and is gone once it has been read. Log-probabilities are in float32.
"""

import math

import torch
from torch import Tensor

from contamination.membership.signals import TOP
from contamination.scoring.head import Head

LN2 = math.log(2)
BLOCK = {"cpu": 1 << 20, "cuda": 1 << 26}  # logits at a time: what a cache holds
GROUP = 16  # entries of the vocabulary that send their largest to the next round
MANY = 1024  # entries from which on a round of groups saves time


def describe(head: Head, hidden: Tensor, tokens: Tensor, read: Tensor) -> Tensor:
    """Describe the distributions that hidden states predict.

    Parameters
    ----------
    hidden : hidden states, [N, d].
    tokens : the tokens that they predict, int64 [N].
    read : the tokens that had just been read, one position before, int64 [N].

    Returns
    -------
    Tensor, float32 [N, 5 + len(TOP)]
        Log-probability of the token (nats); its rank; the rank of the token read; mean and standard
        deviation of the log-probability under the distribution; for each k of `TOP` the sum of
        -p log p over the k most probable tokens. Rank 1 is the most probable token.
    """
    result = torch.empty(len(tokens), 5 + len(TOP), dtype=torch.float32, device=hidden.device)
    elements = BLOCK.get(hidden.device.type, BLOCK["cpu"])
    scratch = None
    for rows, logits in head.blocks(hidden, tokens[:, None], elements=elements):
        if scratch is None:
            scratch = torch.empty_like(logits)
        pair = torch.stack([tokens[rows], read[rows]], dim=1).to(logits.device)
        result[rows] = _block(logits, pair, scratch[: len(logits)]).to(hidden.device)
    return result


def _block(logits: Tensor, pair: Tensor, scratch: Tensor) -> Tensor:
    """Describe float32 logits [n, V], which are overwritten; `pair` [n, 2] is token and token read.

    In place, in a scratch buffer of the same size: fresh memory costs more than the arithmetic.
    """
    picked = logits.gather(1, pair)
    # Written as floats, comparisons and their sum use the vector units; exact up to 2^24.
    above = [torch.gt(logits, column, out=scratch).sum(1) for column in picked.T[..., None]]
    top = largest(logits, min(TOP[-1], logits.shape[1]))
    peak = top[:, :1].clone()
    # In base 2, whose exponential is the faster by far.
    torch.add(-peak / LN2, logits, alpha=1 / LN2, out=logits)
    weights = torch.exp2(logits, out=scratch)
    total = weights.sum(1)
    # A logit of -inf has weight 0 and no share in a mean, but 0 * -inf is NaN.
    mean = LN2 * weights.mul_(logits).nansum(1) / total
    square = LN2**2 * weights.mul_(logits).nansum(1) / total
    log_total = total.log()
    log_top = top.sub_(peak).sub_(log_total[:, None])
    entropies = -(log_top.exp() * log_top).nan_to_num_(nan=0.0).cumsum(1)
    columns = [
        picked[:, 0] - peak[:, 0] - log_total,
        above[0] + 1,
        above[1] + 1,
        mean - log_total,
        (square - mean.square()).clamp_(min=0).sqrt_(),
        *(entropies[:, min(k, entropies.shape[1]) - 1] for k in TOP),
    ]
    return torch.stack(columns, dim=1)


def largest(values: Tensor, k: int) -> Tensor:
    """Return the k largest of each row, [n, k], in descending order.

    Those of the k groups with the largest maxima contain them; ties change no value.
    """
    count = values.shape[1] // GROUP
    if values.shape[1] < MANY or count < k:
        return values.topk(k, dim=1).values
    whole = values[:, : count * GROUP].view(-1, GROUP, count)
    best = whole.amax(1).topk(k, dim=1, sorted=False).indices
    members = whole.gather(2, best[:, None].expand(-1, GROUP, -1)).flatten(1)
    return torch.cat([members, values[:, count * GROUP :]], dim=1).topk(k, dim=1).values
